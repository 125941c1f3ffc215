"""The measurements, in pieces that run separately and keep their results."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench import limits, rows
from tests.bench.cases import CASES, LARGE, MESHES, Case
from tests.bench.memory import LOOPS

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("memory", "file")
COLD_ROUNDS = 7  # because CPU seconds vary
LIMITED_ROUNDS = 2
LIMITED_SECONDS = 4.0  # of each loop and round
DATA_MB = (8, 1024)  # in the last-level cache, and larger
SIZES_AT_ONCE = 6
PUT_ROUNDS = 10
LEAVES = "128x32x32x3 f32", "512x32x32x3 u8", "64x2048 i32", "4096x40 f32", "6 of 256x64 f32"


@dataclass(frozen=True)
class Workspace:
    """The folder of the data files, and a control group if given."""

    folder: Path
    group: Path | None = None


@dataclass(frozen=True)
class Piece:
    """One measurement.

    Attributes:
        key: its name in the results, `kind/...`.
        measure: runs the measurement.
        seconds: its approximate time on two cores.
    """

    key: str
    measure: Callable[[Workspace], Any]
    seconds: float


def everything() -> list[Piece]:
    """Lists all pieces, in the order in which they are measured."""
    cells = [(c, s, m) for c in CASES for s in SOURCES for m in MESHES]
    return [
        *(warm(case, source, mesh, 12) for case, source, mesh in cells),
        *(by_row(mb, sizes, 12) for mb in DATA_MB for sizes in _parts(rows.SIZES)),
        *(memory(case, loop) for case in CASES for loop in LOOPS),
        *(put(leaf) for leaf in LEAVES),
        Piece("put/processes", lambda _: child("distributed.put", PUT_ROUNDS), 60.0),
        *(Piece(f"cold/{case.name}", _cold(case), 45.0) for case in CASES[1:]),
        Piece(f"limited/{LARGE.name}", _limited, 85.0),
    ]


def quick() -> list[Piece]:
    """Lists a few pieces of few rounds, for about a minute."""
    eight, _, split = MESHES
    return [
        warm(CASES[0], "memory", eight, 5),
        warm(CASES[1], "file", split, 5),
        warm(CASES[3], "memory", eight, 4),
        by_row(DATA_MB[0], [4, 52, 2048, 12288], 4),
    ]


def warm(case: Case, source: str, mesh: str, rounds: int) -> Piece:
    """Returns the piece of a warm cell."""
    key = f"warm/{case.name}/{source}/{mesh}"
    arguments = (case.name, source, mesh)
    return Piece(key, lambda at: child("cell", *arguments, at.folder, rounds), 25.0)


def by_row(megabytes: int, sizes: list[int], rounds: int) -> Piece:
    """Returns the piece of the gather alone, for some sizes of a row."""
    key = f"rows/{megabytes}/{sizes[0]}"
    return Piece(key, lambda _: child("rows", megabytes, rounds, *sizes), 25.0)


def put(leaf: str) -> Piece:
    """Returns the piece of arrays that another loader made."""
    return Piece(f"put/{leaf}", lambda _: child("put", leaf, PUT_ROUNDS), 12.0)


def memory(case: Case, loop: str) -> Piece:
    """Returns the piece of a loop's memory."""
    return Piece(f"memory/{case.name}/{loop}", lambda _: child("memory", case.name, loop, 2), 6.0)


def child(module: str, *arguments: object, prefix: tuple[str, ...] = ()) -> Any:
    """Runs one measurement in its own process and returns its output."""
    command = [*prefix, sys.executable, "-m", f"tests.bench.{module}", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def _parts(sizes: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(sizes), SIZES_AT_ONCE):
        yield sizes[start : start + SIZES_AT_ONCE]


def _cold(case: Case) -> Callable[[Workspace], Any]:
    """Measures the first epoch after the file's pages were dropped, loops in turns."""

    def measure(at: Workspace) -> Any:
        case.file(at.folder)
        return {"loops": _loops_in_turns(COLD_ROUNDS, (case.name, at.folder, 5.0, 1))}

    return measure


def _limited(at: Workspace) -> Any:
    """Measures a file when half of it fits into memory, loops in turns."""
    size = LARGE.rows * LARGE.batch_bytes // LARGE.batch
    if not (at.folder / LARGE.file_name).exists() and shutil.disk_usage(at.folder).free < 3 * size:
        return {"left_out": f"the disk has no room for a file of {size >> 20} MB"}
    path = at.folder / LARGE.file_name
    try:
        child("cases", LARGE.name, at.folder)  # in a process, because its end frees its memory
        with limits.limited(path.stat().st_size // 2, at.group) as limit:
            arguments = (LARGE.name, at.folder, LIMITED_SECONDS, 0)
            loops = _loops_in_turns(LIMITED_ROUNDS, arguments, limit.prefix)
            return {"way": limit.way, "loops": loops}
    except OSError as e:
        return {"left_out": str(e)}
    finally:
        path.unlink(missing_ok=True)


def _loops_in_turns(
    rounds: int, arguments: tuple[object, ...], prefix: tuple[str, ...] = ()
) -> dict[str, list[Any]]:
    name, *rest = arguments
    loops: dict[str, list[Any]] = {"meshfeed": [], "probe": []}
    for r in range(rounds):
        for loop in list(loops)[:: -1 if r % 2 else 1]:
            loops[loop].append(child("cold", name, loop, *rest, prefix=prefix))
    return loops
