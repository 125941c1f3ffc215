"""A process of the job: the loops of a case in turns, on every mesh.

It reads its task from `folder/order.json` and writes its results to `folder/times-rank.json`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import meshfeed as mf
from tests.bench.cases import Case, Data, named, shardings
from tests.bench.distributed.loops import Loop, Shardings, loops
from tests.distributed.process import Place, joined

SKIP = 4  # first batches of a turn that do not count, because they may be ready
MINUTE = 60_000  # ms


def play(place: Place) -> dict[str, Any]:
    """Runs the task."""
    order = json.loads((place.folder / "order.json").read_text())
    case = named(order["case"])
    path = case.file(Path(order["data"]))
    return {mesh: turns(case, mesh, path, order["rounds"]) for mesh in order["meshes"]}


def turns(case: Case, mesh: str, path: Path, rounds: int) -> dict[str, Any]:
    """Returns the turns of every loop, and what it gathers; a first round does not count."""
    split, data = shardings(case, mesh), case.mapped(path)
    playing = loops(case, split, data, path)
    check(case, split, data, path)
    names, done = list(playing), {name: list[dict[str, Any]]() for name in playing}
    for r in range(-1, rounds):
        shift = r % len(names)
        for name in names[shift:] + names[:shift]:
            meet(f"{case.name}/{mesh}/{r}/{name}")
            result = turn(playing[name])
            if r >= 0:
                done[name].append(result)
    gathered = {name: loop.gathered() for name, loop in playing.items()}
    return {"turns": done, "gathered": gathered, "planned": planned(case, split, path)}


def turn(loop: Loop) -> dict[str, Any]:
    """Blocks on each batch; returns the median, wall and processor ms of a step."""
    for _ in range(SKIP):
        jax.block_until_ready(next(loop.batches))
    times, cpu = [], time.process_time()
    start = before = time.perf_counter()
    for _ in range(loop.steps):
        jax.block_until_ready(next(loop.batches))
        now = time.perf_counter()
        times.append((now - before) * 1e3)
        before = now
    steps = loop.steps
    used = (time.process_time() - cpu) * 1e3 / steps
    return {"p50": float(np.median(times)), "wall": (now - start) * 1e3 / steps, "cpu": used}


def planned(case: Case, split: Shardings, path: Path) -> int:
    """Returns the bytes that this process gathers for a step, by the plan."""
    with mf.open(path) as ds, mf.Loader(ds, None, dict(split), batch_size=case.batch) as loader:
        report = loader.layout.report()
    mine = [p for p in report["processes"] if p["process"] == jax.process_index()]
    return int(mine[0]["bytes_per_step"])


def check(case: Case, split: Shardings, data: Data, path: Path) -> None:
    """Fails unless this process's shards match the batch that the loader announced."""
    options: dict[str, Any] = {"batch_size": case.batch, "shuffle": True}
    with mf.open(path) as ds, mf.Loader(ds, None, dict(split), **options) as loader:
        records = loader.records(0, 0)
        for name, array in next(iter(loader)).items():
            whole = data[name][records]
            for shard in array.addressable_shards:
                assert np.array_equal(np.asarray(shard.data), whole[shard.index]), name


def meet(name: str) -> None:
    """Waits for all processes, without a program."""
    from jax._src.distributed import global_state

    assert global_state.client is not None
    global_state.client.wait_at_barrier(name, MINUTE)


def main() -> None:
    with joined() as place:
        result = play(place)
        (place.folder / f"times-{place.rank}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
