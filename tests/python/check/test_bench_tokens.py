"""The loops that tests.bench.tokens measures deliver what it says, over small cases."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench.tokens import page, play
from tests.bench.tokens.__main__ import main
from tests.bench.tokens.cases import TINY, Batch, Case, Documents, Mixture
from tests.bench.tokens.loops import LOOPS

MACHINE = dict.fromkeys(("processor", "cores", "system", "versions", "more"), "…")
TRL = importlib.util.find_spec("trl") is not None


@pytest.mark.parametrize("case", TINY, ids=lambda case: case.name)
def test_every_loop_delivers_its_rows(case: Case, tmp_path: Path) -> None:
    case.write(tmp_path)
    runs: dict[str, list[Any]] = {}
    for name, make in LOOPS[type(case)].items():
        if TRL or not name.startswith("TRL"):
            loop = make(case, tmp_path)
            runs[name] = [play.run(case, loop, 0.01) | play.check(case, loop)]
    for name, ([run]) in runs.items():
        assert (run["resume_ms"] is None) == name.startswith(("TRL", "datasets", "nanoGPT")), name
        assert run.get("again", 0) == 0 or name.startswith("nanoGPT"), f"{name}: tokens came twice"
        assert run.get("once", 1) > 0.9 or name.startswith("nanoGPT"), f"{name}: tokens are missing"
    held: dict[str, Any] = {"tokens": case.batch * case.length, "loops": runs}
    if isinstance(case, Documents):
        held |= {"rows": case.packed_rows(tmp_path), "fewest_rows": case.fewest_rows()}
        assert held["rows"] == held["fewest_rows"], "all documents are in one group"
    text = page.tables({case.name: held})
    assert all(f"\n| {name} | " in text for name in runs), text
    facts = {"commit": "c0ffee", "date": "2026-01-01"}
    whole = page.section({"machine": MACHINE, "cases": {case.name: held | facts}})
    assert whole.endswith(text)
    assert "Measured 2026-01-01, commit c0ffee." in whole
    assert text.count("| resume in ms: ") == sum(name.startswith("meshfeed") for name in runs)


def test_a_page_without_results_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tokens", "--render", "--json", str(tmp_path / "none.json")])
    with pytest.raises(SystemExit, match=r"no results in .*none\.json: measure without --render"):
        main()


class Wrong:
    """A loop that delivers rows of a case in a wrong way."""

    def __init__(self, batches: list[Batch]) -> None:
        self.batches = batches

    def open(self) -> None:
        pass

    def begin(self, state: Any = None) -> Iterator[Batch]:
        yield from self.batches[(state or 0) + 1 :] if state else self.batches

    def state(self) -> int:
        return len(self.batches) // 2


def test_other_batches_have_no_numbers(tmp_path: Path) -> None:
    case = TINY[0]
    case.write(tmp_path)
    loop = LOOPS[Documents]["meshfeed, best fit"](case, tmp_path)
    loop.open()
    right = list(loop.begin())
    with pytest.raises(AssertionError, match="after the resume"):
        play.run(case, Wrong(right[: case.steps]), 1e-3)
    twice = play.check(case, Wrong([*right, right[0]]))
    assert twice["again"] == np.count_nonzero(right[0]["tokens"])
    mixed = [{**right[0], "segment_ids": right[1]["segment_ids"]}]
    with pytest.raises(AssertionError):
        play.check(case, Wrong(mixed))


def test_deviations_of_known_draws() -> None:
    case = Mixture("four", 128, weights=(0.5, 0.5))
    turns = np.tile([0, 1], 64)
    assert play.deviations(case, turns) == {"deviation": 0.5, "deviation_64": 0.0}
    assert play.deviations(case, np.sort(turns))["deviation"] == 32


def test_lost_numbers_and_missed_targets_are_marked() -> None:
    def runs(rate: float, resume: float | None, real: float) -> list[dict[str, Any]]:
        same = {"first_ms": 1.0, "peak_mb": 1.0, "once": 1.0}
        return [{"batches_per_second": rate, "resume_ms": resume, "real": real, **same}]

    loops = {
        "meshfeed, best fit": runs(30, 21, 0.9),
        "meshfeed, split": runs(27, 19, 1),
        "meshfeed, plain rows": runs(30, 1, 0.9),
        "Grain, best fit, 64 bins": runs(8, 22, 0.9),
        "TRL, bfd": runs(12, None, 0.9),
        "datasets, group_texts": runs(40, None, 1),
    }
    case = {"tokens": 1, "loops": loops, "rows": 10_006, "fewest_rows": 10_000}
    cells = [line.split(" | ") for line in page.tables({"x": case}).splitlines()]
    marked = [(cells[0].strip("| "), cell) for cells in cells for cell in cells if "✗" in cell]
    assert marked == [
        ("meshfeed, best fit", "90.000% ✗"),
        ("datasets, group_texts", "0.68 (0.68 to 0.68) ✗"),
        ("resume in ms: meshfeed, best fit", "21 ✗"),
        ("rows of best-fit-decreasing over all documents", "1.0006 ✗"),
        ("times the fastest peer that packs", "2.5 ✗"),
    ]
