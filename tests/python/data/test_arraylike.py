"""`from_arrays` takes the exact values of arrays of any library, or raises with a remedy."""

from __future__ import annotations

import datetime as dt
import logging
import re
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import meshfeed as mf

BIG = 2**53 + 1  # no float64 holds it
TIMES = pd.to_datetime(["2020-01-01", "2021-01-01"])
GAP = pd.to_datetime(["2020-01-01", None])
NUMBERS = pl.Array(pl.Int32, 2)


def column(given: Any) -> np.ndarray[Any, Any]:
    """Returns the field that an array becomes."""
    with mf.from_arrays({"x": given}) as ds, mf.Loader(ds, batch_size=len(ds)) as loader:
        return np.array(next(iter(loader))["x"])


def refusal(given: Any) -> str:
    """Returns the error of an array that cannot be a field, without the name of the call."""
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.from_arrays({"x": given})
    assert str(caught.value).startswith("mf.from_arrays: field 'x' ")
    return str(caught.value).removeprefix("mf.from_arrays: field 'x' ")


# ---- missing values ----

LACKING: dict[str, Any] = {
    "np.ma": np.ma.array([1, 2], mask=[False, True]),
    "np.ma of two dimensions": np.ma.array([[1, 2], [3, 4]], mask=[[False, False], [False, True]]),
    "a list of np.ma": [np.ma.array([1, 2]), np.ma.array([3, 4], mask=[True, False])],
    "np.datetime64": np.array(["2020-01-01", "NaT"], "datetime64[s]"),
    "np.timedelta64": np.array([1, "NaT"], "timedelta64[ms]"),
    "np.object": np.array([1, None]),
    "None": [1, None],
    "None in a list of lists": [[1, 2], [3, None]],
    "None among times": [np.datetime64("2020-01-01"), None],
    "pd.NA": [1, pd.NA],
    "pd.NaT": [TIMES[0], pd.NaT],
    "Int32 array": pd.array([1, None], dtype="Int32"),
    "a list of Int64 arrays": [pd.array([1, 2], dtype="Int64"), pd.array([1, None], dtype="Int64")],
    "Int32": pd.Series([1, None], dtype="Int32"),
    "Int64": pd.Series([1, None], dtype="Int64"),
    "UInt8": pd.Series([1, None], dtype="UInt8"),
    "Float32": pd.Series([1, None], dtype="Float32"),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "int64[pyarrow]": pd.Series([1, None], dtype="int64[pyarrow]"),
    "double[pyarrow]": pd.Series([1, None], dtype="double[pyarrow]"),
    "bool[pyarrow]": pd.Series([True, None], dtype="bool[pyarrow]"),
    "timestamp[us][pyarrow]": pd.Series(GAP).astype("timestamp[us][pyarrow]"),
    "categories": pd.Series(pd.Categorical([7, None])),
    "pandas objects": pd.Series([1, None], dtype=object),
    "pandas objects with NA": pd.Series([1, pd.NA], dtype=object),
    "pandas times": pd.Series(GAP),
    "pandas times of a zone": pd.Series(GAP).dt.tz_localize("Europe/Vienna"),
    "pandas spans": pd.Series(pd.to_timedelta([1, None])),
    "Index": pd.Index([1, None], dtype="Int64"),
    "DatetimeIndex": pd.DatetimeIndex(GAP),
    "DataFrame of Int64": pd.DataFrame({"a": [1, 2], "b": [3, None]}, dtype="Int64"),
    "DataFrame of times": pd.DataFrame({"a": TIMES, "b": GAP}),
    "DataFrame of objects": pd.DataFrame({"a": [1, 2], "b": [3, None]}, dtype=object),
    "DataFrame of several": pd.DataFrame({"a": [1, 2], "b": pd.array([3, None], dtype="Int64")}),
    "pa.Array": pa.array([1, None]),
    "pa.Array of floats": pa.array([1.5, None]),
    "pa.Array of booleans": pa.array([True, None]),
    "pa.Array of times": pa.array([TIMES[0], None]),
    "pa.ChunkedArray": pa.chunked_array([[1], [None]]),
    "pa.DictionaryArray": pa.array([7, None]).dictionary_encode(),
    "pa.Dictionary of nulls": pa.DictionaryArray.from_arrays([0, 1], pa.array([7, None])),
    "pa.Table": pa.table({"a": [1, 2], "b": [3, None]}),
    "pl.Series": pl.Series([1, None]),
    "pl.Series of floats": pl.Series([1.5, None]),
    "pl.Series of booleans": pl.Series([True, None]),
    "pl.Series of dates": pl.Series([dt.date(2020, 1, 1), None]),
    "pl.Array": pl.Series([[1, 2], None], dtype=NUMBERS),
    "pl.Array with a null": pl.Series([[1, 2], [None, 3]], dtype=NUMBERS),
    "pl.Array of arrays": pl.Series([[[1, 2]], [[None, 3]]], dtype=pl.Array(NUMBERS, 1)),
    "pl.DataFrame": pl.DataFrame({"a": [1, 2], "b": [3, None]}),
}


