"""Proof that processes which hold the same part of a batch were given the same bytes.

JAX compares no replicas; where two differ, results differ and nothing says so. Here every shared
block of a sampled step is hashed. Of the processes that hold it the lowest publishes the digest,
and the others compare. The program only puts the batch into a queue, from which a thread takes it
to hash it while the program uses it. Another thread compares a moment later, when nobody waits for
a batch because of it: threads of one interpreter run in turns.
"""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meshfeed import errors
from meshfeed._jobs.rounds import Round
from meshfeed._native import calls
from meshfeed._native.abi import Head
from meshfeed._plan import documents
from meshfeed.coordinator import patient_get

FIRST = 3  # steps that verify_replicas="first" looks at
UNREAD = 2  # batches that may wait to be hashed, and are kept for it, before `next` waits
LATER = 0.2  # seconds until a first sample is compared: not among the steps that it came with
BEHIND = 256  # samples that may wait to be compared before `next` waits for them
LOOK = 1.0  # seconds between two looks for processes that have left

log = logging.getLogger("meshfeed")

Digests = dict[str, str]
Accuse = Callable[[errors.Error, int, int], None]


def due(verify: str | int) -> Callable[[int], bool]:
    """Gives the function that says whether the n-th step since the agreement is looked at."""
    if verify == "first":
        return lambda n: n < FIRST
    every = 1 if verify == "always" else int(verify)
    return lambda n: n % every == 0


@dataclass(frozen=True)
class Shared:
    """The blocks of this process that others hold too.

    Attributes:
        tensors: their numbers in the batch.
        labels: what errors call them, such as "array 'image', index [0:8, 0:4]".
        writers: for each the lowest process that holds it.
        readers: for every writer, the other processes that read what it publishes.
    """

    tensors: Sequence[int]
    labels: Sequence[str]
    writers: Sequence[int]
    readers: Mapping[int, frozenset[int]]


def shared(info: Mapping[str, Any], mesh: Mapping[str, Any]) -> Shared:
    """Finds the blocks that several processes hold.

    Args:
        info: what the library says about this process's batches.
        mesh: the layout document's part of that name.
    """
    owners = np.array([process for process, _ in documents.devices(mesh)])
    readers: dict[int, set[int]] = {}
    found = []
    for array in info["arrays"]:
        if 0 in array["shape"]:
            continue  # there is nothing to compare
        tiles = _tiles(mesh["axes"], array["spec"])
        groups = _groups(tiles, owners)
        for writer, *others in groups.values():
            readers.setdefault(writer, set()).update(others)
        found += [
            (block["tensor"], _label(array["name"], block["index"]), groups[part][0])
            for block in array["blocks"]
            if (part := int(tiles[block["holders"][0]])) in groups
        ]
    tensors, labels, writers = zip(*found, strict=True) if found else ((), (), ())
    return Shared(tensors, labels, writers, {w: frozenset(who) for w, who in readers.items()})


_Numbers = np.ndarray[Any, np.dtype[np.int64]]


def _tiles(axes: Sequence[tuple[str, int]], spec: Sequence[Any]) -> _Numbers:
    """Numbers the part of an array that every device holds, in mesh order.

    Devices that differ along no axis of the spec hold the same part.
    """
    named: set[str] = set()
    for entry in spec:
        named.update([entry] if isinstance(entry, str) else entry or ())
    n = stride = math.prod(size for _, size in axes)
    positions, tiles = np.arange(n), np.zeros(n, np.int64)
    for name, size in axes:
        stride //= size
        if name in named:
            tiles = tiles * size + positions // stride % size
    return tiles


