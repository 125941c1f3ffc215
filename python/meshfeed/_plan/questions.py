"""Questions to the strategy planner: values for its documents, and errors about arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from meshfeed._io.arguments import RECORDS, Checks, is_integer, shown
from meshfeed.errors import InvalidArgumentError

_POSITION = re.compile(r" \(line \d+, byte \d+\)")  # in a text that the user never saw


def plain(check: Checks, given: Mapping[str, Any]) -> dict[str, Any]:
    """Converts arguments to values of JSON: numbers of NumPy, and element types."""
    return {str(name): _plain(check, str(name), value) for name, value in given.items()}


def _plain(check: Checks, name: str, value: Any) -> Any:
    if name == "inputs":
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(check, f"{name}[{k!r}]", v) for k, v in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(check, f"{name}[{i}]", v) for i, v in enumerate(value)]
    if is_integer(value):
        return int(value)
    try:
        return np.dtype(value).name
    except TypeError:
        raise check.wrong(name, value, "a number, a text, a list or a dict") from None


def translated(
    error: InvalidArgumentError, names: Mapping[str, str], given: Mapping[str, Any]
) -> InvalidArgumentError:
    """Names the argument in the error of a document.

    Args:
        error: the error, with a JSON Pointer.
        names: the argument that a JSON Pointer stands for; "" for an object whose members are
            arguments.
        given: the arguments.
    """
    message = _POSITION.sub("", error.message.removeprefix(f"{error.path}: "))
    root = max((r for r in names if f"{error.path}/".startswith(f"{r}/")), key=len, default="")
    steps = [
        step.replace("~1", "/").replace("~0", "~") for step in error.path[len(root) :].split("/")
    ]
    name = names.get(root, "")
    argument = "".join(f"[{s if s.isdigit() else repr(s)}]" for s in steps[1:])
    if not name and len(steps) > 1:
        name = steps[1]
        argument = argument[len(repr(name)) + 2 :]
    value: Any = given.get(name)
    if argument == "" and name in given and not isinstance(value, Mapping):
        argument = f"={shown(value)}"
    text = f"{name}{argument}: {message}" if name else message
    return InvalidArgumentError(text, hint=error.hint, path=error.path)


def delivered(check: Checks, given: Any, needs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the part "input" of a document.

    Args:
        check: the checks of the call.
        given: rows per second of all processes, rows and seconds of one process as a loader or
            `meshfeed bench --json` counts them, or the part itself.
        needs: what the planner says about the input without it; None if nothing fits.
    """
    if isinstance(given, Mapping):
        seconds = given.get("build_seconds", given.get("seconds"))
        if seconds is None:
            return plain(check, given)
        rows = given.get("rows")
        if not (_positive(rows) and _positive(seconds)):
            expected = "rows and seconds of a loader that delivered rows"
            raise check.wrong("input", given, expected, "call loader.stats() after some batches")
        # A process builds its part of a step. The whole step takes as long as its largest part.
        parts = 1.0 if needs is None else needs["rows_per_step"] / max(1, needs["process_rows"])
        return {"rows_per_second": min(RECORDS, max(1, int(rows / seconds * parts)))}
    if not _positive(given) or not 1 <= given <= RECORDS:
        expected = "rows per second from 1 to 2^40, or what loader.stats() returned"
        raise check.wrong("input", given, expected)
    return {"rows_per_second": int(given)}


def _positive(value: Any) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0 < value < np.inf)
