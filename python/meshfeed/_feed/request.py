"""What the user asks for, as a layout document and a feed that makes its batches."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from meshfeed._feed.arrowfeed import ArrowFeed
from meshfeed._feed.feed import BlocksFeed, Build, Feed
from meshfeed._feed.options import Options
from meshfeed._io.arguments import Checks
from meshfeed._native.arrow import format_of
from meshfeed._plan import documents
from meshfeed._plan.blocks import Blocks
from meshfeed._plan.trees import Tree, for_all, no_specs, resolve, specs_of
from meshfeed.dataset import Dataset, fixed_fields, not_arrays, warn_of_skipped
from meshfeed.errors import InvalidArgumentError
from meshfeed.planning import Layout


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a loader needs to know before the library has seen its layout.

    Attributes:
        document: the layout document.
        processes: all processes that own devices, in ascending order.
        process: the process whose blocks to load.
        feed: makes the feed from the blocks that the library describes.
        run: the number of processes of the run, also those outside of the mesh; None for those of
            the mesh.
    """

    document: str
    processes: Sequence[int]
    process: int
    feed: Callable[[Sequence[Blocks]], Feed]
    run: int | None = None

    @property
    def alone(self) -> bool:
        """Whether all devices belong to this process, in a run of several processes."""
        return (self.run or 1) > 1 and list(self.processes) == [self.process]


