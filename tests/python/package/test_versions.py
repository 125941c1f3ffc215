"""Batches on other releases of JAX than the pinned one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python import ROOT

FILES = [
    "tests/python/loader/test_arrays.py",
    "tests/python/loader/test_memory.py",
    "tests/distributed/test_scenarios.py",
    "tests/distributed/test_cluster.py",
    "tests/distributed/test_check_replicas.py",
    "tests/python/jobs/test_check_replicas.py",
    "tests/python/layout/test_meshes.py",
    "tests/python/arrays/test_put.py",
    "tests/python/arrays/test_put_leaves.py",
    "tests/python/arrays/test_put_memory.py",
    "tests/python/arrays/test_place_batches.py",
    "tests/distributed/test_put.py",
    "tests/python/arrays/test_stored.py",
]


@pytest.mark.deep
@pytest.mark.parametrize("version", ["0.8.0", "0.9.0"])
def test_other_releases_of_jax(version: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    jax = ["--no-compile", "--no-deps", f"jax=={version}", f"jaxlib=={version}"]
    subprocess.run([*pip, "--target", tmp_path, *jax], check=True)
    env = os.environ | {"PYTHONPATH": str(tmp_path), "MESHFEED_DEEP": "", "MESHFEED_STRICT": ""}
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *FILES], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = [line[:200] for line in done.stdout.splitlines()]
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))] or lines[-3:]
        pytest.fail("\n".join([done.stdout, done.stderr, *failed]), pytrace=False)
