"""Plans the batches that a caller asks for: a layout document, and a feed that makes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from meshfeed._data.dataset import commits, far_bytes, fixed_fields, not_arrays, warn_of_skipped
from meshfeed._feed.arrowfeed import ArrowFeed
from meshfeed._feed.feed import BlocksFeed, Build, Feed
from meshfeed._io.arguments import Checks
from meshfeed._layout import documents
from meshfeed._layout.blocks import Blocks
from meshfeed._layout.trees import Tree, for_all, no_specs, resolve
from meshfeed._loader.options import Options
from meshfeed._native.arrow import format_of
from meshfeed.errors import InvalidArgumentError


@dataclasses.dataclass(frozen=True)
class Plan:
    """What the library needs to open a loader.

    Attributes:
        document: the layout document.
        processes: all processes that own devices, in ascending order.
        process: the process whose blocks to load.
        feed: makes the feed from the blocks that the library describes.
        run: the number of processes of the run, also outside of the mesh; None for the number
            in the mesh.
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

    @classmethod
    def of(cls, check: Checks, options: Options) -> Plan:
        """Plans the batches of a loader with these options."""
        if options.simulated is not None:
            layout, process = options.simulated
            owners = layout.processes
            return cls(layout.to_json(), owners, check.process(process, owners), BlocksFeed)
        source = options.source
        tree = resolve(options.specs, tuple(fixed_fields(source)), not_arrays(source))
        if for_all(options.specs):
            warn_of_skipped(source)
        _check_top(tree, options.batch)
        bare = [leaf.spec is None for leaf in tree.leaves]
        if any(bare) and not all(bare):
            name = tree.leaves[bare.index(True)].name
            message = f"array {name!r} has no spec, but others have one"
            hint = "give every array a spec; P() puts the whole array on every device"
            raise InvalidArgumentError(message, hint=hint)
        if options.arrow and not all(bare):
            name = tree.leaves[bare.index(False)].name
            message = (
                f"arrow=True gives whole batches in host memory, but array {name!r} has a spec"
            )
            raise check.misfit(message, "leave out mesh and specs, or give a list of field names")
        return _whole(check, tree, options) if all(bare) else _sharded(check, tree, options)


def _whole(check: Checks, tree: Tree, options: Options) -> Plan:
    if options.mesh is not None:
        message = "a mesh was given, but no spec says how arrays are partitioned over it"
        hint = "give specs, or leave out mesh= for NumPy arrays"
        raise check.misfit(message, no_specs(options.mesh, hint))
    schema = options.source.schema

    def feed(blocks: Sequence[Blocks]) -> Feed:
        if not options.arrow:
            return Feed(_with_extras(tree, blocks), blocks)
        return ArrowFeed(blocks, [format_of(schema[leaf.field].logical) for leaf in tree.leaves])

    document = _document(tree, options, documents.MeshPart.of([]), str)
    return Plan(document, [0], 0, feed)


def _sharded(check: Checks, tree: Tree, options: Options) -> Plan:
    from meshfeed._jax import meshes, runtime
    from meshfeed._jax.feed import ShardedFeed

    loading = options.parts.get("loading", "process")
    shardings = [leaf.sharding for leaf in tree.leaves]
    mesh = meshes.one_mesh(check, options.mesh, shardings)
    if loading == "reshard":
        from meshfeed._jax import reshard

        specs = {leaf.name: leaf.spec or [] for leaf in tree.leaves}
        reshard.check_moves(check, mesh, specs | {"mask": options.batch.get("mask_spec", [])})

    def feed(blocks: Sequence[Blocks]) -> Feed:
        given = shardings + [None] * (len(blocks) - len(shardings))
        return ShardedFeed(_with_extras(tree, blocks), blocks, mesh, given, loading)

    part = meshes.describe_mesh(mesh)
    document = _document(tree, options, part, runtime.delivered_name)
    process, run = runtime.process_index(), runtime.process_count()
    return Plan(document, part.processes, process, feed, run)


def _document(
    tree: Tree, options: Options, mesh: documents.MeshPart, delivered: Callable[[str], str]
) -> str:
    """Writes the layout document. `delivered` converts a field's type to the type on the mesh."""
    parts, fields = options.parts, fixed_fields(options.source)
    facts = {f.name: (f.dtype, list(f.shape)) for f in fields.values()}
    given = {"order": options.order, "seed": options.seed}
    source = options.source
    dataset = documents.dataset(
        len(source), facts, commits=commits(source), far_bytes=far_bytes(source), order=None, seed=0
    )
    dataset |= parts.get("dataset", {})
    dataset |= {key: value for key, value in given.items() if value is not None}
    prefetch = parts.get("prefetch", 2) if options.prefetch is None else options.prefetch
    if arrays := parts.get("arrays"):
        arrays = {name: a | {"dtype": delivered(a["dtype"])} for name, a in arrays.items()}
    else:
        types = {name: (delivered(dtype), shape) for name, (dtype, shape) in facts.items()}
        arrays = documents.arrays(tree, types, options.batch["size"])
    return documents.write(
        mesh=mesh,
        arrays=arrays,
        batch=options.batch,
        dataset=dataset,
        prefetch=prefetch,
        loading=parts.get("loading", "process"),
        budget=parts.get("budget"),
    )


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
