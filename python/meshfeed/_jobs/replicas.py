"""Checks that processes which hold the same block of a batch have the same bytes.

JAX does not compare replicas: if two differ, the program computes wrong results without an error.
So every process hashes its shared blocks in some of the steps. The lowest process that holds a
block publishes the digest, and the other holders compare it with theirs.

`next` only puts the batch into a queue. One thread hashes it while the program uses it, and then
releases it. Another thread exchanges the digests: if it waits for a slow process, batches are
still released.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from meshfeed import errors
from meshfeed._jobs import wording
from meshfeed._jobs.keys import Generation
from meshfeed._jobs.shared import Shared
from meshfeed._jobs.worker import Worker
from meshfeed._native import calls
from meshfeed._native.abi import Head
from meshfeed._native.lock import Lock

FIRST = 3  # steps that verify_replicas="first" compares
UNHASHED = 2  # `next` waits while more batches than this wait to be hashed
UNCOMPARED = 256  # `next` waits while more samples than this wait to be compared

log = logging.getLogger("meshfeed")

Report = Callable[[errors.Error, int, int], None]


@dataclass(frozen=True)
class Sample:
    """A delivered step, the time of delivery, and its digests once they are known."""

    stream: int
    epoch: int
    step: int
    position: int
    time: float
    digests: Sequence[bytes] = ()


class Replicas(Worker):
    """Compares the shared blocks of one loader with the blocks of other processes.

    Args:
        of: the store keys of the present generation.
        blocks: the blocks that several processes hold.
        verify: "first", "always" or a number k: every k-th step is compared.
        report: is called with the error about a difference, its epoch and its step.
        seconds: how long after a batch's delivery to wait for the digests of another process.

    Attributes:
        compared: how many blocks were compared with another process's.
    """

    def __init__(
        self, of: Generation, blocks: Shared, verify: str | int, report: Report, seconds: float
    ) -> None:
        super().__init__("meshfeed.replicas", of)
        self._me, self._blocks = of.namespace.me, blocks
        self._verify, self._report, self._seconds = verify, report, seconds
        self._batches: queue.Queue[tuple[int, Sample] | None] = queue.Queue()
        self._samples: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()
        self._lock, self._closed = Lock(), False
        self._queued = self._hashed = 0  # numbers of batches
        self._warned = set[int]()  # the departed processes that were logged
        self._missed = -math.inf  # the time of the store's last failure
        self.compared = 0
        self._hasher = threading.Thread(target=self._hash, name="meshfeed.digests", daemon=True)
        self._hasher.start()
        self._start()

    # ---- on the program's thread ----

    def sampled(self, n: int) -> bool:
        """Returns whether batch n of the generation or pass is compared."""
        if self._verify == "first":
            return n < FIRST
        return self._verify == "always" or n % int(self._verify) == 0

    def inspect(self, batch: int, stream: int, spare: int) -> None:
        """Queues the shared blocks of a batch to be hashed and compared.

        Args:
            batch: its address; the batch is retained until it is hashed.
            stream: the number of its pass, because two passes may have equal positions.
            spare: how many batches may be retained; with 0, the call returns after the hash.
        """
        head = Head.from_address(batch)
        with self._lock:
            if self._closed:
                return
            calls.batch_retain(batch)
            self._queued += 1
            sample = Sample(stream, head.epoch, head.step, head.position, time.monotonic())
            self._batches.put((batch, sample))
        most = min(spare, UNHASHED)
        while self._queued - self._hashed > most or self._samples.qsize() > UNCOMPARED:
            if self.ended.wait(0.0002):
                break

    def end(self, seconds: float | None) -> None:
        """Ends the threads. Until then, for at most this time, they compare queued samples."""
        self._close()
        self._thread.join(seconds)
        self.forget()
        self._hasher.join()
        self._thread.join()

    def forget(self) -> None:
        """Signals the threads to end. Does not wait, because a garbage collection may call it."""
        self._close()
        super().forget()

    def _close(self) -> None:
        with self._lock:
            self._closed = True  # so no batch follows the None: it would never be released
            self._batches.put(None)

    # ---- on the two threads ----

    def _hash(self) -> None:
        while (taken := self._batches.get()) is not None:
            batch, sample = taken
            try:
                if not self.ended.is_set():
                    digests = calls.digests(batch, self._blocks.tensors)
                    self._samples.put(replace(sample, digests=digests))
            finally:
                calls.batch_release(batch)
                self._hashed += 1
        self._samples.put(None)

    def _work(self) -> None:
        while (sample := self._samples.get()) is not None and not self.ended.is_set():
            if sample.time > self._missed:
                self._exchange(sample)
            self._batches.task_done()  # tests wait with join() until all are compared

    def _exchange(self, sample: Sample) -> None:
        """Publishes the digests of a sample and compares the digests of the other writers.

        If the store fails, the samples that were delivered before the failure are skipped.
        """
        try:
            self._publish(sample)
            for writer in sorted(set(self._blocks.writers) - {self._me}):
                self._compare(sample, writer)
        except Exception as e:  # a user's store may work again later, so the thread continues
            text = "loader %s: epoch %d, step %d and what came since were not compared: %s"
            log.warning(text, self._title, sample.epoch, sample.step, e)
            self._missed = time.monotonic()

    def _of(self, sample: Sample, writer: int) -> list[tuple[str, str]]:
        """Returns this process's labels and digests of the blocks that a writer publishes."""
        blocks = self._blocks
        rows = zip(blocks.labels, blocks.writers, sample.digests, strict=True)
        return [(label, digest.hex()) for label, by, digest in rows if by == writer]

    def _key(self, sample: Sample, writer: int) -> str:
        return f"digests/{sample.stream}/{sample.epoch}/{sample.position}/{writer}"

    def _publish(self, sample: Sample) -> None:
        if mine := dict(self._of(sample, self._me)):
            if not self._blocks.readers[self._me] <= self._departed():
                self._keys.set(f"{self._key(sample, self._me)}/is", mine)
            self._judge(sample, self._me, mine)  # devices of this process may have copies

    def _compare(self, sample: Sample, writer: int) -> None:
        """Compares the digests that a writer publishes.

        Waits for them, unless the writer has departed and can publish no more.
        """
        key, left = self._key(sample, writer), sample.time + self._seconds - time.monotonic()
        theirs = self._keys.wait(f"{key}/is", left, lambda: self._must_end(writer))
        if theirs is not None:
            self._judge(sample, writer, theirs)
            self._clear(key, writer)
        elif not self.ended.is_set() and writer not in self._warned:
            why = f"sent no digests within {self._seconds:g} s"
            if writer in self._departed():
                self._warned.add(writer)
                why = "has closed the loader; nor will later ones be"
            text = "loader %s: epoch %d, step %d was not compared with process %d, which %s"
            log.warning(text, self._title, sample.epoch, sample.step, writer, why)

    def _judge(self, sample: Sample, writer: int, theirs: Mapping[str, str]) -> None:
        """Compares digests of a writer with this process, and reports a difference."""
        mine = self._of(sample, writer)
        if writer != self._me:
            self.compared += len(mine)
        if bad := {label: None for label, digest in mine if theirs.get(label) != digest}:
            at = sample.epoch, sample.step
            self._report(wording.replicas_differ(list(bad), writer, self._me, *at), *at)

    def _clear(self, key: str, writer: int) -> None:
        """Deletes digests after their last reader has read them."""
        others = self._blocks.readers[writer] - {self._me} - self._departed()
        if others:
            self._keys.set(f"{key}/read/{self._me}", True)
            if not others <= self._keys.by_process(f"{key}/read").keys():
                return
        self._keys.delete(key)
