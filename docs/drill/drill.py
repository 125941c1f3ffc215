"""Kill one process of a training run, and continue with fewer: half a minute.

    make drill          (or: python docs/drill/drill.py --out drill-out)

Four processes train a small model on eight CPU devices. In the middle of the epoch one is killed by
SIGKILL, and JAX ends the others. Two processes continue from the last save. The drill compares
every batch with the batches of an undisturbed run, and draws which process read which rows.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path

import numpy as np
import picture
import pyarrow as pa
from leftovers import in_shared_memory, left_since
from processes import Run, complete, say, start, wait

import meshfeed as mf

HERE = Path(__file__).resolve().parent
RECORDS, BATCH, STEPS = 2000, 48, 40
KILLED, AT = 2, 26  # the process, and a step after which it is killed

Steps = dict[int, dict[int, dict[int, list[int]]]]  # step, process, first row: records


def read(run: Run) -> Steps:
    """Returns which process read which rows of each step."""
    steps: Steps = {}
    for rank in range(len(run.processes)):
        for line in run.lines(rank):
            records = {int(start): records for start, records in line["read"].items()}
            steps.setdefault(line["step"], {})[rank] = records
    return steps


def losses(run: Run) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in run.lines(0)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("drill-out"), help="an empty folder")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    write_data(out / "train.arrow")
    shared = in_shared_memory()
    first = disturbed(out)
    saved = json.loads((out / "state.json").read_text())
    second = resumed(out, saved)
    check(first, second, saved["position"] // BATCH)
    for process in [*first.processes, *second.processes]:
        assert process.poll() is not None
    left = [p.name for p in out.glob(".*")] + left_since(shared)
    say(f"left behind: {', '.join(left) or 'no process, no shared memory, no scratch file'}")
    svg = picture.draw(read(first), read(second), saved["position"] // BATCH, KILLED)
    (out / "drill.svg").write_text(svg)
    print(f"\nwhich process read which rows, before and after: {out / 'drill.svg'}")
    sys.exit(1 if left else 0)


def disturbed(out: Path) -> Run:
    """Runs four processes, and kills one."""
    run = start("before", out, HERE / "train.py", [2, 2, 2, 2], "--steps", STEPS)
    try:
        say("4 processes of 2 devices train together")
        wait(run, lambda: run.steps(KILLED) >= AT)
        run.processes[KILLED].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        say(f"process {KILLED} is killed by SIGKILL after step {run.steps(KILLED)}")
        wait(run, lambda: all(p.poll() is not None for p in run.processes), failed=True)
        ends = ", ".join(signal.Signals(-p.returncode).name for p in run.processes)
        say(f"JAX has ended the others after {time.monotonic() - killed:.1f} s: {ends}")
    finally:
        run.end()
    return run


def resumed(out: Path, saved: dict[str, int]) -> Run:
    """Continues with two processes."""
    say(f"the last save: epoch {saved['epoch']}, position {saved['position']}")
    say("2 processes of 4 devices continue from it")
    run = start("after", out, HERE / "train.py", [4, 4], "--steps", STEPS)
    complete(run)
    return run


def check(first: Run, second: Run, saved: int) -> None:
    """Compares all batches with the batches of one undisturbed process."""
    with (
        mf.open(first.folder / "train.arrow") as ds,
        mf.Loader(ds, batch_size=BATCH, shuffle=True, seed=1) as loader,
    ):
        want = {s + 1: loader.records(0, s * BATCH).tolist() for s in range(STEPS)}
    before, after = read(first), read(second)
    whole = [step for step in before if len(before[step]) == len(first.processes)]
    for steps, run in ((whole, before), (list(after), after)):
        for step in steps:
            blocks = {start: r for read in run[step].values() for start, r in read.items()}
            got = [record for start in sorted(blocks) for record in blocks[start]]
            if got != want[step]:
                sys.exit(f"step {step}: the records are {got}, not {want[step]}")
    if sorted(after) != list(range(saved + 1, STEPS + 1)):
        sys.exit(f"steps {sorted(after)} came after the save at step {saved}")
    twice = sorted(set(whole) & set(after))
    say(f"steps 1 to {saved}, {saved + 1} to {STEPS}: all batches match an undisturbed run")
    apart = max(abs(losses(first)[s] - losses(second)[s]) for s in twice)
    say(f"steps {twice[0]} to {twice[-1]} came twice: same records, losses within {apart:.0e}")


def write_data(path: Path) -> None:
    """Writes records of 8 numbers and a target, a noisy linear function of them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((RECORDS, 8), np.float32)
    y = x @ np.arange(8, dtype=np.float32) + 0.1 * rng.standard_normal(RECORDS, np.float32)
    columns = [pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 8), pa.array(y)]
    table = pa.table(columns, names=["x", "y"])
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=100)


if __name__ == "__main__":
    main()
