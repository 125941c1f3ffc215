"""Compiles programs for TPUs, without a TPU.

XLA for TPUs is a library of its own, libtpu. It sits in a separate process, because a process
that has loaded it computes on TPUs by default.
"""

from __future__ import annotations

import ast
from typing import Any

import jax
import pytest
from jax.experimental import topologies

from tests.python import ROOT
from tests.python.programs import run

LIBRARY = ROOT / ".build/plugins/tpu/libtpu/libtpu.so"


def devices(name: str = "v5e:2x4", bounds: tuple[int, int, int] = (2, 4, 1)) -> list[jax.Device]:
    """Lists the devices of one host, in a process of `evaluate`."""
    topology = topologies.get_topology_desc(name, "tpu", chips_per_host_bounds=list(bounds))
    return list(topology.devices)


def evaluate(module: str, expression: str) -> Any:
    """Evaluates an expression in a module of tests/python, with XLA for TPUs.

    The value is a literal of Python.
    """
    if not LIBRARY.exists():
        pytest.skip(f"NOT TESTED: {LIBRARY} is not there; fetch it with: make plugins-absent")
    code = f"from tests.python.plan.{module} import *\nprint(repr({expression}))"
    env = {"TPU_SKIP_MDS_QUERY": "1", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
    return ast.literal_eval(run(code, TPU_LIBRARY_PATH=str(LIBRARY), **env))
