"""Runs the cells and writes the page."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench import report
from tests.bench.cases import CASES, MESHES
from tests.bench.cell import ROUNDS

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--case", action="append", help="only cases whose name holds this")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each loop and round")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--json", type=Path, help="write the raw numbers here too")
    parser.add_argument("--group", default="", help="a control group for the limited cells")
    options = parser.parse_args()
    chosen = [c for c in CASES if not options.case or any(o in c.name for o in options.case)]
    with tempfile.TemporaryDirectory() as folder:
        result: dict[str, Any] = {"rounds": ROUNDS, "machine": machine()}
        result["cells"] = [
            {"case": case.name, "source": source, "mesh": mesh}
            | child("cell", case.name, source, mesh, folder, str(options.seconds))
            for case in chosen
            for source in ("memory", "file")
            for mesh in MESHES
        ]
        result["rows"] = {
            "in the last cache (8 MB)": child("rows", "8", "300"),
            "larger than the last cache (1 GB)": child("rows", "1024", "100"),
        }
        result["cold"] = [
            {"case": case.name, "kind": kind, "loop": loop}
            | child("cold", case.name, loop, kind, folder, options.group)
            for case in chosen[1:]
            for kind in ("dropped", "limited")
            for loop in ("meshfeed", "probe")
        ]
    options.out.write_text(report.markdown(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))
    sys.stdout.write(f"wrote {options.out}\n")


def child(module: str, *arguments: str) -> Any:
    """Runs one measurement in a process of its own."""
    sys.stderr.write(f"{module} {' '.join(arguments)}\n")
    command = [sys.executable, "-m", f"tests.bench.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def machine() -> str:
    """Names the processor, its caches and the versions."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    cores = text.count("processor\t") or "?"
    name = facts.get("model name", platform.processor())
    family = f"family {facts.get('cpu family', '?')} model {facts.get('model', '?')}"
    packages = ", ".join(f"{p} {version(p)}" for p in ("meshfeed", "jax", "numpy", "grain"))
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"Machine: {name} ({family}), {cores} cores, {system}, {packages}."


if __name__ == "__main__":
    main()
