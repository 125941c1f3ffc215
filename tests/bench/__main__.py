"""Measures the missing pieces, and writes the section of docs/benchmarks.md from all results.

python -m tests.bench                  everything, about a quarter of an hour
python -m tests.bench --quick          a minute: a few cells, printed, nothing kept
python -m tests.bench --budget 100     for at most 100 s; the next run continues (exit status 3)
python -m tests.bench --only warm/tok  pieces with this in their name, measured again
python -m tests.bench --render         the section from the kept results, nothing measured
python -m tests.bench --list           the pieces, and which are missing
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import page, pieces, results, section
from tests.bench.pieces import ROOT, Piece, Workspace

JSON = ROOT / "build" / "bench" / "jax.json"  # every round; the page has the numbers from it
REMAINS = 3  # the exit status when the budget was too small for all


def main() -> int:
    options = _options()
    if options.quick:
        return _quick()
    code = 0 if options.render else _measure(options)
    if not options.list:
        held = results.load(options.json)
        missing = [p.key for p in pieces.everything() if p.key not in held["pieces"]]
        section.replace("jax", page.markdown(held), missing=missing)
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="a few cells, printed")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--list", action="store_true", help="list the pieces")
    parser.add_argument("--only", default="", help="pieces whose name contains this")
    parser.add_argument("--fresh", action="store_true", help="forget all results")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--json", type=Path, default=JSON, help="the results")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="of the data")
    parser.add_argument("--group", type=Path, help="a control group for the limited cell")
    return parser.parse_args()


def _quick() -> int:
    with tempfile.TemporaryDirectory() as folder:
        held = {p.key: {"result": p.measure(Workspace(Path(folder)))} for p in pieces.quick()}
    print(page.brief(held))
    return 0


def _measure(options: argparse.Namespace) -> int:
    began = time.monotonic()
    options.json.parent.mkdir(parents=True, exist_ok=True)
    try:
        kept = results.Results(options.json, fresh=options.fresh)
    except results.OtherMachineError as e:
        sys.exit(str(e))
    build = results.build()
    todo = [p for p in pieces.everything() if options.only in p.key]
    if not options.only:
        todo = kept.missing(todo, build)
    if options.list:
        print("\n".join(p.key for p in todo))
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    workspace = Workspace(options.folder, options.group)
    for n, piece in enumerate(todo):
        if time.monotonic() - began + _expected(kept, piece) > options.budget and n:
            print(f"{len(todo) - n} pieces remain, {piece.key} is next: run again")
            return REMAINS
        try:
            record = kept.add(piece, workspace, build)
        except subprocess.CalledProcessError as e:
            sys.exit(f"{piece.key}: no number, since it failed: {' '.join(map(str, e.cmd))}")
        print(f"{n + 1}/{len(todo)} {piece.key}: {record['seconds']} s", flush=True)
    return 0


def _expected(kept: results.Results, piece: Piece) -> float:
    """Returns the seconds that a piece took the last time, or its estimate."""
    return float(kept.pieces.get(piece.key, {}).get("seconds", piece.seconds))


if __name__ == "__main__":
    sys.exit(main())
