"""Layout documents: the JSON text that tells Go what a user asks for."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from meshfeed._io.arguments import Checks
from meshfeed._layout.specs import entries, is_spec
from meshfeed._layout.trees import Tree
from meshfeed.errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True)
class MeshPart:
    """The part of a layout document that describes the mesh.

    A mesh of thousands of devices is described anew whenever it loses a device. So the text is
    written directly: a list per device would start Python's garbage collector.

    Attributes:
        text: the part, as JSON.
        processes: the processes that own devices, in ascending order.
    """

    text: str
    processes: Sequence[int]

    @classmethod
    def of(
        cls,
        axes: Sequence[Sequence[Any]],
        processes: Sequence[int] | int = 1,
        ids: Sequence[int] | None = None,
    ) -> MeshPart:
        """Describes a mesh.

        Args:
            axes: [name, size] of every axis.
            processes: the process of every device in mesh order, or how many processes own the
                devices in equal parts.
            ids: the id of every device in mesh order, if they are known.
        """
        text = f'{{"axes": {json.dumps(axes)}'
        if isinstance(processes, int):
            return cls(f'{text}, "processes": {processes}}}', range(processes))
        assert ids is not None
        devices = ", ".join(map("[%d, %d]".__mod__, zip(processes, ids, strict=True)))
        return cls(f'{text}, "devices": [{devices}]}}', sorted(set(processes)))

    def document(self, rest: Mapping[str, Any]) -> str:
        """Returns the text of a layout document.

        Args:
            rest: its other parts; None values are omitted.
        """
        given = {key: part for key, part in rest.items() if part is not None}
        return f'{{"meshfeed": 1, "mesh": {self.text}, {json.dumps(given)[1:]}'


def write(
    *,
    mesh: MeshPart,
    arrays: Mapping[str, Any],
    batch: dict[str, Any],
    dataset: dict[str, Any] | None,
    prefetch: int,
    loading: str,
    budget: dict[str, int] | None = None,
) -> str:
    """Writes a layout document.

    Args:
        mesh: the part "mesh".
        arrays: the part "arrays".
        batch: the part "batch".
        dataset: the part "dataset", if the dataset is known.
        prefetch: how many batches to read ahead.
        loading: "process", "global", "device" or "reshard", as in `Loader`.
        budget: the part "budget".
    """
    parts = {"arrays": arrays, "batch": batch or None, "dataset": dataset}
    return mesh.document({**parts, "loading": loading, "prefetch": prefetch, "budget": budget})


def arrays(
    tree: Tree, fields: Mapping[str, tuple[str, list[int]]], size: int | list[int]
) -> dict[str, Any]:
    """Returns the part "arrays" of a document.

    Args:
        tree: the arrays.
        fields: the delivered type and the shape of a row of every field.
        size: the batch size, as in the part "batch".
    """
    names = [f"B{i}" for i in range(len(size))] if isinstance(size, list) else ["B"]
    parts = {}
    for leaf in tree.leaves:
        dtype, row = fields[leaf.field]
        array: dict[str, Any] = {"field": leaf.field}
        if leaf.columns is not None:
            array["columns"] = leaf.columns
            if not row:
                message = f"array {leaf.name!r} takes columns of field {leaf.field!r}"
                message += ", whose rows are scalars"
                raise InvalidArgumentError(message, hint="leave out columns=")
            row = [sum(stop - start for start, stop in leaf.columns), *row[1:]]
        parts[leaf.name] = array | {"shape": names + row, "dtype": dtype, "spec": leaf.spec or []}
    return parts


def batch(
    check: Checks,
    size: int | tuple[int, ...] | None,
    remainder: str,
    mask_name: str,
    mask_spec: Any,
    extras: Sequence[str],
) -> dict[str, Any]:
    """Returns the part "batch" of a document, from the arguments of a layout or loader."""
    part = {"size": check.batch_size(size), **last_step(check, remainder, mask_name)}
    if mask_spec is not None:
        if not is_spec(mask_spec):
            raise check.wrong("mask_spec", mask_spec, "a PartitionSpec")
        if remainder != "pad":
            expected, hint = "None", 'there is a mask only with remainder="pad"'
            raise check.wrong("mask_spec", mask_spec, expected, hint)
        part["mask_spec"] = entries(mask_spec)
    if names := check.extras(extras):
        part["extras"] = names
    return part


def last_step(check: Checks, remainder: Any, mask_name: Any) -> dict[str, Any]:
    """Returns the members of "batch" about the records that do not fill the last step."""
    part = {"remainder": check.choice("remainder", remainder, "drop", "pad", "error")}
    if remainder == "pad":
        part["mask"] = check.name("mask_name", mask_name)
    return part


def dataset(
    records: int,
    fields: Mapping[str, tuple[str, list[int]]],
    *,
    commits: Sequence[str],
    far_bytes: int,
    order: str | None,
    seed: int,
) -> dict[str, Any]:
    """Returns the part "dataset" of a document."""
    facts = {name: {"shape": shape, "dtype": dtype} for name, (dtype, shape) in fields.items()}
    given = {"records": records, "fields": facts, "order": order or "sequential.1", "seed": seed}
    more = {"far_bytes": far_bytes, "commits": list(commits)}
    return given | {key: value for key, value in more.items() if value}


def devices(mesh: Mapping[str, Any]) -> list[Any]:
    """Returns [process, id] of every device in mesh order, also if the document omits them.

    Args:
        mesh: the part "mesh" of the document.
    """
    size = math.prod(n for _, n in mesh["axes"])
    each = size // mesh.get("processes", 1)
    listed: list[Any] = mesh.get("devices") or [[i // each, i] for i in range(size)]
    return listed


def with_order(text: str, order: str) -> str:
    """Replaces the order of a document, if it has one, by an order with parameters."""
    if ":" not in order:
        return text
    document = json.loads(text)
    if "order" not in document.get("dataset", {}):
        return text
    document["dataset"]["order"] = order
    return json.dumps(document)
