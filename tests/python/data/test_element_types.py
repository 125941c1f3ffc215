"""Every type of NumPy and ml_dtypes is taken, or refused by its name with a remedy that works."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import mesh_of

BUILT_IN = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
BUILT_IN += "complex64 complex128 longdouble clongdouble M8[s] M8[D] M8 m8[ms] m8 U3 S3 V5 >f4 >i8 "
BUILT_IN += ">M8[s] >U2"
OTHERS = [name for name in dir(ml_dtypes) if re.fullmatch(r"b?(u?int|float|complex)[0-9].*", name)]

# Arrays of objects, and the types that their errors name.
OBJECTS: dict[str, list[Any]] = {
    "int": [1, 2],
    "int of NumPy": [np.int32(1), np.int32(2)],
    "float": [1, 2.5],
    "complex": [1, 2j],
    "bool": [True, np.False_],
    "Decimal": [decimal.Decimal(1), decimal.Decimal(2)],
    "datetime": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2)],
    "timedelta": [dt.timedelta(1), dt.timedelta(2)],
    "text": ["a", "b"],
    "bytes": [b"a", b"b"],
    "ndarray": [np.zeros(2), np.ones(2)],
    "int, str": [1, "a"],
    "object": [object(), object()],
}


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    """Returns an array of two elements of every type."""
    found = {name: np.zeros(2, name) for name in BUILT_IN.split()}
    found |= {name: np.zeros(2, getattr(ml_dtypes, name)) for name in ["bfloat16", *OTHERS]}
    found["StringDType"] = np.array(["a", "b"], np.dtypes.StringDType())
    found["structured"] = np.zeros(2, [("u", "i4"), ("v", "f4")])
    found["record"] = np.rec.array([(1, 2.0), (3, 4.0)], dtype=[("u", "i4"), ("v", "f4")])
    for name, values in OBJECTS.items():
        found[f"object: {name}"] = array = np.empty(2, object)
        array[:] = values
    return found


ARRAYS = arrays()
assert len(ARRAYS) > 60


def from_arrays(array: Any) -> None:
    mf.from_arrays(array if isinstance(array, dict) else {"x": array})


def put(array: Any) -> None:
    with jax.enable_x64(True):  # counts of microseconds have 64 bits
        mf.put(array if isinstance(array, dict) else {"x": array}, mesh_of(), P())


def names_type(text: str, name: str, array: Any) -> bool:
    """Returns whether an error names the type of an array."""
    if name.startswith("object: "):
        return all(word in text for word in name[8:].split(" of ")[0].split(", "))
    if array.dtype.names:
        return "structured" in text
    return str(array.dtype) in text


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("call", [from_arrays, put])
def test_a_type_is_taken_or_its_remedy_works(name: str, call: Callable[[Any], None]) -> None:
    array: Any = ARRAYS[name]
    for _ in range(3):  # the remedy for objects may be a type with a remedy of its own
        try:
            call(array)
        except mf.InvalidArgumentError as e:
            text, hint = str(e), e.hint
        else:
            return
        assert "DLPack" not in text
        assert names_type(text, name, array), text
        found = re.search(r"(\{.*\}|(array\.|np\.)[a-z0-9_]+\(.*?\)(?=$|,| if)(, -1\))?)", hint)
        if found is None:
            assert "encode it as numbers, or leave it out" in hint, text
            return
        remedy = found[0].replace(", …", "")
        array = eval(remedy, {"array": array, "np": np})
        name = name if isinstance(array, dict) else str(array.dtype)
    raise AssertionError(text)


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.filterwarnings("ignore:Custom dtypes are saved as python objects")
def test_a_stored_type_is_taken_or_its_remedy_works(name: str, tmp_path: Path) -> None:
    array: Any = ARRAYS[name]
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    with mf.open_arrays(tmp_path / "x.npy") as stored:
        if not stored.skipped:
            assert stored["x"].dtype == array.dtype
            return
        reason = stored.skipped[0].reason
    kind = re.fullmatch(r"its (type (\S+|\[.*\]) |byte order ).*?; .*", reason)
    assert kind is not None, reason
    raw = array.dtype.isbuiltin == 2 and array.dtype.kind in "Vf"
    assert ("bfloat16" in reason) == (raw or name == "V5"), reason
    found = re.search(r"array[.[].*$", reason)
    if found is None:
        assert reason.endswith(("save an array of numbers", "save numbers")), reason
        return
    remedy = found[0].replace('["a"]', '["u"]')
    np.save(tmp_path / "y.npy", eval(remedy, {"array": array, "numpy": np}))
    with mf.open_arrays(tmp_path / "y.npy") as stored:
        assert list(stored) == ["y"], stored.skipped