@pytest.mark.parametrize("name", LACKING)
def test_missing_values_are_refused(name: str) -> None:
    message = (
        "has missing values, which an array cannot hold, in 1 of 2 records, the first in record 1"
    )
    remedy = 'mf.from_arrow a table that has it and the loader fill={"x": value}'
    got = refusal(LACKING[name])
    assert got.startswith(f"{message}; replace them")
    assert got.endswith(f", or give {remedy}")


@pytest.mark.parametrize("name", ["np.ma", "Int32", "pl.Series", "pa.Array"])
def test_the_remedy_replaces_missing_values(name: str) -> None:
    """It names the value, because np.ma would choose 999999, and True for a mask."""
    array = LACKING[name]
    call = re.search(r"; replace them: (array.*?), or ", refusal(array))
    assert call is not None
    assert column(eval(call[1], {"array": array, "value": -1})).tolist() == [1, -1]


@pytest.mark.parametrize(
    "array",
    [
        np.ma.array([True, False, True], mask=[False, False, True]),
        pd.Series([True, False, None], dtype="boolean"),
        pl.Series([True, False, None]),
        pa.array([True, False, None]),
    ],
    ids=lambda array: type(array).__name__,
)
def test_the_remedy_for_a_mask_selects_no_null(array: Any) -> None:
    ds = mf.from_arrays({"x": np.arange(3)})
    with pytest.raises(mf.InvalidArgumentError, match="missing values") as caught:
        ds.filter(array)
    call = caught.value.hint.removeprefix("replace them: ")
    assert ds.filter(eval(call, {"array": array}))[:]["x"].tolist() == [0]


def test_the_remedy_for_rows_selects_no_null() -> None:
    ds = mf.from_arrays({"x": np.arange(3)})
    index = np.ma.array([True, False, True], mask=[False, False, True])
    for given in (index, np.ma.array([0, 1, 7], mask=[False, True, True])):
        with pytest.raises(mf.InvalidArgumentError, match="without nulls") as caught:
            ds[given]
        call = caught.value.hint.removeprefix("give ")
        assert ds[eval(call, {"index": given})]["x"].tolist() == [0]


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        [2**60 + 1, True],
        [1, 2.5],
        [1.5, 2j],
        [dt.datetime(2020, 1, 1, 0, 0, 0, 1), dt.date(2021, 1, 1)],
        [pd.Timestamp("2020-01-01T00:00:00.000000001"), dt.datetime(2020, 1, 1)],
        [dt.timedelta(microseconds=1)],
        [pd.Timedelta(1), dt.timedelta(1)],
    ],
    ids=str,
)
def test_the_remedy_for_objects_changes_no_value(values: list[Any]) -> None:
    array = np.array(values, object)
    call = re.search(r"(array\.astype|pd\.to_).*", refusal(array))
    assert call is not None
    typed = eval(call[0], {"array": array, "np": np, "pd": pd})
    assert [pd.Timestamp(v) if isinstance(v, dt.date) else v for v in values] == [
        pd.Timestamp(v) if typed.dtype.kind == "M" else v for v in typed
    ]


def test_the_records_without_a_value_are_counted() -> None:
    numbers = pd.Series(range(100), dtype="Int64").mask(lambda n: n % 10 == 7)
    assert "in 10 of 100 records, the first in record 7;" in refusal(numbers)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x": pd.array([BIG, None], dtype="Int64")}),
        pa.table({"x": np.ma.array([BIG, 2], mask=[False, True])}),
        pl.DataFrame({"x": [BIG, None]}),
    ],
    ids=["pandas", "np.ma", "polars"],
)
def test_the_remedy_delivers_every_value(table: Any) -> None:
    with mf.from_arrow(table) as ds, mf.Loader(ds, batch_size=2, fill={"x": 0}) as loader:
        assert next(iter(loader))["x"].tolist() == [BIG, 0]


