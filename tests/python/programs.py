"""Programs of the tests, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

HANG = 240  # seconds


def run(code: str, *flags: str, **env: str) -> str:
    """Runs a program, which must succeed, and gives what it printed."""
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