def _groups(tiles: _Numbers, owners: _Numbers) -> dict[int, list[int]]:
    """Gives the processes of every part that several hold, in ascending order."""
    processes, owner = np.unique(owners, return_inverse=True)
    pairs = np.unique(tiles * len(processes) + owner)
    holders = processes[pairs % len(processes)]
    found = np.unique(pairs // len(processes), return_index=True, return_counts=True)
    several = [facts[found[2] > 1].tolist() for facts in found]
    return {part: holders[at : at + n].tolist() for part, at, n in zip(*several, strict=True)}


def _label(name: str, index: Sequence[Sequence[int]]) -> str:
    return f"array {name!r}, index [{', '.join(f'{a}:{b}' for a, b in index)}]"


@dataclass(frozen=True)
class Sample:
    """One delivered step, when that was, and its digests once they are known."""

    stream: int
    epoch: int
    step: int
    position: int
    time: float
    digests: Sequence[bytes] = ()


class Replicas:
    """Compares the shared blocks of one loader with those of other processes.

    Args:
        of: the round.
        blocks: what is shared.
        due: says whether the n-th step since the agreement is looked at.
        accuse: is told of a difference.
        seconds: how long after a batch the digests of another process may come.
    """

    def __init__(
        self,
        of: Round,
        blocks: Shared,
        *,
        due: Callable[[int], bool],
        accuse: Accuse,
        seconds: float,
    ) -> None:
        self._room, self._path = of.room, f"{of.path}/digests"
        self._store, self._title = of.room.store, of.room.title
        self._me, self._blocks = of.room.me, blocks
        self.due, self._accuse, self._seconds = due, accuse, seconds
        self._batches: queue.Queue[tuple[int, Sample] | None] = queue.Queue()
        self._samples: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()
        self._lock, self._over = threading.Lock(), False
        self._taken = self._hashed = 0
        self._hurry = threading.Event()
        self._ended = threading.Event()
        self._left, self._missing, self._looked = set[int](), set[int](), -math.inf
        self._missed = -math.inf  # when the store failed
        self.compared = 0  # blocks found equal or different
        # They are started here, where processes wait for each other anyway, and not by a batch.
        self._hasher = _thread("meshfeed.digests", self._hash)
        self._comparer = _thread("meshfeed.replicas", self._work)

    # ---- in the program's thread ----

    def inspect(self, batch: int, stream: int, spare: int) -> None:
        """Has the shared blocks of the batch at this address hashed and compared.

        Args:
            batch: the address; the batch lives until it is hashed.
            stream: the number of its pass: others may have the same place.
            spare: how many batches may be kept for that.
        """
        head = Head.from_address(batch)
        with self._lock:
            if self._over:
                return
            calls.batch_retain(batch)
            self._taken += 1
            sample = Sample(stream, head.epoch, head.step, head.position, time.monotonic())
            self._batches.put((batch, sample))
        unread = min(spare, UNREAD)
        while self._taken - self._hashed > unread or self._samples.qsize() > BEHIND:
            if self._ended.wait(0.0002):
                break

    def end(self, seconds: float) -> None:
        """Ends the threads, after what can still be compared in that time."""
        self._stop()
        self._comparer.join(seconds)
        self.forget()
        self._hasher.join()
        self._comparer.join()

    def forget(self) -> None:
        """Has the threads end soon, and waits for nothing: any thread may collect garbage."""
        self._stop()
        self._ended.set()

    def _stop(self) -> None:
        with self._lock:
            self._over = True  # nothing that would have to be released comes behind the end
            self._batches.put(None)
        self._hurry.set()

    # ---- in threads of their own ----

    def _hash(self) -> None:
        while (taken := self._batches.get()) is not None:
            batch, sample = taken
            try:
                if not self._ended.is_set():
                    digests = calls.digests(batch, self._blocks.tensors)
                    self._samples.put(replace(sample, digests=digests))
            finally:
                calls.batch_release(batch)
                self._hashed += 1
        self._samples.put(None)

    def _work(self) -> None:
        before = -math.inf
        while (sample := self._samples.get()) is not None and not self._ended.is_set():
            if time.monotonic() - before > LATER:
                self._hurry.wait(LATER)
            if sample.time > self._missed:
                self._exchange(sample)
            self._batches.task_done()
            before = time.monotonic()

    def _exchange(self, sample: Sample) -> None:
        """Publishes and compares. Where the store fails, what has waited for it is passed over."""
        try:
            if time.monotonic() - self._looked > LOOK:
                self._look()
            self._publish(sample)
            self._compare(sample)
        except Exception as e:  # with JAX's store the job is gone; another one may come back
            text = "loader %s: epoch %d, step %d and what came since were not compared: %s"
            log.warning(text, self._title, sample.epoch, sample.step, e)
            self._missed = time.monotonic()

    def _look(self) -> None:
        """Looks who has left: nobody waits for those, and nothing is kept for them."""
        self._left, self._looked = self._room.left(), time.monotonic()

    def _of(self, sample: Sample, writer: int) -> list[tuple[str, str]]:
        """Gives labels and digests that this process has of what a writer publishes."""
        blocks = self._blocks
        rows = zip(blocks.labels, blocks.writers, sample.digests, strict=True)
        return [(label, digest.hex()) for label, by, digest in rows if by == writer]

    def _key(self, sample: Sample, writer: int) -> str:
        return f"{self._path}/{sample.stream}/{sample.epoch}/{sample.position}/{writer}"

    def _publish(self, sample: Sample) -> None:
        if mine := dict(self._of(sample, self._me)):
            if not self._blocks.readers[self._me] <= self._left:
                self._store.set(f"{self._key(sample, self._me)}/is", json.dumps(mine).encode())
            self._judge(sample, self._me, mine)  # a block that has memory of its own per device

    def _compare(self, sample: Sample) -> None:
        for writer in sorted(set(self._blocks.writers) - {self._me}):
            key = self._key(sample, writer)
            found = self._digests(f"{key}/is", writer, sample.time + self._seconds)
            if found is not None:
                self._judge(sample, writer, json.loads(found))
                self._clear(key, writer)
            elif not self._ended.is_set():
                self._warn(sample, writer)

    def _warn(self, sample: Sample, writer: int) -> None:
        """Logs that a writer sent nothing, and of one that has left, that no more will come."""
        why = f"sent no digests within {self._seconds:g} s"
        if writer in self._left:
            if writer in self._missing:
                return
            self._missing.add(writer)
            why = "has closed the loader; nor will later ones be"
        text = "loader %s: epoch %d, step %d was not compared with process %d, which %s"
        log.warning(text, self._title, sample.epoch, sample.step, writer, why)

    def _digests(self, key: str, writer: int, until: float) -> bytes | None:
        """Waits for what a writer publishes, unless it has left: then only what it did counts."""

        def wait(seconds: float) -> bool:
            if seconds >= LATER and writer not in self._left:
                self._look()
            return self._ended.wait(0 if writer in self._left else seconds) or writer in self._left

        if writer not in self._left:
            found = patient_get(self._store, key, until, wait)
            if found is not None or writer not in self._left:
                return found
        return self._store.try_get(key)

    def _judge(self, sample: Sample, writer: int, theirs: Digests) -> None:
        mine = self._of(sample, writer)
        wrong = (label for label, digest in mine if theirs.get(label) != digest)
        bad = list(dict.fromkeys(wrong))
        where = f"devices of process {writer}"
        if writer != self._me:
            self.compared += len(mine)
            where = f"processes {writer} and {self._me}"
        if not bad:
            return
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        message = f"{bad[0]}{more}, differs between {where} at epoch {sample.epoch}, "
        message += f"step {sample.step}"
        hint = "compare what these hosts read: meshfeed verify --hash"
        error = errors.DataLossError(message, op="mf.Loader", hint=hint)
        self._accuse(error, sample.epoch, sample.step)

    def _clear(self, key: str, writer: int) -> None:
        """Deletes what the last of its readers has read."""
        others = self._blocks.readers[writer] - {self._me} - self._left
        if others:
            self._store.set(f"{key}/read/{self._me}", b"")
            read = self._store.list(f"{key}/read")
            if not all(f"{key}/read/{p}" in read for p in others):
                return
        self._store.delete(key)


def _thread(name: str, work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
