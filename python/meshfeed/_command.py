"""The console script `meshfeed`, which replaces its process by the Go program of the package.

Signals, the terminal and the exit status are therefore those of the Go program. This module imports
only modules that Python itself has imported. So the Go program starts quickly, and Ctrl-C seldom
interrupts Python before it.

The subcommand `selfcheck` runs in this process instead, because it needs JAX. `doctor` asks this
Python about its packages.
"""

from __future__ import annotations

import os
import sys

BINARY = os.path.join(os.path.dirname(__file__), "_bin", "meshfeed")


def main() -> None:
    """Runs the command with the arguments of this process. Never returns."""
    if sys.argv[1:2] == ["selfcheck"]:
        from meshfeed.selfcheck.command import main as selfcheck

        sys.exit(selfcheck(sys.argv[2:]))
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        arguments[1:1] = ["--python", sys.executable]  # a later --python of the user's wins
    try:
        os.execv(BINARY, ["meshfeed", *arguments])
    except OSError as e:
        sys.exit(
            f"meshfeed: the command is not in this installation ({e.strerror}: {BINARY}); "
            "reinstall the package, or in a checkout run: make lib"
        )
