"""What a user asks for, as a layout document and a feed that makes its batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from meshfeed._feed.feed import BlocksFeed, Build, Feed
from meshfeed._io.arguments import Checks
from meshfeed._plan import documents
from meshfeed._plan.blocks import Blocks
from meshfeed.dataset import Dataset
from meshfeed.errors import InvalidArgumentError
from meshfeed.planning import Layout
from meshfeed.specs import Tree, for_all, resolve


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a loader is asked for, before the library has seen it.

    Attributes:
        document: the layout's.
        processes: all that own devices, in ascending order.
        process: whose blocks to load.
        feed: makes the feed, from the blocks that the library describes.
        run: how many processes there are, those outside the mesh too; None for those of the mesh.
    """

    document: str
    processes: Sequence[int]
    process: int
    feed: Callable[[Sequence[Blocks]], Feed]
    run: int | None = None

    @property
    def alone(self) -> bool:
        """Whether all devices are this process's, in a run of several processes."""
        return (self.run or 1) > 1 and list(self.processes) == [self.process]


@dataclasses.dataclass(frozen=True)
class Request:
    """Whole batches as a user asks for them: `jax.Array`s where there are specs, else NumPy's.

    Attributes:
        source: the dataset.
        mesh: the mesh, or None.
        specs: the tree of specs, or None.
        batch: the layout document's part of that name.
        mask_name: the name of the mask, where there is one.
        order: the name of the order, "local", or None for the order of the files.
        seed: the seed of the order.
        prefetch: batches that may wait undelivered.
        loading: what every process reads.
    """

    source: Dataset
    mesh: Any
    specs: Any
    batch: dict[str, Any]
    _: dataclasses.KW_ONLY
    mask_name: str
    order: str | None
    seed: int
    prefetch: int
    loading: str

    def on_mesh(self, check: Checks, mesh: Any, specs: Any) -> Request:
        """Gives the same request for another mesh, and for other specs unless they are None."""
        if specs is None:
            tree = resolve(self.specs, tuple(self.source.schema))
            if all(leaf.spec is None for leaf in tree.leaves):
                message = "this loader gives NumPy arrays, and has no mesh"
                raise check.misfit(message, "give specs= too, or make another with state=")
            from meshfeed import jax

            specs = jax.on_mesh(check, self.specs, mesh)
        return dataclasses.replace(self, mesh=mesh, specs=specs)

    def with_remainder(self, check: Checks, remainder: Any) -> Request:
        """Gives the same request with another remainder."""
        part = documents.last_step(check, remainder, self.mask_name)
        rest = {key: value for key, value in self.batch.items() if not key.startswith("mask")}
        return dataclasses.replace(self, batch=rest | part)


def plan(check: Checks, request: Request) -> Plan:
    """Plans a loader of whole batches.

    Args:
        check: the call that the arguments come from.
        request: what is asked for.
    """
    source, mesh, batch = request.source, request.mesh, request.batch
    fields = source.schema
    tree = resolve(request.specs, tuple(fields), source.skipped)
    if for_all(request.specs):
        source.warn_of_skipped()
    _check_top(tree, batch)
    bare = [leaf.spec is None for leaf in tree.leaves]
    if all(bare):
        place = _whole(check, tree, mesh)
    elif not any(bare):
        place = _sharded(check, tree, mesh, request.loading, batch)
    else:
        name = tree.leaves[bare.index(True)].name
        message = f"array {name!r} has no spec, but others have one"
        hint = "give every array a spec; P() puts the whole array on every device"
        raise InvalidArgumentError(message, hint=hint)
    facts = {f.name: (f.dtype, list(f.shape)) for f in fields.values()}
    document = documents.write(
        mesh=place.mesh,
        tree=tree,
        fields={name: (place.deliver(dtype), shape) for name, (dtype, shape) in facts.items()},
        batch=batch,
        dataset=documents.dataset(len(source), facts, order=request.order, seed=request.seed),
        prefetch=request.prefetch,
        loading=request.loading,
    )
    return Plan(document, place.mesh.processes, place.process, place.feed, place.run)


def replay(check: Checks, layout: Layout, process: int | None, *others: Any) -> Plan:
    """Plans a loader of one process's blocks, for any process of any layout.

    Args:
        check: the call that the arguments come from.
        layout: the layout.
        process: the process.
        others: the arguments that a layout stands for, which must be None.
    """
    if process is None or any(other is not None for other in others):
        message = "a layout says mesh, specs, batch size and loading, but not the process"
        raise check.misfit(message, "use mf.Loader(source, layout=layout, process=p)")

    processes = layout.processes
    return Plan(layout.to_json(), processes, check.process(process, processes), BlocksFeed)


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where batches go, as the layout and the feed need it."""

    mesh: documents.MeshPart
    process: int
    deliver: Callable[[str], str]  # the type that a field's type becomes
    feed: Callable[[Sequence[Blocks]], Feed]
    run: int | None = None


def _whole(check: Checks, tree: Tree, mesh: Any) -> _Place:
    if mesh is not None:
        message = "a mesh was given, but no spec says how arrays are partitioned over it"
        raise check.misfit(message, "give specs, or leave out mesh= for NumPy arrays")

    def feed(blocks: Sequence[Blocks]) -> Feed:
        return Feed(_with_extras(tree, blocks), blocks)

    return _Place(documents.MeshPart.of([]), 0, lambda dtype: dtype, feed)


def _sharded(check: Checks, tree: Tree, mesh: Any, loading: str, batch: dict[str, Any]) -> _Place:
    from meshfeed import jax

    shardings = [leaf.sharding for leaf in tree.leaves]
    mesh = jax.one_mesh(check, mesh, shardings)
    if loading == "reshard":
        specs = {leaf.name: leaf.spec or [] for leaf in tree.leaves}
        jax.check_moves(check, mesh, specs | {"mask": batch.get("mask_spec", [])})

    def feed(blocks: Sequence[Blocks]) -> Feed:
        given = shardings + [None] * (len(blocks) - len(shardings))
        return jax.ShardedFeed(_with_extras(tree, blocks), blocks, mesh, given, loading)

    process, run = jax.process_index(), jax.process_count()
    return _Place(jax.describe_mesh(mesh), process, jax.delivered_name, feed, run)


def _check_top(tree: Tree, batch: dict[str, Any]) -> None:
    """Refuses a mask or extras that have no place at the top of the tree."""
    more = [*([batch["mask"]] if "mask" in batch else []), *batch.get("extras", [])]
    if more and tree.top is None:
        names = ", ".join(map(repr, more))
        message = f"the specs are no dict, in which {names} would have a place"
        hint = 'wrap them in one, such as {"batch": specs}'
        raise InvalidArgumentError(message, hint=hint)
    for name in more:
        if name in (tree.top or ()):
            message = f"the name {name!r} is taken by an array"
            hint = "rename the array, or the mask with mask_name="
            raise InvalidArgumentError(message, hint=hint)


def _with_extras(tree: Tree, blocks: Sequence[Blocks]) -> Build:
    """Makes the function that puts arrays into the tree, mask and extras at its top."""
    n = len(tree.leaves)
    more = tuple(b.name for b in blocks[n:])
    if not more:
        return tree.build

    def build(arrays: Sequence[Any]) -> Any:
        batch = tree.build(arrays[:n])
        batch.update(zip(more, arrays[n:], strict=True))
        return batch

    return build
