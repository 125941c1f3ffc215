"""Arrays of other libraries, numbers and types that `mf.put` places or refuses."""

from __future__ import annotations

import array
import ctypes
import sys
import types
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from jax.sharding import NamedSharding

import meshfeed as mf
from tests.python.arrays.putting import (
    Host,
    P,
    grid,
    memory,
    same,
    wrong,
)


class DLPack:
    """An array that has only DLPack's methods."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __dlpack__(self, **options: Any) -> Any:
        return self._host.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._host.__dlpack_device__()


class Arrayable:
    """An array that has only the method `__array__`."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def __array__(self, dtype: Any = None, copy: Any = None) -> Host:
        return self._host


class Interface:
    """An array that has only the attribute of NumPy's array interface, as images of Pillow."""

    def __init__(self, host: Host) -> None:
        self.__array_interface__ = host.__array_interface__


@pytest.mark.parametrize(
    "leaf",
    [
        DLPack(memory((8,))),
        Interface(memory((8,))),
        Arrayable(memory((8,))),
        memoryview(memory((8,)).data),
        array.array("f", range(8)),
        (ctypes.c_float * 8)(*range(8)),
        np.ma.masked_array(memory((8,))),
        jnp.arange(8, dtype=jnp.float32),
    ],
    ids=lambda leaf: type(leaf).__name__,
)
def test_arrays_of_other_kinds(leaf: Any) -> None:
    got = mf.put({"x": leaf}, grid(8), P("a"))["x"]
    assert np.asarray(got).tolist() == list(range(8))
    assert (got.sharding.spec, got.dtype) == (P("a"), np.float32)


class Tensor:
    """Stands for a torch tensor, which NumPy cannot convert in all types."""

    def __init__(self, memory: Host, kind: str, device: str = "cpu") -> None:
        self._memory, self.dtype = memory, Kind(kind)
        self.device = Device(device)

    def detach(self) -> Tensor:
        return Tensor(self._memory, str(self.dtype)[6:])

    resolve_conj = resolve_neg = detach

    def view(self, kind: str) -> Tensor:
        return Tensor(self._memory.view(kind), kind)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Host:
        if str(self.dtype) in ("torch.bfloat16", "torch.float8_e5m2"):
            raise TypeError("Got unsupported ScalarType")
        return self._memory


Tensor.__module__ = "torch"


class Device(NamedTuple):
    """Stands for a torch device."""

    type: str

    def __str__(self) -> str:
        return f"{self.type}:0"


class Kind(str):
    """Stands for a torch dtype."""

    def __str__(self) -> str:
        return f"torch.{super().__str__()}"

    @property
    def is_floating_point(self) -> bool:
        return "float" in self


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("float32", "f4"), ("bfloat16", "i2"), ("float8_e5m2", "u1"), ("int16", "i2")],
)
def test_tensors_of_torch(kind: str, bits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(int16="i2", uint8="u1"))
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    want = np.arange(8).astype(dtype)
    got = mf.put(Tensor(want.view(bits) if bits != "f4" else want, kind), grid(8), P("a"))
    assert (got.dtype, np.asarray(got).tolist()) == (dtype, want.tolist())


def test_tensors_on_an_accelerator() -> None:
    tensor = Tensor(np.zeros(8), "float32", "cuda")
    assert wrong({"x": tensor}, grid(8), P("a")) == (
        "mf.put: array 'x' is a tensor on cuda:0, not in host memory; give tensor.cpu()"
    )


def test_numbers_become_arrays_without_dimensions() -> None:
    tree = {"i": 3, "f": 0.5, "b": True, "c": 1j, "n": np.float16(2)}
    got = mf.put(tree, grid(8), P())
    assert {key: (x.shape, str(x.dtype), x.item()) for key, x in got.items()} == {
        "i": ((), "int32", 3),
        "f": ((), "float32", 0.5),
        "b": ((), "bool", True),
        "c": ((), "complex64", 1j),
        "n": ((), "float16", 2.0),
    }


