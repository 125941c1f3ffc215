"""With MESHFEED_STRICT=1, a skipped test or doctest fails, unless tests/strict.py permits it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import pytest

from tests import strict

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def failed(report: Report) -> Report:
    """Turns the report of a skip that is not permitted into the report of a failure."""
    if strict.STRICT and report.skipped and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple)
        reason = report.longrepr[2]
        if strict.illegitimate(reason):
            report.outcome = "failed"
            report.longrepr = f"MESHFEED_STRICT=1 permits no skip: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that is skipped without a permitted reason."""
    return failed((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fails a module that is skipped as a whole without a permitted reason."""
    return failed((yield))
