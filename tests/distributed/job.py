"""A job of real JAX processes on this machine: started, waited for, and ended for sure.

    with Job("tests.distributed.play", devices=[2, 2, 2, 2], folder=tmp_path) as job:
        job.wait(seconds=300)

Process p runs the module and has `devices[p]` CPU devices; it joins the job with
`tests.distributed.process.joined`. What it prints goes to `folder/process-p.log`, and stands
in the error when anything goes wrong. When the `with` ends nothing of the job is alive, and
if the test run itself is killed, its processes die with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
ENV = "MESHFEED_JOB"  # what a process is told, as JSON
GRACE = 20.0  # seconds that the others have when one has failed
TAIL = 6000  # characters of each log in an error


class JobError(Exception):
    """A process failed, or the job did not end; the text holds all logs."""


class Job:
    """Processes of one `jax.distributed` job, started by `with`.

    Attributes:
        folder: holds the logs, and whatever the processes write.
        processes: the processes by rank.
    """

    def __init__(
        self,
        module: str,
        devices: Sequence[int],
        folder: Path,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self._module, self._devices, self._env = module, devices, dict(env or {})

    def __enter__(self) -> Job:
        try:
            # gRPC listens with SO_REUSEPORT, so that the port can stay taken until it does.
            with socket.socket() as port:
                port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                port.bind(("127.0.0.1", 0))
                address = f"127.0.0.1:{port.getsockname()[1]}"
                for rank in range(len(self._devices)):
                    self.processes.append(self._start(rank, address))
                self._wait_for_start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def _start(self, rank: int, address: str) -> subprocess.Popen[bytes]:
        told = {
            "rank": rank,
            "processes": len(self._devices),
            "address": address,
            "folder": str(self.folder),
            "parent": os.getpid(),
        }
        proxies = {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy"}
        env = {k: v for k, v in os.environ.items() if k.lower() not in proxies}
        env |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(self._devices[rank])}
        env |= {ENV: json.dumps(told), "PYTHONPATH": _search_path(), **self._env}
        with self._log(rank).open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", self._module],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_for_start(self, seconds: float = 120) -> None:
        """Waits until rank 0 has the port, which it says by a file, or one process fails."""
        late = time.monotonic() + seconds
        while not (self.folder / "joined").exists() and not self._failed([0]):
            if time.monotonic() > late:
                raise JobError(f"rank 0 has not joined after {seconds:.0f} s\n{self.logs()}")
            time.sleep(0.01)

    def wait(self, seconds: float, expect: Sequence[int] | None = None) -> None:
        """Waits until all have ended.

        Args:
            seconds: how long; a bound for a hang, not a promise. When one has failed, the
                others have `GRACE` seconds left to notice.
            expect: the exit status of every process; by default 0.

        Raises:
            JobError: one ended otherwise, or is still running; the text holds all logs.
        """
        late = time.monotonic() + seconds
        wanted = list(expect or [0] * len(self.processes))
        while None in (ended := [process.poll() for process in self.processes]):
            if self._failed(wanted):
                late = min(late, time.monotonic() + GRACE)
            if time.monotonic() > late:
                break
            time.sleep(0.01)
        if ended != wanted:
            message = f"the processes ended with {ended}, expected {wanted}; None still runs"
            raise JobError(f"{message}\n{self.logs()}")

    def _failed(self, wanted: Sequence[int]) -> bool:
        ended = [process.poll() for process in self.processes]
        return any(
            status is not None and status != wanted[p % len(wanted)]
            for p, status in enumerate(ended)
        )

    def kill(self, rank: int) -> None:
        """Kills a process, as the kernel does when memory runs out."""
        os.killpg(self.processes[rank].pid, signal.SIGKILL)
        self.processes[rank].wait()

    def end(self) -> None:
        """Kills all that still run, with whatever they started."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def logs(self) -> str:
        """Gives the end of every process's log."""
        return "\n".join(
            f"---- process {rank} of {self._module}\n{self.log(rank)[-TAIL:]}"
            for rank in range(len(self.processes))
        )

    def log(self, rank: int) -> str:
        """Gives what a process printed."""
        return self._log(rank).read_text(errors="replace")

    def _log(self, rank: int) -> Path:
        return self.folder / f"process-{rank}.log"


def _search_path() -> str:
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(ROOT / "python"), *([given] if given else [])])
