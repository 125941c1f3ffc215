"""Checks of arguments. An error names the call, the argument and the value."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import os
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from meshfeed.errors import (
    Error,
    InvalidArgumentError,
    NotFoundError,
    ReadError,
    UnsupportedError,
    set_op,
)

State = dict[str, Any]

WIDE = 2**53  # the largest number in a layout document
RECORDS = 2**40  # in a dataset, and rows in a batch
DEVICES = 2**20  # in a mesh
PROCESSES = 2**17  # in a run
DEPTH = 65536  # the most batches to prefetch
DIMENSIONS = 32  # in a batch

ORDERS = ("sequential", "shuffle", "local", "blocks")
_STATE_BYTES = 65536  # that are read of a state file; a state is far shorter
_STATE = "give what state() gave, or the path that save_state() wrote"
_FILL = 'give a number for each field that may hold nulls, such as {"label": -1}'


class Checks:
    """The checks of one call's arguments. Each returns the value in the form of the C library.

    As a context manager it puts the call's name into every meshfeed error that leaves the block.
    The error may come from a function that the user never called.

    Args:
        call: the call as the user writes it, such as ``"mf.Loader"``.

    Examples:
        >>> check = Checks("mf.Loader")
        >>> check.integer("prefetch", np.int64(3), 0, 8)
        3
        >>> check.integer("prefetch", 1.5, 0, 8)
        Traceback (most recent call last):
            ...
        meshfeed.InvalidArgumentError: mf.Loader: prefetch=1.5: expected an integer from 0 to 8
    """

    def __init__(self, call: str) -> None:
        self._call = call
        self._state_file = ""

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Error) and error.op != self._call:
            if error.message.startswith("this is not a saved state"):
                error.message = self._state_file + error.message
            set_op(error, self._call)

    def wrong(self, name: str, value: Any, expected: str, hint: str = "") -> InvalidArgumentError:
        """Makes the error for an unexpected argument."""
        message = f"{name}={repr_short(value)}: expected {expected}"
        return InvalidArgumentError(message, op=self._call, hint=hint)

    def misfit(self, message: str, hint: str = "") -> InvalidArgumentError:
        """Makes the error for arguments that contradict each other."""
        return InvalidArgumentError(message, op=self._call, hint=hint)

    def integer(self, name: str, value: Any, low: int, high: int, hint: str = "") -> int:
        """Checks an int of Python or NumPy. A boolean is an error."""
        if not is_integer(value) or not low <= (number := operator.index(value)) <= high:
            expected = f"an integer from {_bound(low)} to {_bound(high)}"
            raise self.wrong(name, value, expected, hint or integer_hint(value))
        return number

    def optional(self, name: str, value: Any, low: int, high: int, hint: str = "") -> int | None:
        """Checks an int or None."""
        return None if value is None else self.integer(name, value, low, high, hint)

    def epochs(self, epochs: Any) -> int | None:
        """Checks a number of epochs, -1 for no end, or None."""
        if epochs is None:
            return None
        number = operator.index(epochs) if is_integer(epochs) else 0
        if number == -1 or 1 <= number < 2**31:
            return number
        raise self.wrong("epochs", epochs, "an integer from 1 to 2147483647, or -1 for no end")

    def int64(self, name: str, value: Any) -> int:
        """Checks that an int fits 64 bits; the library checks its range."""
        return self.integer(name, value, -(2**63), 2**63 - 1)

    def boolean(self, name: str, value: Any) -> bool | None:
        """Checks a boolean of Python or NumPy, or None."""
        if value is not None and not isinstance(value, bool | np.bool_):
            raise self.wrong(name, value, "True or False")
        return None if value is None else bool(value)

    def choice(self, name: str, value: Any, *choices: str, hint: str = "") -> str:
        """Checks that a value is one of several words."""
        if not isinstance(value, str) or value not in choices:
            *others, last = (f'"{choice}"' for choice in choices)
            raise self.wrong(name, value, f"{', '.join(others)} or {last}", hint)
        return value

    def order(self, order: Any, shuffle: Any) -> str | None:
        """Checks the two arguments for the order of records; returns its name, or None."""
        shuffled = self.boolean("shuffle", shuffle)
        if order is None:
            return None if shuffled is None else "shuffle" if shuffled else "sequential"
        text = getattr(order, "name", order)  # mf.Blocks has a name
        if not isinstance(text, str) or not (text in ORDERS or "." in text or ":" in text):
            expected = '"sequential", "shuffle", "local", "blocks" or mf.Blocks(...)'
            hint = "or the full name of an order, as in a state"
            raise self.wrong("order", order, expected, hint)
        if shuffled is not None and shuffled == text.startswith("sequential"):
            message = f"order={order!r} and shuffle={shuffle} contradict each other"
            raise self.misfit(message, "give only one of them")
        return text

    def loading(self, loading: Any) -> str:
        """Checks the argument `loading`."""
        return self.choice("loading", loading, "process", "global", "device", "reshard")

    def name(self, name: str, value: Any) -> str:
        """Checks that a text is not empty."""
        if not isinstance(value, str) or not value:
            raise self.wrong(name, value, "a name")
        return value

    def field(self, argument: str, value: Any) -> str:
        """Checks a name for a new field."""
        name = self.name(argument, value)
        if not is_field_name(name):
            message = f"the name {value!r} has a character that no field name may have"
            raise self.misfit(message, "names are Unicode text without NUL")
        return name

    def seconds(self, name: str, value: Any) -> float:
        """Checks a positive number of seconds."""
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise self.wrong(name, value, "a positive number of seconds")
        return float(value)

    def batch_size(self, size: Any) -> int | list[int]:
        """Checks the rows of the global batch: an int or a tuple of ints."""
        sizes = size if isinstance(size, tuple) else (size,)
        right = all(is_integer(n) and 1 <= operator.index(n) <= RECORDS for n in sizes)
        if not right or not 1 <= len(sizes) <= DIMENSIONS:
            expected = f"an integer from 1 to {_bound(RECORDS)}, or a tuple of them"
            hint = "give the rows of the global batch, over all processes"
            raise self.wrong("batch_size", size, expected, hint)
        whole = [operator.index(n) for n in sizes]
        return whole if isinstance(size, tuple) else whole[0]

    def extras(self, extras: Any) -> list[str]:
        """Checks a list of extras, or a single one."""
        names = [extras] if isinstance(extras, str) else extras
        known = isinstance(names, Sequence) and all(n in ("key", "record") for n in names)
        if not known or len(set(names)) < len(names):
            raise self.wrong("extras", extras, 'a list of "key" and "record", each at most once')
        return list(names)

    def state(self, state: Any) -> bytes:
        """Returns the text of a state, or of the file that holds one. The library parses it."""
        if isinstance(state, Mapping):
            return json.dumps({str(k): self._value(k, v) for k, v in state.items()}).encode()
        if not isinstance(state, str | os.PathLike):
            raise self.wrong("state", state, "a state or a path", _STATE)
        self._state_file = f"state={repr_short(state)}: "
        try:
            with Path(state).open("rb") as file:
                return file.read(_STATE_BYTES).replace(b"\0", rb"\0")  # NUL ends a text in C
        except FileNotFoundError:
            message = f"{self._state_file}there is no such file"
            raise NotFoundError(message, op=self._call, hint=_STATE) from None
        except OSError as e:
            message = f"{self._state_file}the file cannot be read: {e.strerror}"
            raise ReadError(message, op=self._call, hint=_STATE, path=str(state)) from None

    def _value(self, key: Any, value: Any) -> Any:
        """Converts a value of a state; a checkpoint may have turned a number into an array."""
        if is_integer(value):
            return operator.index(value)
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if value is not None and not isinstance(value, bool | float | str):
            raise self.wrong(f"state[{key!r}]", value, "a number or a text", _STATE)
        return value

    def ignores(self, dataset: Any) -> bool:
        """Checks the argument `dataset`; returns whether a state of another dataset is accepted."""
        hint = '"ignore" accepts the state of another dataset'
        return self.choice("dataset", dataset, "check", "ignore", hint=hint) == "ignore"

    def number(self, name: str, value: Any) -> Any:
        """Checks a number or a boolean; returns it as the library takes it."""
        if not isinstance(value, int | float | complex | np.number | np.bool_):
            raise self.wrong(name, value, "a number or a boolean")
        return _plain(value)

    def fraction(self, name: str, value: Any) -> float:
        """Checks a part of a whole; the library checks the sum of all."""
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise self.wrong(name, value, "a share, such as 0.9")
        return float(value)

    def fills(
        self, fill: Any, fields: Sequence[str], reasons: Mapping[str, str] | None = None
    ) -> dict[str, Any] | None:
        """Checks the values that replace nulls; returns None without values.

        Args:
            fill: the values by field.
            fields: the names of the dataset's fields.
            reasons: why its other columns cannot be arrays.
        """
        if fill is None:
            return None
        if not isinstance(fill, Mapping):
            raise self.wrong("fill", fill, "a dict", _FILL)
        for name, value in fill.items():
            number = isinstance(value, int | float | complex | np.number | np.bool_)
            if not number or not isinstance(name, str):
                raise self.wrong("fill", fill, "a dict of names and numbers", _FILL)
            if name in fields:
                continue
            if reasons and name in reasons:
                reason, _, hint = reasons[name].partition("; ")
                message = f"fill={repr_short(fill)}: column {name!r} is not an array: {reason}"
                raise UnsupportedError(message, op=self._call, hint=hint)
            message = f"fill={repr_short(fill)}: the dataset has no field {name!r}"
            raise NotFoundError(message, op=self._call, hint=nearest_hint(name, fields))
        return {name: _plain(value) for name, value in fill.items()} or None

    def fields(self, fields: Any, argument: str = "fields") -> dict[str, tuple[str, list[int]]]:
        """Checks the type and the row's shape of every field."""
        try:
            found = fields
            if getattr_or_none(fields, "schema") is not None:
                found = {f.name: (f.dtype, f.shape) for f in fields.schema.values() if not f.ragged}
            given = [
                (name, dtype, list(map(operator.index, shape)))
                for name, (dtype, shape) in found.items()
            ]
        except Exception:  # any object may raise any error
            expected = "a dataset, or the type and the shape of a row for every field"
            hint = 'such as {"image": ("float32", (8, 8)), "label": ("int32", ())}'
            raise self.wrong(argument, fields, expected, hint) from None
        return {
            self.name(argument, name): (self._type(f"{argument}[{name!r}]", dtype), shape)
            for name, dtype, shape in given
        }

    def _type(self, name: str, dtype: Any) -> str:
        """Checks an element type; returns its name."""
        if isinstance(dtype, str) and dtype == "bfloat16":  # NumPy needs ml_dtypes for it
            return "bfloat16"
        try:
            known = np.dtype(dtype)
        except TypeError:
            known = np.dtype("V")
        if known.kind not in "biufc" and known.name != "bfloat16":
            raise self.wrong(name, dtype, "a type of numbers", 'such as "float32" or np.int32')
        return str(known.name)

    def axes(self, mesh: Any) -> list[list[Any]]:
        """Checks the size of every axis of a mesh."""
        if not isinstance(mesh, Mapping) or not all(isinstance(n, str) and n for n in mesh):
            hint = 'such as {"data": 4, "model": 2}'
            raise self.wrong("mesh", mesh, "the size of every axis, or a JAX mesh", hint)
        return [
            [name, self.integer(f"mesh[{name!r}]", size, 1, DEVICES)] for name, size in mesh.items()
        ]

    def devices(self, devices: Any, size: int) -> list[list[int]]:
        """Checks the process and the id of every device of a mesh of this size."""
        try:
            pairs = [[operator.index(process), operator.index(n)] for process, n in devices]
        except (TypeError, ValueError):
            pairs = []
        if len(pairs) != size:
            expected = f"a (process, id) for each of the {size} devices, in mesh order"
            raise self.wrong("devices", devices, expected)
        return pairs

    def dims(self, dims: Any, rank: int) -> list[int]:
        """Checks two different dimensions of an array."""
        right = isinstance(dims, tuple | list) and all(is_integer(d) for d in dims)
        chosen = [operator.index(d) for d in dims] if right else []
        if len(chosen) != 2 or not 0 <= min(chosen) < max(chosen) < rank:
            expected = f"two different dimensions from 0 to {rank - 1}"
            if rank < 2:
                expected = "None, for an array of fewer than two dimensions"
            raise self.wrong("dims", dims, expected)
        return chosen

    def process(self, process: int, known: Sequence[int]) -> int:
        """Checks that a process owns devices; `known` lists these in ascending order."""
        if process not in known:
            first, last = known[0], known[-1]
            listed = ", ".join(map(str, known[:12])) + (", …" if len(known) > 12 else "")
            if last - first == len(known) - 1:  # no gap
                listed = f"{first} to {last}" if last > first else str(first)
            raise self.wrong("process", process, f"a process of the layout, {listed}")
        return process


