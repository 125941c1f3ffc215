"""System limits that prevent loading the C library are an error, and not a crash."""

from __future__ import annotations

import re

import pytest

from tests.python.programs import run

pytestmark = pytest.mark.plain

PROGRAM = """
import resource
import numpy as np, numpy.ma
import meshfeed as mf
mf.Loader, mf.from_arrays  # imports what they need
hard = resource.getrlimit(resource.{limit})[1]
resource.setrlimit(resource.{limit}, ({value}, hard))
for _ in range(2):
    try:
        mf.from_arrays({{"x": np.arange(4)}})
    except mf.ResourceExhaustedError as e:
        print(e)
resource.setrlimit(resource.{limit}, (hard, hard))
loader = mf.Loader(mf.from_arrays({{"x": np.arange(4)}}), batch_size=2)
print([batch["x"].tolist() for batch in loader])
"""


def errors_under(limit: str, value: str) -> list[str]:
    *errors, batches = run(PROGRAM.format(limit=limit, value=value)).splitlines()
    assert batches == "[[0, 1], [2, 3]]"
    assert len(errors) == 2
    return errors


def test_addresses() -> None:
    for error in errors_under("RLIMIT_AS", "700 << 20"):
        found = re.fullmatch(
            r"mf.from_arrays: the C library cannot be loaded: it needs 1024 MiB of addresses, but "
            r"RLIMIT_AS is 700 MiB, of which (\d+) MiB are taken; raise the limit to at least "
            r"(\d+) MiB \(ulimit -v (\d+)\), or limit memory by a cgroup, which counts what is "
            r"used and not what is reserved",
            error,
        )
        assert found, error
        taken, needed, kib = map(int, found.groups())
        assert needed == taken + 1024
        assert needed - 1 <= kib / 1024 <= needed


@pytest.mark.parametrize("more", [0, 1, 2, 3])
def test_descriptors(more: int) -> None:
    lowest_free = '__import__("os").dup(0)'  # what is below it stays open
    errors = errors_under("RLIMIT_NOFILE", f"{lowest_free} + 1 + {more}")
    for error in errors:
        found = re.fullmatch(
            r"mf.from_arrays: the C library cannot be loaded: it needs 4 more file descriptors, "
            r"but RLIMIT_NOFILE is (\d+) \(Too many open files\); close files, or raise the limit "
            r"to at least (\d+) \(ulimit -n (\d+)\)",
            error,
        )
        assert found, error
        limit, needed, same = map(int, found.groups())
        assert needed == same == limit + 4
