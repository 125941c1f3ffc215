"""The numbers of a warm cell, and numbers derived from them."""

from __future__ import annotations

from typing import Any

import numpy as np


class CellNumbers:
    """One warm cell.

    Args:
        key: `warm/CASE/SOURCE/MESH`.
        result: what `cell` printed.
    """

    def __init__(self, key: str, result: dict[str, Any]) -> None:
        _, self.case, self.source, self.mesh = key.split("/")
        self.result = result
        self.times: dict[str, Any] = result["times"]
        self.first: dict[str, float] = result["first"]
        self.costs: dict[str, Any] = result["costs"]

    @property
    def name(self) -> str:
        return f"{self.case}, {self.source}, {self.mesh}"

    def p50(self, name: str) -> float:
        """Returns a median in microseconds, or NaN if the run did not measure it yet."""
        return float(self.times.get(name, {}).get("p50", "nan"))

    def medians(self, name: str) -> list[float]:
        return [float(value) for value in self.times[name]["medians"]]

    @property
    def ratios(self) -> list[float]:
        """How many times as fast as the probe, round by round."""
        pairs = zip(self.medians("probe"), self.medians("meshfeed"), strict=True)
        return [probe / ours for probe, ours in pairs]

    @property
    def ratio(self) -> float:
        return float(np.median(self.ratios))

    @property
    def target(self) -> float:
        """The target of `next` in microseconds, with F and G alone."""
        return bound(self.p50("F"), self.p50("G"))

    @property
    def among(self) -> float:
        """The same formula with F as it is between calls of `next`."""
        return bound(self.p50("F among"), self.p50("G"))

    @property
    def together(self) -> float:
        """The same formula with F and G at the same time."""
        return bound(self.p50("F with G"), self.p50("G with F"))

    @property
    def rest(self) -> float:
        """The time of `next` without F and without the wait for the gather."""
        return self.p50("meshfeed") - self.p50("F with G") - self.p50("meshfeed.wait")


class PutNumbers:
    """The numbers of one cell of `mf.put`.

    Args:
        leaf: the name of the arrays, or of the job.
        cell: the result of the measurement.
    """

    def __init__(self, leaf: str, cell: dict[str, Any]) -> None:
        self.leaf, self.memory, self.split = leaf, cell.get("memory", ""), cell["split"]
        sizes = cell.get("mesh", ())
        self.mesh = "x".join(map(str, sizes)) + (", both" if self.split == "both" else "")
        self._times = cell["times"]

    def _rounds(self, name: str) -> list[float]:
        times = self._times[name]
        return list(times["medians"] if isinstance(times, dict) else times)

    def low(self, name: str) -> float:
        """Returns the 10th percentile of all calls, or of the rounds in a job."""
        times = self._times[name]
        return float(times["p10"]) if isinstance(times, dict) else spread(times)[0]

    def middle(self, name: str) -> float:
        """Returns the median of all calls, or of the rounds in a job."""
        times = self._times[name]
        return float(times["p50"] if isinstance(times, dict) else np.median(times))

    @property
    def ratios(self) -> list[float]:
        """How many times as fast as `device_put`, round by round."""
        pairs = zip(self._rounds("device_put"), self._rounds("meshfeed"), strict=True)
        return [other / mine for other, mine in pairs]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return float(np.median(self.ratios))


def bound(f: float, g: float) -> float:
    """Returns the target of `next` in microseconds, from F and G."""
    return 1.15 * max(f, g) + 25


def spread(values: list[float]) -> tuple[float, float]:
    """Returns the 10th and the 90th percentile."""
    low, high = np.percentile(values, [10, 90])
    return float(low), float(high)
