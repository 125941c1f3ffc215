"""The loops that tests.bench.far measures deliver every row, over a small case."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.far import page, play
from tests.bench.far.cases import QUICK, TINY, build, serve
from tests.bench.far.loops import LOOPS, installed

MACHINE = dict.fromkeys(("processor", "cores", "system", "versions"), "…")


@pytest.mark.deep
def test_every_loop_delivers_its_rows(tmp_path: Path) -> None:
    data = tmp_path / "data"
    TINY.write(data)
    runs = {}
    with serve(build(tmp_path), TINY, data) as server:
        for i, name in enumerate(installed()):
            runs[name] = [play.run(TINY, LOOPS[name][0], server, tmp_path / f"cache {i}")]
    ours = runs["meshfeed, blocks"][0]
    assert ours["first"]["requests"] <= 2 * TINY.files
    assert ours["second"]["requests"] == TINY.files  # each one opens a file again
    text = page.tables({TINY.name: {"rows": TINY.total, "mb": 1.0, "loops": runs}})
    assert all(f"\n| {name} | " in text for name in runs), text


def test_a_loop_that_failed_is_named() -> None:
    epoch = {"rows_per_second": 10.0, "first_ms": 5.0, "requests": 3, "mb": 2.0}
    run = {"first": epoch, "second": epoch, "peak_mb": 1.0}
    failed = {"failed": "OSError: 503"}
    loops = {"ours": [run], "theirs": [failed, run], "others": [failed]}
    held = {"machine": MACHINE, "date": "2026-01-01", "commit": "c0ffee"}
    text = page.section(held | {"cases": {QUICK[0].name: {"rows": 1, "mb": 2.0, "loops": loops}}})
    assert "Measured 2026-01-01, commit c0ffee." in text
    assert "| ours | 10 | 1.00 | 5 | 3 | 1.00 | 10 | 3 | 1 |" in text
    assert "| theirs (failed in 1 of 2 runs) | 10 |" in text
    assert "| others (failed in 1 of 1 runs) | - |" in text
