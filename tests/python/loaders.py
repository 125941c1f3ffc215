"""Runs programs that need TensorFlow or Datarax, which `make loaders` installs beside .venv."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python import ROOT

LOADERS = ROOT / ".build/loaders"


def run(*arguments: str | Path, cwd: Path, timeout: float) -> str:
    """Returns what a Python program prints."""
    if not (LOADERS / ".ready").exists():
        pytest.skip("make loaders installs TensorFlow and Datarax")
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": f"{LOADERS}{os.pathsep}{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
