"""A single array outside of the batch loop: weights, a table, an image split over devices."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn

from meshfeed._feed.cursor import Cursor
from meshfeed._io.arguments import Checks, nearest
from meshfeed._native import calls
from meshfeed._native.handle import Handle, Resource
from meshfeed._plan.blocks import Blocks, dtype_of, without_batch
from meshfeed._plan.documents import MeshPart
from meshfeed._plan.trees import no_field
from meshfeed.dataset import Dataset, Skipped
from meshfeed.errors import (
    Error,
    InvalidStateError,
    NotFoundError,
    ResourceExhaustedError,
    UnsupportedError,
)
from meshfeed.planning import Layout
from meshfeed.specs import entries

if TYPE_CHECKING:
    import numpy as np
    from jax import Array as JaxArray
    from jax.sharding import NamedSharding

    from meshfeed.specs import Spec


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """An array in a file, which `mf.load_array` loads.

    Attributes:
        name: its name in the file.
        shape: its shape.
        dtype: its type in the file.
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class StoredArrays(Resource, Mapping[str, StoredArray]):
    """The arrays of a file by name, opened by `mf.open_arrays`. It is a context manager.

    Attributes:
        skipped: the arrays of types that JAX does not have, and those that cannot be read in parts,
            with the reasons.
    """

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        facts = calls.dataset_facts(self.handle)
        self._arrays = {f["name"]: _stored(f) for f in facts["fields"]}
        self.skipped = [Skipped(s["name"], s["type"], s["reason"]) for s in facts["skipped"]]

    def __getitem__(self, name: str) -> StoredArray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        lines = [f"  {a.name}: {a.dtype}{list(a.shape)}" for a in self._arrays.values()]
        lines += [f"  {s.name}: not loaded, {s.reason}" for s in self.skipped]
        return "\n".join([f"{len(self)} stored array{'s' * (len(self) != 1)}", *lines])

    def __reduce__(self) -> NoReturn:
        message = "stored arrays cannot be pickled: they belong to this process"
        hint = "send the path, and open it in the other process"
        raise InvalidStateError(message, op="mf.open_arrays", hint=hint)


def _stored(field: Mapping[str, Any]) -> StoredArray:
    """Converts the description of an array by the C library."""
    name = field.get("logical") or field["dtype"]
    return StoredArray(field["name"], tuple(field["shape"]), dtype_of(name))


def open_arrays(path: str | os.PathLike[str]) -> StoredArrays:
    """Opens a file of weights: safetensors, .npy or .npz.

    It reads the header only. `mf.load_array` then loads an array with a sharding, and every
    process reads only the bytes that its devices hold.

    Args:
        path: a file, or the index of several safetensors files, such as
            ``"model.safetensors.index.json"``. A leading ``~`` is the home directory.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: the file is damaged; the message names it.
        UnsupportedError: the file has another format.

    Examples:
        >>> import jax, meshfeed as mf, numpy as np, tempfile
        >>> from jax.sharding import NamedSharding, PartitionSpec as P
        >>> path = f"{tempfile.mkdtemp()}/weights.npz"
        >>> np.savez(path, w=np.ones((8, 4), np.float32), b=np.zeros(4, np.float32))
        >>> mesh = mf.make_mesh({"model": -1})
        >>> shardings = {"w": NamedSharding(mesh, P("model")), "b": NamedSharding(mesh, P())}
        >>> with mf.open_arrays(path) as stored:
        ...     weights = {name: mf.load_array(stored, name, shardings[name]) for name in stored}
        >>> weights["w"].shape, weights["w"].sharding.spec
        ((8, 4), P('model',))
    """
    with Checks("mf.open_arrays") as check:
        try:
            text = os.path.expanduser(os.fsdecode(path))
        except TypeError:
            text = ""
        if not text or "\0" in text:
            raise check.wrong("path", path, "the path of a file")
        return StoredArrays(calls.dataset_open_tensors(text))


