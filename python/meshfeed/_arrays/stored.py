"""A single array outside of the batch loop: weights, a table, an image split over devices."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from meshfeed._data.dataset import Dataset
from meshfeed._data.fields import Skipped
from meshfeed._feed.cursor import Cursor
from meshfeed._io.arguments import Checks, nearest_hint
from meshfeed._jobs import commits
from meshfeed._layout.blocks import Blocks, dtype_of, without_batch
from meshfeed._layout.layout import Layout
from meshfeed._layout.specs import entries
from meshfeed._layout.trees import no_field
from meshfeed._native import calls
from meshfeed._native.handle import Handle, Resource
from meshfeed.errors import (
    Error,
    InvalidStateError,
    NotFoundError,
    ResourceExhaustedError,
    UnsupportedError,
)

if TYPE_CHECKING:
    import numpy as np
    from jax import Array as JaxArray
    from jax.sharding import Mesh, NamedSharding

    from meshfeed._layout.specs import Spec


@dataclasses.dataclass(frozen=True)
class StoredArray:
    """An array in a file, which `mf.load_arrays` loads.

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

    It reads the header only. `mf.load_arrays` then loads arrays with shardings, and `mf.load_array`
    a single one. Every process reads only the bytes that its devices hold.

    Args:
        path: a file, or the index of several safetensors files, such as
            ``"model.safetensors.index.json"``. A leading ``~`` is the home directory. Addresses of
            `mf.open` work too, such as ``"https://host/model.safetensors"``, and files of a model
            of the Hugging Face hub: ``"hf://ORG/NAME/model.safetensors"``.

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
        >>> with mf.open_arrays(path) as stored:
        ...     weight = mf.load_array(stored, "w", NamedSharding(mesh, P("model")))
        >>> weight.shape, weight.sharding.spec
        ((8, 4), P('model',))
    """
    with Checks("mf.open_arrays") as check:
        try:
            text = os.path.expanduser(os.fsdecode(path))
        except TypeError:
            text = ""
        if not text or "\0" in text:
            raise check.wrong("path", path, "the path of a file")

        def opened(known: Mapping[str, str]) -> Handle:
            return calls.dataset_open_tensors(commits.pinned(text, known))

        return StoredArrays(commits.of_job([text], opened))


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
        _check_untraced()
        if not isinstance(source, Dataset | StoredArrays):
            expected = "a meshfeed.Dataset or stored arrays"
            hint = "make them with mf.open, mf.from_arrow, mf.from_arrays or mf.open_arrays"
            raise check.wrong("source", source, expected, hint)
        if not isinstance(field, str):
            hint = "give the dataset, the field's name and a NamedSharding"
            raise check.wrong("field", field, "the name of a field", hint)
        if isinstance(source, StoredArrays):
            array = _stored_array(check, source, field, sharding)
            if record is not None or fill is not None:
                raise check.misfit("record and fill are for datasets", "leave them out")
            return _load(check, source, [array], row=True)[field]
        if field not in source.schema:
            raise no_field(field, field, tuple(source.schema), source.skipped)
        if len(source) == 0:
            raise check.misfit("the dataset has no records, so there is no array")
        rows = [len(source)] if record is None else []
        array = _array(check, source.schema[field], rows, sharding)
        if record is not None:
            record = check.integer("record", record, 0, len(source) - 1)
        given = None if fill is None else check.fills({field: fill}, (field,))
        if record is None:
            return _load(check, source, [array], fill=given)[field]
        with source.slice(record, record + 1) as one:
            return _load(check, one, [array], fill=given, row=True)[field]


def load_arrays(
    stored: StoredArrays, shardings: Mapping[str, NamedSharding | Spec] | NamedSharding | Spec
) -> dict[str, JaxArray]:
    """Loads several stored arrays, each as one global array.

    It does what `mf.load_array` does for each, in a fraction of the time if there are many small
    ones. On CPUs, small arrays share memory, which is free when none of them is used any more.

    Args:
        stored: what `mf.open_arrays` returned.
        shardings: for the name of every array to load its sharding, as in `mf.load_array`; or one
            sharding, by which all arrays of the file are loaded. Then none may be in
            `stored.skipped`.

    Returns:
        The arrays by name, in the order of `shardings` or of the file.

    Raises:
        InvalidArgumentError: a sharding does not fit the shape of its array.
        NotFoundError: the file has no array of a name.
        UnsupportedError: one of these arrays cannot be loaded; `stored.skipped` has the reason.
        ResourceExhaustedError: an array's part of this process has more than 64 GiB.

    Examples:
        >>> import jax, meshfeed as mf, numpy as np, tempfile
        >>> from jax.sharding import NamedSharding, PartitionSpec as P
        >>> path = f"{tempfile.mkdtemp()}/weights.npz"
        >>> np.savez(path, w=np.ones((8, 4), np.float32), b=np.zeros(4, np.float32))
        >>> mesh = mf.make_mesh({"model": -1})
        >>> with mf.open_arrays(path) as stored:
        ...     weights = mf.load_arrays(
        ...         stored, {"w": NamedSharding(mesh, P("model")), "b": NamedSharding(mesh, P())}
        ...     )
        >>> weights["w"].shape, weights["w"].sharding.spec
        ((8, 4), P('model',))
    """
    with Checks("mf.load_arrays") as check:
        _check_untraced()
        if not isinstance(stored, StoredArrays):
            raise check.wrong("stored", stored, "stored arrays", "open them with mf.open_arrays")
        if isinstance(shardings, Mapping):
            given = shardings
        else:
            if stored.skipped:
                raise _skipped(
                    stored.skipped[0], "dict.fromkeys(stored, sharding) loads the others"
                )
            given = dict.fromkeys(stored, shardings)
        arrays = [
            _stored_array(check, stored, name, sharding, f"shardings[{name!r}]")
            for name, sharding in given.items()
        ]
        loaded = _load(check, stored, arrays, row=True)
        return {name: loaded[name] for name in given}


# ---- what to load ----

TOGETHER = 64 << 20  # bytes of arrays that are read at once, and share memory on CPUs
MOST = 512  # arrays that are read at once; a layout may have more


@dataclasses.dataclass(frozen=True)
class _Array:
    """An array to load."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # that JAX delivers
    sharding: NamedSharding
    mesh: Mesh

    @property
    def bytes(self) -> int:
        """The size of the whole array."""
        return math.prod(self.shape) * dtype_of(self.dtype).itemsize

    def described(self) -> dict[str, Any]:
        """Returns the array's entry in a layout. The C library has bytes instead of float8."""
        dtype = "uint8" if self.dtype.startswith("float8") else self.dtype
        return {"shape": [*self.shape], "dtype": dtype, "spec": entries(self.sharding.spec)}


