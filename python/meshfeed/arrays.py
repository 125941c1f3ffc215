"""A single array outside of the batch loop: weights, a table, an image split over devices."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from meshfeed._feed.cursor import Cursor
from meshfeed._io.arguments import Checks
from meshfeed._native import calls
from meshfeed._plan.blocks import Blocks, without_batch
from meshfeed._plan.documents import MeshPart
from meshfeed._plan.trees import no_field
from meshfeed.dataset import Dataset
from meshfeed.errors import ResourceExhaustedError
from meshfeed.planning import Layout
from meshfeed.specs import entries

if TYPE_CHECKING:
    import numpy as np
    from jax import Array as JaxArray
    from jax.sharding import NamedSharding

    from meshfeed.specs import Spec


def load_array(
    source: Dataset,
    field: str,
    sharding: NamedSharding | Spec,
    *,
    record: int | None = None,
    fill: complex | np.number[Any] | np.bool_ | None = None,
) -> JaxArray:
    """Loads a field of the whole dataset as one global array with the given sharding.

    Every process reads exactly the part that its devices hold, once. In a job every process calls
    this function; nothing is sent between them. If JAX runs without x64, 64-bit numbers are
    narrowed, and integers that do not fit are an error.

    Args:
        source: the dataset. Its `slice` returns a part of the records.
        field: the field's name.
        sharding: a `NamedSharding` of the array's shape, which is (records, *row shape), or a
            `PartitionSpec` on the mesh of `jax.set_mesh`.
        record: loads only the row of this record. The array and its sharding then have its shape.
        fill: a number that replaces nulls.

    Raises:
        InvalidArgumentError: the sharding does not fit the shape.
        NotFoundError: the field does not exist.
        UnsupportedError: the field is a column that cannot be an array.
        ResourceExhaustedError: the part of this process has more than 64 GiB.

    Examples:
        A table of 1,000 rows, split by rows:

        >>> import jax, meshfeed as mf, numpy as np
        >>> from jax.sharding import NamedSharding, PartitionSpec as P
        >>> mesh = jax.make_mesh((1,), ("x",))
        >>> ds = mf.from_arrays({"embedding": np.ones((1000, 64), np.float32)})
        >>> table = mf.load_array(ds, "embedding", NamedSharding(mesh, P("x")))
        >>> table.shape, table.sharding.spec
        ((1000, 64), P('x',))

        An image that is one record, split by its columns:

        >>> ds = mf.from_arrays({"image": np.zeros((1, 512, 256), np.uint8)})
        >>> mf.load_array(ds, "image", NamedSharding(mesh, P(None, "x")), record=0).shape
        (512, 256)
    """
    with Checks("mf.load_array") as check:
        from meshfeed import jax

        if not isinstance(source, Dataset):
            hint = "make one with mf.open, mf.from_arrow or mf.from_arrays"
            raise check.wrong("source", source, "a meshfeed.Dataset", hint)
        fields = source.schema
        if not isinstance(field, str):
            hint = "give the dataset, the field's name and a NamedSharding"
            raise check.wrong("field", field, "the name of a field", hint)
        if field not in fields:
            raise no_field(field, field, tuple(fields), source.skipped)
        known = fields[field]
        if len(source) == 0:
            raise check.misfit("the dataset has no records, so there is no array")
        target = jax.sharding_of(check, sharding)
        mesh = jax.describe_mesh(jax.one_mesh(check, None, [target]))
        array = {
            "shape": [len(source), *known.shape],
            "dtype": jax.delivered_name(known.dtype),
            "spec": entries(target.spec),
        }
        if record is not None:
            record = check.integer("record", record, 0, len(source) - 1)
            array["shape"] = list(known.shape)
        _check_fit(check, field, mesh, array)
        run = {"process": jax.process_index(), "processes": jax.process_count()}
        options: dict[str, Any] = {**run, "epochs": 1}
        if fill is not None:
            options["fill"] = check.fills({field: fill}, (field,))
        if record is None:
            return _read(source, field, mesh, array, options, target)
        with source.slice(record, record + 1) as one:
            return _read(one, field, mesh, array, options, target, row=True)


def _check_fit(check: Checks, field: str, mesh: MeshPart, array: dict[str, Any]) -> None:
    """Raises an error if the sharding does not fit; its message does not mention batches."""
    for problem in Layout(mesh.document({"arrays": {field: array}})).check():
        if problem.severity == "error":
            raise check.misfit(problem.message, problem.hint)


def _read(
    source: Dataset,
    field: str,
    mesh: MeshPart,
    array: dict[str, Any],
    options: dict[str, Any],
    sharding: Any,
    *,
    row: bool = False,
) -> JaxArray:
    """Reads the array as the only batch of a loader. If `row`, it has no batch dimension."""
    from meshfeed import jax

    shape, spec = array["shape"], array["spec"]
    whole = {
        "field": field,
        "shape": ["B", *(shape if row else shape[1:])],
        "dtype": array["dtype"],
        "spec": [None, *spec] if row else spec,
    }
    parts = {"arrays": {field: whole}, "batch": {"size": len(source)}, "prefetch": 0}
    try:
        handle = calls.loader_create(source.handle, mesh.document(parts), options)
    except ResourceExhaustedError as e:
        message = f"array {field!r} is the only batch of a loader, and {e.message}"
        hint = "partition it over more processes, or load parts of it from source.slice"
        raise ResourceExhaustedError(message, op="mf.load_array", hint=hint) from None
    info = calls.loader_info(handle.value)
    described = info["arrays"][0]
    blocks = [Blocks(without_batch(described) if row else described)]
    feed = jax.ShardedFeed(itemgetter(0), blocks, sharding.mesh, [sharding], "process")
    size = info["batch_bytes"]
    cursor = Cursor(handle, feed, size=size, ahead=0, per_epoch=False, keep=1)
    try:
        with cursor.lock:
            item = cursor.take()
    except BaseException as e:
        cursor.close(e)
        raise
    cursor.close()
    assert item is not None
    loaded: JaxArray = item[0]
    return loaded