def load_array(
    source: Dataset | StoredArrays,
    field: str,
    sharding: NamedSharding | Spec,
    *,
    record: int | None = None,
    fill: complex | np.number[Any] | np.bool_ | None = None,
) -> JaxArray:
    """Loads a field of the whole dataset, or a stored array, as one global array.

    Every process reads exactly the part that its devices hold, once. In a job every process calls
    this function; nothing is sent between them. If JAX runs without x64, 64-bit numbers are
    narrowed, and integers that do not fit are an error.

    Args:
        source: the dataset, whose `slice` returns a part of the records, or what
            `mf.open_arrays` returned.
        field: the name of the field or array.
        sharding: a `NamedSharding` of the array's shape, or a `PartitionSpec` on the mesh of
            `jax.set_mesh`. A field of a dataset has the shape (records, *row shape).
        record: loads only the row of this record. The array and its sharding then have its shape.
        fill: a number that replaces nulls.

    Raises:
        InvalidArgumentError: the sharding does not fit the shape.
        NotFoundError: the field or array does not exist.
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
        from meshfeed._jax import meshes, runtime

        if not isinstance(source, Dataset | StoredArrays):
            expected = "a meshfeed.Dataset or stored arrays"
            hint = "make them with mf.open, mf.from_arrow, mf.from_arrays or mf.open_arrays"
            raise check.wrong("source", source, expected, hint)
        fields: Mapping[str, Any] = source if isinstance(source, StoredArrays) else source.schema
        if not isinstance(field, str):
            hint = "give the dataset, the field's name and a NamedSharding"
            raise check.wrong("field", field, "the name of a field", hint)
        if field not in fields:
            if isinstance(source, StoredArrays):
                raise _not_stored(source, field)
            raise no_field(field, field, tuple(fields), source.skipped)
        if sharding is None:
            hint = "PartitionSpec() puts the whole array on every device"
            raise check.wrong("sharding", sharding, "a NamedSharding or a PartitionSpec", hint)
        known = fields[field]
        if len(source) == 0:
            raise check.misfit("the dataset has no records, so there is no array")
        target = meshes.sharding_of(check, sharding)
        mesh = meshes.describe_mesh(meshes.one_mesh(check, None, [target]))
        array: dict[str, Any] = {
            "shape": list(known.shape),
            "dtype": runtime.delivered_name(str(known.dtype)),
            "spec": entries(target.spec),
        }
        run = {"process": runtime.process_index(), "processes": runtime.process_count()}
        options: dict[str, Any] = {**run, "epochs": 1}
        if isinstance(source, StoredArrays):
            if record is not None or fill is not None:
                raise check.misfit("record and fill are for datasets", "leave them out")
            _check_fit(check, field, mesh, array)
            return _read(source, field, mesh, array, options, target, row=True)
        if record is None:
            array["shape"].insert(0, len(source))
        else:
            record = check.integer("record", record, 0, len(source) - 1)
        _check_fit(check, field, mesh, array)
        if fill is not None:
            options["fill"] = check.fills({field: fill}, (field,))
        if record is None:
            return _read(source, field, mesh, array, options, target)
        with source.slice(record, record + 1) as one:
            return _read(one, field, mesh, array, options, target, row=True)


def _check_fit(check: Checks, field: str, mesh: MeshPart, array: dict[str, Any]) -> None:
    """Raises an error if the sharding does not fit; its message does not mention batches."""
    if array["dtype"].startswith("float8"):
        array = array | {"dtype": "uint8"}
    for problem in Layout(mesh.document({"arrays": {field: array}})).check():
        if problem.severity == "error":
            raise check.misfit(problem.message, problem.hint)


def _not_stored(source: StoredArrays, name: str) -> NotFoundError | UnsupportedError:
    """Makes the error for an array that a file does not have, or that is skipped."""
    for skipped in source.skipped:
        if skipped.name == name:
            reason, _, hint = skipped.reason.partition("; ")
            return UnsupportedError(f"array {name!r} cannot be loaded: {reason}", hint=hint)
    if not source:
        message = f"the file has no array {name!r}, and none that can be loaded"
        return NotFoundError(message, hint="print(stored.skipped) lists the others")
    return NotFoundError(f"the file has no array {name!r}", hint=nearest(name, tuple(source)))


def _read(
    source: Dataset | StoredArrays,
    field: str,
    mesh: MeshPart,
    array: dict[str, Any],
    options: dict[str, Any],
    sharding: Any,
    *,
    row: bool = False,
) -> JaxArray:
    """Reads the array as the only batch of a loader. If `row`, it has no batch dimension."""
    from meshfeed._jax.feed import ShardedFeed

    shape, spec, dtype = array["shape"], array["spec"], array["dtype"]
    whole = {
        "field": field,
        "shape": ["B", *(shape if row else shape[1:])],
        "dtype": "uint8" if dtype.startswith("float8") else dtype,  # bytes for the C library
        "spec": [None, *spec] if row else spec,
    }
    size = 1 if row else len(source)
    parts = {"arrays": {field: whole}, "batch": {"size": size}, "prefetch": 0}
    try:
        handle = calls.loader_create(source.handle, mesh.document(parts), options)
    except ResourceExhaustedError as e:
        message = f"array {field!r} is the only batch of a loader, and {e.message}"
        hint = "partition it over more processes"
        hint += "" if row else ", or load parts of it from source.slice"
        raise ResourceExhaustedError(message, op="mf.load_array", hint=hint) from None
    info = calls.loader_info(handle.value)
    described = info["arrays"][0] | {"dtype": dtype}
    blocks = [Blocks(without_batch(described) if row else described)]
    feed = ShardedFeed(itemgetter(0), blocks, sharding.mesh, [sharding], "process")
    size = info["batch_bytes"]
    cursor = Cursor(handle, feed, size=size, ahead=0, per_epoch=False, keep=1)
    try:
        with cursor.lock:
            item = cursor.take()
    except BaseException as e:
        if isinstance(e, Error):
            e.message = e.message.removeprefix("step 0 of epoch 0: ")
        cursor.close(e)
        raise
    cursor.close()
    assert item is not None
    loaded: JaxArray = item[0]
    return loaded
