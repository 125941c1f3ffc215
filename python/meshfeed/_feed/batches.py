"""The batches of one `for` loop over a loader, or of one pass over an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns as now
from typing import Any, Generic, NamedTuple

from meshfeed._feed.cursor import ASK_BEFORE, Cursor, Item
from meshfeed._types import BatchT


class Steps(NamedTuple):
    """Counts the batches that are left at a position.

    Attributes:
        records: the records of an epoch.
        rows: the rows of the global batch.
        pad: whether a last batch is filled up.
        epochs: the number of epochs, -1 for no end. None: every loop is one epoch.
    """

    records: int
    rows: int
    pad: bool
    epochs: int | None

    def left(self, epoch: int, position: int) -> int:
        """Returns the number of batches that a loop started there yields; -1 without end."""
        rest = self._of(self.records - position)
        if self.epochs is None:
            return rest
        if self.epochs < 0:
            return -1
        more = self.epochs - 1 - epoch
        return rest + more * self._of(self.records) if more >= 0 else 0

    def _of(self, records: int) -> int:
        return -(-records // self.rows) if self.pad else records // self.rows


class Batches(Iterator[BatchT], Generic[BatchT]):
    """The batches of one loop, or of one epoch.

    What one `next` calls, if a batch is ready and the loader belongs to one process:

        Batches.__next__             the cursor's lock; the batch and its position, or StopIteration
          Batches._item              the end of the loop; the times
            Feed.marks               no batch inside of a traced function; the profiler's marks
            Cursor.take              batches made ahead come first
              Cursor._fetch          the owner of the memory; collections if memory is kept
                mf_loader_next       (C) the next batch of the ready queue
                Feed.make            the user's batch over the memory
                  Placer, per array  views of the blocks, one make_array_from_callback of JAX
                  Tree.build         the arrays in the user's tree

    In a job of several processes `JoinedCursor` extends `Cursor.take` and `Feed.make`: the
    processes agree, compare replicas and report failures.

    Args:
        cursor: takes the batches.
        steps: counts them.
        own: whether the cursor belongs to this pass alone, and closes with it.
        take: takes a batch instead of the cursor's method.
        give: makes what `next` returns of an item; by default the batch.
    """

    def __init__(
        self,
        cursor: Cursor,
        steps: Steps,
        *,
        own: bool = False,
        take: Callable[[], Item | None] | None = None,
        give: Callable[[Item], Any] | None = None,
    ) -> None:
        self._cursor, self._steps, self._own = cursor, steps, own
        self._take = take or cursor.take
        self._give = give
        self._over = False
        self._ends: int | None = None  # the cursor's, at the first batch

    def __iter__(self) -> Batches[BatchT]:
        return self

    def __next__(self) -> BatchT:
        cursor, give = self._cursor, self._give
        lock = cursor.exclusive()  # threads that share a loop share its end
        _ = lock.held
        try:
            item = self._item()
            if item is not None:
                result: BatchT = item[0] if give is None else give(item)
                done = cursor.delivered(item)
        except BaseException:
            del lock.held
            cursor.undo()
            raise
        # No call from here on to the return: the batch is delivered.
        if item is not None:
            cursor.done, cursor.ready = done, cursor.ready[1:]
            del lock.held
            return result
        del lock.held
        if cursor.watch is not None:
            cursor.watch.look(at_end=True)
        raise StopIteration

    def _item(self) -> Item | None:
        """Returns the next batch with the position after it, or None at the end."""
        cursor = self._cursor
        cursor.marks = marks = cursor.feed.marks()
        with cursor.unmarked if marks is None else marks("meshfeed.next"):
            clock, asked, done = cursor.clock, now(), cursor.done
            if self._ends is None:
                self._ends = done.ends
                clock.pause()
            elif self._ends != done.ends:
                self._over, cursor.done = True, done._replace(unseen=False)
            if self._over:
                return None
            if clock.sample is not None:
                asked = clock.end_sample(asked)
            item = self._take()
            if item is None:
                clock.left = 0
                self.close()
            elif clock.left:
                clock.batches += 1
                clock.outside += asked - clock.left
                clock.left = left = now()
                clock.inside += left - asked
                if left > clock.due:
                    clock.begin_sample(item[0], left)
            else:
                clock.start(asked, cursor.stats)
            return item

    def __len__(self) -> int:
        cursor = self._cursor
        if self._over or self._ends not in (None, cursor.done.ends):
            return 0
        cursor.handle.check(ASK_BEFORE)
        if (n := self._steps.left(*cursor.at)) < 0:
            raise TypeError("a loop over a loader with epochs=-1 has no length")
        return n

    def close(self) -> None:
        """Ends the loop. The loader stays open; a pass of `one_epoch` is closed."""
        self._over = True
        if self._own:
            self._cursor.close()
