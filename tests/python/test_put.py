"""Arrays of other libraries on a mesh of one process, compared with `jax.device_put`."""

from __future__ import annotations

import array
import collections
import ctypes
import gc
import math
import mmap
import random
import sys
import threading
import types
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._jax import put as placing
from meshfeed._native import library
from meshfeed._plan.localrows import Parts
from tests.python.interrupts import trials
from tests.python.test_traced import EAGER, TRACED

P = PartitionSpec
Host = npt.NDArray[Any]

DTYPES = [np.dtype(kind) for kind in ("?", "i1", "i2", "i4", "u1", "u4", "f2", "f4", "c8")] + [
    np.dtype(getattr(ml_dtypes, name))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4")
]


def grid(*sizes: int, names: str = "abc") -> Mesh:
    """Makes a mesh of the first devices."""
    devices = np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes)
    return Mesh(devices, tuple(names[: len(sizes)]))


def memory(shape: tuple[int, ...], dtype: Any = np.float32, offset: int = 0) -> Host:
    """Returns an array that begins `offset` bytes after a multiple of 64, with counted numbers."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    whole = np.zeros(size + 128, np.uint8)
    at = -whole.ctypes.data % 64 + offset
    found: Host = whole[at : at + size].view(dtype).reshape(shape)
    found[...] = np.arange(found.size).reshape(shape).astype(dtype)
    return found


def frozen(shape: tuple[int, ...], dtype: Any = np.float32, offset: int = 0) -> Host:
    """Returns such an array, of which no part can be written."""
    found = memory(shape, dtype, offset)
    for owner in (found.base, found):
        assert isinstance(owner, np.ndarray)
        owner.setflags(write=False)
    return found


def pointers(x: jax.Array) -> list[int]:
    """Returns the address of every shard."""
    return [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]


def is_within(x: jax.Array, host: Host) -> bool:
    """Returns whether an array lies in the memory of a host array. Some parts must not do so."""
    start = host.ctypes.data
    (within,) = {start <= at < start + host.nbytes for at in pointers(x)}
    return within


def same(got: jax.Array, host: Any, sharding: NamedSharding) -> None:
    """Compares an array with what `device_put` makes of the host array."""
    want = jax.device_put(host, sharding)
    assert (got.shape, got.dtype, got.sharding) == (want.shape, want.dtype, want.sharding)
    for a, b in zip(got.addressable_shards, want.addressable_shards, strict=True):
        assert (a.device, a.index, a.replica_id) == (b.device, b.index, b.replica_id)
        assert np.asarray(a.data).tobytes() == np.asarray(b.data).tobytes()


# ---- any mesh, spec, type and memory ----


def drawn_mesh(r: random.Random) -> Mesh:
    """Draws a mesh of some devices in any order, and the types of its axes."""
    sizes = r.choice([(1,), (8,), (2, 4), (4, 2), (2, 2, 2), (2, 1, 3), (6,), (2, 2)])
    devices = r.sample(jax.devices(), math.prod(sizes))
    kinds = tuple(r.choice([AxisType.Auto, AxisType.Explicit]) for _ in sizes)
    return Mesh(np.array(devices).reshape(sizes), tuple("abc"[: len(sizes)]), axis_types=kinds)


def drawn_leaf(r: random.Random, mesh: Mesh) -> tuple[Host, PartitionSpec]:
    """Draws an array with any strides, and a spec that fits it."""
    rank = r.randint(0, 4)
    axes = list(mesh.axis_names)
    r.shuffle(axes)
    entries: list[Any] = [()] * rank
    for axis in axes:
        if rank and r.random() < 0.7:
            d = r.randrange(rank)
            entries[d] = (*entries[d], axis)
    shape = tuple(
        math.prod(mesh.shape[axis] for axis in entry) * r.choice([0, 1, 1, 2, 3, 5])
        for entry in entries
    )
    dtype = r.choice(DTYPES)
    steps = [r.choice([1, 2]) for _ in shape]
    wide = tuple(n * step for n, step in zip(shape, steps, strict=True))
    bits = np.random.default_rng(r.getrandbits(32)).integers(0, 2, wide, np.uint8)
    host = np.asarray(bits.astype(dtype))
    host = host[tuple(slice(None, None, step) for step in steps)]
    if r.random() < 0.5:
        host = np.flip(host, tuple(d for d in range(rank) if r.random() < 0.5))
    if r.random() < 0.4:
        order = r.sample(range(rank), rank)
        host = np.transpose(host.transpose(order).copy(), np.argsort(order).tolist())
    if r.random() < 0.3:
        host = host.copy()
        host.setflags(write=False)
    return host, P(*(entry or None for entry in entries))


def test_random_arrays_are_those_of_device_put(seed: int) -> None:
    for n in range(150):
        r = random.Random(f"{seed}.{n}")
        mesh = drawn_mesh(r)
        pairs = [drawn_leaf(r, mesh) for _ in range(r.randint(1, 4))]
        tree = {str(i): host for i, (host, _) in enumerate(pairs)}
        specs = {str(i): spec for i, (_, spec) in enumerate(pairs)}
        for _ in range(2):  # the second time with the plan of the first
            got = mf.put(tree, mesh, specs)
            for i, (host, spec) in enumerate(pairs):
                same(got[str(i)], host, NamedSharding(mesh, spec))


def test_large_arrays_are_cut_by_several_threads() -> None:
    mesh = grid(4, 2)
    host = np.random.default_rng(0).integers(0, 9, (4096, 2, 512), np.int64)
    for spec in (P("a"), P(None, "b", "a"), P(None, None, "b"), P()):
        assert np.array_equal(mf.put(host, mesh, spec), host)


# ---- memory ----


SPECS = [P("a"), P("a", None), P(("a", "b")), P()]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_writable_memory_is_copied(spec: PartitionSpec) -> None:
    """The array does not change when the caller writes to the memory right after the call."""
    mesh, host = grid(4, 2), memory((64, 1024))
    want = host.copy()
    views = [host, host[:], np.lib.stride_tricks.as_strided(host, host.shape, host.strides)]
    views[2].setflags(write=False)  # `host` itself can still be written
    for view in views:
        got = mf.put(view, mesh, spec)
        host[...] = -1
        assert np.array_equal(np.asarray(got), want)
        host[...] = want
        assert not is_within(got, host)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_writable_memory_is_shared_if_it_may_be(spec: PartitionSpec) -> None:
    """JAX uses the memory and keeps it alive, so the array changes when the caller writes to it."""
    mesh, host = grid(4, 2), memory((64, 1024))
    want = host.copy()
    got = mf.put(host, mesh, spec, may_alias=True)
    assert is_within(got, host)
    host[5] = want[5] = -1
    del host
    gc.collect()
    assert np.array_equal(np.asarray(got), want)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_no_memory_is_shared_if_it_may_not_be(spec: PartitionSpec) -> None:
    mesh, host = grid(4, 2), frozen((64, 1024))
    got = mf.put(host, mesh, spec, may_alias=False)
    assert np.array_equal(np.asarray(got), host)
    assert not is_within(got, host)


def test_may_alias_belongs_to_a_call() -> None:
    """A plan of another call with the same arrays does not decide."""
    mesh, writable, fixed = grid(4, 2), memory((64, 1024)), frozen((64, 1024))
    for _ in range(2):
        for may_alias, wanted in {
            None: (False, True),
            True: (True, True),
            False: (False,) * 2,
        }.items():
            got = mf.put([writable, fixed], mesh, P("a"), may_alias=may_alias)
            assert (is_within(got[0], writable), is_within(got[1], fixed)) == wanted


def test_memory_that_may_be_shared_but_cannot_be_is_copied_before_the_call_returns() -> None:
    mesh = grid(4, 2)
    for host in (memory((64, 4096), offset=4), memory((64, 8192))[:, ::2], memory((4096, 64)).T):
        for spec in SPECS:
            want = host.copy()
            got = mf.put(host, mesh, spec, may_alias=True)
            host[...] = -1
            assert np.array_equal(np.asarray(got), want)
            host[...] = want


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_read_only_memory_is_shared(spec: PartitionSpec) -> None:
    """JAX uses aligned memory that cannot be written, and keeps it alive."""
    mesh, host = grid(4, 2), frozen((64, 1024))
    want = host.copy()
    got = mf.put(host, mesh, spec)
    assert is_within(got, host)
    del host
    gc.collect()
    assert np.array_equal(np.asarray(got), want)


@pytest.mark.parametrize(
    ("host", "spec"),
    [
        (frozen((64, 1024), offset=4), P("a")),  # not aligned
        (frozen((64, 1024)), P(None, "a")),  # blocks with gaps
        (frozen((8, 12)), P("a")),  # the second block is not aligned
        (frozen((1024, 64)).T, P("a")),
        (frozen((64, 1024))[::2], P("a")),
    ],
    ids=["offset", "columns", "short rows", "transposed", "stepped"],
)
def test_other_read_only_memory_is_copied(host: Host, spec: PartitionSpec) -> None:
    got = mf.put(host, grid(4, 2), spec)
    assert np.array_equal(np.asarray(got), host)
    assert not is_within(got, host)


def test_blocks_behind_dimensions_of_size_one_are_shared() -> None:
    host = frozen((1, 1, 64, 32))
    assert is_within(mf.put(host, grid(4, 2), P(None, None, "b")), host)
    assert not is_within(mf.put(host, grid(4, 2), P(None, None, None, "b")), host)


def test_read_only_memory_of_python_is_shared_if_it_cannot_be_written(tmp_path: Path) -> None:
    mesh, path = grid(2), tmp_path / "x.npy"
    np.save(path, memory((64, 64)))
    mapped = np.load(path, mmap_mode="r")
    for host, is_shared in (
        (mapped, mapped.ctypes.data % 64 == 0),
        (np.frombuffer(mmap.mmap(-1, 4096, access=mmap.ACCESS_READ), np.uint8), True),
        (np.frombuffer(memoryview(bytearray(4096)).toreadonly(), np.uint8), False),
    ):
        got = mf.put(host, mesh, P("a"))
        assert is_within(got, np.asarray(host)) == is_shared
        assert np.array_equal(np.asarray(got), host)


def test_memory_outlives_the_tree_and_returns_to_the_library() -> None:
    """What is read later from the arrays is right while other batches use the same pool."""
    mesh, kept = grid(4, 2), collections.deque[Any](maxlen=5)
    for n in range(40):
        tree = {"x": np.full((8, 512), n), "y": np.full((512, 8), n, np.uint8)}
        kept.append((n, mf.put(tree, mesh, {"x": P("a", "b"), "y": P(None, "b")})))
        del tree
        for value, placed in kept:
            assert np.asarray(placed["x"]).tolist() == [[value] * 512] * 8
            assert set(np.asarray(placed["y"]).flat) == {value}


def test_a_tree_that_is_put_once_leaves_no_memory_behind() -> None:
    lib = library.library()
    before = lib.mf_live_handles()
    got = mf.put(memory((64, 64)), grid(2), P("a"))
    assert lib.mf_live_handles() == before
    assert np.asarray(got)[63, 63] == 4095
    again = mf.put(memory((64, 64)), grid(2), P("a"))
    assert lib.mf_live_handles() == before + 1
    assert len(placing.plans) == 1
    del got, again


def test_few_plans_are_kept() -> None:
    for rows in range(1, 50):
        for _ in range(2):
            mf.put(np.zeros(rows, np.int16), grid(1), P("a"))
    assert len(placing.plans) == 32


def test_a_tree_may_have_more_arrays_than_a_layout() -> None:
    tree = {f"x{i}": np.full(8, i, np.int32) for i in range(1025)}
    placed = mf.put(tree, grid(4, 2), P("a"))
    assert [int(placed[name][7]) for name in tree] == list(range(1025))
    tree["x1024"] = np.zeros(3, np.int32)
    with pytest.raises(mf.InvalidArgumentError, match=r'array "x1024" of shape \(3,\)'):
        mf.put(tree, grid(4, 2), P("a"))


def test_threads_place_at_the_same_time() -> None:
    mesh, failed = grid(4, 2), list[BaseException]()

    def work(n: int) -> None:
        try:
            for i in range(30):
                host = np.full((16, 64), 100 * n + i)
                got = mf.put({"x": host, "y": n}, mesh, {"x": P("a", "b"), "y": P()})
                assert set(np.asarray(got["x"]).flat) == {100 * n + i}
                assert int(got["y"]) == n
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_ctrl_c_at_any_place_loses_no_memory() -> None:
    mesh, host = grid(4, 2), memory((64, 64))
    for _ in range(2):
        mf.put(host, mesh, P("a"))
    places = 0
    for trial in trials(lambda: lambda: mf.put(host, mesh, P("a"))):
        places += trial.caught is not None
        assert np.array_equal(mf.put(host, mesh, P("a")), host), trial.where
    assert places > 10


# ---- leaves ----


class Pair:
    """A pytree that a program registers."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))