def test_arrays_on_devices_are_moved_or_returned() -> None:
    mesh = grid(4, 2)
    one = jax.device_put(np.arange(8.0), jax.devices()[3])
    got = mf.put({"x": one, "key": jax.random.key(0)}, mesh, {"x": P("a"), "key": P()})
    same(got["x"], np.arange(8.0), NamedSharding(mesh, P("a")))
    assert jax.random.key_data(got["key"]).tolist() == [0, 0]
    assert mf.put(got, mesh, {"x": P("a"), "key": P()})["x"] is got["x"]


@pytest.mark.parametrize("kind", ["int64", "uint64", "float64", "complex128"])
def test_wide_types_are_narrowed_or_kept(kind: str) -> None:
    host = np.arange(8).astype(kind)
    got = mf.put(host, grid(8), P("a"))
    assert (got.dtype, np.asarray(got).tolist()) == (jnp.asarray(host).dtype, host.tolist())
    with jax.enable_x64(True):
        wide = mf.put(host, grid(8), P("a"))
    assert (wide.dtype, np.asarray(wide).tolist()) == (kind, host.tolist())


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (np.array([1, 2**40]), "array 'n/x' holds 1099511627776, which int32 cannot"),
        (np.array([0, 2**63], np.uint64), "array 'n/x' holds 9223372036854775808, which uint32"),
        (-(2**31) - 1, "array 'n/x' holds -2147483649, which int32 cannot"),
    ],
    ids=["int64", "uint64", "number"],
)
def test_numbers_that_do_not_fit_are_an_error(host: Any, text: str) -> None:
    """Also for memory that JAX may use, because JAX would keep the lowest bits of each number."""
    spec = P()
    if isinstance(host, np.ndarray):
        aligned, spec = memory((8, 2), host.dtype), P("a")
        aligned[...] = host
        host = aligned
    for may_alias in (None, None, True):
        with pytest.raises(mf.OutOfRangeError) as caught:
            mf.put({"n": {"x": host}}, grid(2), spec, may_alias=may_alias)
        assert text in str(caught.value).replace('"', "'")
        assert "jax_enable_x64" in caught.value.hint


X = np.zeros((8, 6), np.float32)


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (
            "cat",
            "array 'a/x' is 'cat', which is text; give numbers or booleans, and leave other "
            "values out of the tree",
        ),
        (
            np.array(["a", "b"]),
            "array 'a/x' has the type <U1, which is text; encode it as numbers, or leave it out",
        ),
        (
            np.array([[1], {}], object),
            "array 'a/x' holds Python objects of the type dict, list; encode it as numbers, or "
            "leave it out",
        ),
        (
            X.astype(">f4"),
            "array 'a/x' has the type >f4, whose byte order is foreign; give "
            "array.astype(array.dtype.newbyteorder('='))",
        ),
        (
            np.zeros(8, np.longdouble),
            "array 'a/x' has the type float128, which JAX does not have; give "
            "array.astype(np.float64)",
        ),
        (
            np.zeros(8, "M8[s]"),
            "array 'a/x' has the type datetime64[s], which JAX does not have; give the counts of "
            "its unit, array.astype(np.int64)",
        ),
        (
            np.zeros(8, [("u", "i4")]),
            "array 'a/x' is a structured array of 'u'; give each part by itself: "
            '{"u": array["u"], …}',
        ),
        (
            np.ma.masked_array([1, 2], [False, True]),
            "array 'a/x' has missing values, which an array cannot hold; replace them: "
            "array.filled(value)",
        ),
        (
            object,
            "array 'a/x' is <class 'object'>, which is not an array; give numbers or booleans, and "
            "leave other values out of the tree",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_leaves_that_are_no_arrays(leaf: Any, text: str) -> None:
    assert wrong({"a": {"x": leaf}}, grid(2), P()) == f"mf.put: {text}"


def test_arrays_whose_conversion_fails() -> None:
    class Broken:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Host:
            raise RuntimeError("no memory here")

    assert wrong({"x": Broken()}, grid(2), P()) == (
        "mf.put: array 'x' cannot become a NumPy array: RuntimeError: no memory here; give a NumPy "
        "array, or leave the field out"
    )


# ---- tables and columns ----


def columns(*kinds: str) -> pd.DataFrame:
    """Returns a table with a column of each type."""
    return pd.DataFrame({str(i): np.arange(4).astype(kind) for i, kind in enumerate(kinds)})


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [
        (("int64", "int32"), "int32"),
        (("int64", "bool"), "int32"),
        (("int16", "float32"), "float32"),
        (("uint8", "bool", "float64"), "float32"),
        (("float32", "float64"), "float32"),
    ],
    ids=str,
)
def test_a_table_is_one_array_if_that_changes_no_number(
    kind: str, kinds: tuple[str, ...], dtype: str
) -> None:
    table = columns(*kinds)
    got = mf.put(other(table, kind), grid(2), P("a"))
    assert (got.dtype, np.asarray(got).tolist()) == (dtype, table.to_numpy(dtype).tolist())


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("kinds", [("int64", "float64"), ("bool", "float32", "uint32")], ids=str)
def test_integers_of_a_table_do_not_become_floats(kind: str, kinds: tuple[str, ...]) -> None:
    """Without x64 they would be rounded: a float32 does not hold 2**24 + 1."""
    table = other(columns(*kinds), kind)
    integers = next(name for name in kinds if "int" in name)
    for x64 in (False, True):
        with jax.enable_x64(x64):
            assert wrong({"x": table}, grid(2), P("a")) == (
                f"mf.put: array 'x' is a table whose columns of {integers} would become floats; "
                "give a dict of its columns, or convert the table to one type"
            )


