"""What the user asks for, as a layout document and a feed that makes its batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from meshfeed._feed.feed import BlocksFeed, Build, Feed
from meshfeed._feed.options import Options
from meshfeed._io.arguments import Checks
from meshfeed._plan import documents
from meshfeed._plan.blocks import Blocks
from meshfeed._plan.trees import Tree, for_all, resolve
from meshfeed.dataset import Dataset
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
        mesh: the mesh, or None.
        specs: the tree of specs, or None.
        batch: the part "batch" of the layout document.
        mask_name: the name of the mask, if there is one.
        loading: "process", "global", "device" or "reshard", as in `Loader`.
        options: the other options. Order, seed and prefetch also go into the layout document.
    """

    source: Dataset
    mesh: Any
    specs: Any
    batch: dict[str, Any]
    mask_name: str
    loading: str
    options: Options

    def on_mesh(self, check: Checks, mesh: Any, specs: Any) -> Request:
        """Returns the same request for another mesh, and for other specs unless they are None."""
        if specs is None:
            tree = resolve(self.specs, tuple(self.source.schema))
            if all(leaf.spec is None for leaf in tree.leaves):
                message = "this loader gives NumPy arrays, and has no mesh"
                raise check.misfit(message, "give specs= too, or make another with state=")
            from meshfeed import jax

            specs = jax.on_mesh(check, self.specs, mesh)
        return dataclasses.replace(self, mesh=mesh, specs=specs)

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
        fields = source.schema
        tree = resolve(self.specs, tuple(fields), source.skipped)
        if for_all(self.specs):
            source.warn_of_skipped()
        _check_top(tree, self.batch)
        bare = [leaf.spec is None for leaf in tree.leaves]
        if any(bare) and not all(bare):
            name = tree.leaves[bare.index(True)].name
            message = f"array {name!r} has no spec, but others have one"
            hint = "give every array a spec; P() puts the whole array on every device"
            raise InvalidArgumentError(message, hint=hint)
        target = _whole(check, tree, self) if all(bare) else _sharded(check, tree, self)
        facts = {f.name: (f.dtype, list(f.shape)) for f in fields.values()}
        seed, prefetch = options.seed or 0, options.prefetch
        document = documents.write(
            mesh=target.mesh,
            tree=tree,
            fields={
                name: (target.delivered(dtype), shape) for name, (dtype, shape) in facts.items()
            },
            batch=self.batch,
            dataset=documents.dataset(len(source), facts, order=options.order, seed=seed),
            prefetch=2 if prefetch is None else prefetch,
            loading=self.loading,
        )
        return Plan(document, target.mesh.processes, target.process, target.feed, target.run)


def replay(check: Checks, layout: Layout, process: int | None, *others: Any) -> Plan:
    """Plans a loader of the blocks of one process, for any process of any layout.

    Args:
        check: raises errors with the name of the user's call.
        layout: the layout.
        process: the process.
        others: the arguments that the layout replaces. They must be None.
    """
    if process is None or any(other is not None for other in others):
        message = "a layout contains mesh, specs, batch size and loading, but not the process"
        raise check.misfit(message, "use mf.Loader(source, layout=layout, process=p)")
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
        raise check.misfit(message, "give specs, or leave out mesh= for NumPy arrays")
    no_mesh = documents.MeshPart.of([])
    return _Target(no_mesh, 0, lambda blocks: Feed(_with_extras(tree, blocks), blocks))


def _sharded(check: Checks, tree: Tree, request: Request) -> _Target:
    from meshfeed import jax

    loading = request.loading
    shardings = [leaf.sharding for leaf in tree.leaves]
    mesh = jax.one_mesh(check, request.mesh, shardings)
    if loading == "reshard":
        specs = {leaf.name: leaf.spec or [] for leaf in tree.leaves}
        jax.check_moves(check, mesh, specs | {"mask": request.batch.get("mask_spec", [])})

    def feed(blocks: Sequence[Blocks]) -> Feed:
        given = shardings + [None] * (len(blocks) - len(shardings))
        return jax.ShardedFeed(_with_extras(tree, blocks), blocks, mesh, given, loading)

    process, run = jax.process_index(), jax.process_count()
    return _Target(jax.describe_mesh(mesh), process, feed, jax.delivered_name, run)


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
