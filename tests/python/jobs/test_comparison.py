"""The exchange of `mf.check_replicas` between processes, which are threads here."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import meshfeed as mf
from meshfeed._jobs import comparison
from meshfeed._jobs.comparison import HOST, Block, Comparison, Copies, Index, next_call
from tests.python.players import HANG, Memory, together

RESTORE = "restore the arrays from a checkpoint, and call it after every step to find the cause"
IN_JOB = f"{RESTORE}; copies also differ if a process left out a call: pass step= to know"
SAME_CALLS = "every process that holds a part makes the same calls in the same order"


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


def calls(job: Sequence[Held], store: Memory, of: Any = None, **options: Any) -> list[Any]:
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
    assert {key.split("/")[2] for key in store.keys} == {"4"}  # only keys of the last call


class Local(Held):
    """Stands for a process with an array on two devices of its own, which others do not know."""

    def copies(self, array: int) -> dict[Index, Copies]:
        others = [(p, HOST) for p in range(3) if p != self.me]
        return {((0, 4),): [(self.me, 2 * self.me), (self.me, 2 * self.me + 1), *others]}

    def blocks(self) -> list[Block]:
        first, second = b"a" * 16, (self.content or b"a") * 16
        digests = {2 * self.me: first, 2 * self.me + 1: second}
        return [Block(0, ((0, 4),), (0, 1, 2), digests, 4)]


def test_copies_inside_of_one_process() -> None:
    """The devices of a local array of another process are not known, but it is named."""
    assert calls([Local(p, [()]) for p in range(3)], Memory()) == [1] * 3
    for odd, where in enumerate(("process 0 (device 1)", "process 1", "process 2")):
        job = [Local(p, [()], b"b" if p == odd else b"") for p in range(3)]
        rest = 4 if odd else 3
        text = f"array 'x0', index [0:4]: {where} differs from the other {rest} copies; {IN_JOB}"
        assert [str(e) for e in calls(job, Memory())] == [text] * 3


class Twice(Held):
    """Stands for a process that has a part of "x0" once, and a part of "x1" twice."""

    def copies(self, array: int) -> dict[Index, Copies]:
        devices = [[(p, 2 * p), (p, 2 * p + 1)][: 1 + array] for p in range(3)]
        return {((p, p + 1),): pairs for p, pairs in enumerate(devices)}

    def blocks(self) -> list[Block]:
        digests = {2 * self.me: b"a" * 16, 2 * self.me + 1: (self.content or b"a") * 16}
        return [Block(1, ((self.me, self.me + 1),), (self.me,), digests, 1)]


def test_copies_that_only_one_process_has() -> None:
    """The lowest process counts the same parts as the others, so it names the right one."""
    job = [Twice(p, [(), ()], b"b" if p == 2 else b"") for p in range(3)]
    text = "array 'x1', index [2:3]: process 2 (device 4) differs from process 2 (device 5)"
    assert [str(e) for e in calls(job, Memory())] == [f"{text}; {IN_JOB}"] * 3


class Shaped(Held):
    """Stands for a process with arrays of other shapes, or in another order."""

    def __init__(self, me: int, arrays: int, kind: str) -> None:
        super().__init__(me, [(0, 1)] * arrays)
        self._kind = kind

    def facts(self) -> dict[str, dict[str, Any]]:
        names = self.names[::-1] if self._kind == "order" else self.names
        return {name: {"shape": [5 if self._kind == "shape" else 4]} for name in names}


def test_many_differences_of_trees() -> None:
    """Three arrays are named, and the others are counted."""
    job = [Held(0, [(0, 1)] * 5), Shaped(1, 5, "shape")]
    each = [f"array 'x{i}' has the shape [4] on process 0, [5] on process 1" for i in range(3)]
    text = f"the processes have different trees: {'; '.join(each)}; 2 more; "
    text += "give every process the same tree, with the same shardings"
    assert [str(e) for e in calls(job, Memory())] == [text] * 2


def test_another_order_of_arrays() -> None:
    job = [Held(0, [(0, 1)] * 2), Shaped(1, 2, "order")]
    text = "the processes have different trees: the arrays have another order; "
    text += "give every process the same tree, with the same shardings"
    assert [str(e) for e in calls(job, Memory())] == [text] * 2


def test_a_process_that_does_not_answer() -> None:
    """If it ends after its record, the error still says which processes differ."""
    store, held = Memory(), Held(1, [(0, 1)], [(0, 1)])
    keys, earlier = next_call(store, "w", 1, [0, 1])
    other = Comparison((keys, earlier), held, HANG)
    other._sets = comparison._sets(held.blocks())
    other._facts = held.facts()
    keys.set("record/1", other._record())
    found = call(store, Held(0, [(0, 1)]), range(2), seconds=0.1)
    assert isinstance(found, mf.DataLossError)
    assert str(found) == f"copies differ on processes 0-1; {IN_JOB}"


def test_many_processes_are_counted() -> None:
    text = comparison._located([(p, d) for p in range(14) for d in (2 * p, 2 * p + 1)])
    assert text.startswith("process 0 (devices 0 and 1), process 1 (devices 2 and 3), ")
    assert text.endswith(", process 11 (devices 22 and 23) and 2 more processes")


def test_several_sets_differ() -> None:
    """The first array is named, whichever processes hold it, and the others are counted."""
    holders: list[tuple[int, ...]] = [(1, 2), (0, 1)]
    job = [Held(p, holders, [(0, 1), (1, 3)] if p == 1 else []) for p in range(3)]
    text = "array 'x0', index [1:2]: process 1 (device 1) differs from process 2 (device 2); "
    text += f"1 more array differs; {IN_JOB}"
    assert [str(e) for e in calls(job, Memory())] == [text] * 3


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


def test_the_verdict_of_the_lowest_process() -> None:
    """The others wait for it longer than the lowest process waits, so they name the same one."""
    store = Memory()
    job = [Held(p, [(0, 1, 2)]) for p in range(2)]
    found: list[Any] = [None, None]

    def lead() -> None:
        found[0] = call(store, job[0], range(3), seconds=0.5)

    def follow() -> None:
        store.until(lambda keys: any(key.endswith("/record/0") for key in keys))
        found[1] = call(store, job[1], range(3), seconds=0.05)

    together([lead, follow])
    for e in found:
        assert str(e).startswith("process 2 has not made call 1 with name='w' within 0.5 s; ")


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