def getattr_or_none(x: Any, name: str) -> Any:
    """Returns an attribute of an object; None if it is missing, or if reading it fails."""
    try:
        return getattr(x, name, None)
    except Exception:  # such as of a proxy
        return None


def is_integer(value: Any) -> bool:
    """Returns whether a value is an int of Python or NumPy. A boolean is not."""
    if isinstance(value, bool | np.bool_):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def dataclass_hint(leaf: Any) -> str:
    """Returns a hint for a dataclass that JAX does not know as a node of trees, else "".

    Examples:
        >>> import dataclasses
        >>> dataclass_hint(dataclasses.make_dataclass("Batch", ["x"])(1))
        'register its class with JAX: jax.tree_util.register_dataclass(Batch)'
    """
    if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type):
        return ""
    name = type(leaf).__name__
    return f"register its class with JAX: jax.tree_util.register_dataclass({name})"


def integer_hint(value: Any) -> str:
    """Returns a hint for a float that is given instead of an integer, else "".

    Examples:
        >>> integer_hint(1e9), integer_hint(8e10), integer_hint(2.0), integer_hint(2.5)
        ('write 10**9', 'write 80 * 10**9', 'write 2', '')
    """
    if not isinstance(value, float | np.floating) or not float(value).is_integer():
        return ""
    number, zeros = int(value), 0
    while number and number % 1000 == 0:
        number, zeros = number // 1000, zeros + 3
    if zeros < 6:
        return f"write {int(value)}"
    return f"write 10**{zeros}" if number == 1 else f"write {number} * 10**{zeros}"


