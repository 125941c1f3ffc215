"""Exact conversion of arrays of any library to NumPy. If it is impossible, an error states why."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np

from meshfeed._io.arguments import Checks

_NumPy = np.ndarray[Any, Any]

# Remedies that several errors share.
_FROM_ARROW = "give mf.from_arrow a table that has it"
_NUMBERS = "encode it as numbers, or leave it out"

# The methods that replace missing values: of pandas, of polars and pyarrow, of np.ma.
_FILLS = ("fillna", "fill_null", "filled")

# The types of values that mark a missing value, in Python and in pandas.
_MISSING = frozenset({"NoneType", "NAType", "NaTType"})

# Names of types of ml_dtypes without their digits, and a type of NumPy that has all their values.
_WIDER = {
    "float": "np.float32",
    "int": "np.int8",
    "uint": "np.uint8",
    "complex": "np.complex64",
    "bcomplex": "np.complex64",
}

OF_ML_DTYPES = 2  # `isbuiltin` of types that another library registers with NumPy

# The remedy for an array of Python objects, by the types of the objects. The first set that has
# all of them counts: a remedy must not change a value silently.
_OBJECTS = {
    frozenset({"bool"}): "give it a NumPy type: array.astype(bool)",
    frozenset({"bool", "int"}): "give it a NumPy type: array.astype(np.int64)",
    frozenset({"bool", "int", "float"}): "give it a NumPy type: array.astype(np.float64)",
    frozenset({"bool", "int", "float", "complex"}): "give array.astype(np.complex128)",
    frozenset({"ndarray", "list", "tuple"}): "if all have one shape, give np.stack(array)",
    frozenset({"Decimal"}): "give array.astype(np.float64) if the numbers may be rounded",
    frozenset({"date", "datetime"}): 'give array.astype("datetime64[us]")',
    frozenset({"date", "datetime", "Timestamp"}): "give pd.to_datetime(array)",
    frozenset({"timedelta"}): 'give array.astype("timedelta64[us]")',
    frozenset({"timedelta", "Timedelta"}): "give pd.to_timedelta(array)",
}


class _UnfitError(Exception):
    """The reason why values cannot be a field. In the hint, NAME stands for the field's name."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class _MissingError(Exception):
    """An array has missing values. The mask records is True for each record that has one."""

    def __init__(self, records: _NumPy, given: Any) -> None:
        super().__init__()
        self.records, self.given = records, given

    def unfit(self) -> _UnfitError:
        """Makes the error of a field."""
        count, first = int(self.records.sum()), int(self.records.argmax())
        message = "has missing values, which an array cannot hold, "
        message += f"in {count} of {len(self.records)} records, the first in record {first}"
        hint = self.remedy("value") + f', or {_FROM_ARROW} and the loader fill={{"NAME": value}}'
        return _UnfitError(message, hint)

    def remedy(self, value: str) -> str:
        """Returns the hint to replace the missing values.

        It names a value, because `np.ma` has a default: True for booleans, 999999 for integers.
        """
        method = next((name for name in _FILLS if hasattr(self.given, name)), None)
        return f"replace them: array.{method}({value})" if method else f"replace them by {value}"


def exact(check: Checks, name: str, given: Any) -> _NumPy:
    """Converts the values of a field to NumPy: numbers, booleans, dates or times.

    A NumPy array is returned without a copy. Any other array is converted. If the conversion would
    change a value, it raises an error instead. For example, NumPy would replace a missing value by
    NaN or by the smallest integer.

    Args:
        check: makes errors that name the called function.
        name: the field's name.
        given: an array of any library, a table whose columns have one type, or a list.

    Raises:
        InvalidArgumentError: the values cannot be an array.
    """
    try:
        if isinstance(given, Mapping):
            raise _nested(given)
        try:
            array = _array(given)
        except _MissingError as e:
            raise e.unfit() from None
        _check_type(array, given)
    except _UnfitError as e:
        hint = e.hint.replace("NAME", name)
        raise check.misfit(f"field {name!r} {e.message}", hint) from e.__cause__
    return array


