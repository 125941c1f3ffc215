"""Questions to the planner: values for its documents, and errors about arguments."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from meshfeed._io.arguments import (
    RECORDS,
    WIDE,
    Checks,
    getattr_or_none,
    integer_hint,
    is_integer,
    repr_short,
)
from meshfeed.errors import InvalidArgumentError

_POSITION = re.compile(r" \(line \d+, byte \d+\)")  # in a text that the user never saw
_WORDS = (  # JSON's, and what Python calls them
    (re.compile(r"\bfound null\b"), "found None"),
    (re.compile(r"\bfound an object\b"), "found a dict"),
    (re.compile(r"\ban object of\b"), "a dict of"),
    (re.compile(r"\bgive the sizes as transformer\b"), "give the sizes to mf.strategy.transformer"),
)
_KEY = re.compile(r' needs the key "(\w+)"')
_INTEGER = "the number is not written as an integer"
_DECIMALS = "the number is not written with at most three decimals"


def json_values(check: Checks, given: Mapping[Any, Any]) -> dict[str, Any]:
    """Converts arguments to values of JSON: numbers of NumPy and JAX, and element types."""
    try:
        return {str(name): _plain(check, str(name), value) for name, value in given.items()}
    except RecursionError:
        name, value = next(iter(given.items()))
        raise check.wrong(str(name), value, "a value that does not contain itself") from None


def _plain(check: Checks, name: str, value: Any) -> Any:
    if getattr_or_none(value, "shape") == () and getattr_or_none(value, "item") is not None:
        with contextlib.suppress(NotImplementedError):  # a PRNG key of JAX is not a number
            value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if is_integer(value):
        return check.integer(name, value, -WIDE, WIDE)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise check.wrong(name, value, "a finite number")
        return value
    if isinstance(value, Mapping):
        return {str(k): _plain(check, f"{name}[{k!r}]", v) for k, v in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(check, f"{name}[{i}]", v) for i, v in enumerate(value)]
    if isinstance(value, type | np.dtype):
        try:
            return np.dtype(value).name
        except TypeError:
            pass
    raise check.wrong(name, value, "a number, a text, a list or a dict")


class _Location(NamedTuple):
    """Where an error is: an argument, the keys that lead to a part of it, and this part."""

    argument: str
    keys: list[str]
    value: Any

    def __str__(self) -> str:
        keys = "".join(f"[{key if key.isdigit() else repr(key)}]" for key in self.keys)
        value = "" if isinstance(self.value, Mapping) else f"={repr_short(self.value)}"
        return (
            self.argument + keys + (value if self.argument and self.value is not _NOTHING else "")
        )


_NOTHING = object()


def _locate(path: str, names: Mapping[str, str], given: Mapping[str, Any]) -> _Location:
    """Finds the part of an argument that a JSON Pointer stands for; see `naming_arguments`."""
    root = max((r for r in names if f"{path}/".startswith(f"{r}/")), key=len, default="")
    keys = [key.replace("~1", "/").replace("~0", "~") for key in path[len(root) :].split("/")][1:]
    name = names.get(root, "")
    if not name and keys:
        name, *keys = keys
    value = given.get(name, _NOTHING)
    for key in keys:
        if isinstance(value, Mapping):
            value = {str(k): v for k, v in value.items()}.get(key, _NOTHING)
        elif isinstance(value, list | tuple) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            value = _NOTHING
    return _Location(name, keys, value)


@contextlib.contextmanager
def naming_arguments(names: Mapping[str, str], given: Mapping[str, Any]) -> Iterator[None]:
    """Names the argument in an error about a document, in the words of Python.

    Args:
        names: the argument that a JSON Pointer stands for; "" for an object with arguments as
            members.
        given: the arguments.
    """
    try:
        yield
    except InvalidArgumentError as error:
        raise _argument_error(error, names, given) from None


def _argument_error(
    error: InvalidArgumentError, names: Mapping[str, str], given: Mapping[str, Any]
) -> InvalidArgumentError:
    message = _POSITION.sub("", error.message.removeprefix(f"{error.path}: "))
    hint, place = error.hint, _locate(error.path, names, given)
    if message == _INTEGER:
        message = "expected an integer"
        hint = integer_hint(place.value) or hint
    elif message == _DECIMALS and isinstance(place.value, int | float | np.number):
        message = "expected a number with at most three decimals"
        hint = f"write {round(float(place.value), 3)}"
    elif not place.keys and place.argument in given:
        message = message.replace(" is not a key", " is not an argument")
        hint = hint.replace("The keys here are", "The arguments here are")
        hint = hint.replace("the keys here are", "the arguments here are")
    for pattern, word in _WORDS:
        message, hint = pattern.sub(word, message), pattern.sub(word, hint)
    text = f"{place}: {message}" if place.argument else _KEY.sub(r" needs \1=", message)
    return InvalidArgumentError(text, hint=hint, path=error.path)


_STATS = ("rows", "build_seconds", "seconds")  # members of loader.stats() and of bench


def input_part(check: Checks, given: Any, needs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the part "input" of a document.

    Args:
        check: the checks of the call.
        given: rows per second of all processes, rows and seconds of one process as a loader or
            `meshfeed bench --json` counts them, or the part itself.
        needs: what the planner says about the input without it; None if nothing fits.
    """
    if isinstance(given, Mapping) and not given.keys().isdisjoint(_STATS):
        rows = _statistic(check, given, "rows")
        seconds = _statistic(check, given, "seconds" if "seconds" in given else "build_seconds")
        # A process builds its part of a step. The whole step takes as long as its largest part.
        parts = 1.0 if needs is None else needs["rows_per_step"] / max(1, needs["process_rows"])
        return {"rows_per_second": int(min(RECORDS, max(1.0, rows / seconds * parts)))}
    if isinstance(given, Mapping):
        return json_values(check, given)
    if not _positive(given) or not 1 <= given <= RECORDS:
        expected = "rows per second from 1 to 2^40, or what loader.stats() returned"
        raise check.wrong("input", given, expected)
    return {"rows_per_second": int(given)}


def _statistic(check: Checks, given: Mapping[Any, Any], name: str) -> float:
    """Returns a positive number of the statistics of a loader."""
    if name not in given:
        message = f"input={repr_short(given)} has no {name!r}"
        raise check.misfit(message, "give all that loader.stats() or meshfeed bench --json says")
    if not _positive(given[name]):
        hint = "call loader.stats() after some batches"
        expected = "the statistics of a loader that delivered rows"
        raise check.wrong(f"input[{name!r}]", given[name], expected, hint)
    return float(given[name])


def _positive(value: Any) -> bool:
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and bool(0 < value < math.inf)
