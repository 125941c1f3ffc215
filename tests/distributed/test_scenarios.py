"""Every process gets exactly its part, with the same three lines and no rank."""

from __future__ import annotations

import pytest

from tests.distributed import proof
from tests.distributed.play import STEPS
from tests.distributed.played import QUICK, SEED, SLOW, Kind, Played
from tests.distributed.scenarios import Scenario


def cases() -> list[object]:
    return [
        pytest.param(
            kind,
            scenario,
            id=f"{kind}: {scenario.name}",
            marks=[pytest.mark.deep] if kind in SLOW else [],
        )
        for kind in QUICK + SLOW
        for scenario in kind.plan()
    ]


@pytest.mark.parametrize(("job", "scenario"), cases(), indirect=["job"])
def test_scenario(job: Played, scenario: Scenario) -> None:
    print(f"MESHFEED_SEED={SEED}\n{scenario}")
    proof.prove(job.cluster, scenario, job.given(scenario), STEPS)


@pytest.mark.parametrize("job", [Kind((2, 2, 2, 2), denied=True)], indirect=True)
def test_replica_groups(job: Played) -> None:
    """Processes 0 and 2 read the same rows, and so do 1 and 3."""
    scenario = next(s for s in job.plan if s.name == "replicas across processes")
    rows = [proof.rows_of(scenario, job.cluster.of(p)) for p in range(4)]
    assert rows[0] == rows[2] == set(range(24))
    assert rows[1] == rows[3] == set(range(24, 48))