def unmasked(check: Checks, name: str, given: Any, missing: str = "value") -> _NumPy:
    """Converts an array of any library to NumPy, and refuses what would change its values.

    Args:
        check: makes errors that name the called function.
        name: the array's name.
        given: the array, or a table whose columns have one type.
        missing: what the hint for missing values puts in their place.

    Raises:
        InvalidArgumentError: the array cannot be converted.
    """
    try:
        columns = _columns(given)
        if columns is not None:
            return _side_by_side(columns, integers=False)
        array = _array(given)
        if array.dtype.kind == "O":
            hint = "if all have one length, give np.stack(np.asarray(array))"
            raise _objects(array, given, hint)
    except _MissingError as e:
        message = f"array {name!r} has missing values, which an array cannot hold"
        raise check.misfit(message, e.remedy(missing)) from None
    except _UnfitError as e:
        raise check.misfit(f"array {name!r} {e.message}", e.hint) from e.__cause__
    return array


def _nested(given: Mapping[Any, Any]) -> _UnfitError:
    keys = ", ".join(f'"NAME/{key}"' for key in list(given)[:2])
    hint = f"name each array by its path, such as {keys}; the specs may be nested again"
    return _UnfitError("is a dict, and a dataset has no nested fields", hint)


def _array(given: Any) -> _NumPy:
    """Converts any values. Raises _MissingError if a value is missing."""
    if isinstance(given, list | tuple):
        return _of_list(given)
    columns = _columns(given)
    if columns is not None:
        return _side_by_side(columns)
    _check_missing(_column_mask(given), given)
    array = _converted(given)
    _check_missing(_numpy_mask(array), given)
    return np.asarray(array)


def _converted(given: Any) -> _NumPy:
    """Converts an array with NumPy. A masked array stays masked."""
    kind: Any = getattr(given, "dtype", None)
    kind = getattr(kind, "pyarrow_dtype", kind)
    try:
        if hasattr(given, "isna") and getattr(kind, "tz", None) is not None:
            return np.asarray(given, f"datetime64[{kind.unit}]")  # else a time zone yields objects
        return np.asanyarray(given)
    except Exception as e:
        message = f"cannot become a NumPy array: {type(e).__name__}: {e}"
        raise _UnfitError(message, "give a NumPy array, or leave the field out") from e


# ---- lists and tables ----


def _of_list(given: Any) -> _NumPy:
    """Converts a list. Its items may be lists or arrays."""
    level = given
    kinds = set(map(type, level))
    while kinds and kinds <= {list, tuple}:
        level = list(chain.from_iterable(level))
        kinds = set(map(type, level))
    if any(_foreign(kind) for kind in kinds):
        return _stacked(_each(given, 0), 0)
    try:
        array = np.asarray(given)
    except (ValueError, OverflowError) as e:
        raise _ragged() from e
    if array.dtype.kind == "f" and kinds <= {int, bool}:
        message = "holds integers that no single type of 64 bits can hold"
        raise _UnfitError(message, "give np.array(values, np.float64) if they may be rounded")
    _check_missing(_numpy_mask(array), given)
    return array


def _foreign(kind: type) -> bool:
    """Returns whether a type is an array of another library with values that NumPy might change."""
    known = kind is np.ndarray or issubclass(kind, np.generic)
    return hasattr(kind, "__array__") and not known


def _columns(given: Any) -> list[Any] | None:
    """Returns the columns of a table that must be converted column by column, else None."""
    if hasattr(given, "get_columns"):
        return list(given.get_columns())
    if hasattr(given, "itercolumns"):
        return list(given.itercolumns())
    if not hasattr(given, "iloc") or given.ndim < 2:
        return None
    kinds = set(given.dtypes)
    if len(kinds) == 1 and isinstance(next(iter(kinds)), np.dtype):
        return None  # NumPy converts the whole table, without a copy
    return [given.iloc[:, i] for i in range(given.shape[1])]


def _side_by_side(columns: list[Any], *, integers: bool = True) -> _NumPy:
    """Converts the columns of a table to the columns of one array.

    Args:
        columns: the columns.
        integers: whether integers may become floats that hold them. A float32 holds all integers
            of at most 16 bits.
    """
    arrays = _each(columns, 1)
    wide = [a for a in arrays if a.dtype.kind in "iu" and not np.can_cast(a.dtype, np.float32)]
    if wide and not integers and np.result_type(*arrays).kind in "fc":
        message = f"is a table whose columns of {wide[0].dtype} would become floats"
        hint = "give a dict of its columns, or convert the table to one type"
        raise _UnfitError(message, hint)
    for array, column in zip(arrays, columns, strict=True):
        _check_type(array, column)
    return _stacked(arrays, 1)


