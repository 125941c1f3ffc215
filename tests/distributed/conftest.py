"""Jobs, each of which runs once for all tests that read its results."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_NUM_CPU_DEVICES"] = "8"  # also for tests/python, which may run first

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


Run = Callable[[Kind], Played]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs the job of a kind at the first call, and returns it."""

    @functools.cache
    def run(kind: Kind) -> Played:
        played = Played(kind, tmp_path_factory.mktemp("job"))
        played.run()
        return played

    return run


@pytest.fixture
def job(request: pytest.FixtureRequest, run: Run) -> Played:
    """Returns the job of a kind."""
    return run(request.param)