def other(table: pd.DataFrame, kind: str) -> Any:
    """Converts a table to a table of another library."""
    if kind == "pandas":
        return table
    return pl.from_pandas(table) if kind == "polars" else pa.table(dict(table.items()))


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (
            pa.array([[1, 2], [3, 4]]),
            "is a column of lists; if all have one length, give np.stack",
        ),
        (pl.Series([[1, 2], [3]]), "is a column of lists; if all have one length, give np.stack"),
        (pa.array(["a", "b"]), "holds text, which is not numeric; encode it as numbers, or leave"),
        (pa.array([1, None]), "has missing values, which an array cannot hold; replace them: "),
        (2**70, "is 1180591620717411303424, which has more than 64 bits; give a smaller number, "),
        (-(2**63) - 1, "is -9223372036854775809, which has more than 64 bits; give a smaller "),
    ],
    ids=str,
)
def test_columns_and_numbers_that_are_no_arrays(leaf: Any, text: str) -> None:
    assert wrong({"x": leaf}, grid(2), P()).startswith(f"mf.put: array 'x' {text}")


def test_the_remedy_for_a_column_of_lists() -> None:
    for column in (pa.array([[1, 2], [3, 4]]), pl.Series([[1, 2], [3, 4]])):
        got = mf.put(np.stack(np.asarray(column)), grid(2), P("a"))  # type: ignore[call-overload]
        assert np.asarray(got).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("spec", [P("a"), P()], ids=str)
def test_arrays_that_were_deleted(spec: P) -> None:
    mesh = grid(2)
    x = mf.put(np.ones(8), mesh, P("a"))
    x.delete()
    assert wrong({"n": {"x": x}}, mesh, spec, kind=mf.InvalidStateError) == (
        "mf.put: array 'n/x' was deleted, or donated to a computation; give the arrays that the "
        "computation returned"
    )


@pytest.mark.parametrize("guard", ["allow", "disallow", "disallow_explicit"])
def test_types_of_which_jax_has_no_arrays(guard: str) -> None:
    """JAX has a name for the type, but cannot make its arrays."""
    with jax.transfer_guard(guard):
        assert wrong({"x": np.zeros(8, ml_dtypes.float6_e2m3fn)}, grid(2), P("a")) == (
            "mf.put: array 'x' has the type float6_e2m3fn, which JAX does not have; give it in a "
            "wider type, such as array.astype(np.float32)"
        )


def test_a_guard_of_explicit_transfers_does_not_change_the_types_of_jax() -> None:
    mesh, host = grid(2), np.ones(8, ml_dtypes.int4)
    with (
        jax.transfer_guard("disallow_explicit"),
        pytest.raises(jax.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"),
    ):
        mf.put(host, mesh, P("a"))