# ---- exact values ----

WHOLE: dict[str, Any] = {
    "a list": [BIG, 2],
    "np.ma": np.ma.array([BIG, 2], mask=[False, False]),
    "np.ma without a mask": np.ma.array([BIG, 2]),
    "Int64 array": pd.array([BIG, 2], dtype="Int64"),
    "Int64": pd.Series([BIG, 2], dtype="Int64"),
    "int64[pyarrow]": pd.Series([BIG, 2], dtype="int64[pyarrow]"),
    "categories": pd.Series(pd.Categorical([BIG, 2])),
    "Index": pd.Index([BIG, 2]),
    "sparse": pd.Series(pd.arrays.SparseArray([BIG, 2])),
    "pa.Array": pa.array([BIG, 2]),
    "pa.ChunkedArray": pa.chunked_array([[BIG], [2]]),
    "pa.DictionaryArray": pa.array([BIG, 2]).dictionary_encode(),
    "pl.Series": pl.Series([BIG, 2]),
    "jax.Array": jax.numpy.array([7, 2], np.int32),
}


@pytest.mark.parametrize("name", WHOLE)
def test_values_are_exact(name: str) -> None:
    whole = np.array([7, 2], np.int32) if name == "jax.Array" else np.array([BIG, 2])
    got = column(WHOLE[name])
    np.testing.assert_array_equal(got, whole)
    assert got.dtype == whole.dtype


@pytest.mark.parametrize("kind", ["Int8", "UInt16", "Int32", "UInt64", "Float32", "Float64"])
def test_the_types_of_pandas_are_those_of_numpy(kind: str) -> None:
    assert column(pd.Series([1, 2], dtype=kind)).dtype == np.dtype(kind.lower())
    assert column(pd.Series([True, False], dtype="boolean")).dtype == np.bool_


TABLES: dict[str, Any] = {
    "pandas": pd.DataFrame({"a": [BIG, 2], "b": [3, 4]}),
    "pandas of Int64": pd.DataFrame({"a": [BIG, 2], "b": [3, 4]}, dtype="Int64"),
    "pyarrow": pa.table({"a": [BIG, 2], "b": [3, 4]}),
    "a record batch": pa.record_batch({"a": [BIG, 2], "b": [3, 4]}),
    "polars": pl.DataFrame({"a": [BIG, 2], "b": [3, 4]}),
    "a list of series": [pd.Series([BIG, 3], dtype="Int64"), pl.Series([2, 4])],
    "a list of lists": [[BIG, 3], [2, 4]],
    "pl.Array": pl.Series([[BIG, 3], [2, 4]], dtype=pl.Array(pl.Int64, 2)),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_arrays_of_two_dimensions(name: str) -> None:
    got = column(TABLES[name])
    np.testing.assert_array_equal(got, np.array([[BIG, 3], [2, 4]]))
    assert got.dtype == np.int64


def test_columns_of_several_types_become_one_array_if_it_is_exact() -> None:
    got = column(pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [0.5, 1.5]}))
    assert got.tolist() == [[1.0, 0.5], [2.0, 1.5]]
    message = (
        "has parts of integers that float64 cannot hold exactly; give them as a field of their own"
    )
    assert refusal(pd.DataFrame({"a": [BIG, 2], "b": [0.5, 1.5]})) == message
    message = "has parts of the types datetime64[us], int64; give each as a field of its own"
    assert refusal(pd.DataFrame({"a": TIMES.as_unit("us"), "b": [1, 2]})) == message


def test_numpy_memory_is_not_copied() -> None:
    array = np.arange(6, dtype=np.int32)
    for given in (array, array.view(np.ma.MaskedArray), pd.Series(array, copy=False)):
        with mf.from_arrays({"x": given}) as ds, mf.Loader(ds, batch_size=2) as loader:
            array[4] = 41
            assert [b["x"].tolist() for b in loader][2] == [41, 5]
        array[4] = 4


