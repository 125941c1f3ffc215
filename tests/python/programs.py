"""Runs programs of the tests, each in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys

HANG = 240  # seconds


def run(code: str, *flags: str, **env: str) -> str:
    """Runs a program that must succeed, and returns its output."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", code],
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
