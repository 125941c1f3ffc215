"""Kill one process of a training run, and continue with fewer: half a minute.

    make drill          (or: python docs/drill/drill.py --out drill-out)

Four processes train a small model on eight CPU devices. In the middle of the epoch one is killed by
SIGKILL, and JAX ends the others. Two processes continue from the last save. The drill compares
every batch with the batches of an undisturbed run, and draws which process read which rows.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import picture
import pyarrow as pa
from leftovers import in_shared_memory, left_since

import meshfeed as mf

HERE = Path(__file__).resolve().parent
RECORDS, BATCH, STEPS = 2000, 48, 40
KILLED, AT = 2, 26  # the process, and a step after which it is killed
HANG = 120.0  # seconds after which a run counts as hanging

Steps = dict[int, dict[int, dict[int, list[int]]]]  # step, process, first row: records


@dataclass
class Run:
    """Processes of one training run, and their logs."""

    name: str
    folder: Path
    processes: list[subprocess.Popen[bytes]]

    def lines(self, rank: int) -> list[dict[str, Any]]:
        log = self.folder / f"{self.name}-{rank}.jsonl"
        whole = log.read_text().split("\n")[:-1] if log.exists() else []
        return [json.loads(line) for line in whole]

    def read(self) -> Steps:
        """Returns which process read which rows of each step."""
        steps: Steps = {}
        for rank in range(len(self.processes)):
            for line in self.lines(rank):
                read = {int(start): records for start, records in line["read"].items()}
                steps.setdefault(line["step"], {})[rank] = read
        return steps

    def losses(self) -> dict[int, float]:
        return {line["step"]: line["loss"] for line in self.lines(0)}

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


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
    svg = picture.draw(first.read(), second.read(), saved["position"] // BATCH, KILLED)
    (out / "drill.svg").write_text(svg)
    print(f"\nwhich process read which rows, before and after: {out / 'drill.svg'}")
    sys.exit(1 if left else 0)


def disturbed(out: Path) -> Run:
    """Runs four processes, and kills one."""
    run = start("before", out, [2, 2, 2, 2])
    try:
        say("4 processes of 2 devices train together")
        wait(run, lambda: len(run.lines(KILLED)) >= AT)
        run.processes[KILLED].send_signal(signal.SIGKILL)
        killed = time.monotonic()
        say(f"process {KILLED} is killed by SIGKILL after step {len(run.lines(KILLED))}")
        wait(run, lambda: all(p.poll() is not None for p in run.processes), failed=True)
        ends = ", ".join(signal.Signals(-p.returncode).name for p in run.processes)
        say(f"JAX has ended the others after {time.monotonic() - killed:.1f} s: {ends}")
    finally:
        run.end()
    return run


def resumed(out: Path, saved: dict[str, int]) -> Run:
    """Continues with two processes."""
    say(f"the last save: epoch {saved['epoch']}, position {saved['position']}")
    run = start("after", out, [4, 4])
    try:
        say("2 processes of 4 devices continue from it")
        wait(run, lambda: all(p.poll() == 0 for p in run.processes))
    finally:
        run.end()
    return run


def check(first: Run, second: Run, saved: int) -> None:
    """Compares all batches with the batches of one undisturbed process."""
    with (
        mf.open(first.folder / "train.arrow") as ds,
        mf.Loader(ds, batch_size=BATCH, shuffle=True, seed=1) as loader,
    ):
        want = {s + 1: loader.records(0, s * BATCH).tolist() for s in range(STEPS)}
    before, after = first.read(), second.read()
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
    apart = max(abs(first.losses()[s] - second.losses()[s]) for s in twice)
    say(f"steps {twice[0]} to {twice[-1]} came twice: same records, losses within {apart:.0e}")


def start(name: str, folder: Path, devices: list[int]) -> Run:
    """Starts a process for every entry of `devices`, the number of the process's devices."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{port.getsockname()[1]}"
    run = Run(name, folder, [])
    for rank, n in enumerate(devices):
        command = [sys.executable, str(HERE / "train.py"), "--address", address, "--log", name]
        command += ["--processes", str(len(devices)), "--rank", str(rank)]
        command += ["--folder", str(folder), "--steps", str(STEPS)]
        env = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(n)}
        with (folder / f"{name}-{rank}.log").open("wb") as log:
            run.processes.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))
    return run


def wait(run: Run, done: Callable[[], bool], *, failed: bool = False) -> None:
    """Waits for a condition. If a process fails first, the drill ends, unless `failed` is set."""
    late = time.monotonic() + HANG
    while not done():
        bad = [rank for rank, p in enumerate(run.processes) if p.poll() not in (None, 0)]
        if time.monotonic() > late or (bad and not failed):
            logs = [(run.folder / f"{run.name}-{rank}.log").read_text()[-3000:] for rank in bad]
            sys.exit("\n".join([f"processes {bad} failed, or the run hangs", *logs]))
        time.sleep(0.02)


def write_data(path: Path) -> None:
    """Writes records of 8 numbers and a target, a noisy linear function of them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((RECORDS, 8), np.float32)
    y = x @ np.arange(8, dtype=np.float32) + 0.1 * rng.standard_normal(RECORDS, np.float32)
    columns = [pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 8), pa.array(y)]
    table = pa.table(columns, names=["x", "y"])
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=100)


BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:5.1f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
