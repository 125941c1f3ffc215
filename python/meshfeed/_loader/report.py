"""Reports: what limits the loop over a loader, and what to change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from meshfeed._io.notebook import Preformatted
from meshfeed._native import reports


class Part(NamedTuple):
    """A part of the time of a loop.

    Attributes:
        name: "wait", "hand-over" and "step", which add up to the time of a batch. "build" and its
            parts "storage", "decode", "map", "gather" and "other" run beside them, on other
            threads.
        seconds: the time per batch.
        share: the time as a share of the wall time.
    """

    name: str
    seconds: float
    share: float


class Change(NamedTuple):
    """An argument of the loader, with the value that removes a bound.

    Attributes:
        argument: its name, such as "prefetch".
        value: its value, such as 4.
    """

    argument: str
    value: Any


class Process(NamedTuple):
    """A process of a job.

    Attributes:
        process: its number.
        batches: the number of batches measured.
        waited: the share of the wall time in which its loop waited for data.
        step: the seconds of its step.
        idle: the seconds of its step in which its devices had no work, because the program had
            given them none; None if too few steps were sampled, or batches do not go to devices.
        bound: what limits its loop, as in `Report`.
        age: the seconds since it has published its measurements.
    """

    process: int
    batches: int
    waited: float
    step: float
    idle: float | None
    bound: str
    age: float


class Windows(NamedTuple):
    """How well an order with windows shuffles, such as "blocks", and what that costs.

    Attributes:
        blocks: the number of blocks of the dataset.
        windows: the number of windows of an epoch.
        window: the most blocks of a window.
        records: the most records of a window.
        bytes: the size of these records, in the fields of a batch.
        variance: the most that the variance of a batch's mean can be, in relation to batches of
            independent records.
    """

    blocks: int
    windows: int
    window: int
    records: int
    bytes: int
    variance: float


class Report(Preformatted):
    """What limits the loop over a loader. `Loader.report` returns it.

    Printing it shows sentences and a table; so does a notebook.

    Attributes:
        batches: the number of batches measured.
        waited: the share of the wall time in which the loop waited for data: the time in `next`.
        bound: what limits the loop: "step", "synchronization" for a program that waits for its
            devices in every step, "hand-over" for making arrays of a batch, "gather" for copying
            rows, "decode" for decompressing, "storage" for reading files, "map" for functions of
            `Dataset.map`, "process" for another process, or "unknown" before there are enough
            batches.
        cause: what limits that process, if `bound` is "process"; else None.
        process: the number of that process; else None.
        faster: how many times as fast the loop would be without the bound.
        action: what to do: "set-argument" for the argument in `change`, "combine-fields" for
            fields of equal type and shape, "write-uncompressed" and "move-files" for the files,
            "quicken-map" for `Dataset.map` and `decode_image`,
            "read-results-later" for results such as `float(loss)`, "report-job" to call
            `Loader.report` with `all_processes=True`, "compare-program" for the program of the
            late process, or "nothing". With the bound "step", it shortens an input that costs 5 to
            20 % of the time.
        change: the argument to set with its value, such as ("prefetch", 4); None for any other
            action.
        sentences: what the report says.
        parts: the rows of the table.
        processes: the processes of a job, if the report is on all of them.
        silent: the processes that have published no measurements.
        windows: how well an order with windows shuffles; None for other orders.
    """

    def __init__(self, document: str) -> None:
        self._document = document
        found = json.loads(reports.diagnose(document, "json"))
        self.batches: int = found["batches"]
        self.waited: float = found["waited"]
        self.bound: str = found["bound"]
        self.cause: str | None = found["cause"]
        self.process: int | None = found["process"]
        self.faster: float = found["faster"]
        self.action: str = found["action"]
        self.change = None if found["change"] is None else Change(**found["change"])
        self.sentences: Sequence[str] = found["sentences"]
        self.processes = [
            Process(
                p["process"],
                p["batches"],
                p["waited"],
                p["step_ns"] / 1e9,
                None if p["idle_ns"] is None else p["idle_ns"] / 1e9,
                p["bound"],
                p["age_ns"] / 1e9,
            )
            for p in found["processes"]
        ]
        self.silent: Sequence[int] = found["silent"]
        windows = found["windows"]
        self.windows = None
        if windows is not None:
            variance = windows.pop("variance_percent") / 100
            self.windows = Windows(**windows, variance=variance)
        self.parts = [Part(p["name"], p["ns"] / 1e9, p["share"]) for p in found["parts"]]

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as numbers and texts for a log, such as `json.dump` writes them.

        `meshfeed schema diagnosis` prints the JSON Schema, which is also the file
        diagnosis.schema.json in the package.
        """
        report: dict[str, Any] = json.loads(reports.diagnose(self._document, "json"))
        return report

    def __str__(self) -> str:
        return reports.diagnose(self._document, "text")

    def __repr__(self) -> str:
        what = f"action={self.action!r}, change={self.change}"
        return f"Report(bound={self.bound!r}, waited={self.waited}, {what})"


def of(processes: Sequence[Mapping[str, Any]], silent: Sequence[int] = ()) -> Report:
    """Diagnoses the measurements of processes.

    Args:
        processes: the measurements of each process, as in a measurements document.
        silent: the processes that published none.
    """
    return Report(json.dumps({"meshfeed": 1, "processes": processes, "silent": list(silent)}))