# ---- dates and times ----


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (np.array(["2020-01-01", "2021-01-01"], "datetime64[s]"), "datetime64[s]"),
        (pd.Series(TIMES.as_unit("ms")), "datetime64[ms]"),
        (pd.Series(TIMES.as_unit("ns")).dt.tz_localize("Europe/Vienna"), "datetime64[ns]"),
        (pd.Series(TIMES.as_unit("us")).astype("timestamp[us][pyarrow]"), "datetime64[us]"),
        (pd.Series(TIMES).astype("timestamp[us, tz=UTC][pyarrow]"), "datetime64[us]"),
        (pl.Series(["2020-01-01", "2021-01-01"]).str.to_date(), "datetime64[D]"),
        (np.array([1, 2], "timedelta64[ms]"), "timedelta64[ms]"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_times_are_numbers_with_a_warning(
    given: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with mf.from_arrays({"n": [1, 2], "t": given}) as ds, ds.slice(0, 1) as part:
        assert ds.schema["t"] == mf.Field((), "int64", name="t", logical=kind)
        assert part.schema["t"].logical == kind
        assert repr(ds) == f"Dataset of 2 records\n  n: int64\n  t: int64 ({kind})"
    assert caplog.record_tuples == [
        (
            "meshfeed",
            logging.WARNING,
            "mf.from_arrays: dates and times are delivered as int64, counts of their unit: "
            f"'t' ({kind}); give array.view(np.int64) to avoid this warning",
        )
    ]


def test_times_are_exact(caplog: pytest.LogCaptureFixture) -> None:
    local = pd.Series(TIMES.as_unit("ns")).dt.tz_localize("Europe/Vienna")
    hour = 3_600_000_000_000
    assert column(local).tolist() == [t - hour for t in TIMES.as_unit("ns").asi8]
    whole = TIMES.to_numpy("datetime64[s]")
    np.testing.assert_array_equal(column(whole), whole.view(np.int64))
    caplog.clear()
    column(whole.view(np.int64))
    assert caplog.messages == []


def test_times_of_arrow_say_their_type() -> None:
    data = pa.table({"t": pa.array(TIMES, pa.timestamp("ms", "UTC")), "d": pa.array([1, 2])})
    with mf.from_arrow(data) as ds:
        assert [str(field) for field in ds.schema.values()] == [
            "t: int64 (timestamp[ms, tz=UTC])",
            "d: int64",
        ]


# ---- arrays that cannot be fields ----


class OnDevice:
    """An array on a device, as in some libraries. It has no implicit conversion to NumPy."""

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        message = "use .cpu() first"
        raise TypeError(message)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            np.array(["a"]),
            "has the type <U1, which is text; encode it as numbers, or leave it out",
        ),
        (
            pd.Series(["a"], dtype=object),
            "holds text, which is not numeric; encode it as numbers, or leave it out",
        ),
        (
            pd.Series(pd.Categorical(["a"])),
            "holds text, which is not numeric; "
            "give the numbers of its categories, cat.codes, or leave it out",
        ),
        (
            pd.Categorical(["a"]),
            "holds text, which is not numeric; "
            "give the numbers of its categories, codes, or leave it out",
        ),
        (
            pl.Series(["a"], dtype=pl.Categorical),
            "holds text, which is not numeric; "
            "give the numbers of its categories, to_physical(), or leave it out",
        ),
        (
            pl.Series(["a"], dtype=pl.Enum(["a"])),
            "holds text, which is not numeric; "
            "give the numbers of its categories, to_physical(), or leave it out",
        ),
        (
            np.array([1, 2], object),
            "holds Python objects of the type int; give it a NumPy type: array.astype(np.int64)",
        ),
        (
            pd.Series([np.zeros(2), np.ones(2)]),
            "holds Python objects of the type ndarray; if all have one shape, give np.stack(array)",
        ),
        (pl.Series([[1, 2]]), "is a column of lists; give mf.from_arrow a table that has it"),
        (pa.array([[1, 2]]), "is a column of lists; give mf.from_arrow a table that has it"),
        (
            pl.Series(["1.5"]).cast(pl.Decimal(10, 2)),
            "holds Python objects of the type Decimal; "
            "give array.astype(np.float64) if the numbers may be rounded",
        ),
        (
            [dt.datetime(2020, 1, 1)],
            'holds Python objects of the type datetime; give array.astype("datetime64[us]")',
        ),
        (
            [1, object()],
            "holds Python objects of the type int, object; encode it as numbers, or leave it out",
        ),
        (
            pl.Series([1], dtype=pl.Int128),
            "cannot become a NumPy array: InvalidOperationError: cannot convert i128 to NumPy, "
            "which has no 128-bit integer types; give a NumPy array, or leave the field out",
        ),
        (
            OnDevice(),
            "cannot become a NumPy array: TypeError: use .cpu() first; "
            "give a NumPy array, or leave the field out",
        ),
        (
            [2**63, -1],
            "holds integers that no single type of 64 bits can hold; "
            "give np.array(values, np.float64) if they may be rounded",
        ),
        (
            [[1, 2], [3]],
            "is not an array: its rows have different shapes; "
            "give all rows one shape, for example by padding",
        ),
        (
            [np.ma.array([1, 2]), np.ma.array([3])],
            "is not an array: its rows have different shapes; "
            "give all rows one shape, for example by padding",
        ),
        (
            {"a": np.zeros(2), "b": np.zeros(2)},
            "is a dict, and a dataset has no nested fields; "
            'name each array by its path, such as "x/a", "x/b"; '
            "the specs may be nested again",
        ),
        (
            np.zeros(2, [("a", "i4"), ("b", "f4")]),
            "is a structured array of 'a', 'b'; give each part by itself: {\"a\": array[\"a\"], …}",
        ),
        (
            np.array([1], ">i4"),
            "has the type >i4, whose byte order is foreign; "
            "give array.astype(array.dtype.newbyteorder('='))",
        ),
        (np.float32(1), "is a scalar; give arrays whose first dimension counts the records"),
        (None, "is a scalar; give arrays whose first dimension counts the records"),
        (
            (n for n in range(3)),
            "is a scalar; give arrays whose first dimension counts the records",
        ),
        (
            np.zeros(2, ml_dtypes.float8_e4m3fn),
            "has the type float8_e4m3fn, which no field can have; "
            "give array.view(np.uint8), and jax.lax.bitcast_convert_type the batches",
        ),
        (
            np.zeros(2, ml_dtypes.float4_e2m1fn),
            "has the type float4_e2m1fn, which no field can have; "
            "give it in a wider type, such as array.astype(np.float32)",
        ),
        (
            np.zeros(2, ml_dtypes.int4),
            "has the type int4, which no field can have; "
            "give it in a wider type, such as array.astype(np.int8)",
        ),
        (
            np.zeros(2, ml_dtypes.uint2),
            "has the type uint2, which no field can have; "
            "give it in a wider type, such as array.astype(np.uint8)",
        ),
        (
            np.zeros(2, np.longdouble),
            "has the type float128, which JAX does not have; give array.astype(np.float64)",
        ),
    ],
    ids=lambda given: "" if isinstance(given, str) else type(given).__name__,
)
def test_arrays_that_cannot_be_fields(given: Any, message: str) -> None:
    assert refusal(given) == message


