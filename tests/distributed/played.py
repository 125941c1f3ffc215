"""The kinds of jobs that play scenarios, and their results."""

from __future__ import annotations

import os
import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.distributed import data
from tests.distributed.job import Job
from tests.distributed.scenarios import Cluster, Scenario, loadings, scenarios

SEED = int(os.environ.get("MESHFEED_SEED") or random.SystemRandom().getrandbits(32))
HANG = 300  # seconds; a job takes ten


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Attributes:
        devices: the number of devices of each process.
        denied: whether the backend has no collectives.
        module: the module that its processes run.
    """

    devices: tuple[int, ...]
    denied: bool = False
    module: str = "tests.distributed.play"

    def __str__(self) -> str:
        how = " without collectives" if self.denied else " with odd ones" if self == ODD else ""
        return "+".join(map(str, self.devices)) + how

    def plan(self) -> list[Scenario]:
        """Lists the scenarios that it plays."""
        cluster = Cluster(self.devices)
        return list(loadings(cluster)) if self == ODD else scenarios(cluster, SEED)


# Besides the ways of loading it plays processes that are wrong, late or broken.
ODD = Kind((2, 2, 2, 2), module="tests.distributed.cluster_player")
QUICK = [Kind((2, 2, 2, 2), denied=True), Kind((4, 4)), Kind((1, 2, 1)), ODD]
SLOW = [Kind((2, 2, 2, 2)), Kind((1,) * 8), Kind((4,) * 4), Kind((3, 1, 4))]


class Played:
    """A job that has ended, and what its processes recorded."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.cluster = Cluster(kind.devices)
        self.plan = kind.plan()

    def run(self) -> None:
        data.write(self.folder)
        (self.folder / "plan.pickle").write_bytes(pickle.dumps(self.plan))
        env = {"MESHFEED_SEED": str(SEED)}
        if self.kind.denied:
            env["MESHFEED_COLLECTIVES"] = "denied"
        with Job(self.kind.module, self.kind.devices, self.folder, env=env) as job:
            job.wait(HANG)

    def read(self, name: str) -> list[Any]:
        """Returns what each process wrote under a name."""
        ranks = range(len(self.kind.devices))
        return [pickle.loads((self.folder / f"{name}-{p}.pickle").read_bytes()) for p in ranks]

    def given(self, scenario: Scenario) -> list[Any]:
        return self.read(f"given-{self.plan.index(scenario)}")