class DLPack:
    """An array that has only DLPack's methods."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __dlpack__(self, **options: Any) -> Any:
        return self._host.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._host.__dlpack_device__()


class Arrayable:
    """An array that has only the method `__array__`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __array__(self, dtype: Any = None, copy: Any = None) -> Host:
        return self._host


@pytest.mark.parametrize(
    "leaf",
    [
        DLPack(memory((8,))),
        Arrayable(memory((8,))),
        memoryview(memory((8,)).data),
        array.array("f", range(8)),
        (ctypes.c_float * 8)(*range(8)),
        np.ma.masked_array(memory((8,))),
        jnp.arange(8, dtype=jnp.float32),
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_arrays_of_other_kinds(leaf: Any) -> None:
    got = mf.put({"x": leaf}, grid(8), P("a"))["x"]
    assert np.asarray(got).tolist() == list(range(8))
    assert (got.sharding.spec, got.dtype) == (P("a"), np.float32)


class Tensor:
    """Stands for a torch tensor, which NumPy cannot convert in all types."""

    def __init__(self, memory: Host, kind: str, device: str = "cpu") -> None:
        self._memory, self.dtype = memory, Kind(kind)
        self.device = Device(device)

    def detach(self) -> Tensor:
        return Tensor(self._memory, str(self.dtype)[6:])

    resolve_conj = resolve_neg = detach

    def view(self, kind: str) -> Tensor:
        return Tensor(self._memory.view(kind), kind)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Host:
        if str(self.dtype) in ("torch.bfloat16", "torch.float8_e5m2"):
            raise TypeError("Got unsupported ScalarType")
        return self._memory


Tensor.__module__ = "torch"


class Device(NamedTuple):
    """Stands for a torch device."""

    type: str

    def __str__(self) -> str:
        return f"{self.type}:0"


class Kind(str):
    """Stands for a torch dtype."""

    def __str__(self) -> str:
        return f"torch.{super().__str__()}"

    @property
    def is_floating_point(self) -> bool:
        return "float" in self


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("float32", "f4"), ("bfloat16", "i2"), ("float8_e5m2", "u1"), ("int16", "i2")],
)
def test_tensors_of_torch(kind: str, bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(int16="i2", uint8="u1"))
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    want = np.arange(8).astype(dtype)
    got = mf.put(Tensor(want.view(bits) if bits != "f4" else want, kind), grid(8), P("a"))
    assert (got.dtype, np.asarray(got).tolist()) == (dtype, want.tolist())


