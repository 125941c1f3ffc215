"""How a process joins a job, and leaves it together with the others."""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.distributed.job import ENV

SET_PDEATHSIG = 1  # of prctl, Linux


@dataclass(frozen=True)
class Place:
    """A process's rank and folder in its job.

    Attributes:
        rank: its rank.
        processes: their number.
        folder: the job's folder.
    """

    rank: int
    processes: int
    folder: Path


@contextmanager
def joined(*, dead_after: int = 100, **config: Any) -> Iterator[Place]:
    """Joins the job, and leaves it when every process has reached the end.

    Args:
        dead_after: seconds of silence after which a process counts as dead. On a busy machine
            a live process can be silent for some seconds.
        config: options of JAX, such as `jax_cpu_collectives_implementation=None`.
    """
    arguments = json.loads(os.environ[ENV])
    die_with(arguments["parent"])
    import jax

    for name, value in config.items():
        jax.config.update(name, value)
    place = Place(arguments["rank"], arguments["processes"], Path(arguments["folder"]))
    jax.distributed.initialize(
        arguments["address"],
        num_processes=place.processes,
        process_id=place.rank,
        cluster_detection_method="deactivate",
        initialization_timeout=120,
        **_known(heartbeat_timeout_seconds=dead_after, shutdown_timeout_seconds=60),
    )
    (place.folder / "joined").touch()
    yield place
    jax.distributed.shutdown()


def _known(**options: int) -> dict[str, Any]:
    """Returns the options that this release of JAX has."""
    import jax

    there = inspect.signature(jax.distributed.initialize).parameters
    return {name: value for name, value in options.items() if name in there}


def die_with(parent: int) -> None:
    """Has the kernel kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
