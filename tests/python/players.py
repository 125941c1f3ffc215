"""Loaders in one process that stand for the processes of a job, and the store between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

import meshfeed as mf
from meshfeed._feed.joined import JoinedCursor
from meshfeed._jobs.cluster import Cluster
from meshfeed._jobs.options import Evidence
from meshfeed._jobs.peers import Peers

HANG = 60.0  # seconds; far more than anything here takes

# The beginning and the end of an error about processes that differ.
DIFFER = "mf.Loader: the processes of loader 'train' differ: "
ALIKE = "; give every process the same data, arguments and state"


class Memory:
    """A coordinator in memory. Tests check that no key is left."""

    def __init__(self) -> None:
        self.keys: dict[str, bytes] = {}
        self.calls = 0
        self._change = threading.Condition(threading.RLock())

    def set(self, key: str, value: bytes) -> None:
        with self._change:
            self.calls += 1
            self.keys[key] = value
            self._change.notify_all()

    def get(self, key: str, seconds: float) -> bytes | None:
        with self._change:
            self.calls += 1
            self._change.wait_for(lambda: key in self.keys, seconds)
            return self.keys.get(key)

    def try_get(self, key: str) -> bytes | None:
        with self._change:
            self.calls += 1
            return self.keys.get(key)

    def delete(self, key: str) -> None:
        with self._change:
            self.calls += 1
            for k in [k for k in self.keys if k == key or k.startswith(key + "/")]:
                del self.keys[k]
            self._change.notify_all()

    def list(self, prefix: str) -> dict[str, bytes]:
        with self._change:
            self.calls += 1
            return {k: v for k, v in self.keys.items() if k.startswith(prefix + "/")}

    def until(self, condition: Callable[[dict[str, bytes]], bool]) -> None:
        """Waits until the keys meet a condition."""
        with self._change:
            assert self._change.wait_for(lambda: condition(self.keys), HANG), self.keys


RECORDS = 64


def rows(records: int = RECORDS) -> dict[str, Any]:
    """Data with rows that all differ."""
    x = np.arange(records * 6, dtype=np.float32).reshape(records, 6)
    return {"x": x, "y": np.arange(records, dtype=np.int32) * 7}


def plan(**options: Any) -> mf.Layout:
    """Lays out four processes of two devices: 0 and 2 hold the same rows, and so do 1 and 3.

    The last array is replicated on all of them.
    """
    specs = {
        "x": mf.P("data", None),
        "y": mf.P("data"),
        "all": mf.Array("y", mf.P()),
    }
    given: dict[str, Any] = {"batch_size": 8, "records": RECORDS, "processes": 4, **options}
    axes = {"model": 2, "data": 4}
    fields = {"x": ("float32", (6,)), "y": ("int32", ())}
    return mf.layout(axes, specs, fields, **given)


class Players:
    """Loaders that stand for the processes of a layout, each with its own data."""

    def __init__(self, **options: Any) -> None:
        self.store = Memory()
        given = {"layout": plan(), "epochs": -1, "on_peer_error": "raise"}
        self.options: dict[str, Any] = {**given, **options}
        self.datasets: list[mf.Dataset] = []
        self.loaders: list[mf.Loader] = []

    def add(self, arrays: Mapping[str, Any] | None = None, **options: Any) -> mf.Loader:
        """Makes the loader of the next process."""
        self.datasets.append(mf.from_arrays(rows() if arrays is None else arrays))
        given = {"coordinator": self.store, "agree_timeout": HANG, **self.options, **options}
        process = given.pop("process", len(self.loaders))
        self.loaders.append(mf.Loader(self.datasets[-1], process=process, **given))
        return self.loaders[-1]

    def step(self) -> list[Any]:
        """Has all processes take a batch at once; returns batches, errors, or None at the end."""
        out: list[Any] = [None] * len(self.loaders)

        def take(p: int) -> None:
            try:
                out[p] = next(iter(self.loaders[p]), None)
            except Exception as e:
                out[p] = e

        together([lambda p=p: take(p) for p in range(len(self.loaders))])  # type: ignore[misc]
        return out

    def close(self) -> None:
        together([loader.close for loader in self.loaders])
        for ds in self.datasets:
            ds.close()


def together(functions: list[Callable[[], object]]) -> None:
    """Runs each function on its own thread, and waits for all."""
    threads = [threading.Thread(target=f) for f in functions]
    for thread in threads:
        thread.start()
    late = time.monotonic() + HANG
    for thread in threads:
        thread.join(max(0, late - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads)


@contextmanager
def players(*datasets: Mapping[str, Any] | None, **options: Any) -> Iterator[Players]:
    """Four processes, each with its own dataset if datasets are given."""
    job = Players(**options)
    for arrays in datasets or [None] * 4:
        job.add(arrays)
    try:
        yield job
    finally:
        job.close()


@contextmanager
def one_odd(odd: int, **options: Any) -> Iterator[Players]:
    """Four processes, one of them with other arguments."""
    job = Players(name="train")
    for p in range(4):
        job.add(**(options if p == odd else {}))
    try:
        yield job
    finally:
        job.close()


def cluster(loader: mf.Loader) -> Cluster:
    """Returns the cluster of a loader."""
    cursor = loader._engine.cursor
    assert isinstance(cursor, JoinedCursor)
    assert cursor._cluster is not None
    return cursor._cluster


def evidence(loader: mf.Loader) -> Evidence:
    """Returns what the processes of a loader compare."""
    found = cluster(loader)._evidence
    assert found is not None
    return found


def peers_of(loader: mf.Loader) -> Peers:
    return cluster(loader).peers


def compared(job: Players) -> None:
    """Waits until every process has compared all its samples."""
    for loader in job.loaders:
        if found := cluster(loader).replicas:
            found._batches.join()
    job.store.until(lambda keys: not any("/digests/" in key for key in keys))


def until(condition: Callable[[], bool]) -> None:
    """Polls until a condition holds."""
    late = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < late
        threading.Event().wait(0.01)


def heard(job: Players, origin: int) -> None:
    """Waits until all others have received the failure of one process."""
    for p, loader in enumerate(job.loaders):
        if p != origin:
            watcher = cluster(loader).peers._thread
            watcher.join(HANG)  # it ends after a failure
            assert not watcher.is_alive()


def threads() -> list[str]:
    """Returns the names of live threads of meshfeed."""
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("meshfeed"))