def test_tensors_on_an_accelerator() -> None:
    tensor = Tensor(np.zeros(8), "float32", "cuda")
    assert wrong({"x": tensor}, grid(8), P("a")) == (
        "mf.put: array 'x' is a tensor on cuda:0, not in host memory; give tensor.cpu()"
    )


def test_numbers_become_arrays_without_dimensions() -> None:
    tree = {"i": 3, "f": 0.5, "b": True, "c": 1j, "n": np.float16(2)}
    got = mf.put(tree, grid(8), P())
    assert {key: (x.shape, str(x.dtype), x.item()) for key, x in got.items()} == {
        "i": ((), "int32", 3),
        "f": ((), "float32", 0.5),
        "b": ((), "bool", True),
        "c": ((), "complex64", 1j),
        "n": ((), "float16", 2.0),
    }


def test_trees_keep_their_kind_and_specs_may_be_a_prefix() -> None:
    Point = collections.namedtuple("Point", "x y")
    mesh, x = grid(4, 2), np.arange(8, dtype=np.float32)
    tree = {"p": Point(x, (x, [x])), "q": Pair(x, None), "none": None, "empty": {}}
    specs = {"p": P("a"), "q": P("b"), "none": P(), "empty": P()}
    got = mf.put(tree, mesh, specs)
    assert type(got["p"]) is Point
    assert [leaf.sharding.spec for leaf in jax.tree.leaves(got)] == [P("a")] * 3 + [P("b")]
    assert (got["none"], got["empty"], got["q"].b) == (None, {}, None)
    assert mf.put({}, mesh, P("a")) == {}


def test_shardings_bring_their_mesh_and_stay_the_objects_of_the_user() -> None:
    mesh = grid(4, 2)
    sharding = NamedSharding(mesh, P("a"), memory_kind="pinned_host")
    got = mf.put({"x": np.arange(8), "y": np.arange(8)}, specs={"x": sharding, "y": sharding})
    assert got["x"].sharding is sharding
    assert got["x"].sharding.memory_kind == "pinned_host"
    same(mf.put(np.ones(8), mesh, mf.P("a")), np.ones(8), NamedSharding(mesh, P("a")))


def test_the_mesh_of_set_mesh_is_used() -> None:
    for mesh in (grid(4, 2), grid(8)):  # the second time not with the plan of the first
        with jax.set_mesh(mesh):
            assert mf.put(np.arange(8), specs=P("a")).sharding == NamedSharding(mesh, P("a"))


def test_arrays_of_one_kind_may_be_shared_or_not() -> None:
    """The address, and the array that owns the memory, are not part of a plan."""
    mesh, host = grid(4, 2), frozen((64, 1024))
    view = memory((64, 1024))[:]
    view.setflags(write=False)
    for _ in range(2):
        assert is_within(mf.put(host, mesh, P("a")), host)
        assert not is_within(mf.put(view, mesh, P("a")), view)
        other = frozen((64, 1024), offset=4)
        assert not is_within(mf.put(other, mesh, P("a")), other)
    got = mf.put([host, view, other, host], mesh, P("a"))
    wanted = zip(got, [host, view, other, host], strict=True)
    assert [is_within(x, array) for x, array in wanted] == [True, False, False, True]


