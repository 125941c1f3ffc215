"""Measures the loops over Parquet files; see the package."""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench import results, section
from tests.bench.parquet import page
from tests.bench.parquet.cases import CASES, SMALL, Case
from tests.bench.parquet.loops import LOOPS
from tests.bench.pieces import child

ROUNDS = 3
SELDOM = ("Hugging Face", "Hugging Face, 1,000")  # in the first round only: they are slow


def main() -> int:
    parser = results.parser("parquet", quick="a small case", rounds=ROUNDS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--load", default="", help="what else ran on the machine, for the page")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            print(page.tables({SMALL.name: measure(SMALL, Path(folder), 1)}))
        return 0
    held: dict[str, Any] = {"cases": {}}
    if options.render or options.json.exists():
        held = results.load(options.json)
    if not options.render:
        if held.get("machine") != (machine := results.machine() | _more()):
            held = {"machine": machine, "cases": {}}  # results of two machines never mix
        options.folder.mkdir(parents=True, exist_ok=True)
        for case in CASES:
            if options.only in case.name:
                held["cases"][case.name] = {
                    "date": dt.date.today().isoformat(),
                    "commit": results.commit(),
                    "load": options.load,
                    **measure(case, options.folder, options.rounds),
                }
                options.json.write_text(json.dumps(held, separators=(",", ":"), default=float))
    missing = [case.name for case in CASES if case.name not in held["cases"]]
    section.replace("parquet", page.section(held), missing=missing)
    return 0


def measure(case: Case, folder: Path, rounds: int) -> dict[str, Any]:
    """Runs every loop once per round, each in a fresh process; each round begins with another."""
    child("parquet.cases", case.name, folder)
    size = sum(path.stat().st_size for path in case.paths(folder))
    runs: dict[str, list[Any]] = {name: [] for name in LOOPS}
    names = list(LOOPS)
    for r in range(rounds):
        for name in names[r % len(names) :] + names[: r % len(names)]:
            if not r or name not in SELDOM:
                runs[name].append(child("parquet.play", case.name, name, folder, r))
                print(f"{case.name}, {name}: {r + 1}/{rounds}", file=sys.stderr, flush=True)
    return {
        "rows_mb": case.rows * case.row_bytes / 1e6,
        "files_mb": size / 1e6,
        "batch": case.batch,
        "group": case.group,
        "buffer": case.buffer,
        "rows": case.rows,
        "loops": runs,
    }


def _more() -> dict[str, str]:
    return {"datasets": version("datasets")}


if __name__ == "__main__":
    sys.exit(main())