def _each(parts: Any, axis: int) -> list[_NumPy]:
    """Converts the records of a list (axis 0) or the columns of a table (axis 1)."""
    arrays, lacking = [], dict[int, _MissingError]()
    for i, part in enumerate(parts):
        try:
            arrays.append(_array(part))
        except _MissingError as e:
            lacking[i] = e
    if not lacking:
        return arrays
    if axis == 0:
        records = np.isin(np.arange(len(parts)), list(lacking))
    else:
        records = np.logical_or.reduce([e.records for e in lacking.values()])
    raise _MissingError(records, next(iter(lacking.values())).given)


def _stacked(arrays: list[_NumPy], axis: int) -> _NumPy:
    """Stacks arrays along a new axis. Raises if that would change a value."""
    if len({array.shape for array in arrays}) > 1:
        raise _ragged()
    try:
        whole = np.stack(arrays, axis)
    except (TypeError, ValueError) as e:  # for example, numbers and times
        message = f"has parts of the types {', '.join(sorted({str(a.dtype) for a in arrays}))}"
        raise _UnfitError(message, "give each as a field of its own") from e
    if whole.dtype.kind not in "fc":
        return whole
    # NumPy may have converted integers to floats: each must convert back to itself.
    for i, array in enumerate(arrays):
        back = whole.take(i, axis).real
        if array.dtype.kind in "iu" and not np.array_equal(back.astype(array.dtype), array):
            message = f"has parts of integers that {whole.dtype} cannot hold exactly"
            raise _UnfitError(message, "give them as a field of their own")
    return whole


def _ragged() -> _UnfitError:
    message = "is not an array: its rows have different shapes"
    return _UnfitError(message, "give all rows one shape, for example by padding")


# ---- missing values ----


def _column_mask(given: Any) -> Any:
    """Returns a mask of the missing values of an array of pandas, polars or pyarrow, or None."""
    if hasattr(given, "isna"):  # pandas; _numpy_mask checks columns of NumPy types
        return None if given.ndim > 1 or isinstance(given.dtype, np.dtype) else given.isna()
    if not hasattr(given, "is_null"):
        return None
    kind: Any = getattr(given, "type", None)
    if hasattr(kind, "index_type"):  # pyarrow: a dictionary may contain null
        given = given.cast(kind.value_type)
    rows, nulls = len(given), np.asarray(given.is_null())
    while type(getattr(given, "dtype", None)).__name__ == "Array" and not nulls.any():  # polars
        given = given.explode()
        nulls = np.asarray(given.is_null())
    return nulls.reshape(rows, -1) if rows else None


def _numpy_mask(array: _NumPy) -> Any:
    """Returns a mask of the missing values of a NumPy array, or None."""
    if isinstance(array, np.ma.MaskedArray):
        return np.ma.getmaskarray(array) if array.mask is not np.ma.nomask else None
    if array.dtype.kind in "mM":
        return np.isnat(array)
    if array.dtype.kind == "O":
        missing = (type(value).__name__ in _MISSING for value in array.flat)
        return np.fromiter(missing, bool, array.size).reshape(array.shape)
    return None


def _check_missing(mask: Any, given: Any) -> None:
    """Raises _MissingError if a mask of values marks one as missing."""
    if mask is None or np.ndim(mask) == 0 or not np.any(mask):
        return
    whole = np.asarray(mask, bool)
    records = np.logical_or.reduce(whole.reshape(whole.shape[0], -1), axis=1)
    raise _MissingError(records, given)


# ---- types ----


def _check_type(array: _NumPy, given: Any) -> None:
    """Raises if a field cannot have the array's type."""
    if array.ndim == 0:
        raise _UnfitError("is a scalar", "give arrays whose first dimension counts the records")
    _check_kind(array, given)
    kind = array.dtype
    if kind.isbuiltin == OF_ML_DTYPES and kind.name != "bfloat16":
        message = f"has the type {kind}, which no field can have"
        if kind.name.startswith("float8"):
            hint = "give array.view(np.uint8), and jax.lax.bitcast_convert_type the batches"
            raise _UnfitError(message, hint)
        raise _UnfitError(message, f"give it in a wider type, such as {wider(kind)}")


