"""The console script `meshfeed`, which replaces its process by the Go program of the package.

Signals, the terminal and the exit status therefore come from the Go program. This module imports
only modules that Python itself has imported. So the Go program starts quickly, and Ctrl-C seldom
interrupts Python before it.

The subcommands `selfcheck` and `bench --jax` run in this process, because they need JAX, and
`convert --map` because it calls a function. `doctor` asks this Python about its packages.
"""

from __future__ import annotations

import os
import sys

ADDRESSES = 1 << 30  # bytes of address space: Go reserves 0.8 GiB, and threads need stacks
BINARY = os.path.join(os.path.dirname(__file__), "_bin", "meshfeed")


def main() -> None:
    """Runs the command with the arguments of this process. Never returns."""
    if sys.argv[1:2] == ["selfcheck"]:
        from meshfeed._selfcheck.command import main as selfcheck

        sys.exit(selfcheck(sys.argv[2:]))
    if sys.argv[1:2] == ["bench"] and "--jax" in sys.argv:
        from meshfeed._selfcheck.bench import main as bench

        sys.exit(bench(sys.argv[2:]))
    if sys.argv[1:2] == ["convert"] and any(a.startswith("--map") for a in sys.argv[2:]):
        from meshfeed._converting import main as convert

        sys.exit(convert(sys.argv[2:]))
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        arguments[1:1] = ["--python", sys.executable]  # a later --python of the user's wins
    _check_addresses()
    try:
        os.execv(BINARY, ["meshfeed", *arguments])
    except OSError as e:
        _refuse(
            f"the command is not in this installation ({e.strerror}: {BINARY}); "
            "reinstall the package, or in a checkout run: make lib"
        )


def _check_addresses() -> None:
    """Ends this process if `ulimit -v` is too low, because Go would only print its own stacks."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < ADDRESSES:
        _refuse(
            f"the command needs {ADDRESSES >> 20} MiB of addresses, but RLIMIT_AS is "
            f"{limit >> 20} MiB; raise the limit (ulimit -v {ADDRESSES >> 10}), or limit memory by "
            "a cgroup, which counts what is used and not what is reserved"
        )


def _refuse(message: str) -> None:
    """Ends this process with the status of a command that could not do its work."""
    print(f"meshfeed: {message}", file=sys.stderr)
    sys.exit(2)
