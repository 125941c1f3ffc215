"""The recorded device orders of TPU slices match the installed JAX."""

from __future__ import annotations

import json

import jax
import pytest

from tests.distributed import tpu_orders


def test_recorded() -> None:
    table = tpu_orders.TABLE.read_text()
    if (version := json.loads(table)["jax"]) != jax.__version__:
        pytest.skip(f"the table is JAX {version}'s, and this is JAX {jax.__version__}")
    assert tpu_orders.text() == table


def test_hosts_take_turns() -> None:
    """Hosts alternate in the mesh, so process p does not hold the p-th part of the rows."""
    rows = json.loads(tpu_orders.TABLE.read_text())["orders"]
    row = next(r for r in rows if r["slice"] == "TPU v4 2x2x4" and r["shape"] == [16])
    assert [process for process, _ in row["devices"]] == [0, 1, 2, 3] * 4