def test_remedies_work() -> None:
    """The remedies of the messages above work."""
    assert column(pd.Series(pd.Categorical(["b", "a"])).cat.codes).tolist() == [1, 0]
    assert column(pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])).to_physical()).tolist() == [1, 0]
    assert column(np.stack(pd.Series([np.zeros(2), np.ones(2)]))).tolist() == [[0, 0], [1, 1]]
    assert column(np.array([1, 2], object).astype(np.int64)).tolist() == [1, 2]
    struct = np.array([(1, 0.5)], [("a", "i4"), ("b", "f4")])
    with mf.from_arrays({name: struct[name] for name in ("a", "b")}) as ds:
        assert list(ds.schema) == ["a", "b"]
    small = np.array([0.5, -1.5], ml_dtypes.float8_e4m3fn)
    back = jax.lax.bitcast_convert_type(column(small.view(np.uint8)), small.dtype)
    assert back.astype(np.float32).tolist() == [0.5, -1.5]
    for kind, wide in ((ml_dtypes.int4, np.int8), (ml_dtypes.float4_e2m1fn, np.float16)):
        assert column(np.array([1, -1], kind).astype(wide)).tolist() == [1, -1]


def test_nested_fields_are_named_by_their_path() -> None:
    specs = {"obs": {"image": mf.Array("obs/image"), "state": mf.Array("obs/state")}}
    arrays = {"obs/image": np.zeros((2, 3)), "obs/state": np.ones(2)}
    with mf.from_arrays(arrays) as ds, mf.Loader(ds, specs=specs, batch_size=2) as loader:
        batch = next(iter(loader))
    assert batch["obs"]["image"].shape == (2, 3)
    assert batch["obs"]["state"].tolist() == [1, 1]