def test_arrays_on_devices_are_moved_or_returned() -> None:
    mesh = grid(4, 2)
    one = jax.device_put(np.arange(8.0), jax.devices()[3])
    got = mf.put({"x": one, "key": jax.random.key(0)}, mesh, {"x": P("a"), "key": P()})
    same(got["x"], np.arange(8.0), NamedSharding(mesh, P("a")))
    assert jax.random.key_data(got["key"]).tolist() == [0, 0]
    assert mf.put(got, mesh, {"x": P("a"), "key": P()})["x"] is got["x"]


# ---- 64-bit types ----


@pytest.mark.parametrize("kind", ["int64", "uint64", "float64", "complex128"])
def test_wide_types_are_narrowed_or_kept(kind: str) -> None:
    host = np.arange(8).astype(kind)
    got = mf.put(host, grid(8), P("a"))
    assert (got.dtype, np.asarray(got).tolist()) == (jnp.asarray(host).dtype, host.tolist())
    with jax.enable_x64(True):
        wide = mf.put(host, grid(8), P("a"))
    assert (wide.dtype, np.asarray(wide).tolist()) == (kind, host.tolist())


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (np.array([1, 2**40]), "array 'n/x' holds 1099511627776, which int32 cannot"),
        (np.array([0, 2**63], np.uint64), "array 'n/x' holds 9223372036854775808, which uint32"),
        (-(2**31) - 1, "array 'n/x' holds -2147483649, which int32 cannot"),
    ],
    ids=["int64", "uint64", "number"],
)
def test_numbers_that_do_not_fit_are_an_error(host: Any, text: str) -> None:
    for _ in range(2):
        with pytest.raises(mf.OutOfRangeError) as caught:
            mf.put({"n": {"x": host}}, grid(2), P("a") if np.ndim(host) else P())
        assert text in str(caught.value).replace('"', "'")
        assert "jax_enable_x64" in caught.value.hint


