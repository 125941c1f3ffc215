"""The console script `meshfeed`: it replaces itself by the Go program of the package.

The verb `selfcheck` is the exception: it needs JAX, and runs in this process.

Signals, the terminal and the exit status are therefore the program's own. Nothing is imported
that Python has not imported by itself, so that Ctrl-C finds next to no time to end this first.
"""

from __future__ import annotations

import os
import sys

BINARY = os.path.join(os.path.dirname(__file__), "_bin", "meshfeed")


def main() -> None:
    """Runs the command with this process's arguments; never returns."""
    if sys.argv[1:2] == ["selfcheck"]:
        from meshfeed.selfcheck.command import main as selfcheck

        sys.exit(selfcheck(sys.argv[2:]))
    try:
        os.execv(BINARY, ["meshfeed", *sys.argv[1:]])
    except OSError as e:
        sys.exit(
            f"meshfeed: the command is not in this installation ({e.strerror}: {BINARY}); "
            "reinstall the package, or in a checkout run: make lib"
        )
