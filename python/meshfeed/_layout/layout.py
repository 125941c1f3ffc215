"""Layouts: what each device holds, what each process reads, what it costs, and what is wrong.

A layout needs neither devices nor data, so a run can be planned and checked anywhere.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from meshfeed._io.arguments import DEPTH, PROCESSES, RECORDS, WIDE, Checks, cut, nearest_hint
from meshfeed._io.saving import write_whole
from meshfeed._layout import documents
from meshfeed._layout.documents import MeshPart
from meshfeed._layout.trees import resolve
from meshfeed._native import reports

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh

    from meshfeed import _types
    from meshfeed._data.dataset import Dataset
    from meshfeed._data.fields import Skipped
    from meshfeed._layout import page
    from meshfeed._layout.specs import Spec


@dataclasses.dataclass(frozen=True)
class Problem:
    """An error in a layout, or something worth knowing about it.

    Attributes:
        severity: "error" if no loader can run with it, else "warning" or "info".
        code: the kind of problem; the same in Go, C, the command and the browser page.
        path: a JSON Pointer into the layout's document.
        message: what was expected and what was found.
        hint: what to do.
        facts: the numbers in the message.
    """

    severity: str
    code: str
    path: str
    message: str
    hint: str
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        text = f"{self.severity}: {self.message}"
        return f"{text}; {self.hint}" if self.hint else text


class Layout:
    """The plan of a run: a mesh, the arrays of a batch, and facts about the dataset.

    Make one with `mf.layout`, read one with `Layout.from_json`, or use the layout of a loader.
    Printing it draws it; a notebook shows it as a picture.
    """

    def __init__(self, document: str | bytes) -> None:
        with Checks("mf.Layout") as check:
            if not isinstance(document, str | bytes):
                raise check.wrong("document", document, "the text of a layout document")
            self._text = reports.layout_canonical(document)

    @classmethod
    def from_json(cls, document: str | bytes) -> Layout:
        """Reads a layout document.

        Args:
            document: the JSON text that `to_json` returns; bytes are UTF-8.

        Raises:
            InvalidArgumentError: it is not a layout document; the message says where.
        """
        return cls(document)

    def to_json(self) -> str:
        """Returns the document in its canonical form, the same bytes in Go, C and Python."""
        return self._text

    def check(self) -> list[Problem]:
        """Lists errors, warnings and remarks; the list is empty if the layout is right."""
        return [Problem(**problem) for problem in self.report()["problems"]]

    def report(self, *, tables: bool = False) -> dict[str, Any]:
        """Returns everything that is known about the layout, as `meshfeed plan --json` prints it.

        What each device needs is in ``["arrays"][name]["devices"]``: its process, its id, and the
        [start, stop) of every dimension.

        Args:
            tables: whether to list every device also in meshes of more than 1,024.

        Examples:
            >>> import meshfeed as mf
            >>> specs, fields = {"x": mf.P("data")}, {"x": ("float32", (6,))}
            >>> layout = mf.layout({"data": 4}, specs, fields, batch_size=8, processes=2)
            >>> devices = layout.report()["arrays"]["x"]["devices"]
            >>> [device["index"] for device in devices if device["process"] == 1]
            [[[4, 6], [0, 6]], [[6, 8], [0, 6]]]
        """
        with Checks("Layout.report"):
            return reports.layout_report(self._text, tables=tables)

    @property
    def processes(self) -> Sequence[int]:
        """The numbers of the processes that own devices, in ascending order."""
        mesh = json.loads(self._text)["mesh"]
        if "devices" in mesh:
            return sorted({process for process, _ in mesh["devices"]})
        return range(mesh.get("processes", 1))

    def draw(self, array: str | None = None, *, dims: tuple[int, int] | None = None) -> str:
        """Draws which device holds what, and which process reads which rows.

        Args:
            array: the name of one array; by default all of them.
            dims: the two dimensions to draw.

        Returns:
            A picture of at most 80 columns.
        """
        return self._drawn(array, dims, svg=False)

    def to_svg(self, array: str | None = None, *, dims: tuple[int, int] | None = None) -> str:
        """Draws the same picture as SVG.

        Args:
            array: the name of one array; by default all of them.
            dims: the two dimensions to draw.
        """
        return self._drawn(array, dims, svg=True)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the browser page with this layout: one file, which needs no network.

        Args:
            path: the file, such as ``"layout.html"``.

        Raises:
            UnsupportedError: the C library was built without the page.
            NotFoundError: there is no such folder.
            ReadError: the file cannot be written, and is unchanged.
        """
        with Checks("Layout.to_html") as check:
            if not isinstance(path, str | os.PathLike):
                raise check.wrong("path", path, "a path")
            write_whole(Path(path), reports.layout_page(self._text), op="Layout.to_html")

    def serve(self, port: int = 0) -> page.Server:
        """Serves the browser page with this layout to the browsers of this machine.

        Args:
            port: the port; by default a free one.

        Returns:
            A server with an `url`. `close()`, the end of its `with` block or of the program ends
            it. A script waits for Ctrl-C with `layout.serve().wait()`.

        Raises:
            UnsupportedError: the C library was built without the page.
            ReadError: the port cannot be used.
        """
        from meshfeed._layout import page

        with Checks("Layout.serve") as check:
            number = check.integer("port", port, 0, 65535)
            return page.Server(reports.layout_page(self._text), number)

    def _drawn(self, array: Any, dims: Any, *, svg: bool) -> str:
        shapes = {}
        with Checks("mf.Layout") as check:
            if array is not None or dims is not None:
                arrays = self.report()["arrays"]  # with mask and extras, unlike the document
                shapes = {name: part["global_shape"] for name, part in arrays.items()}
            if array is not None:
                if array not in shapes:
                    hint = nearest_hint(array, tuple(shapes))
                    raise check.wrong("array", array, "the name of an array", hint)
                shapes = {array: shapes[array]}
            if dims is not None:
                dims = check.dims(dims, max(map(len, shapes.values())))
            return reports.layout_drawing(self._text, svg=svg, array=array, dims=dims)

    def __str__(self) -> str:
        return self.draw()

    def __repr__(self) -> str:
        document = json.loads(self._text)
        axes = ", ".join(f"{name!r}: {size}" for name, size in document["mesh"]["axes"])
        size = document.get("batch", {}).get("size")
        arrays = cut(str(list(document["arrays"])))
        return f"Layout(mesh=({axes}), arrays={arrays}, batch_size={size})"

    def _repr_html_(self) -> str:
        return f"<div>{self.to_svg()}</div>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)


