"""Runs a command, and writes its time and the memory of its largest process to a file.

    python measured.py RESULT.json COMMAND...

A process that a large process starts inherits its peak memory in the kernel's count. This small
program between them keeps the memory of the tests out of the result.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path


def main(result: str, *command: str) -> int:
    began = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    seconds = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # of the largest process
    Path(result).write_text(json.dumps({"seconds": seconds, "peak": peak}))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
