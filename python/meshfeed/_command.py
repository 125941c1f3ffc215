"""The console script `meshfeed`: it replaces itself by the Go program of the package.

Signals, the terminal and the exit status are therefore the program's own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

BINARY = Path(__file__).parent / "_bin" / "meshfeed"


def main() -> NoReturn:
    """Runs the command with this process's arguments."""
    try:
        os.execv(BINARY, ["meshfeed", *sys.argv[1:]])
    except OSError as e:
        sys.exit(
            f"meshfeed: the command is not in this installation ({e.strerror}: {BINARY}); "
            "install a wheel, or build it with: go install "
            "github.com/meshfeed/meshfeed/cmd/meshfeed@latest"
        )
