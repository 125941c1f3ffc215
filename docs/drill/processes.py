"""Starts the processes of a training run on this machine, and follows their logs.

Each process writes a line of JSON per step to `NAME-RANK.jsonl`, and its output to `NAME-RANK.log`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BEGAN = time.monotonic()
HANG = 300.0  # seconds without a new line in any log, after which a run counts as hanging


@dataclass
class Run:
    """Processes of one training run, and their logs."""

    name: str
    folder: Path
    processes: list[subprocess.Popen[bytes]]

    def steps(self, rank: int) -> int:
        """Returns the number of steps that a process has logged."""
        log = self.folder / f"{self.name}-{rank}.jsonl"
        return log.read_bytes().count(b"\n") if log.exists() else 0

    def lines(self, rank: int) -> list[dict[str, Any]]:
        log = self.folder / f"{self.name}-{rank}.jsonl"
        whole = log.read_text().split("\n")[:-1] if log.exists() else []
        return [json.loads(line) for line in whole]

    def together(self) -> list[tuple[dict[str, Any], ...]]:
        """Returns the lines of all processes by step, without a step that one has not logged."""
        logs = [self.lines(rank) for rank in range(len(self.processes))]
        return list(zip(*logs, strict=False))

    def logged(self) -> int:
        """Returns the number of bytes in all logs."""
        return sum(log.stat().st_size for log in self.folder.glob(f"{self.name}-*"))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def start(name: str, folder: Path, program: Path, devices: list[int], *arguments: object) -> Run:
    """Starts a process for every entry of `devices`, the number of the process's devices."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{port.getsockname()[1]}"
    run = Run(name, folder, [])
    for rank, n in enumerate(devices):
        command = [sys.executable, program, "--address", address, "--folder", folder]
        command += ["--processes", len(devices), "--rank", rank, *arguments]
        command += ["--log", folder / f"{name}-{rank}.jsonl"]
        env = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(n)}
        with (folder / f"{name}-{rank}.log").open("wb") as log:
            process = subprocess.Popen([*map(str, command)], env=env, stdout=log, stderr=log)
            run.processes.append(process)
    return run


def complete(run: Run) -> None:
    """Waits until all processes have ended without an error."""
    try:
        wait(run, lambda: all(p.poll() == 0 for p in run.processes))
    finally:
        run.end()


def wait(run: Run, done: Callable[[], bool], *, failed: bool = False) -> None:
    """Waits for a condition. If a process fails first, the program ends, unless `failed` is set."""
    logged, late = 0, 0.0
    while not done():
        bad = [rank for rank, p in enumerate(run.processes) if p.poll() not in (None, 0)]
        if (now := run.logged()) > logged or not late:
            logged, late = now, time.monotonic() + HANG
        if time.monotonic() > late or (bad and not failed):
            logs = [(run.folder / f"{run.name}-{rank}.log").read_text()[-3000:] for rank in bad]
            sys.exit("\n".join([f"processes {bad} failed, or the run hangs", *logs]))
        time.sleep(0.02)


def say(text: str) -> None:
    """Prints a line with the time since the program began."""
    print(f"{time.monotonic() - BEGAN:5.1f} s  {text}", flush=True)