# ---- errors ----


def wrong(
    tree: Any, *arguments: Any, kind: type[mf.Error] = mf.InvalidArgumentError, **options: Any
) -> str:
    with pytest.raises(kind) as caught:
        mf.put(tree, *arguments, **options)
    return str(caught.value)


X = np.zeros((8, 6), np.float32)


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (
            "cat",
            "array 'a/x' is 'cat', which is text; give numbers or booleans, and leave other "
            "values out of the tree",
        ),
        (
            np.array(["a", "b"]),
            "array 'a/x' has the type <U1, which is not numeric; give numbers or booleans, and "
            "leave other values out of the tree",
        ),
        (
            np.array([[1], {}], object),
            "array 'a/x' holds Python objects; give numbers or booleans, and leave other values "
            "out of the tree",
        ),
        (
            X.astype(">f4"),
            "array 'a/x' has the type >f4, whose byte order is foreign; give "
            "array.astype(array.dtype.newbyteorder('='))",
        ),
        (
            np.zeros(8, np.longdouble),
            "array 'a/x' has the type float128, which JAX does not have; give it as float64 or "
            "complex128",
        ),
        (
            np.zeros(8, "M8[s]"),
            "array 'a/x' has the type datetime64[s], which is not numeric; give numbers or "
            "booleans, and leave other values out of the tree",
        ),
        (
            np.zeros(8, [("u", "i4")]),
            "array 'a/x' has the type [('u', '<i4')], which is not numeric; give numbers or "
            "booleans, and leave other values out of the tree",
        ),
        (
            np.ma.masked_array([1, 2], [False, True]),
            "array 'a/x' has missing values, which an array cannot hold; replace them with its "
            "filled()",
        ),
        (
            object,
            "array 'a/x' is <class 'object'>, which is no array; give numbers or booleans, and "
            "leave other values out of the tree",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_leaves_that_are_no_arrays(leaf: Any, text: str) -> None:
    assert wrong({"a": {"x": leaf}}, grid(2), P()) == f"mf.put: {text}"


def test_arrays_whose_conversion_fails() -> None:
    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Host:
            raise RuntimeError("no memory here")

    assert wrong({"x": Broken()}, grid(2), P()) == (
        "mf.put: array 'x' cannot become a NumPy array: RuntimeError: no memory here; give a NumPy "
        "array, or leave the field out"
    )


SHAPE = 'array "x/y" of shape (6, 4) is split 4 ways by axis "a" (size 4), but 6 % 4 = 2'
LEAVES = "a leaf is a NamedSharding, another sharding or a spec"


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        (
            P("a"),
            f"dimension 0 of {SHAPE}; the nearest sizes that divide: 4 or 8; or partition "
            f"another dimension",
        ),
        (
            P("a", "b", None),
            "spec P('a', 'b', None) of array \"x/y\" has 3 entries, but shape (6, 4) has rank 2; "
            "give at most one entry per dimension",
        ),
        (P("z"), 'axis "z" of array "x/y" is not in Mesh(\'a\': 4, \'b\': 2); use one of "a", "b"'),
        (
            P("a", "a"),
            'axis "a" partitions dimension 0 and dimension 1 of array "x/y"; an axis can '
            "partition one dimension once",
        ),
        (
            {"x": P(None, "a"), "z": P()},
            "specs have ['z'], which tree does not have; give one sharding, or a tree with the "
            "keys of tree",
        ),
        (
            {"x": {"y": [P()]}},
            "specs have nothing for tree['x']['y']; give one sharding, or a tree with the keys "
            "of tree",
        ),
        (
            {"x": {"y": None}},
            "array 'x/y' has no spec; PartitionSpec() puts the whole array on every device",
        ),
        (
            None,
            "specs are missing; give one spec for all arrays, such as PartitionSpec('data'), or "
            "a tree of specs",
        ),
        ("data", "specs have the leaf 'data'; a spec is written PartitionSpec('data')"),
        ({"x": {"y": 3}}, f"specs have the leaf 3; {LEAVES}"),
        (np.ones(3), f"specs have the leaf array([1., 1., 1.]); {LEAVES}"),
    ],
    ids=str,
)
def test_specs_that_do_not_fit(specs: Any, text: str) -> None:
    """The errors are those of a loader's layout, and name the path of the leaf."""
    tree = {"x": {"y": np.zeros((6, 4), np.float32)}}
    assert wrong(tree, grid(4, 2), specs) == f"mf.put: {text}"