def _check_kind(array: _NumPy, given: Any) -> None:
    """Raises if the type is one that neither a field nor an array of JAX can have."""
    kind = array.dtype
    if kind.names is not None:
        message = f"is a structured array of {', '.join(map(repr, kind.names))}"
        part = kind.names[0]
        raise _UnfitError(message, f'give each part by itself: {{"{part}": array["{part}"], …}}')
    if kind.kind == "O":
        raise _objects(array, given)
    if kind.kind in "UT":
        raise _UnfitError(f"has the type {kind}, which is text", _NUMBERS)
    if kind.kind == "S" or kind.type is np.void:
        message = f"has the type {kind}, which is bytes"
        raise _UnfitError(message, "give array.view(np.uint8).reshape(*array.shape, -1)")
    if not kind.isnative:
        message = f"has the type {kind}, whose byte order is foreign"
        raise _UnfitError(message, "give array.astype(array.dtype.newbyteorder('='))")
    if kind.name in {"longdouble", "clongdouble", "float128", "complex256"}:
        wide = "np.complex128" if kind.kind == "c" else "np.float64"
        message = f"has the type {kind}, which JAX does not have"
        raise _UnfitError(message, f"give array.astype({wide})")


def check_array(check: Checks, name: str, array: _NumPy) -> None:
    """Raises an error if JAX has no arrays of the type of an array.

    Types of ml_dtypes pass: only JAX knows which of them it has.
    """
    try:
        _check_kind(array, array)
    except _UnfitError as e:
        raise check.misfit(f"array {name!r} {e.message}", e.hint) from None
    if array.dtype.kind in "mM":
        message = f"array {name!r} has the type {array.dtype}, which JAX does not have"
        raise check.misfit(message, "give the counts of its unit, array.astype(np.int64)")


def wider(kind: np.dtype[Any]) -> str:
    """Returns the call that converts an array of a type of ml_dtypes to a type of NumPy."""
    stem = kind.name.split("_")[0].rstrip("0123456789")
    return f"array.astype({_WIDER.get(stem, 'np.float32')})"


def _objects(array: _NumPy, given: Any, lists: str = _FROM_ARROW) -> _UnfitError:
    """Makes the error for an array of Python objects.

    Args:
        array: the array.
        given: what it was converted from.
        lists: the hint for a column of lists.
    """
    kinds = {_name(value) for value in array.flat}
    if not kinds:
        message = "is empty and has the type object"
        return _UnfitError(message, "give it a type of numbers, such as array.astype(np.float32)")
    message = f"holds Python objects of the type {', '.join(sorted(kinds)[:4])}"
    if kinds == {"ndarray"} and hasattr(given, "is_null"):  # a column of Arrow lists
        return _UnfitError("is a column of lists", lists)
    if kinds == {"str"}:
        return _UnfitError("holds text, which is not numeric", _codes(given))
    hint = next((remedy for types, remedy in _OBJECTS.items() if kinds <= types), _NUMBERS)
    return _UnfitError(message, hint)


def _name(value: Any) -> str:
    """Returns the name of an object's type; for a scalar of NumPy, of its Python type."""
    scalars = {np.bool_: "bool", np.integer: "int", np.floating: "float"}
    scalars |= {np.complexfloating: "complex", np.str_: "str"}
    named = (name for kind, name in scalars.items() if isinstance(value, kind))
    return next(named, type(value).__name__)


def _codes(given: Any) -> str:
    """Returns the hint for text. For a column of categories it names their numbers."""
    if type(getattr(given, "dtype", None)).__name__ in ("Categorical", "Enum"):  # polars
        return "give the numbers of its categories, to_physical(), or leave it out"
    if hasattr(given, "codes") or hasattr(getattr(given, "cat", None), "codes"):  # pandas
        codes = "codes" if hasattr(given, "codes") else "cat.codes"
        return f"give the numbers of its categories, {codes}, or leave it out"
    return _NUMBERS
