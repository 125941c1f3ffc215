"""The checks for machines with accelerators, in small on CPU devices."""

from __future__ import annotations

import pytest

from tests.python import gpu_check

CHECKS = gpu_check.checks(gpu_check.SMALL)


@pytest.mark.parametrize("name", CHECKS)
def test_checks(name: str) -> None:
    print(CHECKS[name]())


def test_the_program_asks_for_an_accelerator() -> None:
    with pytest.raises(SystemExit, match=r"^JAX sees no accelerator here"):
        gpu_check.main()
