"""The options of a loader: what its caller asked for, checked once."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from meshfeed._data.dataset import Dataset, fixed_fields, not_arrays
from meshfeed._io.arguments import Checks
from meshfeed._jobs.options import JobOptions
from meshfeed._layout import documents
from meshfeed._layout.layout import Layout
from meshfeed._layout.trees import resolve, specs_of


@dataclasses.dataclass(frozen=True)
class Options:
    """The checked options of a loader; see `Loader`. None is the default.

    `of_specs` or `of_layout` adds the batches. Batches are `jax.Array`s if there are specs,
    else NumPy's.

    Attributes:
        source: the dataset.
        peers: the options about other processes.
        order: the name of the order, which may be a short one such as "local".
        seed: the seed of the order.
        epochs: the number of epochs, -1 for no end. None: every loop is one epoch.
        prefetch: the number of batches to read ahead.
        device_prefetch: the number of batches to send to their devices ahead.
        max_host_bytes: the largest memory of all batches of this process.
        state: the text of the state to continue from.
        ignore_dataset: whether the state may belong to another dataset.
        fill: the values that replace nulls, by field.
        mesh: the mesh, or None if the specs have it, or none is needed.
        specs: the tree of specs, or None.
        parts: the parts of the layout document that the caller has chosen: "batch" and "loading",
            or all but "mesh" if the caller gave a layout and a mesh.
        mask_name: the name of the mask, if there is one.
        arrow: whether batches are record batches.
        simulated: the layout and the process, if the batches are the blocks of one process.
    """

    source: Dataset
    peers: JobOptions
    order: str | None
    seed: int | None
    epochs: int | None
    prefetch: int | None
    device_prefetch: int | None
    max_host_bytes: int | None
    state: bytes | None
    ignore_dataset: bool
    fill: Mapping[str, Any] | None
    mesh: Any = None
    specs: Any = None
    parts: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    mask_name: str = "valid"
    arrow: bool = False
    simulated: tuple[Layout, int] | None = None

    def of_specs(
        self,
        check: Checks,
        mesh: Any,
        specs: Any,
        *,
        batch_size: Any,
        remainder: Any,
        mask_name: Any,
        mask_spec: Any,
        extras: Sequence[Any],
        loading: str,
        arrow: bool,
    ) -> Options:
        """Adds the batches of a tree of specs.

        Bare specs without a mesh get the mesh of `jax.set_mesh`. The loader keeps that mesh, also
        if it plans again outside of the context.
        """
        batch = documents.batch(check, batch_size, remainder, mask_name, mask_spec, extras)
        if arrow and isinstance(batch["size"], list):
            expected = "a number beside arrow=True: a record batch has one dimension of rows"
            raise check.wrong("batch_size", batch_size, expected)
        if mesh is None and specs is not None:
            tree = resolve(specs, tuple(fixed_fields(self.source)), not_arrays(self.source))
            if any(leaf.spec is not None and leaf.sharding is None for leaf in tree.leaves):
                mesh = _context_mesh()
        parts = {"batch": batch, "loading": loading}
        return dataclasses.replace(
            self, mesh=mesh, specs=specs, parts=parts, mask_name=mask_name, arrow=arrow
        )

    def of_layout(
        self,
        check: Checks,
        layout: Layout,
        mesh: Any,
        process: int | None,
        others: Mapping[str, Any],
    ) -> Options:
        """Adds the batches of a layout: on a JAX mesh, or the blocks of one of its processes.

        Args:
            check: raises errors with the name of the caller's function.
            layout: the layout.
            mesh: the mesh, which may have more axes, of size 1; None: the mesh of `jax.set_mesh`.
            process: the process, instead of a mesh.
            others: the arguments that the layout replaces, by name. They must have their defaults.
        """
        if given := [name for name, value in others.items() if not _is_default(name, value)]:
            message = f"{' and '.join(f'{name}=' for name in given)} beside layout=, which contains"
            message += " specs, batch size, remainder, mask, extras and loading"
            raise check.misfit(message, "leave that out, or make another layout with mf.layout")
        if process is not None:
            if mesh is not None:
                message = "a mesh beside process=: the blocks of a process go to no device"
                raise check.misfit(message, "leave out process= for jax.Arrays on the mesh")
            return dataclasses.replace(self, simulated=(layout, process))
        parts = json.loads(layout.to_json())
        planned = dict(parts.pop("mesh")["axes"])
        mesh = _context_mesh() if mesh is None else mesh
        if mesh is None:
            message = (
                "a layout has no devices: a mesh is missing, or the process whose blocks to load"
            )
            hint = f"for jax.Arrays use mf.Loader(ds, {_make_mesh(planned)}, layout=…); "
            hint += "for NumPy blocks use mf.Loader(ds, layout=…, process=0)"
            raise check.misfit(message, hint)
        from meshfeed._jax import meshes

        mesh = meshes.one_mesh(check, mesh, [])
        axes = dict(mesh.shape)
        wide = [(name, size) for name, size in axes.items() if size > 1 or name in planned]
        if wide != list(planned.items()):
            message = f"the mesh has the axes {axes}, but the layout has {planned}"
            hint = f"give {_make_mesh(planned)}, or make a layout for this mesh with mf.layout"
            raise check.misfit(message, hint)
        name = parts.get("batch", {}).get("mask", "valid")
        return dataclasses.replace(
            self, mesh=mesh, specs=specs_of(parts["arrays"]), parts=parts, mask_name=name
        )

    def on_mesh(self, check: Checks, mesh: Any, specs: Any) -> Options:
        """Returns the same options for another mesh, and for other specs unless they are None."""
        if specs is None:
            tree = resolve(self.specs, tuple(fixed_fields(self.source)))
            if all(leaf.spec is None for leaf in tree.leaves):
                message = "this loader gives NumPy arrays, and has no mesh"
                raise check.misfit(message, "give specs= too, or make another with state=")
            from meshfeed._jax import meshes

            specs = meshes.on_mesh(check, self.specs, mesh)
            return dataclasses.replace(self, mesh=mesh, specs=specs)
        parts = {key: part for key, part in self.parts.items() if key != "arrays"}
        return dataclasses.replace(self, mesh=mesh, specs=specs, parts=parts)

    def with_remainder(self, check: Checks, remainder: Any) -> Options:
        """Returns the same options with another remainder."""
        part = documents.last_step(check, remainder, self.mask_name)
        rest = {key: value for key, value in self.batch.items() if not key.startswith("mask")}
        return dataclasses.replace(self, parts={**self.parts, "batch": rest | part})

    @property
    def batch(self) -> dict[str, Any]:
        """The part "batch" of the layout document."""
        part: dict[str, Any] = self.parts.get("batch", {})
        return part

    def fields(self, process: int, run: int | None) -> dict[str, Any]:
        """Returns the fields of `mf_loader_options` that are not left to the library.

        Args:
            process: the process whose blocks to load.
            run: the number of processes of the run; None for the number in the layout.
        """
        names = "order", "seed", "prefetch", "max_host_bytes", "state", "ignore_dataset", "fill"
        given = {name: getattr(self, name) for name in names}
        # With None the C loader has no end, and `Batches` ends every loop after one epoch.
        given["epochs"] = -1 if self.epochs is None else self.epochs
        given |= {"process": process, "processes": run}
        return {name: value for name, value in given.items() if value is not None}


_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "remainder": ("drop",),
    "mask_name": ("valid",),
    "extras": ((), []),
    "loading": ("process",),
    "arrow": (False,),
}


def _is_default(name: str, value: Any) -> bool:
    defaults = _DEFAULTS.get(name, (None,))
    return any(type(value) is type(default) and value == default for default in defaults)


def _context_mesh() -> Any:
    """Returns the mesh of `jax.set_mesh`, or None. It does not import JAX."""
    if "jax" not in sys.modules:
        return None
    from meshfeed._jax import runtime

    return runtime.context_mesh()


def _make_mesh(axes: Mapping[str, int]) -> str:
    return f"jax.make_mesh({tuple(axes.values())}, {tuple(axes)})"
