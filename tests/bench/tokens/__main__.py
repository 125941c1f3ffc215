"""Measures the loops over tokens; see the package."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench import results, section
from tests.bench.pieces import child
from tests.bench.tokens import page
from tests.bench.tokens.cases import CASES, QUICK, Case, Documents
from tests.bench.tokens.loops import LOOPS

ROUNDS = 5
SELDOM = ("TRL", "datasets")  # in the first round only: they make their rows for a minute


def main() -> int:
    parser = results.parser("tokens", quick="small cases", rounds=ROUNDS)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    options = parser.parse_args()
    if options.quick:
        with tempfile.TemporaryDirectory() as folder:
            print(page.tables({case.name: measure(case, Path(folder), 1) for case in QUICK}))
        return 0
    held: dict[str, Any] = {"cases": {}}
    if options.render or options.json.exists():
        held = results.load(options.json)
    if not options.render:
        if held.get("machine") != (machine := results.machine() | _more()):
            held = {"machine": machine, "cases": {}}  # results of two machines never mix
        for case in CASES:
            if options.only in case.name:
                held["cases"][case.name] = {
                    "date": dt.date.today().isoformat(),
                    "commit": results.commit(),
                    **measure(case, options.folder, options.rounds),
                }
                options.json.write_text(json.dumps(held, separators=(",", ":")))
    missing = [case.name for case in CASES if case.name not in held["cases"]]
    section.replace("tokens", page.section(held), missing=missing)
    return 0


def measure(case: Case, folder: Path, rounds: int) -> dict[str, Any]:
    """Runs every loop once per round, each in a fresh process; each round begins with another.

    The first round checks the batches of each loop, too.
    """
    child("tokens.cases", case.name, folder)
    names = [name for name in LOOPS[type(case)] if not name.startswith("TRL") or _trl()]
    runs: dict[str, list[Any]] = {name: [] for name in names}
    for r in range(rounds):
        for name in names[r % len(names) :] + names[: r % len(names)]:
            if not r or not name.startswith(SELDOM):
                runs[name].append(child("tokens.play", case.name, name, folder, not r))
                print(f"{case.name}, {name}: {r + 1}/{rounds}", file=sys.stderr, flush=True)
    facts = {"tokens": case.batch * case.length, "loops": runs}
    if isinstance(case, Documents):
        facts |= {"rows": case.packed_rows(folder), "fewest_rows": case.fewest_rows()}
    return facts


def _trl() -> bool:
    return importlib.util.find_spec("trl") is not None


def _more() -> dict[str, str]:
    names = ("datasets", "trl") if _trl() else ("datasets",)
    return {"more": ", ".join(f"{name} {version(name)}" for name in names)}


if __name__ == "__main__":
    sys.exit(main())
