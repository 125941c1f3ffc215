"""Jobs, each run once for all tests that read what came of it."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import pytest

from tests.distributed.played import SEED, Kind, Played

DEEP = os.environ.get("MESHFEED_DEEP") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="set MESHFEED_DEEP=1 (make test-deep)")
    for item in items:
        if not DEEP and item.get_closest_marker("deep"):
            item.add_marker(skip)


def pytest_report_header() -> str:
    return f"MESHFEED_SEED={SEED}"


@pytest.fixture(scope="session")
def jobs() -> dict[Kind, Played]:
    """Jobs that have run, by kind."""
    return {}


@pytest.fixture
def job(
    request: pytest.FixtureRequest,
    jobs: dict[Kind, Played],
    tmp_path_factory: pytest.TempPathFactory,
) -> Played:
    """The job of a kind, which runs when its first test asks for it."""
    kind: Kind = request.param
    if kind not in jobs:
        jobs[kind] = Played(kind, tmp_path_factory.mktemp("job"))
        jobs[kind].run()
    return jobs[kind]
