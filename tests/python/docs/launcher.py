"""Plays `srun` and `gcloud`: starts two processes of a command on this machine, as they would.

    launcher.py srun --kill-on-bad-exit=0 --wait=60 python train.py …
    launcher.py gcloud compute tpus tpu-vm ssh NAME … --command='python3 train.py …'

It sets the environment variables that tell JAX about the job. If STOP_WHEN names a file, process 0
gets a SIGTERM as soon as this file changes. The exit status is the highest of all processes, where
a signal counts as 128 and its number ("RETURN VALUE" in srun's manual).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PROCESSES = 2
LONGEST = 120.0  # seconds of a process


def variables(launcher: str, process: int) -> dict[str, str]:
    """Returns the environment variables of a process."""
    if launcher == "srun":
        return {
            "SLURM_STEP_NODELIST": "localhost",
            "SLURM_NTASKS": str(PROCESSES),
            "SLURM_PROCID": str(process),
            "SLURM_LOCALID": str(process),
        }
    one_slice = ("MEGASCALE_COORDINATOR_ADDRESS", "MEGASCALE_NUM_SLICES", "MEGASCALE_SLICE_ID")
    return dict.fromkeys(one_slice, "") | {
        "JAX_FORCE_TPU_INIT": "1",  # as if libtpu were installed
        "TPU_WORKER_ID": str(process),
        "TPU_WORKER_HOSTNAMES": ",".join(["localhost"] * PROCESSES),
    }


def command(launcher: str, arguments: list[str]) -> list[str]:
    """Returns the command that every process runs."""
    if launcher == "srun":
        return [word for word in arguments if not word.startswith("--")]
    (line,) = (word.removeprefix("--command=") for word in arguments if "--command=" in word)
    for name in ("DATA", "SAVED"):
        line = line.replace(f"/{name.lower()}/", f"{os.environ[name]}/")
    return ["bash", "-c", f"exec {line}"]


def changed(path: str) -> int:
    """Returns the time when a file changed; 0 without one."""
    return os.stat(path).st_mtime_ns if Path(path).exists() else 0


def option(arguments: list[str], name: str) -> int:
    """Returns the number of an option; 0 if it is not there."""
    values = [word.removeprefix(name) for word in arguments if word.startswith(name)]
    return int(values[-1]) if values else 0


def main(launcher: str, arguments: list[str]) -> int:
    kill = option(arguments, "--kill-on-bad-exit=")
    wait = option(arguments, "--wait=")
    watched = os.environ.pop("STOP_WHEN", None)
    before = changed(watched) if watched else 0
    processes = [
        subprocess.Popen(
            command(launcher, arguments), env={**os.environ, **variables(launcher, process)}
        )
        for process in range(PROCESSES)
    ]
    end = time.monotonic() + LONGEST
    try:
        while None in (ended := [process.poll() for process in processes]):
            if watched and changed(watched) != before:
                processes[0].send_signal(signal.SIGTERM)
                watched = None
            if ended != [None] * PROCESSES and wait:
                end, wait = min(end, time.monotonic() + wait), 0
            if time.monotonic() > end or (kill and any(ended)):
                break
            time.sleep(0.02)
    finally:
        for process in processes:
            process.kill()
    statuses = [process.wait() for process in processes]
    return max(status if status >= 0 else 128 - status for status in statuses)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
