"""The batches of one `for` loop over a loader, or of one pass of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic

from meshfeed._feed.cursor import Cursor, Item
from meshfeed._types import BatchT


class Batches(Iterator[BatchT], Generic[BatchT]):
    """The batches of one loop, or of one epoch."""

    def __init__(
        self,
        cursor: Cursor,
        mark: Callable[[], Any],
        *,
        again: bool,
        own: bool = False,
        take: Callable[[], Item | None] | None = None,
    ) -> None:
        self._cursor = cursor
        self._take = take or cursor.take
        self._mark = mark
        # A loop that was left after an epoch's last batch never saw the end of that epoch.
        # The next loop sees it first, and goes on.
        self._again = self._single = again
        # Behind an epoch's last batch: another loop would begin there, and this one ends.
        self._last: tuple[int, int] | None = None
        self._own = own
        self._over = False
        # Another loop over the loader may have come to the end: then this one has, too.
        self._ends: int | None = None

    def __iter__(self) -> Batches[BatchT]:
        return self

    def __next__(self) -> BatchT:
        item = self.item()
        if item is None:
            raise StopIteration
        batch: BatchT = item.batch
        return batch

    def item(self) -> Item | None:
        """Gives the next batch with the place after it, or None at the end."""
        with self._cursor.lock, self._mark():  # threads that share a loop share its end
            if self._ended():
                return None
            item = self._take()
            if item is None and self._again:
                item = self._take()
            self._again = False
            self._ends = self._cursor.ends
            self._last = (
                (item.epoch, item.position) if item and item.last and self._single else None
            )
            if item is None:
                self.close()
            return item

    def _ended(self) -> bool:
        return self._over or self._ends not in (None, self._cursor.ends)

    def __len__(self) -> int:
        if self._ended() or (self._last and not self._again and self._cursor.at == self._last):
            return 0
        if (n := self._cursor.remaining()) < 0:
            raise TypeError("a loop over a loader with epochs=-1 has no length")
        return n

    def close(self) -> None:
        """Ends a pass of its own; a loop over a loader ends, and the loader goes on."""
        self._over = True
        if self._own:
            self._cursor.close()