def test_an_empty_tree_needs_no_mesh() -> None:
    assert mf.put({"x": []}, None, P("a")) == {"x": []}


def test_an_error_shows_no_other_exception() -> None:
    with pytest.raises(mf.InvalidArgumentError) as raised:
        mf.put(np.zeros(3), grid(4, 2), P("a"))
    assert raised.value.__context__ is None


def test_specs_in_place_of_the_mesh() -> None:
    batch, mesh = np.zeros((4, 2), np.float32), grid(4, 2)
    assert wrong(batch, NamedSharding(mesh, P("a")), None) == (
        "mf.put: specs are missing; the mesh is a sharding, so write specs= before it"
    )
    assert wrong(batch, P("a"), None) == (
        "mf.put: specs are missing; the mesh is a spec, so write specs= before it"
    )


def test_a_list_of_numbers_is_no_array() -> None:
    assert wrong({"x": X, "label": [3, 4]}, grid(2), P("a")) == (
        "mf.put: array 'label/0' is a number in a list, but its spec has dimensions; a list holds "
        "arrays; give np.asarray(list) for one array"
    )


def test_other_arguments_that_do_not_fit() -> None:
    assert wrong(X, grid(2), P("a"), rows="mine") == (
        'mf.put: rows=\'mine\': expected "all" or "local"'
    )
    assert wrong(X, grid(2), P("a"), may_alias="yes") == (
        "mf.put: may_alias='yes': expected True or False"
    )
    assert wrong(X, {"a": 2}, P("a")).startswith("mf.put: mesh={'a': 2}: expected a jax.sharding")
    assert wrong(X, None, P("a")) == (
        "mf.put: a PartitionSpec was given without a mesh; pass mesh=, or call jax.set_mesh(mesh) "
        "first"
    )
    mixed = {"x": NamedSharding(grid(2), P()), "y": NamedSharding(grid(4), P())}
    assert "the arrays are on two meshes" in wrong({"x": X, "y": X}, None, mixed)
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    assert wrong(loop, grid(2), P()).startswith("mf.put: the argument tree contains itself")


@pytest.mark.parametrize("way", TRACED)
def test_a_put_cannot_become_part_of_a_program(way: str) -> None:
    def step(x: Any) -> Any:
        return x * np.asarray(mf.put(np.ones(8), grid(8), P("a")))[0]

    with pytest.raises(mf.InvalidStateError) as caught:
        TRACED[way](step)
    assert str(caught.value).startswith("mf.put: a batch was asked for inside of a function that")


@pytest.mark.parametrize("way", EAGER)
@pytest.mark.parametrize("guard", ["allow", "disallow"])
def test_a_function_that_is_not_compiled_may_put(way: str, guard: str) -> None:
    def step(x: Any) -> Any:
        return x * np.asarray(mf.put(np.full(8, 3.0), grid(8), P("a")))[0]

    with jax.transfer_guard(guard):
        got = mf.put({"x": np.ones(8), "y": frozen((8, 16))}, grid(8), P("a"))
    assert float(np.asarray(got["x"])[0]) == 1
    assert EAGER[way](step) is not None


def test_notice_of_rows_in_several_processes() -> None:
    """Processes with equal parts are named; others only share some of their rows."""
    must = "must give equal rows in the same order; JAX does not compare them, "
    must += "mf.check_replicas does"
    same = Parts({"a": 2, "b": 2}, np.array([[0, 1], [2, 3]]), ["b"])
    text = f"these processes hold the same rows of array 'x': 0 and 2; 1 and 3, and {must}"
    assert same.notice("x") == text
    some = Parts({"a": 3, "b": 2}, np.array([[0, 1], [1, 2], [2, 0]]), ["a"])
    text = f"some rows of array 'x' are in several processes, which {must}"
    assert some.notice("x") == text
