"""What functions of the user return: their fields, and checks of every row."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meshfeed._data.fields import Field, element
from meshfeed._io.arguments import Checks, repr_short

if TYPE_CHECKING:
    from meshfeed._native.maps import Call

Array = np.ndarray[Any, np.dtype[Any]]

_WORDS = {"string": str, "binary": bytes | bytearray | memoryview}


def described(name: str, field: Field) -> dict[str, Any]:
    """Returns a field as the document of a map has it."""
    found: dict[str, Any] = {"name": name, "dtype": field.dtype, "shape": list(field.shape)}
    if field.ragged:
        found["ragged"] = True
    if field.logical:
        found["kind"] = field.logical
    return found


def check_names(check: Checks, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Returns if a function returned the fields that are expected, else raises an error."""
    if found.keys() != expected.keys():
        message = f"the function returned the fields {list(found)}: expected {list(expected)}"
        raise check.misfit(message, "return all fields of out, and no others")


def joined(values: list[Any]) -> Any:
    """Returns the results for single rows as the result for all: an array if that is possible."""
    first = values[0]
    if isinstance(first, str | bytes | bytearray | memoryview | list | tuple):
        return values
    arrays = [np.asarray(value) for value in values]
    alike = all(a.shape == arrays[0].shape and a.dtype == arrays[0].dtype for a in arrays)
    return np.stack(arrays) if alike else arrays


def field(check: Checks, name: str, value: Any) -> Field:
    """Returns the field of a result for one row."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSTU":
        value = value.tolist()
    if not isinstance(value, list | tuple):
        array = np.asarray(value)
        if array.ndim and len(array) == 1:
            return Field(array.shape[1:], _dtype(check, name, array))
    elif len(value) == 1:
        if isinstance(value[0], str):
            return Field((None,), "uint8", logical="string")
        if isinstance(value[0], _WORDS["binary"]):
            return Field((None,), "uint8", logical="binary")
        if isinstance(value[0], list | tuple) and not value[0]:
            message = f"for one row, the function returned {name!r}={value!r}, which has no type"
            hint = (
                f'give out={{{name!r}: mf.Field((None,), "int32")}}, or return arrays with a type'
            )
            raise check.misfit(message, hint)
        row = np.asarray(value[0])
        lists = (None, *row.shape[1:]) if row.ndim else ()
        return Field(lists, _dtype(check, name, row))
    message = f"for one row, the function returned {name!r}={repr_short(value)}"
    raise check.misfit(f"{message}: expected one row", "return an array or a list of the rows")


def _dtype(check: Checks, name: str, array: Array) -> str:
    if array.dtype == np.bool_:
        return "bool"
    kind = element(check, f"the type of {name!r}", array.dtype)
    assert kind is not None
    return kind.name


def put(check: Checks, call: Call, i: int, name: str, field: Field, value: Any, n: int) -> None:
    """Writes n rows of a field where the library reads them."""
    if np.ma.is_masked(value):
        raise check.misfit(f"field {name!r} has nulls", "return value.filled(…), without nulls")
    if not field.ragged:
        array = _typed(check, name, field, value)
        _expect(check, name, field, array, (n, *field.shape))
        call.fixed(i).view(field.numpy_dtype).reshape(array.shape)[...] = array
        return
    if not hasattr(value, "__len__") or isinstance(value, str | bytes) or len(value) != n:
        message = f"field {name!r} is {_what(value)}: expected a list of {n} rows"
        raise check.misfit(message, "return one row for each row that the function gets")
    rows = [_row(check, name, field, row) for row in value]
    ends = [0, *itertools.accumulate(row.nbytes for row in rows)]
    out = call.ragged(i, [len(row) for row in rows], ends[-1])
    for row, start, stop in zip(rows, ends[:-1], ends[1:], strict=True):
        out[start:stop] = np.ascontiguousarray(row).reshape(-1).view(np.uint8)


def _row(check: Checks, name: str, field: Field, row: Any) -> Array:
    """Returns a row of a ragged field as an array."""
    if field.logical:
        if not isinstance(row, _WORDS[field.logical]):
            word = {"string": "str", "binary": "bytes"}[field.logical]
            message = f"a row of field {name!r} is {_what(row)}: expected {word}"
            raise check.misfit(message, "return a list of them")
        return np.frombuffer(row.encode() if isinstance(row, str) else row, np.uint8)
    array = _typed(check, name, field, row)
    if array.ndim == 0:
        message = f"a row of field {name!r} is {_what(row)}: expected an array"
        raise check.misfit(message, "return a list of arrays, one for each row")
    if array.size == 0 and array.ndim == 1:
        return np.empty((0, *field.shape), field.numpy_dtype)
    _expect(check, name, field, array, (len(array), *field.shape))
    return array


def _typed(check: Checks, name: str, field: Field, value: Any) -> Array:
    """Returns an array. Lists of Python's numbers get the type of the field, if it holds them."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several shapes
        shapes = sorted({str(list(np.shape(row))) for row in value})[:3]
        message = f"field {name!r} has rows of the shapes {', '.join(shapes)}: expected one shape"
        hint = "return rows of one shape, or give the field as ragged: mf.Field((None, …), …)"
        raise check.misfit(message, hint) from None
    if array.dtype == field.numpy_dtype or not _plain(value):
        return array
    integers = array.dtype.kind in "iub"
    if not integers and field.numpy_dtype.kind in "iub":
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(field.numpy_dtype)
    return converted if not integers or np.array_equal(converted, array) else array


def _plain(value: Any) -> bool:
    """Reports whether a value is a nested list of Python's own numbers."""
    if not isinstance(value, list | tuple):
        return False
    while isinstance(value, list | tuple):
        if not value:
            return True
        value = value[0]
    return type(value) in (bool, int, float, complex)


def _expect(check: Checks, name: str, field: Field, array: Array, shape: Sequence[int]) -> None:
    """Raises an error if an array has another shape or type."""
    expected = f"{field.dtype}{list(shape)}"
    if array.shape != tuple(shape):
        hint = "the first dimension counts the rows"
        if array.shape == tuple(shape)[1:]:
            hint = (
                "return an array with one row for each row; with batched=False, fn gets single rows"
            )
    elif array.dtype != field.numpy_dtype:
        hint = f"return value.astype({field.dtype!r}), or change out"
    else:
        return
    raise check.misfit(f"field {name!r} is {_what(array)}: expected {expected}", hint)


def _what(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return f"{type(value).__name__} {repr_short(value)}"


def same(a: Any, b: Any) -> bool:
    """Reports whether two rows have the same bytes."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, str | bytes | None) or isinstance(b, str | bytes | None):
        return bool(a == b)
    x, y = np.ma.asarray(a), np.ma.asarray(b)
    alike = x.shape == y.shape and x.filled().tobytes() == y.filled().tobytes()
    return alike and np.array_equal(np.ma.getmaskarray(x), np.ma.getmaskarray(y))