def _check_untraced() -> None:
    from meshfeed._jax.runtime import is_traced

    if is_traced():
        message = "an array would be loaded inside of a function that JAX traces: the program "
        message += "would hold it as a constant"
        hint = "load arrays outside of jax.jit, scan and the like, and pass them as arguments"
        raise InvalidStateError(message, hint=hint)


def _array(
    check: Checks, known: Any, rows: Sequence[int], sharding: Any, argument: str = "sharding"
) -> _Array:
    """Returns the array of a field or stored array; `rows` precedes the shape of a row."""
    from meshfeed._jax import meshes, runtime

    if sharding is None:
        hint = "PartitionSpec() puts the whole array on every device"
        raise check.wrong(argument, sharding, "a NamedSharding or a PartitionSpec", hint)
    target = meshes.sharding_of(check, sharding)
    mesh = meshes.one_mesh(check, None, [target])
    dtype = runtime.delivered_name(str(known.dtype))
    return _Array(known.name, (*rows, *known.shape), dtype, target, mesh)


def _stored_array(
    check: Checks, stored: StoredArrays, name: str, sharding: Any, argument: str = "sharding"
) -> _Array:
    if name not in stored:
        raise _not_stored(stored, name)
    return _array(check, stored[name], [], sharding, argument)


def _groups(arrays: Sequence[_Array]) -> list[list[_Array]]:
    """Groups arrays that are read at once: on one mesh, and few bytes or one array."""
    meshes: dict[Any, list[list[_Array]]] = {}
    sizes: dict[Any, int] = {}
    for array in arrays:
        mesh = array.mesh
        groups = meshes.setdefault(mesh, [[]])
        sizes[mesh] = sizes.get(mesh, 0) + array.bytes
        if groups[-1] and (sizes[mesh] > TOGETHER or len(groups[-1]) == MOST):
            groups.append([])
            sizes[mesh] = array.bytes
        groups[-1].append(array)
    return [group for groups in meshes.values() for group in groups]


