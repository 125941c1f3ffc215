"""The results of all pieces: a JSON file that grows piece by piece."""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import meshfeed
from tests.bench.pieces import ROOT, Piece, Workspace, everything

WRITERS = (
    "__main__",
    "derived",
    "page",
    "results",
    "section",
    "targets",
    "texts",
)  # measure nothing
PACKAGES = ("jax", "jaxlib", "numpy", "grain", "pyarrow")


def parser(name: str, *, quick: str, rounds: int) -> argparse.ArgumentParser:
    """Returns a parser of the options of a comparison with other libraries.

    Args:
        name: the package below tests.bench.
        quick: what --quick measures and prints.
        rounds: how often each loop runs.
    """
    out = argparse.ArgumentParser(prog=f"python -m tests.bench.{name}")
    folder = ROOT / "build" / "bench"
    out.add_argument("--quick", action="store_true", help=f"{quick}, printed")
    out.add_argument("--render", action="store_true", help="write the section, measure nothing")
    out.add_argument("--rounds", type=int, default=rounds)
    out.add_argument("--folder", type=Path, default=folder, help="of the data")
    out.add_argument("--json", type=Path, default=folder / f"{name}.json", help="the results")
    return out


class OtherMachineError(ValueError):
    """The file holds numbers of another machine, or of other versions."""


class Results:
    """The results in a file.

    Args:
        path: the file; it may be missing.
        fresh: whether to forget its contents.

    Raises:
        OtherMachineError: its results are from another machine.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._path = path
        self.machine = machine()
        self.pieces: dict[str, Any] = {}
        if path.exists() and not fresh:
            held = json.loads(path.read_text())
            if held["machine"] != self.machine:
                message = f"{path} holds numbers of {held['machine']}, and this is {self.machine}"
                raise OtherMachineError(message + "; measure all again with --fresh")
            self.pieces = held["pieces"]

    def missing(self, pieces: Iterable[Piece], build: str) -> list[Piece]:
        """Lists the pieces that were not measured with this build."""
        return [p for p in pieces if self.pieces.get(p.key, {}).get("build") != build]

    def add(self, piece: Piece, workspace: Workspace, build: str) -> Any:
        """Measures a piece, and keeps its result at once."""
        start = time.monotonic()
        result = piece.measure(workspace)
        record = {
            "date": dt.date.today().isoformat(),
            "build": build,
            "commit": commit(),
            "seconds": round(time.monotonic() - start, 1),
            "result": result,
        }
        self.pieces[piece.key] = record
        self.save()
        return record

    def save(self) -> None:
        scratch = self._path.with_suffix(".part")
        order = {piece.key: n for n, piece in enumerate(everything())}
        listed = sorted(self.pieces.items(), key=lambda item: order.get(item[0], len(order)))
        held = {"machine": self.machine, "pieces": dict(listed)}
        text = json.dumps(held, default=float, indent=0, separators=(",", ":"))
        scratch.write_text(text + "\n")
        scratch.replace(self._path)


def load(path: Path) -> dict[str, Any]:
    """Returns the contents of a file from any machine, and ends the program if there is no file."""
    if not path.exists():
        sys.exit(f"there are no results in {path}: measure without --render first")
    held: dict[str, Any] = json.loads(path.read_text())
    return held


def build() -> str:
    """Returns a digest of library and package, and of the measuring modules."""
    from meshfeed._native import library

    measured = sorted(Path(meshfeed.__file__).parent.rglob("*.py"))
    measuring = [p for p in sorted(Path(__file__).parent.glob("*.py")) if p.stem not in WRITERS]
    digest = hashlib.sha256(Path(library.path()).read_bytes())
    for source in [*measured, *measuring]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def commit() -> str:
    """Returns the checked-out commit, or an empty string outside a repository."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def machine() -> dict[str, str]:
    """Describes the processor, its caches, its memory and the versions."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    name = facts.get("model name", platform.processor())
    family = f"family {facts.get('cpu family', '?')} model {facts.get('model', '?')}"
    return {
        "processor": f"{name} ({family})",
        "cores": str(text.count("processor\t") or "?"),
        "last_level_cache": _cache(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]
        ),
    }


def _cache() -> str:
    sizes = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return sizes[-1].read_text().strip() if sizes else "unknown"
