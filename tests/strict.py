"""With MESHFEED_STRICT=1 a skipped test is a failed test, unless its reason is listed here.

Continuous integration sets the variable (.ci/run), so that a missing tool or file cannot hide
tests. For pytest, conftest.py reads the list. For Go, this file is a program that runs the
command:

    python tests/strict.py go test ./core/...

Without the variable the program replaces itself by the command.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable

STRICT = os.environ.get("MESHFEED_STRICT") == "1"

# Reasons to skip a test that are right in continuous integration, and why.
LEGITIMATE = {
    "MESHFEED_DEEP=1": "make test-deep runs it",
    "this processor has no": "the processor decides; other tests force the portable code",
    "no FUSE file system can be mounted": "containers rarely permit a mount",
    "this file system keeps its pages in memory": "tmpfs has nothing to read ahead",
    "the temporary folder lies on a network file system": "such files are not mapped",
    "torch is not installed": "it is 4 GB; the guide that compares with it needs it, too",
    "rich is not installed": "a table of what JAX prints covers the same",
    "ray is not installed": "loops of processes cover the same parts",
    "only root may change the root folder": "the workflow of checks is an ordinary user",
    "there is no python3.": "few machines have all releases of Python",
    "make gpu-check-go": "a plugin with its hardware has a check of its own",
}


def illegitimate(reason: str) -> bool:
    """Says whether a skip for this reason is an error."""
    return not any(known in reason for known in LEGITIMATE)


def go_test(lines: Iterable[str], show: Callable[[str], object]) -> list[str]:
    """Shows what `go test` prints, from the output of -json, and returns the skipped tests."""
    outputs: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    skipped = []
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:  # go itself has a message
            show(line)
            continue
        key = event.get("Package", ""), event.get("Test", "")
        match event["Action"], key[1]:
            case "output", _:
                outputs[key].append(event["Output"])
            case "build-output", _:
                show(event["Output"])
            case (("pass" | "skip" | "fail"), ""):
                show("".join(text for text in outputs.pop(key, []) if text != "PASS\n"))
            case "skip", test:
                text = "".join(t for t in outputs.pop(key, []) if not re.match(r"=== | *--- ", t))
                if illegitimate(text):
                    skipped.append(f"{key[0]} {test}: {text.strip()}")
            case "fail", _:
                show("".join(outputs.pop(key, [])))
            case "pass", _:
                outputs.pop(key, None)
    for left in outputs.values():  # of tests that did not end
        show("".join(left))
    return skipped


def main(command: list[str]) -> int:
    if not STRICT:
        os.execvp(command[0], command)
    at = command.index("test") + 1
    with subprocess.Popen(
        [*command[:at], "-json", *command[at:]], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        skipped = go_test(process.stdout, sys.stdout.write)
    for test in skipped:
        print(f"MESHFEED_STRICT=1 permits no skip: {test}")
    return process.returncode or int(bool(skipped))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
