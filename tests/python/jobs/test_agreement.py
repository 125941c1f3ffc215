"""Before the first batch all processes agree that they load the same."""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import json
import threading
import time
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from meshfeed._jobs import agreement
from meshfeed._jobs.keys import Generation, Namespace
from meshfeed._native import calls
from tests.python.players import (
    ALIKE,
    DIFFER,
    HANG,
    Memory,
    Players,
    cluster,
    evidence,
    one_odd,
    plan,
    players,
    rows,
    threads,
    together,
)

REPLICAS = 'expected "first", "always", "off" or an integer k from 1: every k-th step'


def errors_of(job: Players) -> list[str]:
    got = job.step()
    assert all(isinstance(e, mf.IncompatibleError) for e in got), got
    return [str(e) for e in got]


def test_equal_processes_agree() -> None:
    with players(name="train") as job:
        assert threads() == []  # nor keys: nothing happens before the first batch
        assert job.store.keys == {}
        for step in range(3):
            got = job.step()
            for p, batch in enumerate(got):
                np.testing.assert_array_equal(batch["all"][0][1], np.arange(8) * 7 + 56 * step)
                (index, block), *_ = batch["y"]
                np.testing.assert_array_equal(block, 7 * (np.arange(8)[index] + 8 * step))
                assert index[0].start == 4 * (p % 2)
    assert job.store.keys == {}
    assert threads() == []


def edited(*path: str, **values: Any) -> mf.Layout:
    """Returns the layout with other values at a path of its document."""
    document = part = json.loads(plan().to_json())
    for key in path:
        part = part[key]
    part |= values
    return mf.Layout(json.dumps(document))


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "seed": ({"seed": 7}, "seed is 0 on processes 0, 1 and 3, 7 on process 2"),
    "order": (
        {"shuffle": True},
        "order is 'sequential.1' on processes 0, 1 and 3, 'shuffle.1' on process 2",
    ),
    "epochs": ({"epochs": 3}, "epochs is -1 on processes 0, 1 and 3, 3 on process 2"),
    "verify_replicas": (
        {"verify_replicas": "off"},
        "verify_replicas is 'first' on processes 0, 1 and 3, 'off' on process 2",
    ),
    "batch": (
        {"layout": plan(batch_size=16)},
        "batch.size is 8 on processes 0, 1 and 3, 16 on process 2",
    ),
    "remainder": (
        {"layout": plan(remainder="pad")},
        "batch.remainder is 'drop' on processes 0, 1 and 3, 'pad' on process 2",
    ),
    "extras": (
        {"layout": plan(extras=["key"])},
        "batch.extras is [] on processes 0, 1 and 3, ['key'] on process 2",
    ),
    "loading": (
        {"layout": plan(loading="global")},
        "loading is 'process' on processes 0, 1 and 3, 'global' on process 2",
    ),
    "spec": (
        {"layout": edited("arrays", "x", spec=["data", "model"])},
        "arrays.x.spec is ['data', None] on processes 0, 1 and 3, ['data', 'model'] on process 2",
    ),
    "mask_name": (
        {"layout": plan(remainder="pad", mask_name="there")},
        "batch.mask is 'valid' on processes 0, 1 and 3, 'there' on process 2; "
        "batch.remainder is 'drop' on processes 0, 1 and 3, 'pad' on process 2",
    ),
    "fill": (
        {"fill": {"y": -1}},
        "fill.y is not set on processes 0, 1 and 3, -1 on process 2",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_another_argument(case: str) -> None:
    """Every process raises the same error."""
    options, text = CASES[case]
    with one_odd(2, **options) as job:
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4
        assert threads() == []  # none was started


def test_defaults() -> None:
    given = inspect.signature(mf.Loader).parameters
    want = {"agree_timeout": 60, "on_peer_error": "end", "verify_replicas": "first"}
    want |= {"late_after": 30, "name": None, "coordinator": None}
    assert {name: given[name].default for name in want} == want


def test_another_version() -> None:
    with players(name="train") as job:
        odd = cluster(job.loaders[2])
        odd._terms = evidence(job.loaders[2]).terms(odd._options) | {"version": "0.0.9"}
        text = f"version is '{mf.__version__}' on processes 0, 1 and 3, '0.0.9' on process 2"
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4


def test_another_device_order() -> None:
    devices = [[(d // 2, d) for d in order] for order in (range(8), (1, 0, *range(2, 8)))]
    layouts = [plan(devices=order) for order in devices]
    job = Players(name="train")
    for p in range(4):
        job.add(layout=layouts[p == 3])
    first, second = "(process 0, device 0)", "(process 0, device 1)"
    text = f"mesh.devices[0] is {first} on processes 0, 1 and 2, {second} on process 3; "
    text += f"mesh.devices[1] is {second} on processes 0, 1 and 2, {first} on process 3"
    assert errors_of(job) == [DIFFER + text + ALIKE] * 4
    job.close()


def test_another_dataset() -> None:
    """A changed row makes another dataset, if the fingerprint covers it."""
    odd = rows()
    odd["y"] = odd["y"] + 1
    with players(None, odd, None, None, name="train") as job:
        prints = [ds.fingerprint() for ds in job.datasets]
        assert prints[0] == prints[2] != prints[1]
        text = "dataset differs in the values, between processes 0, 2 and 3 and process 1"
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4


@pytest.mark.parametrize("broken", [0, 1])
def test_a_dataset_without_components(broken: int) -> None:
    """The error shows the fingerprints if a process does not know what its own is made of."""
    odd = rows()
    odd["y"] = odd["y"] + 1
    with players(None, odd, None, None, name="train") as job:
        odd_one = cluster(job.loaders[broken])
        assert odd_one._evidence is not None
        no_handle = functools.partial(calls.loader_components, 0)
        odd_one._evidence = dataclasses.replace(odd_one._evidence, components=no_handle)
        states = [loader.state()["dataset"] for loader in job.loaders]
        text = f"dataset is '{states[0]}' on processes 0, 2 and 3, '{states[1]}' on process 1"
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4


def test_many_differences() -> None:
    options = {"seed": 3, "shuffle": True, "epochs": 2, "layout": plan(batch_size=16)}
    with one_odd(0, **options) as job:
        text = "batch.size is 16 on process 0, 8 on processes 1, 2 and 3; "
        text += "epochs is 2 on process 0, -1 on processes 1, 2 and 3; "
        text += "order is 'shuffle.1' on process 0, 'sequential.1' on processes 1, 2 and 3; "
        text += "1 more field differs"
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4


def judged(plans: list[dict[str, Any]]) -> str:
    """Returns the lowest process's verdict on the terms of all processes."""
    texts = [json.dumps(plan, sort_keys=True) for plan in plans]
    namespace = Namespace(Memory(), "train", "'train'", 0, range(len(plans)))
    of = Generation(namespace, "train/0")
    for p, text in enumerate(texts[1:], 1):
        of.set(f"answer/{p}", "" if text == texts[0] else text)
    with pytest.raises(mf.IncompatibleError) as e:
        agreement.Agreement(of, HANG, "", threading.Event(), dict).reach(plans[0])
    return str(e.value)


def test_one_of_thousands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal terms are parsed once, so that the verdict is in time."""
    parsed = []
    differences = agreement.differences

    def watch(plans: Any, datasets: Any) -> list[str]:
        parsed.extend(plans)
        return differences(plans, datasets)

    monkeypatch.setattr(agreement, "differences", watch)
    others = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 3987 more"
    text = f"seed is 1 on process 0, 0 on processes {others}"
    assert judged([{"seed": 1}] + [{"seed": 0}] * 3999) == DIFFER + text + ALIKE
    assert len(parsed) == 2


def test_all_different() -> None:
    """If all processes differ, the error names only some of them."""
    text = ", ".join(f"{p} on process {p}" for p in range(8))
    text = f"seed is {text}; processes 8, 9 and 10 differ as well"
    assert judged([{"seed": p} for p in range(11)]) == DIFFER + text + ALIKE
    assert judged([{"seed": p} for p in range(9)]).endswith(f"; process 8 differs as well{ALIKE}")


def test_partly_equal_terms() -> None:
    got = judged([{"a": 0, "b": 0}, {"a": 1, "b": 0}, {"a": 0, "b": 1}, {"a": 0, "b": 0}])
    text = "a is 0 on processes 0, 2 and 3, 1 on process 1; "
    assert got == f"{DIFFER}{text}b is 0 on processes 0, 1 and 3, 1 on process 2{ALIKE}"


def test_another_position() -> None:
    """Processes agree again after seek and restore, and after a difference was corrected."""
    with players(name="train") as job:
        job.step()
        state = job.loaders[0].state()
        job.step()
        for p, loader in enumerate(job.loaders):
            loader.restore(state) if p else loader.seek(epoch=1, position=16)
        text = "epoch is 1 on process 0, 0 on processes 1, 2 and 3; "
        text += "position is 16 on process 0, 8 on processes 1, 2 and 3"
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4
        job.loaders[0].restore(state)
        for batch in job.step():
            np.testing.assert_array_equal(batch["all"][0][1], 7 * np.arange(8, 16))
        assert {key.split("/")[2] for key in job.store.keys} == {"0"}
        assert {key.split("/")[3] for key in job.store.keys} == {"2"}  # of the third agreement


def test_skipped_alike() -> None:
    """Processes agree again after skip; a process that skips more, or not at all, is named."""
    with players(name="train") as job:
        job.step()
        for p, loader in enumerate(job.loaders):
            loader.skip(1 + (p == 2))
        text = "position is 16 on processes 0, 1 and 3, 24 on process 2"
        assert errors_of(job) == [DIFFER + text + ALIKE] * 4
        job.loaders[2].seek(epoch=0, position=16)
        for batch in job.step():
            np.testing.assert_array_equal(batch["all"][0][1], 7 * np.arange(16, 24))
        for loader in job.loaders[:2] + job.loaders[3:]:
            assert loader.certificate().skipped == ((0, 1, 8, 16),)


def test_prefetch_may_differ() -> None:
    """Processes may read ahead by different numbers of batches."""
    job = Players()
    for p in range(4):
        job.add(prefetch=p, max_host_bytes=1 << (20 + p), device_prefetch=p % 2)
    for _ in range(12):
        assert all(isinstance(batch, dict) for batch in job.step())
    job.close()


@pytest.mark.parametrize(("missing", "named"), [(2, "process 2 has"), (0, "process 0 has")])
def test_missing(missing: int, named: str) -> None:
    """All processes name one that is late, and so does the late process."""
    job = Players(name="train", agree_timeout=1.0)
    for p in range(4):
        job.add(process=p)
    late = job.loaders.pop(missing)
    want = f"mf.Loader: {named} not reached the next batch of loader 'train' within 1 s; every "
    want += (
        "process of the mesh makes the same loaders, and takes their first batches, in the same "
    )
    want += "order; see its log, or raise agree_timeout="
    got = job.step()
    assert [str(e) for e in got] == [want] * 3
    for error in got:
        assert isinstance(error, mf.PeerError)
        assert isinstance(error, TimeoutError)
        assert error.process == missing
    if missing:
        with pytest.raises(mf.PeerError) as e:
            next(iter(late))
        assert str(e.value) == want
    job.loaders.append(late)
    job.close()


@pytest.mark.parametrize(
    ("moved", "first", "second"),
    [
        ({3}, "process 3 has", "process 0 has"),
        ({0}, "process 0 has", "processes 1, 2 and 3 have"),
        ({0, 1, 3}, "processes 0, 1 and 3 have", "process 2 has"),
    ],
)
def test_some_move(moved: set[int], first: str, second: str) -> None:
    """A process that moves alone is named beside the processes that do not follow."""
    with players(name="train", agree_timeout=1.0) as job:
        assert all(isinstance(batch, dict) for batch in job.step())
        for p in moved:
            job.loaders[p].skip(2)
        every, job.loaders = job.loaders, [job.loaders[p] for p in sorted(moved)]
        got = job.step()
        job.loaders = every
    want = f"mf.Loader: {first} called skip, and after it {second} not reached "
    want += "the next batch of loader 'train' within 1 s; call it before the same batch in every "
    want += "process; see the logs, or raise agree_timeout="
    assert [str(e) for e in got] == [want] * len(moved)


def test_names_are_counted() -> None:
    """Two loaders on the same processes have different keys, also one after the other."""
    store = Memory()
    with players(coordinator=store) as first, players(coordinator=store, seed=1) as second:
        for job in (second, first, second):
            assert all(isinstance(batch, dict) for batch in job.step())
        used = {tuple(key.split("/")[1:3]) for key in store.keys}
        assert used == {("0-3", "0"), ("0-3", "1")}
    with players(coordinator=store) as third:
        third.step()
        assert {tuple(key.split("/")[1:3]) for key in store.keys} == {("0-3", "2")}


def test_members_count_their_uses() -> None:
    """A process that did not take part in one use of a name takes part in the next."""
    some = plan(devices=[(p, 4 * p + d) for p in (1, 3) for d in range(4)])
    store = Memory()
    for layout, members in [(some, (1, 3)), (plan(), range(4))] * 2:
        job = Players(coordinator=store, layout=layout, name="train")
        for p in members:
            job.add(process=p)
        assert all(isinstance(batch, dict) for batch in job.step())
        job.close()
    assert store.keys == {}


def test_an_old_loader_does_not_release_a_name() -> None:
    """Collecting a closed loader does not release the name that a new one has."""
    with players(name="train") as job:
        old = job.loaders.pop()
        evaluation = old.one_epoch()
        old.close()
        job.add(process=3)
        del old, evaluation
        gc.collect()
        with pytest.raises(mf.InvalidStateError, match="another loader of this process"):
            job.add(process=3)


def test_a_name_is_used_once_at_a_time() -> None:
    with players(name="train") as job:
        with pytest.raises(mf.InvalidStateError) as e:
            job.add(process=1)
        want = "mf.Loader: name='train': another loader of this process has that name; close it "
        assert str(e.value) == want + "first, or choose another"
        job.loaders[1].close()
        again = job.add(process=1)
        again.close()


def test_a_forgotten_loader_leaves() -> None:
    """A loader that is collected unclosed leaves no name, threads or keys.

    The keys are deleted after the last wait for one of them, which would miss its wake key.
    """

    class Watched(Memory):
        waiting = missed = 0

        def get(self, key: str, seconds: float) -> bytes | None:
            self.waiting += "/wake/" in key
            try:
                return super().get(key, seconds)
            finally:
                self.waiting -= "/wake/" in key

        def delete(self, key: str) -> None:
            self.missed += self.waiting * (key.count("/") == 2)
            super().delete(key)

    store = Watched()
    job = Players(name="train", late_after=0.1, coordinator=store)
    for _ in range(4):
        job.add()
    job.step()
    assert len(threads()) == 13  # three per process, and one in the lowest
    job.loaders.clear()
    late = time.monotonic() + HANG
    while threads() and time.monotonic() < late:
        threading.Event().wait(0.01)
    assert threads() == []
    assert (store.keys, store.missed) == ({}, 0)
    again = job.add()
    again.close()


def test_subset_of_processes() -> None:
    """A process without a device of the mesh takes no part, and the others do not wait for it."""
    devices = [(p, 4 * p + d) for p in (1, 3) for d in range(4)]
    job = Players(layout=plan(devices=devices), name="train")
    for p in (1, 3):
        job.add(process=p)
    assert all(isinstance(batch, dict) for batch in job.step())
    assert job.store.keys["meshfeed/train.1-3.78d2d6be/0/0/answer/3"] == b'""'
    job.close()


def test_one_process_has_no_cluster() -> None:
    store = Memory()
    layout = plan(processes=1)
    with (
        mf.from_arrays(rows()) as ds,
        mf.Loader(ds, layout=layout, process=0, coordinator=store) as loader,
    ):
        assert next(iter(loader))
        assert store.calls == 0
        assert threads() == []


@pytest.mark.parametrize("coordinator", [None, False])
def test_one_simulated_process_needs_no_others(coordinator: Any) -> None:
    """A loader that simulates one process of many runs alone, unless a store is given."""
    with (
        mf.from_arrays(rows()) as ds,
        mf.Loader(ds, layout=plan(), process=2, coordinator=coordinator) as loader,
    ):
        assert next(iter(loader))
        assert threads() == []


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"name": "a/b"}, "name='a/b': expected a printable name without \"/\""),
        ({"name": "a\0b"}, "name='a\\x00b': expected a printable name without \"/\""),
        ({"name": "\ud800"}, "name='\\ud800': expected a printable name without \"/\""),
        ({"name": ""}, "name='': expected a name"),
        ({"agree_timeout": 0}, "agree_timeout=0: expected a positive number of seconds"),
        ({"late_after": "soon"}, "late_after='soon': expected a positive number of seconds"),
        ({"on_peer_error": "die"}, 'on_peer_error=\'die\': expected "end", "raise" or "abort"'),
        (
            {"verify_replicas": "some"},
            f"verify_replicas='some': {REPLICAS}",
        ),
        ({"verify_replicas": "all"}, f"verify_replicas='all': {REPLICAS}"),
        ({"verify_replicas": 0}, f"verify_replicas=0: {REPLICAS}"),
        ({"verify_replicas": True}, f"verify_replicas=True: {REPLICAS}"),
        ({"verify_replicas": 1.5}, f"verify_replicas=1.5: {REPLICAS}"),
        ({"verify_replicas": 2**31}, f"verify_replicas=2147483648: {REPLICAS}"),
        ({"agree_timeout": -1}, "agree_timeout=-1: expected a positive number of seconds"),
        (
            {"coordinator": "etcd"},
            "coordinator='etcd': expected a mf.Coordinator; give an object with the five methods "
            "of mf.Coordinator, or False for none",
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], want: str) -> None:
    with mf.from_arrays(rows()) as ds, pytest.raises(mf.InvalidArgumentError) as e:
        mf.Loader(ds, batch_size=2, **options)
    assert str(e.value) == f"mf.Loader: {want}"


class Gate:
    """A lock that signals when a thread waits for it."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self.came.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_two_threads_begin() -> None:
    """A loader and a pass of it, each on its own thread, agree once."""
    with players(name="train") as job:
        first, *others = job.loaders
        gate: Any = Gate()
        cluster(first)._lock = gate
        evaluation = first.one_epoch()
        got: list[Any] = []
        both = [
            threading.Thread(target=lambda loop=loop: got.append(next(loop)))
            for loop in (iter(first), evaluation)
        ]
        for thread in both:
            thread.start()
        assert gate.came.acquire(timeout=HANG)
        assert gate.came.acquire(timeout=HANG)
        together([lambda loader=loader: next(iter(loader)) for loader in others])  # type: ignore[misc]
        together([lambda loader=loader: next(loader.one_epoch()) for loader in others])  # type: ignore[misc]
        for thread in both:
            thread.join(HANG)
        assert [type(batch) for batch in got] == [dict, dict]
        assert cluster(first)._next == 1
        evaluation.close()
