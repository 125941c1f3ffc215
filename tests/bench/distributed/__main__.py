"""Measures with many processes; see the package."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench import results, section
from tests.bench.cases import CASES, named
from tests.bench.distributed import cold, page, replicas
from tests.bench.pieces import ROOT, child
from tests.distributed.job import Job

RESULTS = ROOT / "build" / "bench" / "processes.json"
DEVICES = (2, 2, 2, 2)
MESHES = ['(8,) P("data")', '(4, 2) P("data")', '(4, 2) P("data", "model")']
ROUNDS = 10
OTHERS = ["cold", "replicas", "restore", "remesh"]
STEPS = [f"steps/{CASES[0].name}", f"steps/{CASES[2].name}"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.distributed")
    parser.add_argument("pieces", nargs="*", default=[*STEPS, *OTHERS])
    parser.add_argument("--render", action="store_true", help="write the section, measure nothing")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench", help="of the data")
    parser.add_argument("--json", type=Path, default=RESULTS, help="the results")
    options = parser.parse_args()
    held: dict[str, Any] = {"pieces": {}}
    if options.render or options.json.exists():
        held = results.load(options.json)
    if not options.render:
        options.folder.mkdir(parents=True, exist_ok=True)
        if held.get("machine") != (machine := results.machine()):
            held = {"machine": machine, "pieces": {}}  # results of two machines never mix
        for piece in options.pieces:
            result = measure(piece, options.folder, options.rounds)
            held["pieces"][piece] = {"commit": results.commit(), "result": result}
            options.json.write_text(json.dumps(held, separators=(",", ":")) + "\n")
    missing = [piece for piece in (*STEPS, *OTHERS) if piece not in held["pieces"]]
    section.replace("processes", page.section(held), missing=missing)
    return 0


def measure(piece: str, folder: Path, rounds: int) -> Any:
    """Measures a piece."""
    if piece in ("restore", "remesh"):
        return child(f"distributed.{piece}", folder)
    if piece == "cold":
        return cold.measure(folder, DEVICES)
    if piece == "replicas":
        return replicas.measure(folder, DEVICES, rounds)
    case = named(piece.removeprefix("steps/"))
    child("cases", case.name, folder)
    with tempfile.TemporaryDirectory() as scratch:
        order = {"case": case.name, "data": str(folder), "meshes": MESHES, "rounds": rounds}
        (Path(scratch) / "order.json").write_text(json.dumps(order))
        with Job("tests.bench.distributed.play", DEVICES, Path(scratch)) as job:
            job.wait(600)
        texts = [(Path(scratch) / f"times-{p}.json").read_text() for p in range(len(DEVICES))]
    return summary([json.loads(text) for text in texts])


def summary(processes: list[Any]) -> dict[str, Any]:
    """Sums up the turns of all processes, for every mesh and loop.

    A round gives three numbers: the median step of the median process, the step of the job
    (its slowest process's mean) and the processor time of a step in all processes.
    """
    cells = {}
    for mesh, first in processes[0].items():
        loops = {}
        for name, turns in first["turns"].items():
            mine = [process[mesh]["turns"][name] for process in processes]
            rounds = [[turns[r] for turns in mine] for r in range(len(turns))]
            loops[name] = {
                "step": [median(t["p50"] for t in turns) for turns in rounds],
                "job": [max(t["wall"] for t in turns) for turns in rounds],
                "cpu": [sum(t["cpu"] for t in turns) for turns in rounds],
                "gathered": [process[mesh]["gathered"][name] for process in processes],
            }
        planned = [process[mesh]["planned"] for process in processes]
        cells[mesh] = {"loops": loops, "planned": planned}
    return cells


if __name__ == "__main__":
    sys.exit(main())