def repr_short(value: Any) -> str:
    """Returns the repr of a value on one line, cut if it is long."""
    try:
        text = repr(value)
    except Exception:  # such as of an int with thousands of digits
        text = f"<{type(value).__name__}>"
    return cut(" ".join(text.splitlines()))


def cut(text: str, length: int = 80) -> str:
    """Cuts a text to a number of characters."""
    return text if len(text) <= length else text[: length - 3] + "..."


def nearest_hint(name: Any, known: Sequence[str]) -> str:
    """Returns a hint with the known names, the most similar one first.

    Examples:
        >>> nearest_hint("lable", ["image", "label"])
        "did you mean 'label'? There are 'image', 'label'"
    """
    listed = ", ".join(repr(n) for n in known[:12]) + (", …" if len(known) > 12 else "")
    close = get_close_matches(str(name), known, 1)
    return f"did you mean {close[0]!r}? There are {listed}" if close else f"there are {listed}"


def _bound(n: int) -> str:
    """Writes a limit; large ones as powers of two, such as 2^53 or 2^63-1."""
    power = abs(n).bit_length() - 1
    if power < 31:
        return str(n)
    sign, rest = "-" if n < 0 else "", abs(n) - 2**power
    return f"{sign}2^{power}" if rest == 0 else f"{sign}2^{power + 1}-1"


def _plain(value: Any) -> Any:
    """Converts a fill value for the C library: NumPy's scalars, infinities, NaN, complex."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def no_fields(skipped: Sequence[Any]) -> InvalidArgumentError:
    """Returns the error for a dataset without fields, from the columns that it skips."""
    reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in skipped[:4])
    message = "the dataset has no field, because "
    message += f"no column is an array: {reasons}" if reasons else "it has no columns"
    return InvalidArgumentError(message)


def is_field_name(name: str) -> bool:
    """Returns whether a name has neither NUL nor surrogates, which UTF-8 cannot encode."""
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in name)
