"""A job of real JAX processes on this machine, which is certain to end.

    with Job("tests.distributed.play", devices=[2, 2, 2, 2], folder=tmp_path) as job:
        job.wait(seconds=300)

Process p runs the module with `devices[p]` CPU devices, and joins the job by
`tests.distributed.process.joined`. Its output goes to `folder/process-p.log`, and to the error if
the job fails. At the end of the `with` block all processes are dead. If the test run is killed,
they die with it.
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
ENV = "MESHFEED_JOB"  # the arguments of a process, as JSON
GRACE = 20.0  # seconds for the other processes after one has failed
TAIL = 6000  # characters of each log in an error


class JobError(Exception):
    """A process failed, or the job did not end. The text contains all logs."""


class Job:
    """Processes of one `jax.distributed` job, started by `with`.

    Attributes:
        folder: contains the logs and other output of the processes.
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
            # gRPC listens with SO_REUSEPORT, so the port can be reserved until it does.
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
        arguments = {
            "rank": rank,
            "processes": len(self._devices),
            "address": address,
            "folder": str(self.folder),
            "parent": os.getpid(),
        }
        proxies = {"http_proxy", "https_proxy", "grpc_proxy", "all_proxy"}
        env = {k: v for k, v in os.environ.items() if k.lower() not in proxies}
        env |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(self._devices[rank])}
        env |= {ENV: json.dumps(arguments), "PYTHONPATH": _search_path(), **self._env}
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
        """Waits until rank 0 has the port, which it reports by a file, or a process fails."""
        late = time.monotonic() + seconds
        while not (self.folder / "joined").exists() and not self._failed([0]):
            if time.monotonic() > late:
                raise JobError(f"rank 0 has not joined after {seconds:.0f} s\n{self.logs()}")
            time.sleep(0.01)

    def wait(self, seconds: float, expect: Sequence[int] | None = None) -> None:
        """Waits until all processes have ended.

        Args:
            seconds: a bound for hangs. After a failure the others have `GRACE` seconds.
            expect: the exit status of every process; by default 0.

        Raises:
            JobError: a process ended otherwise, or is still running; the text contains all logs.
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
        """Kills a process, as the kernel does when it runs out of memory."""
        os.killpg(self.processes[rank].pid, signal.SIGKILL)
        self.processes[rank].wait()

    def end(self) -> None:
        """Kills all running processes and their children."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def logs(self) -> str:
        """Returns the end of every process's log."""
        return "\n".join(
            f"---- process {rank} of {self._module}\n{self.log(rank)[-TAIL:]}"
            for rank in range(len(self.processes))
        )

    def log(self, rank: int) -> str:
        """Returns the output of a process."""
        return self._log(rank).read_text(errors="replace")

    def _log(self, rank: int) -> Path:
        return self.folder / f"process-{rank}.log"


def _search_path() -> str:
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(ROOT / "python"), *([given] if given else [])])
