"""The loops that tests.bench.parquet measures deliver what it says, over 256 rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.bench import section
from tests.bench.parquet import page, play
from tests.bench.parquet.cases import TINY, Case
from tests.bench.parquet.loops import LOOPS

OTHERS = [name for name in LOOPS if not name.startswith("meshfeed")]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return TINY.paths(tmp_path_factory.mktemp("parquet"))


def test_every_loop_delivers_every_row(paths: list[Path]) -> None:
    runs = {name: [play.run(TINY, name, paths, [0, 1])] for name in LOOPS}
    facts = {"rows": TINY.rows, "rows_mb": 0.0, "files_mb": 0.0, "group": 32, "batch": 16}
    case = facts | {"loops": runs}
    table = page.tables({TINY.name: case})
    assert all(f"\n| {name} | " in table for name in LOOPS), table
    faster = [page.ratio(case, name, epoch) < 1 for name in OTHERS for epoch in (0, 1)]
    assert table.count(" ✗ |") == sum(faster)
    for name, (run,) in runs.items():
        assert [sorted(epoch) for epoch in run["epochs"]] == [
            ["first_ms", "read_mb", "rows_per_second", "variance"]
        ] * 2, name
        assert run["epochs"][0]["read_mb"] > 0, f"{name}: the bytes of calls of read were not seen"


def test_an_epoch_without_a_row_has_no_numbers(paths: list[Path]) -> None:
    more = Case(**{**vars(TINY), "rows": TINY.rows + TINY.batch})
    with pytest.raises(AssertionError, match="an epoch of other rows"):
        play.run(more, "pyarrow, row groups", paths, [0])


def test_variance_of_rows_in_order_and_of_equal_batches() -> None:
    rows = np.arange(TINY.rows)
    assert play.variance(TINY, np.split(rows, TINY.steps)) > 10
    assert play.variance(TINY, list(rows.reshape(TINY.batch, -1).T)) < 0.3
    mixed = [np.random.default_rng(seed).permutation(rows) for seed in range(64)]
    each = [play.variance(TINY, np.split(order, TINY.steps)) for order in mixed]
    assert 0.9 < float(np.mean(each)) < 1.1


def test_a_program_writes_its_section_alone(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Page\n\n<!-- a -->\n## A\n\nold\n\n<!-- b -->\n## B\n")
    section.replace("a", "## A\n\nnew\n\n", path)
    section.replace("b", "## B\n\nnew", path)
    text = "# Page\n\n<!-- a -->\n## A\n\nnew\n\n<!-- b -->\n## B\n\nnew\n"
    section.replace("b", "## B", path, missing=["a loop"])
    assert path.read_text() == text
    with pytest.raises(ValueError, match="no section 'c'"):
        section.replace("c", "", path)
    for name in ("jax", "parquet", "tokens", "processes", "gomlx", "planner"):
        assert f"\n<!-- {name} -->\n## " in section.PAGE.read_text()
