"""The hand-over on other releases of JAX than the one the project is pinned to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ["test_arrays.py", "test_memory.py", "test_multiprocess.py"]


@pytest.mark.deep
@pytest.mark.parametrize("version", ["0.8.0", "0.9.0"])
def test_other_releases_of_jax(version: str, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    jax = [f"jax=={version}", f"jaxlib=={version}"]
    subprocess.run([*pip, "--no-deps", "--target", tmp_path, *jax], check=True)
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tests = [f"tests/python/{name}" for name in FILES]
    done = subprocess.run(
        [*command, *tests], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