@dataclasses.dataclass(frozen=True)
class Request:
    """Whole batches as the user asks for them: `jax.Array`s if there are specs, else NumPy's.

    Attributes:
        source: the dataset.
        mesh: the mesh, or None if the specs have it, or none is needed.
        specs: the tree of specs, or None.
        batch: the part "batch" of the layout document.
        mask_name: the name of the mask, if there is one.
        loading: "process", "global", "device" or "reshard", as in `Loader`.
        options: the other options. Order, seed and prefetch also go into the layout document.
        planned: the other parts of the layout document, if the user gave a layout.
        arrow: whether batches are record batches.
    """

    source: Dataset
    mesh: Any
    specs: Any
    batch: dict[str, Any]
    mask_name: str
    loading: str
    options: Options
    planned: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    arrow: bool = False

    @classmethod
    def of_layout(
        cls, check: Checks, source: Dataset, mesh: Any, layout: Layout, options: Options
    ) -> Request:
        """Returns the request for the batches of a layout on a JAX mesh with its axes.

        The mesh may have more axes, of size 1.
        """
        from meshfeed._jax import meshes

        parts = json.loads(layout.to_json())
        mesh = meshes.one_mesh(check, mesh, [])
        axes, planned = dict(mesh.shape), dict(parts.pop("mesh")["axes"])
        wide = [(name, size) for name, size in axes.items() if size > 1 or name in planned]
        if wide != list(planned.items()):
            message = f"the mesh has the axes {axes}, but the layout has {planned}"
            hint = f"give {_make_mesh(planned)}, or make a layout for this mesh with mf.layout"
            raise check.misfit(message, hint)
        specs = specs_of(parts["arrays"])
        batch = parts.pop("batch", {})
        name = batch.get("mask", "valid")
        loading = parts.get("loading", "process")
        return cls(source, mesh, specs, batch, name, loading, options, parts)

    def on_context(self) -> Request:
        """Returns the request on the mesh of `jax.set_mesh`, if it has bare specs and no mesh.

        The loader keeps that mesh, also if it plans again outside of the context.
        """
        if self.mesh is not None or self.specs is None:
            return self
        tree = resolve(self.specs, tuple(fixed_fields(self.source)), not_arrays(self.source))
        if all(leaf.spec is None or leaf.sharding is not None for leaf in tree.leaves):
            return self
        return dataclasses.replace(self, mesh=_context_mesh())

    def on_mesh(self, check: Checks, mesh: Any, specs: Any) -> Request:
        """Returns the same request for another mesh, and for other specs unless they are None."""
        if specs is None:
            tree = resolve(self.specs, tuple(fixed_fields(self.source)))
            if all(leaf.spec is None for leaf in tree.leaves):
                message = "this loader gives NumPy arrays, and has no mesh"
                raise check.misfit(message, "give specs= too, or make another with state=")
            from meshfeed._jax import meshes

            specs = meshes.on_mesh(check, self.specs, mesh)
            return dataclasses.replace(self, mesh=mesh, specs=specs)
        planned = {key: part for key, part in self.planned.items() if key != "arrays"}
        return dataclasses.replace(self, mesh=mesh, specs=specs, planned=planned)

    def with_remainder(self, check: Checks, remainder: Any) -> Request:
        """Returns the same request with another remainder."""
        part = documents.last_step(check, remainder, self.mask_name)
        rest = {key: value for key, value in self.batch.items() if not key.startswith("mask")}
        return dataclasses.replace(self, batch=rest | part)

    def with_order(self, order: str) -> Request:
        """Returns the same request with another order."""
        return dataclasses.replace(self, options=dataclasses.replace(self.options, order=order))

    def plan(self, check: Checks) -> Plan:
        """Writes the layout document, and finds the process and the feed."""
        source, options = self.source, self.options
        fields = fixed_fields(source)
        tree = resolve(self.specs, tuple(fields), not_arrays(source))
        if for_all(self.specs):
            warn_of_skipped(source)
        _check_top(tree, self.batch)
        bare = [leaf.spec is None for leaf in tree.leaves]
        if any(bare) and not all(bare):
            name = tree.leaves[bare.index(True)].name
            message = f"array {name!r} has no spec, but others have one"
            hint = "give every array a spec; P() puts the whole array on every device"
            raise InvalidArgumentError(message, hint=hint)
        if self.arrow and not all(bare):
            name = tree.leaves[bare.index(False)].name
            message = (
                f"arrow=True gives whole batches in host memory, but array {name!r} has a spec"
            )
            raise check.misfit(message, "leave out mesh and specs, or give a list of field names")
        target = _whole(check, tree, self) if all(bare) else _sharded(check, tree, self)
        facts = {f.name: (f.dtype, list(f.shape)) for f in fields.values()}
        given = {"order": options.order, "seed": options.seed}
        dataset = documents.dataset(len(source), facts, order=None, seed=0)
        dataset |= self.planned.get("dataset", {})
        dataset |= {key: value for key, value in given.items() if value is not None}
        prefetch = self.planned.get("prefetch", 2)
        document = documents.write(
            mesh=target.mesh,
            arrays=self._arrays(tree, facts, target.delivered),
            batch=self.batch,
            dataset=dataset,
            prefetch=prefetch if options.prefetch is None else options.prefetch,
            loading=self.loading,
            budget=self.planned.get("budget"),
        )
        return Plan(document, target.mesh.processes, target.process, target.feed, target.run)

    def _arrays(
        self,
        tree: Tree,
        facts: Mapping[str, tuple[str, list[int]]],
        delivered: Callable[[str], str],
    ) -> dict[str, Any]:
        """Returns the part "arrays" of the document, with the types that are delivered."""
        if planned := self.planned.get("arrays"):
            return {
                name: array | {"dtype": delivered(array["dtype"])}
                for name, array in planned.items()
            }
        fields = {name: (delivered(dtype), shape) for name, (dtype, shape) in facts.items()}
        return documents.arrays(tree, fields, self.batch["size"])


def target_mesh(check: Checks, layout: Layout, mesh: Any, process: Any, others: Any) -> Any:
    """Returns the mesh on which a layout is loaded, or None if a process is given instead.

    Args:
        check: raises errors with the name of the user's call.
        layout: the layout.
        mesh: the mesh that the user gave, or None for that of `jax.set_mesh`.
        process: the process that the user gave, or None.
        others: the arguments that the layout replaces, by name. They must have their defaults.
    """
    if given := [name for name, value in others.items() if not _is_default(name, value)]:
        message = f"{' and '.join(f'{name}=' for name in given)} beside layout=, which contains"
        message += " specs, batch size, remainder, mask, extras and loading"
        raise check.misfit(message, "leave that out, or make another layout with mf.layout")
    if mesh is not None and process is not None:
        message = "a mesh beside process=: the blocks of a process go to no device"
        raise check.misfit(message, "leave out process= for jax.Arrays on the mesh")
    if mesh is None and process is None:
        mesh = _context_mesh()
    if mesh is None and process is None:
        axes = dict(json.loads(layout.to_json())["mesh"]["axes"])
        message = "a layout has no devices: a mesh is missing, or the process whose blocks to load"
        hint = f"for jax.Arrays use mf.Loader(ds, {_make_mesh(axes)}, layout=…); "
        hint += "for NumPy blocks use mf.Loader(ds, layout=…, process=0)"
        raise check.misfit(message, hint)
    return mesh


