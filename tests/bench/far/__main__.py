"""Measures the loops over files far away; see the package."""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench import results, section
from tests.bench.far import page
from tests.bench.far.cases import CASES, QUICK, Case, build, serve
from tests.bench.far.loops import LOOPS, installed
from tests.bench.pieces import child

ROUNDS = 2


def main() -> int:
    parser = results.parser("far", quick="few rows", rounds=ROUNDS)
    parser.add_argument("--print", action="store_true", help="print the section, do not write it")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            print(page.tables({case.name: measure(case, Path(folder), 1) for case in QUICK}))
        return 0
    if options.render:
        held = results.load(options.json)
    else:
        held = {
            "machine": results.machine(),
            "date": dt.date.today().isoformat(),
            "commit": results.commit(),
            "cases": {c.name: measure(c, options.folder, options.rounds) for c in CASES},
        }
        options.json.write_text(json.dumps(held, separators=(",", ":")))
    if options.print:
        print(section.filled(page.section(held)))
        return 0
    run = held["cases"][CASES[0].name]["loops"]
    section.replace("far", page.section(held), missing=LOOPS.keys() - run.keys())
    return 0


def measure(case: Case, folder: Path, rounds: int) -> dict[str, Any]:
    """Runs every loop once per round, each in a fresh process; each round begins with another."""
    data = folder / f"far-{case.name}"
    case.write(data)
    names = installed()
    runs: dict[str, list[Any]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as scratch, serve(build(Path(scratch)), case, data) as at:
        for r in range(rounds):
            for name in names[r % len(names) :] + names[: r % len(names)]:
                runs[name].append(child("far.play", case.name, name, at.address))
                print(f"{case.name}, {name}: {r + 1}/{rounds}", file=sys.stderr, flush=True)
    stored = sum((data / name).stat().st_size for name in case.names()) / 1e6
    return {"rows": case.total, "mb": stored, "loops": runs}


if __name__ == "__main__":
    sys.exit(main())
