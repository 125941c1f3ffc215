"""The loader issues no collective: it works on a backend without collectives.

Such a backend rejects every program across processes, even one that exchanges nothing. All
scenarios of tests/distributed/test_scenarios.py run in such a job.
"""

from __future__ import annotations

import pytest

from tests.distributed.collectives import DENIED, N
from tests.distributed.played import Kind, Played


@pytest.mark.parametrize("job", [Kind((2, 2, 2, 2), denied=True)], indirect=True)
def test_denied(job: Played) -> None:
    for tried in job.read("tried"):
        assert tried == dict.fromkeys(tried, f"INVALID_ARGUMENT: {DENIED}")
        assert len(tried) == 5


@pytest.mark.parametrize("job", [Kind((4, 4))], indirect=True)
def test_allowed(job: Played) -> None:
    """The same programs work in a usual job, so only the collectives were missing."""
    total = N * (N - 1) // 2
    right = {"device_put": N, "process_allgather": total, "jit with a sum": total}
    for tried in job.read("tried"):
        assert tried == right | {"jit without": N, "sync": 0}
