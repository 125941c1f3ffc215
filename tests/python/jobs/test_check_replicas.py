"""`mf.check_replicas` in one process."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._jax import replicas
from tests.python.players import HANG
from tests.python.samples import digits

P = PartitionSpec
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
RESTORE = "restore the arrays from a checkpoint, and call it after every step to find the cause"


def put(data: Any, *spec: Any) -> jax.Array:
    placed: jax.Array = jax.device_put(data, NamedSharding(MESH, P(*spec)))
    return placed


def flipped(array: jax.Array, devices: set[int], byte: int = 0, bit: int = 1) -> jax.Array:
    """Returns a copy of an array with one bit flipped in its shards on some devices."""
    parts = []
    for shard in array.addressable_shards:
        part = np.array(shard.data)
        if shard.device.id in devices:
            part.reshape(-1).view(np.uint8)[byte] ^= bit
        parts.append(jax.device_put(part, shard.device))
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


# ---- one process ----

TYPES = [
    *("bool", "int8", "int64", "uint16", "float16", "float32", "complex64", "bfloat16", "int4"),
    *("float8_e4m3fn", "float8_e5m2"),
]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("spec", [(), ("data",), (None, "model")])
def test_every_type(dtype: str, spec: tuple[Any, ...]) -> None:
    values = np.arange(32).reshape(8, 4) % 2
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = put(values.astype(jax.dtypes.canonicalize_dtype(kind)), *spec)
    found = mf.check_replicas({"x": array})
    parts = {(): 1, ("data",): 4, (None, "model"): 2}[spec]
    assert (found.arrays, found.blocks, found.single) == (1, parts, [])
    assert found.bytes == sum(np.asarray(s.data).nbytes for s in array.addressable_shards)
    with pytest.raises(mf.DataLossError, match=r"\(device 1\)"):
        mf.check_replicas({"x": flipped(array, {1})})


def test_message() -> None:
    good = put(np.zeros((8, 4), np.float32))
    tree = {"a": good, "b": [flipped(good, {3, 6}), good], "c": flipped(good, {0})}
    with pytest.raises(mf.DataLossError) as caught:
        mf.check_replicas(tree)
    assert str(caught.value) == (
        "mf.check_replicas: array 'b/0', index [0:8, 0:4]: process 0 (devices 3 and 6) differs "
        f"from the other 6 copies; 1 more array differs; {RESTORE}"
    )


def test_no_majority() -> None:
    """Either of two copies may be the wrong one."""
    array = flipped(put(np.zeros((8, 4), np.float32), "data"), {5})
    with pytest.raises(mf.DataLossError) as caught:
        mf.check_replicas(array)
    assert str(caught.value) == (
        "mf.check_replicas: array 'tree', index [4:6, 0:4]: process 0 (device 4) differs from "
        f"process 0 (device 5); {RESTORE}"
    )


def test_the_first_part_is_named() -> None:
    with pytest.raises(mf.DataLossError, match=r"array 'tree', index \[2:4, 0:4\]: .*device 2"):
        mf.check_replicas(flipped(put(np.zeros((8, 4), np.float32), "data"), {3, 5}))


def test_names_that_are_not_unique() -> None:
    """If two paths have the same short form, arrays have the long one."""
    good = put(np.zeros(4, np.float32))
    tree = {"a/b": good, "a": {"b": flipped(good, {3})}}
    with pytest.raises(mf.DataLossError, match=r"array \"\['a'\]\['b'\]\", index"):
        mf.check_replicas(tree)


def test_bits_are_compared() -> None:
    """-0.0 and 0.0 differ, and so do NaNs with other bits; equal NaNs do not."""
    assert mf.check_replicas(put(np.full(4, np.nan, np.float32))).blocks == 1
    for data, byte, bit in ((np.zeros(4, np.float32), 3, 128), (np.full(4, np.nan), 0, 1)):
        with pytest.raises(mf.DataLossError):
            mf.check_replicas(flipped(put(data.astype(np.float32)), {2}, byte, bit))


def test_all_kinds_of_leaves() -> None:
    keys = put(jax.random.split(jax.random.key(0), 8), "data")
    tree = {
        "keys": keys,
        "empty": put(np.zeros((0, 8), np.float32)),
        "scalar": put(np.float32(1)),
        "local": jnp.arange(3),
        "numpy": (np.arange(3)[::-1], np.float64(2), 7, 1.5, True, 2j),
        "none": None,
        "alone": put(np.arange(8, dtype=np.int32), ("data", "model")),
    }
    found = mf.check_replicas(tree, name="state")
    assert found.single == ["alone", "local", *(f"numpy/{i}" for i in range(6))]
    assert (found.arrays, found.blocks, found.processes) == (11, 5, [0])
    assert str(found) == (
        "state: 3 of 11 arrays have replicas, all equal on 1 process; "
        "this one compared 160 bytes in 5 blocks"
    )
    assert mf.check_replicas(()).arrays == 0


def test_nothing_to_compare() -> None:
    """The text does not call arrays equal that have no copies."""
    found = mf.check_replicas({"w": put(np.arange(8), ("data", "model")), "step": 3})
    assert str(found) == "arrays: none of 2 arrays has replicas that are compared here"


def test_keys_of_random_numbers() -> None:
    keys = jax.random.split(jax.random.key(0), 8)
    other = jax.random.wrap_key_data(flipped(put(jax.random.key_data(keys)), {7}))
    with pytest.raises(mf.DataLossError, match="device 7"):
        mf.check_replicas({"rng": other})


def test_batches() -> None:
    specs = {"image": P("data"), "label": P()}
    with mf.Loader(mf.from_arrays(digits(64)), MESH, specs, batch_size=16) as loader:
        assert mf.check_replicas(loader.peek()).blocks == 5


def test_the_host_keeps_no_copy() -> None:
    """JAX caches the copy of an array on the host; it must go with the check."""
    array = put(np.arange(8).astype(ml_dtypes.int4))  # data of this type are copied on CPUs too
    mf.check_replicas(array)
    for shard in array.addressable_shards:
        assert shard.data._npy_value is None
    assert np.asarray(array.addressable_shards[0].data) is not None
    assert array.addressable_shards[0].data._npy_value is not None


def test_transfer_guard() -> None:
    with jax.transfer_guard("disallow"):
        assert mf.check_replicas(put(np.ones(8, np.float32))).blocks == 1


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        (
            {"x": jax.ShapeDtypeStruct((8,), "int32")},
            "array 'x' is ShapeDtypeStruct(shape=(8,), dtype=int32), which has no data to compare; "
            "give arrays in dicts, lists and tuples, and leave out others",
        ),
        (
            ["adam"],
            "array '0' is 'adam', which has no data to compare; "
            "give arrays in dicts, lists and tuples, and leave out others",
        ),
        (np.array([None]), "array 'tree' holds Python objects; give arrays of numbers"),
        (
            [1, "adam", "sgd"],
            "array '1' is 'adam', which has no data to compare; "
            "give arrays in dicts, lists and tuples, and leave out others",
        ),
        (
            {1: 2, "a": 3},
            "the keys of the dict tree are of the types int, str; "
            "JAX sorts them, so give keys of one type, such as str",
        ),
    ],
)
def test_leaves_without_data(tree: Any, text: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.check_replicas(tree)
    assert str(caught.value) == f"mf.check_replicas: {text}"


def test_traced_arrays() -> None:
    with pytest.raises(mf.InvalidArgumentError, match="array 'x' is traced: inside of a function"):
        jax.jit(lambda x: mf.check_replicas({"x": x}))(jnp.ones(3))


def test_a_call_in_a_traced_function() -> None:
    """It would compare arrays of outside once, and not in every step."""
    weights = put(np.ones(8, np.float32))
    with pytest.raises(mf.InvalidArgumentError) as caught:
        jax.jit(lambda x: (mf.check_replicas(weights), x)[1])(1.0)
    assert str(caught.value) == (
        "mf.check_replicas: the arrays would be compared once, when JAX traces the function around "
        "it; call it outside of jax.jit, scan and the like"
    )
    assert jax.grad(lambda x: (mf.check_replicas(weights), x)[1])(1.0) == 1


def test_memory_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most four parts of arrays are copied to the host at once."""
    meeting, most = threading.Barrier(replicas.WORKERS), [0]
    running, lock, digest = [0], threading.Lock(), replicas._digest

    def counted(data: Any) -> tuple[bytes, int]:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        meeting.wait(HANG)
        with lock:
            running[0] -= 1
        return digest(data)

    monkeypatch.setattr(replicas, "_digest", counted)
    mf.check_replicas([put(np.ones(8, np.float32)) for _ in range(5)])  # 40 copies
    assert most == [4]


def test_deleted_arrays() -> None:
    array = put(np.ones(8, np.float32))
    array.delete()
    with pytest.raises(mf.InvalidStateError) as caught:
        mf.check_replicas({"w": array})
    assert str(caught.value) == (
        "mf.check_replicas: array 'w' was deleted, or donated to a computation; "
        "give the arrays that the computation returned"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": "a/b"}, "name='a/b': expected a printable name without \"/\""),
        ({"name": ""}, "name='': expected a name"),
        ({"timeout": 0}, "timeout=0: expected a positive number of seconds"),
        ({"step": -1}, "step=-1: expected an integer from 0 to 2^63-1"),
        ({"step": 1.5}, "step=1.5: expected an integer from 0 to 2^63-1"),
        (
            {"coordinator": True},
            "coordinator=True: expected a mf.Coordinator; "
            "give an object with the five methods of mf.Coordinator, or False for none",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], text: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.check_replicas({}, **options)
    assert str(caught.value) == f"mf.check_replicas: {text}"