_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "remainder": ("drop",),
    "mask_name": ("valid",),
    "extras": ((), []),
    "loading": ("process",),
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


def replay(check: Checks, layout: Layout, process: int) -> Plan:
    """Plans a loader of the blocks of one process, for any process of any layout."""
    processes = layout.processes
    return Plan(layout.to_json(), processes, check.process(process, processes), BlocksFeed)


@dataclasses.dataclass(frozen=True)
class _Target:
    """Where batches go. `delivered` returns the type that a field's type becomes there."""

    mesh: documents.MeshPart
    process: int
    feed: Callable[[Sequence[Blocks]], Feed]
    delivered: Callable[[str], str] = str
    run: int | None = None


def _whole(check: Checks, tree: Tree, request: Request) -> _Target:
    if request.mesh is not None:
        message = "a mesh was given, but no spec says how arrays are partitioned over it"
        hint = "give specs, or leave out mesh= for NumPy arrays"
        raise check.misfit(message, no_specs(request.mesh, hint))
    no_mesh = documents.MeshPart.of([])
    if request.arrow:
        schema = request.source.schema
        formats = [format_of(schema[leaf.field].logical) for leaf in tree.leaves]
        return _Target(no_mesh, 0, lambda blocks: ArrowFeed(blocks, formats))
    return _Target(no_mesh, 0, lambda blocks: Feed(_with_extras(tree, blocks), blocks))


def _sharded(check: Checks, tree: Tree, request: Request) -> _Target:
    from meshfeed._jax import meshes, runtime
    from meshfeed._jax.feed import ShardedFeed

    loading = request.loading
    shardings = [leaf.sharding for leaf in tree.leaves]
    mesh = meshes.one_mesh(check, request.mesh, shardings)
    if loading == "reshard":
        from meshfeed._jax import reshard

        specs = {leaf.name: leaf.spec or [] for leaf in tree.leaves}
        reshard.check_moves(check, mesh, specs | {"mask": request.batch.get("mask_spec", [])})

    def feed(blocks: Sequence[Blocks]) -> Feed:
        given = shardings + [None] * (len(blocks) - len(shardings))
        return ShardedFeed(_with_extras(tree, blocks), blocks, mesh, given, loading)

    process, run = runtime.process_index(), runtime.process_count()
    return _Target(meshes.describe_mesh(mesh), process, feed, runtime.delivered_name, run)


def _check_top(tree: Tree, batch: dict[str, Any]) -> None:
    """Refuses a mask or extras that cannot be at the top of the tree."""
    more = [*([batch["mask"]] if "mask" in batch else []), *batch.get("extras", [])]
    if more and tree.top is None:
        names = ", ".join(map(repr, more))
        message = f"the specs must be a dict, to which {names} are added"
        hint = 'wrap them in one, such as {"batch": specs}'
        raise InvalidArgumentError(message, hint=hint)
    for name in more:
        if name in (tree.top or ()):
            message = f"the name {name!r} is taken by an array"
            hint = "rename the array, or the mask with mask_name="
            raise InvalidArgumentError(message, hint=hint)


def _with_extras(tree: Tree, blocks: Sequence[Blocks]) -> Build:
    """Returns the function that puts arrays into the tree, mask and extras at its top."""
    n = len(tree.leaves)
    more = tuple(b.name for b in blocks[n:])
    if not more:
        return tree.build

    def build(arrays: Sequence[Any]) -> Any:
        batch = tree.build(arrays[:n])
        batch.update(zip(more, arrays[n:], strict=True))
        return batch

    return build
