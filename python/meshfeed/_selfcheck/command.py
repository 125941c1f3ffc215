"""`meshfeed selfcheck`: the command line of the self-check."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from meshfeed._selfcheck import verbs

# The exit statuses, beside the statuses of `verbs`. FOUND: a check failed.
PASSED, FOUND = 0, 1

MOST = 60  # minutes

_ABOUT = """Checks on the devices that JAX sees that every shard holds the right bytes, and measures
how fast batches arrive there. Prints a page of Markdown that can be pasted into an issue.

It needs no network and no files. Set JAX_PLATFORMS or CUDA_VISIBLE_DEVICES to choose devices.
The exit status is 0 if every check passed, 1 if one failed, and 2 if nothing could be checked."""


def main(arguments: Sequence[str]) -> int:
    """Runs the self-check and prints its report.

    Args:
        arguments: the arguments after the verb.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    return verbs.run(
        lambda: _checked(options), name="the self-check", failed="nothing could be checked: "
    )


def _checked(options: argparse.Namespace) -> tuple[int, str]:
    """Runs the checks. Returns the exit status and the report."""
    from meshfeed._selfcheck.run import run

    try:
        report = run(options.minutes, say=_say if sys.stderr.isatty() else _silent)
    finally:
        if sys.stderr.isatty():
            _say("")
    text = report.to_json() if options.json else report.markdown()
    return (PASSED if report.passed else FOUND), text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meshfeed selfcheck",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "--minutes", type=_minutes, default=2.0, metavar="M", help="about how long to take; 2"
    )
    return parser


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= MOST:
        raise argparse.ArgumentTypeError(f"expected more than 0 and at most {MOST}, got {text!r}")
    return value


def _say(text: str) -> None:
    """Replaces the last line of the terminal by a text, such as the name of the running check."""
    print(f"\r\x1b[K{text[:70]}", end="", file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass
