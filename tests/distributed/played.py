"""The jobs that play scenarios: what there is, and what came of one."""

from __future__ import annotations

import os
import pickle
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.distributed import data
from tests.distributed.job import Job
from tests.distributed.scenarios import Cluster, Scenario, scenarios

SEED = int(os.environ.get("MESHFEED_SEED") or random.SystemRandom().getrandbits(32))
HANG = 300  # seconds; a job takes ten


@dataclass(frozen=True)
class Kind:
    """What distinguishes a job: devices of each process, and whether collectives can work."""

    devices: tuple[int, ...]
    denied: bool = False

    def __str__(self) -> str:
        return "+".join(map(str, self.devices)) + (" without collectives" if self.denied else "")


QUICK = [Kind((2, 2, 2, 2), denied=True), Kind((4, 4)), Kind((1, 2, 1))]
SLOW = [Kind((2, 2, 2, 2)), Kind((1,) * 8), Kind((4,) * 4), Kind((3, 1, 4))]


class Played:
    """A job that has ended, and what its processes wrote down."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.kind, self.folder = kind, folder
        self.cluster = Cluster(kind.devices)
        self.plan = scenarios(self.cluster, SEED)

    def run(self) -> None:
        data.write(self.folder)
        (self.folder / "plan.pickle").write_bytes(pickle.dumps(self.plan))
        env = {"MESHFEED_COLLECTIVES": "denied"} if self.kind.denied else {}
        with Job("tests.distributed.play", self.kind.devices, self.folder, env=env) as job:
            job.wait(HANG)

    def read(self, name: str) -> list[Any]:
        """Gives what each process wrote under a name."""
        ranks = range(len(self.kind.devices))
        return [pickle.loads((self.folder / f"{name}-{p}.pickle").read_bytes()) for p in ranks]

    def given(self, scenario: Scenario) -> list[Any]:
        return self.read(f"given-{self.plan.index(scenario)}")
