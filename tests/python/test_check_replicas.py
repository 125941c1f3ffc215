"""`mf.check_replicas` in one process, and the exchange between processes on threads."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._jax import replicas
from meshfeed._jobs import comparison
from meshfeed._jobs.comparison import Block, Comparison, Copies, Index, next_call
from tests.python.data import digits
from tests.python.players import HANG, Memory, together

P = PartitionSpec
MESH = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
RESTORE = "restore the arrays from a checkpoint, and call it after every step to find the cause"
IN_JOB = f"{RESTORE}; copies also differ if a process left out a call: pass step= to know"
SAME_CALLS = "every process that holds a part makes the same calls in the same order"


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
    """Of two copies, either may be the wrong one."""
    array = flipped(put(np.zeros((8, 4), np.float32), "data"), {5})
    with pytest.raises(mf.DataLossError) as caught:
        mf.check_replicas(array)
    assert str(caught.value) == (
        "mf.check_replicas: array 'tree', index [4:6, 0:4]: process 0 (device 4) differs from "
        f"process 0 (device 5); {RESTORE}"
    )


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
    assert str(found) == "arrays: none of 2 arrays has replicas, so none was compared"


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
    array = put(np.arange(8).astype(ml_dtypes.int4))  # whose data are copied on CPUs too
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


# ---- processes on threads ----


class Held:
    """Stands for the arrays of a process: arrays with four parts that some processes hold."""

    def __init__(self, me: int, holders: list[tuple[int, ...]], content: Any = b"") -> None:
        self.names = [f"x{i}" for i in range(len(holders))]
        self.me = me
        self._holders, self.content = holders, content

    def computed(self) -> bool:
        return True

    def facts(self) -> dict[str, dict[str, Any]]:
        return {name: {"shape": [4]} for name in self.names}

    def copies(self, array: int) -> dict[Index, Copies]:
        return {((i, i + 1),): [(p, p) for p in self._holders[array]] for i in range(4)}

    def blocks(self) -> list[Block]:
        if isinstance(self.content, Exception):
            raise self.content
        return [
            Block(array, ((i, i + 1),), holders, {self.me: self.digest(array, i)}, 1)
            for array, holders in enumerate(self._holders)
            for i in range(4)
            if self.me in holders and len(holders) > 1
        ]

    def digest(self, array: int, part: int) -> bytes:
        wrong = (array, part) in (self.content or ())
        return bytes([self.me if wrong else 99, array % 256, part] * 6)[:16]


def call(
    store: Memory,
    held: Held,
    members: Any,
    name: str = "w",
    seconds: float = HANG,
    **of: Any,
) -> Any:
    """Compares the arrays of one process; returns the number of blocks, or the error."""
    keys = next_call(store, name, held.me, list(members))
    try:
        return len(Comparison(keys, held, seconds, **of).run())
    except Exception as e:
        return e


def calls(job: list[Held], store: Memory, of: Any = None, **options: Any) -> list[Any]:
    """Makes the calls of all processes at once; `of` has the step or line of each."""
    members = [held.me for held in job]
    found: list[Any] = [None] * len(job)

    def one(i: int) -> None:
        found[i] = call(store, job[i], members, **options, **(of[i] if of else {}))

    together([lambda i=i: one(i) for i in range(len(job))])  # type: ignore[misc]
    return found


SPLIT = [(0, 2, 4), (1, 3, 5), (0, 1, 2, 3, 4, 5), (5,)]


def test_sets_of_processes() -> None:
    """Each part is compared among its holders, whether the lowest process is one of them or not."""
    store = Memory()
    assert calls([Held(p, SPLIT) for p in range(6)], store) == [8] * 6
    for wrong, text in (
        ((0, 2), "array 'x0', index [2:3]: process 4 (device 4) differs from the other 2 copies"),
        ((2, 0), "array 'x2', index [0:1]: process 4 (device 4) differs from the other 5 copies"),
    ):
        job = [Held(p, SPLIT, [wrong] if p == 4 else []) for p in range(6)]
        assert [str(e) for e in calls(job, store)] == [f"{text}; {IN_JOB}"] * 6
    job = [Held(p, SPLIT, [(1, 3)] if p == 5 else []) for p in range(6)]
    text = "array 'x1', index [3:4]: process 5 (device 5) differs from the other 2 copies"
    assert [str(e) for e in calls(job, store)] == [f"{text}; {IN_JOB}"] * 6
    assert calls([Held(p, SPLIT) for p in range(6)], store) == [8] * 6
    assert {key.split("/")[2] for key in store.keys} == {"4"}  # only those of the last call


def test_more_values_than_are_asked_for() -> None:
    """If every process has other bytes, the first of them are named."""
    many = comparison.ASKED + 4
    job = [Held(p, [tuple(range(many))], [(0, 1)]) for p in range(many)]
    text = "array 'x0', index [1:2]: process 0 (device 0) differs from process 1 (device 1) and "
    for e in calls(job, Memory()):
        assert isinstance(e, mf.DataLossError)
        assert str(e).startswith(text)


def test_absent_processes() -> None:
    """The others name them, and later calls of the same name still match."""
    store = Memory()
    members = range(3)
    job = [Held(p, [(0, 1, 2)]) for p in members]
    found: list[Any] = [None, None]

    def one(p: int) -> None:
        found[p] = call(store, job[p], members, seconds=0.2)

    together([lambda: one(0), lambda: one(1)])
    text = "process 2 has not made call 1 with name='w' within 0.2 s; "
    found.append(call(store, job[2], members))  # late
    for e in found:
        assert isinstance(e, mf.PeerError)
        assert isinstance(e, TimeoutError)
        assert (e.process, str(e).startswith(text)) == (2, True)
    assert calls(job, store) == [4] * 3


def test_the_lowest_process_is_absent() -> None:
    """When it calls at last, it gets the same error, although the others have called again."""
    store = Memory()
    found = [call(store, Held(1, [(0, 1)]), range(2), seconds=0.1) for _ in range(2)]
    late = call(store, Held(0, [(0, 1)], [(0, 1)]), range(2))
    texts = [f"process 0 has not made call {n} with name='w' within 0.1 s" for n in (1, 2)]
    hint = f"{SAME_CALLS}; see its log, or raise timeout="
    assert [str(e) for e in found] == [f"{text}; {hint}" for text in texts]
    assert str(late) == f"process 1: {texts[0]}; see its log"
    assert all(isinstance(e, mf.PeerError) for e in (late, *found))


# ---- calls that are left out ----

FIRST, SECOND = "train.py:80", "train.py:120"


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (
            (100, 200, 100),
            "step=100 on processes 0 and 2, step=200 on process 1: "
            "process 1 has left out the call of step 100",
        ),
        (
            (200, 200, 100),
            "step=200 on processes 0 and 1, step=100 on process 2: "
            "processes 0 and 1 have left out the call of step 100",
        ),
        ((None, 3, 3), "step=3 on processes 1 and 2, step=None on process 0"),
    ],
)
def test_other_steps(steps: tuple[int | None, ...], text: str) -> None:
    """The error names the call and the processes, and compares no bytes."""
    store = Memory()
    job = [Held(p, [(0, 1, 2)], [(0, 1)]) for p in range(3)]
    got = calls(job, store, of=[{"step": step} for step in steps])
    assert all(isinstance(e, mf.IncompatibleError) for e in got)
    want = f"call 1 with name='w' has {text}; {SAME_CALLS}, with the same step="
    assert [str(e) for e in got] == [want] * 3
    assert calls([Held(p, [(0, 1, 2)]) for p in range(3)], store, of=[{"step": 300}] * 3) == [4] * 3


@pytest.mark.parametrize("trees", [False, True])
def test_other_lines(trees: bool) -> None:
    """If arrays differ, and the calls are not at the same line, a process left out a call."""
    store = Memory()
    lines = [{"line": FIRST}, {"line": SECOND}, {"line": FIRST}]
    assert calls([Held(p, [(0, 1, 2)]) for p in range(3)], store, of=lines) == [4] * 3
    odd = Held(1, [(0, 1, 2)] * 2) if trees else Held(1, [(0, 1, 2)], [(0, 1)])
    got = calls([Held(0, [(0, 1, 2)]), odd, Held(2, [(0, 1, 2)])], store, of=lines)
    assert all(isinstance(e, mf.IncompatibleError) for e in got)
    assert [str(e) for e in got] == [
        "call 2 with name='w' is made at train.py:80 on processes 0 and 2, train.py:120 on "
        f"process 1, and their arrays differ; {SAME_CALLS}; "
        "give calls at different lines names of their own"
    ] * 3


def test_equal_steps() -> None:
    """If the step is known to be equal, the error does not say that a call may be left out."""
    job = [Held(p, [(0, 1, 2)], [(0, 1)] if p == 1 else []) for p in range(3)]
    text = "array 'x0', index [1:2]: process 1 (device 1) differs from the other 2 copies"
    got = calls(job, Memory(), of=[{"step": 5, "line": FIRST}] * 3)
    assert [str(e) for e in got] == [f"{text}; {RESTORE}"] * 3


def test_arrays_that_are_never_computed() -> None:
    """A computation may wait for a process that left out a call: no call waits for it forever."""
    store = Memory()

    class Computing(Held):
        def computed(self) -> bool:
            return False

    found: list[Any] = [None, None]

    def one(held: Held, seconds: float) -> None:
        found[held.me] = call(store, held, range(2), seconds=seconds)

    together([lambda: one(Held(0, [(0, 1)]), HANG), lambda: one(Computing(1, [(0, 1)]), 0.2)])
    text = "in call 1 with name='w', the arrays were not computed within 0.2 s: "
    text += "the computation may wait for another process"
    hint = "make the same steps and calls in every process, or raise timeout="
    assert list(map(str, found)) == [f"process 1: {text}; see its log", f"{text}; {hint}"]
    assert all(isinstance(e, TimeoutError) and isinstance(e, mf.PeerError) for e in found)
    assert [e.process for e in found] == [1, 1]
    assert calls([Held(p, [(0, 1)]) for p in range(2)], store) == [4] * 2


@pytest.mark.parametrize("odd", range(3))
def test_a_process_that_cannot_read_its_arrays(odd: int) -> None:
    """The others get its error at once, also if it is the lowest, and the next call works."""
    store = Memory()
    job = [Held(p, [(0, 1, 2)], MemoryError("no memory") if p == odd else b"") for p in range(3)]
    found = calls(job, store, seconds=0.5)
    assert isinstance(found.pop(odd), MemoryError)
    for e in found:
        assert isinstance(e, mf.PeerError)
        assert (str(e), e.process) == (f"process {odd}: MemoryError: no memory; see its log", odd)
    assert calls([Held(p, [(0, 1, 2)]) for p in range(3)], store) == [4] * 3


def test_the_lowest_process_is_interrupted() -> None:
    """Ctrl-C there ends the wait of the others."""
    store = Memory()

    class Interrupted(Held):
        def copies(self, array: int) -> dict[Index, Copies]:
            raise KeyboardInterrupt

    job = [Interrupted(0, [(0, 1)]), Held(1, [(0, 1)], [(0, 2)])]
    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(call(store, job[1], range(2))))
    other.start()
    with pytest.raises(KeyboardInterrupt):
        call(store, job[0], range(2))
    other.join(HANG)
    (e,) = found
    assert isinstance(e, mf.PeerError)
    assert (str(e), e.process) == ("process 0: KeyboardInterrupt; see its log", 0)


def test_names_and_sets_are_counted_apart() -> None:
    """A call of two processes does not count for a call of three."""
    store = Memory()
    three = [Held(p, [(0, 1, 2)]) for p in range(3)]
    two = [Held(p, [(0, 1)]) for p in range(2)]
    order: list[Callable[[], Any]] = [
        lambda: calls(two, store),
        lambda: calls(three, store),
        lambda: calls(three, store, name="other"),
        lambda: calls(two, store),
        lambda: calls(three, store),
    ]
    assert [each() for each in order] == [[4] * 2, [4] * 3, [4] * 3, [4] * 2, [4] * 3]


def test_a_record_is_small() -> None:
    """Its size does not depend on the number of arrays."""
    sizes = []
    for n in (1, 500):
        store = Memory()
        calls([Held(p, [(0, 1)] * n) for p in range(2)], store)
        sizes.append([len(value) for key, value in store.keys.items() if "/record/" in key])
    assert sizes[0] == sizes[1]
    assert max(sizes[0]) < 340


def test_a_store_that_fails() -> None:
    class Broken(Memory):
        def set(self, key: str, value: bytes) -> None:
            raise ConnectionError("the store is gone")

    found = call(Broken(), Held(0, [(0, 1)]), range(2))
    assert isinstance(found, ConnectionError)


def test_calls_on_several_threads() -> None:
    """Checks of different names may run at the same time."""
    store, names = Memory(), [f"n{i}" for i in range(4)]
    found: dict[tuple[str, int], Any] = {}

    def one(name: str, p: int) -> None:
        found[name, p] = call(store, Held(p, [(0, 1)]), range(2), name=name)

    pairs = list(itertools.product(names, range(2)))
    threads = [threading.Thread(target=one, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert found == dict.fromkeys(pairs, 4)