def _check_fit(check: Checks, group: Sequence[_Array]) -> None:
    """Raises an error if a sharding does not fit; its message does not mention batches."""
    from meshfeed._jax.meshes import describe_mesh

    arrays = {array.name: array.described() for array in group}
    mesh = describe_mesh(group[0].mesh)
    for problem in Layout(mesh.document({"arrays": arrays})).check():
        if problem.severity == "error":
            raise check.misfit(problem.message, problem.hint)


def _not_stored(source: StoredArrays, name: str) -> NotFoundError | UnsupportedError:
    """Makes the error for an array that a file does not have, or that is skipped."""
    for skipped in source.skipped:
        if skipped.name == name:
            return _skipped(skipped)
    if not source:
        message = f"the file has no array {name!r}, and none that can be loaded"
        return NotFoundError(message, hint="print(stored.skipped) lists the others")
    return NotFoundError(f"the file has no array {name!r}", hint=nearest_hint(name, tuple(source)))


def _skipped(array: Skipped, *remedies: str) -> UnsupportedError:
    """Makes the error for an array that cannot be loaded."""
    reason, *hints = array.reason.split("; ", 1)
    message = f"array {array.name!r} cannot be loaded: {reason}"
    return UnsupportedError(message, hint="; ".join([*hints, *remedies]))


# ---- loading ----


def _load(
    check: Checks,
    source: Dataset | StoredArrays,
    arrays: Sequence[_Array],
    *,
    fill: dict[str, Any] | None = None,
    row: bool = False,
) -> dict[str, JaxArray]:
    """Loads arrays, after a check of all of them. If `row`, they have no batch dimension."""
    groups = _groups(arrays)
    for group in groups:
        _check_fit(check, group)
    loaded: dict[str, JaxArray] = {}
    for group in groups:
        values = _read(source, group, fill, row=row)
        loaded.update(zip((array.name for array in group), values, strict=True))
    return loaded


def _read(
    source: Dataset | StoredArrays,
    group: Sequence[_Array],
    fill: dict[str, Any] | None,
    *,
    row: bool,
) -> Sequence[JaxArray]:
    """Reads arrays as the only batch of a loader."""
    from meshfeed._jax import meshes, runtime
    from meshfeed._jax.feed import ShardedFeed

    size = 1 if row else len(source)
    whole = {}
    for array in group:
        entry = array.described()
        shape, spec = (
            (entry["shape"], [None, *entry["spec"]]) if row else (entry["shape"][1:], entry["spec"])
        )
        whole[array.name] = entry | {"field": array.name, "shape": ["B", *shape], "spec": spec}
    mesh = group[0].mesh
    document = meshes.describe_mesh(mesh).document(
        {"arrays": whole, "batch": {"size": size}, "prefetch": 0}
    )
    options: dict[str, Any] = {"epochs": 1} if fill is None else {"epochs": 1, "fill": fill}
    options |= {"process": runtime.process_index(), "processes": runtime.process_count()}
    try:
        handle = calls.loader_create(source.handle, document, options)
    except ResourceExhaustedError as e:
        message = f"array {group[0].name!r} is the only batch of a loader, and {e.message}"
        hint = "partition it over more processes"
        hint += "" if row else ", or load parts of it from source.slice"
        raise ResourceExhaustedError(message, hint=hint) from None
    info = calls.loader_info(handle.value)
    found = {described["name"]: described for described in info["arrays"]}
    blocks = []
    for array in group:
        described = found[array.name] | {"dtype": array.dtype}
        blocks.append(Blocks(without_batch(described) if row else described))
    feed = ShardedFeed(list, blocks, mesh, [array.sharding for array in group], "process")
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
    loaded: Sequence[JaxArray] = item[0]
    return loaded
