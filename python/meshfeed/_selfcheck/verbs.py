"""What the verbs of the command that need JAX have in common: errors and exit statuses."""

from __future__ import annotations

import sys
from collections.abc import Callable

FAILED, INTERRUPTED = 2, 130  # exit statuses, as of the other verbs


def run(work: Callable[[], tuple[int, str]], *, name: str, failed: str = "") -> int:
    """Runs a verb and prints its text.

    Args:
        work: does the work. Returns the exit status and the text.
        name: the subject of the error that JAX is missing.
        failed: how the message of another error begins.

    Returns:
        The exit status.
    """
    try:
        import meshfeed as mf

        try:
            import jax as jax
        except ImportError as e:
            remedy = 'pip install "jax>=0.8", or the build for your accelerator'
            return refused(f"{name} needs JAX: {e}", remedy)
        try:
            code, text = work()
        except (mf.Error, RuntimeError, OSError) as e:  # JAX finds no device, or a file is missing
            return refused(failed + str(e))
    except KeyboardInterrupt:
        print("meshfeed: interrupted", file=sys.stderr)
        return INTERRUPTED
    print(text)
    return code


def refused(message: str, *hints: str) -> int:
    """Prints an error as the other verbs do. Returns its exit status."""
    print(f"meshfeed: {message}", file=sys.stderr)
    for hint in hints:
        print(f"  {hint}", file=sys.stderr)
    return FAILED