def layout(
    mesh: Mapping[str, int] | Mesh | AbstractMesh | None,
    specs: _types.Tree,
    fields: Mapping[str, tuple[Any, Sequence[int]]] | Dataset,
    *,
    batch_size: int | tuple[int, ...],
    records: int | None = None,
    processes: int = 1,
    devices: Sequence[tuple[int, int]] | None = None,
    remainder: _types.Remainder = "drop",
    mask_name: str = "valid",
    mask_spec: Spec | None = None,
    extras: Sequence[Literal["key", "record"]] = (),
    prefetch: int = 2,
    shuffle: bool | None = None,
    order: _types.Order | None = None,
    seed: int = 0,
    loading: _types.Loading = "process",
    device_bytes: int | None = None,
    host_bytes: int | None = None,
) -> Layout:
    """Plans a run, for any process of any mesh, without devices or data.

    Args:
        mesh: axis names and sizes, such as ``{"data": 4, "model": 2}``, or a JAX mesh. None is the
            mesh of `jax.set_mesh`.
        specs: one spec, or a tree of specs; as in `Loader`.
        fields: a dataset, or the type and the shape of a row of every field.
        batch_size: rows of the global batch.
        records: the number of records in the dataset, if it is known.
        processes: how many processes own the devices in equal parts, if `mesh` is a dict.
        devices: the (process, id) of every device in mesh order, if `mesh` is a dict.
        remainder: what happens to the records that do not fill the last step: "drop", "pad" or
            "error".
        mask_name: with "pad", the name of the mask.
        mask_spec: with "pad", the spec of the mask; by default the entries that all arrays share.
        extras: a list of "key" and "record", as in `Loader`.
        prefetch: how many batches to read ahead.
        shuffle: whether the order is shuffled.
        order: the name of the order, as in `Loader`.
        seed: the seed of the order.
        loading: what every process reads, as in `Loader`. The report lists how many bytes are then
            read, held and moved.
        device_bytes: the most memory of a device for one batch; if it needs more, that is an error.
        host_bytes: the most memory of a process for batches that are read ahead; if they need more,
            that is an error.

    Examples:
        >>> import meshfeed as mf
        >>> lay = mf.layout({"data": 4, "model": 2},
        ...                 {"image": mf.P("data", None, "model"), "label": mf.P("data")},
        ...                 {"image": ("float32", (8, 8)), "label": ("int32", ())},
        ...                 batch_size=256, records=1797, processes=4)
        >>> lay
        Layout(mesh=('data': 4, 'model': 2), arrays=['image', 'label'], batch_size=256)
        >>> lay.check()
        []
        >>> lay.report()["processes"][1]["rows"]
        [[64, 128]]
        >>> mf.layout({"data": 4}, mf.P("data"), {"x": ("float32", (8,))},
        ...           batch_size=30).check()[0].code
        'indivisible'
        >>> for how in ("process", "global", "device", "reshard"):
        ...     lay = mf.layout({"data": 4, "model": 2}, mf.P("data"), {"x": ("float32", (8,))},
        ...                     batch_size=256, processes=4, loading=how)
        ...     totals = lay.report()["totals"]
        ...     print(how, totals["read_bytes"], totals["interconnect_bytes"])
        process 8192 0
        global 32768 0
        device 16384 0
        reshard 8192 8192
    """
    with Checks("mf.layout") as check:
        skipped: Sequence[Skipped] = getattr(fields, "skipped", ())
        skipped = getattr(fields, "_not_arrays", skipped)
        facts = check.fields(fields)
        if hasattr(fields, "schema"):
            records = len(fields) if records is None else records
        name = check.order(order, shuffle)
        seed = check.integer("seed", seed, -WIDE, WIDE)
        records = check.optional("records", records, 0, RECORDS)
        known = None
        if records is not None:
            known = documents.dataset(
                records,
                facts,
                commits=getattr(fields, "_commits", ()),
                far_bytes=getattr(fields, "_far_bytes", 0),
                order=name,
                seed=seed,
            )
        budget = {"device_bytes": device_bytes, "host_bytes": host_bytes}
        limits = {key: check.optional(key, n, 1, WIDE) for key, n in budget.items()}
        where = _mesh(check, mesh, processes, devices)
        tree = resolve(specs, tuple(facts), skipped)
        batch = documents.batch(check, batch_size, remainder, mask_name, mask_spec, extras)
        return Layout(
            documents.write(
                mesh=where,
                arrays=documents.arrays(tree, facts, batch["size"]),
                batch=batch,
                dataset=known,
                prefetch=check.integer("prefetch", prefetch, 0, DEPTH),
                loading=check.loading(loading),
                budget={key: n for key, n in limits.items() if n is not None},
            )
        )


def _mesh(check: Checks, mesh: Any, processes: Any, devices: Any) -> MeshPart:
    if mesh is None and "jax" in sys.modules:
        from meshfeed._jax.runtime import context_mesh

        mesh = context_mesh()
    if not isinstance(mesh, Mapping) and isinstance(getattr(mesh, "shape", None), Mapping):
        from meshfeed._jax.meshes import describe_mesh, has_devices

        if devices is None and has_devices(mesh):
            return describe_mesh(mesh)
        axes = [list(axis) for axis in mesh.shape.items()]
    else:
        axes = check.axes(mesh)
    size = math.prod(n for _, n in axes)
    if devices is not None:
        owners, ids = zip(*check.devices(devices, size), strict=True)
        return MeshPart.of(axes, owners, ids)
    count = check.integer("processes", processes, 1, PROCESSES)
    if size % count:
        hint = "if processes have different numbers of devices, list them with devices="
        raise check.wrong("processes", count, f"a divisor of the {size} devices", hint)
    return MeshPart.of(axes, count)
