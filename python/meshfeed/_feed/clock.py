"""Measures a loop: the time inside of `next`, and the time between two calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BUILT = (  # the library's counters of batches that were built
    *("build_ns", "gather_ns", "storage_ns", "decode_ns"),
    *("stall_ns", "rows", "bytes", "gathered_bytes"),
)


class Clock:
    """The times of the batches that a cursor delivered, without the first.

    The first batch waits for files to be opened and for the order to be computed, so it is left
    out. The time between the end of a loop and the first batch of the next one is left out too.
    `Batches.item` adds the times: a method would cost more than the additions.

    Attributes:
        left: when `next` returned the last batch; 0 before the first batch of a loop.
        batches: the number of batches.
        inside: nanoseconds in `next`.
        outside: nanoseconds between two calls.
        base: the library's counters when the first batch was delivered; None before that.
    """

    __slots__ = ("base", "batches", "inside", "left", "outside")

    def __init__(self) -> None:
        self.left = self.batches = self.inside = self.outside = 0
        self.base: Mapping[str, int] | None = None

    def measured(self, stats: Mapping[str, int]) -> dict[str, Any]:
        """Returns the measurements of the loop, as in a measurements document.

        Args:
            stats: the library's counters. They count the batches made ahead, too.
        """
        base = self.base or stats
        change = {name: stats[name] - base[name] for name in stats}
        wall, batches = self.inside + self.outside, self.batches
        wait = min(change["wait_ns"], self.inside)
        measured = {
            "batches": batches,
            "wall_ns": wall,
            "wait_ns": wait,
            "hand_over_ns": self.inside - wait,
        }
        built = max(change["batches"], 1)
        for name in _BUILT:
            measured[name] = change[name] * batches // built
        return measured
