"""Measures a loop: the time inside of `next`, the time between two calls, and some samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns as now
from typing import Any

from meshfeed._feed.feed import Feed
from meshfeed._feed.sampling import Sample, Samples

_BUILT = (  # the library's counters of batches that were built
    *("build_ns", "gather_ns", "storage_ns", "decode_ns", "map_ns"),
    *("stall_ns", "rows", "bytes", "gathered_bytes", "decoding_ns", "delayed_ns"),
)

NEVER = 1 << 63  # nanoseconds
RARE = 400  # times what a sample costs, between two samples; the first ones come faster


class Clock:
    """The times of the batches that a cursor delivered, without the first two.

    The first batch waits for files to be opened and for the order to be computed, and the first
    step is compiled. So both are left out, and the second batch. The time between two loops is left
    out, too. `Batches._item` adds the times: a method would cost more than the additions.

    Args:
        feed: makes the batches, and knows their devices.

    Attributes:
        left: when `next` returned the last batch; 0 before the first batch of a loop.
        batches: the number of batches.
        inside: nanoseconds in `next`.
        peers: nanoseconds of these, in which it waited for other processes.
        outside: nanoseconds between two calls.
        due: when the next sample begins.
        sample: the step that is sampled, or None.
        samples: what the devices did at some steps.
    """

    __slots__ = (
        *("_base", "_feed", "_warm", "batches", "due", "inside", "left", "outside", "peers"),
        *("sample", "samples"),
    )

    def __init__(self, feed: Feed) -> None:
        self.left = self.batches = self.inside = self.peers = self.outside = 0
        self._base: Mapping[str, int] | None = None
        self._warm = False  # whether a batch was delivered
        self._feed = feed
        self.due = 0 if feed.devices else NEVER
        self.sample: Sample | None = None
        self.samples = Samples()

    def pause(self) -> None:
        """Notes that a loop begins: the time before it is not part of it."""
        self.left, self.sample = 0, None

    def start(self, asked: int, count: Callable[[], Mapping[str, int]]) -> None:
        """Notes the delivery of the first batch of a loop, or of the second one of all.

        Args:
            asked: when `next` was called.
            count: returns the library's counters.
        """
        if self._base is not None:
            self.batches += 1
            self.left = now()
            self.inside += self.left - asked
        elif self._warm:
            self._base, self.peers = count(), 0
            self.left = now()
        self._warm = True

    # ---- samples ----

    def begin_sample(self, batch: Any, left: int) -> None:
        """Samples the step with a batch, which `next` returns now."""
        usual = self.outside / max(self.batches, 1) / 1e9
        self.sample = self.samples.begin(self._feed, batch, usual)
        self.left = ended = now()
        self.sample.cost = ended - left

    def end_sample(self, asked: int) -> int:
        """Ends the sample under way, at a call of `next`. Returns the time of the call.

        The time that the sample takes counts neither as the step nor as a wait.
        """
        sample, self.sample = self.sample, None
        assert sample is not None
        if self.left:
            self.samples.add(sample, asked - self.left)
        ended = now()
        self.left += ended - asked
        self.due = ended + min(RARE, 4 * self.samples.begun) * (sample.cost + ended - asked)
        return ended

    # ---- the result ----

    def measured(self, stats: Mapping[str, int]) -> dict[str, Any]:
        """Returns the measurements of the loop, as in a measurements document.

        Args:
            stats: the library's counters. They count the batches made ahead, too.
        """
        base = self._base or stats
        change = {name: stats[name] - base[name] for name in stats}
        batches = self.batches
        wait = min(change["wait_ns"], self.inside)
        peers = min(self.peers, self.inside - wait)
        measured = {
            "batches": batches,
            "wall_ns": self.inside + self.outside,
            "wait_ns": wait,
            "peers_ns": peers,
            "hand_over_ns": self.inside - wait - peers,
            "bad": stats["bad"],
            "samples": self.samples.measured(),
        }
        built = max(change["batches"], 1)
        for name in _BUILT:
            measured[name] = change[name] * batches // built
        return measured
