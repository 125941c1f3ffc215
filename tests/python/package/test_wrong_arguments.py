"""Arguments of a wrong type or size raise an error that says what is expected."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest

import meshfeed as mf
from tests.python.samples import wrong


def numbers() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(16, dtype=np.int32)})


def loader(**kwargs: Any) -> mf.Loader:
    return mf.Loader(numbers(), specs=["x"], batch_size=4, **kwargs)


SOURCE = "expected a meshfeed.Dataset; make one with mf.open, mf.from_arrow or mf.from_arrays"
STATE = "give what state() gave, or the path that save_state() wrote"
BATCH = (
    "expected an integer from 1 to 2^40, or a tuple of them; "
    "give the rows of the global batch, over all processes"
)
DEEP = "expected an integer from 0 to 65536"
SEED = "expected an integer from -2^53 to 2^53"
EPOCHS = "expected an integer from 1 to 2147483647, or -1 for no end"
EXTRAS = 'expected a list of "key" and "record", each at most once'
FILL = 'give a number for each field that may hold nulls, such as {"label": -1}'
WIDE = "expected an integer from -2^63 to 2^63-1"
PATHS = "expected a path, a glob, a directory or a list of them"
TEXT = io.StringIO("a.arrow\n")
FOUND = Path().glob("*.arrow")
NEITHER = "has neither __arrow_c_stream__ nor __arrow_c_array__"
SHAPES = 'expected the shape of a row for every field named, such as {"tokens": (2048,)}'
FIELDS = (
    "expected a dataset, or the type and the shape of a row for every field; "
    'such as {"image": ("float32", (8, 8)), "label": ("int32", ())}'
)
MESH = 'expected the size of every axis, or a JAX mesh; such as {"data": 4, "model": 2}'
ARRAYS = (
    "mf.from_arrays: the arrays are not a dict of names and arrays; "
    'give a dict, such as {"label": labels}'
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("batch_size", 0, BATCH),
        ("batch_size", -8, BATCH),
        ("batch_size", True, BATCH),
        ("batch_size", np.bool_(True), BATCH),
        ("batch_size", 8.0, BATCH),
        ("batch_size", "8", BATCH),
        ("batch_size", None, BATCH),
        ("batch_size", 2**70, BATCH),
        ("batch_size", (), BATCH),
        ("batch_size", (2, 0), BATCH),
        ("batch_size", (2, 4.0), BATCH),
        ("batch_size", [2, 4], BATCH),
        ("prefetch", 1.5, DEEP),
        ("prefetch", -1, DEEP),
        ("prefetch", True, DEEP),
        ("prefetch", "2", DEEP),
        ("prefetch", 10**9, DEEP),
        ("device_prefetch", 1.5, DEEP),
        ("device_prefetch", -1, DEEP),
        ("device_prefetch", "1", DEEP),
        ("seed", 1.5, SEED),
        ("seed", True, SEED),
        ("seed", "a", SEED),
        ("seed", 2**53 + 1, SEED),
        ("seed", -(2**53) - 1, SEED),
        ("seed", np.uint64(2**63), SEED),
        ("shuffle", "yes", "expected True or False"),
        ("shuffle", 1, "expected True or False"),
        ("epochs", "3", EPOCHS),
        ("epochs", 0, EPOCHS),
        ("epochs", -2, EPOCHS),
        ("epochs", 1.0, EPOCHS),
        ("epochs", True, EPOCHS),
        ("epochs", 2**63, EPOCHS),
        ("remainder", "Drop", 'expected "drop", "pad" or "error"'),
        ("remainder", None, 'expected "drop", "pad" or "error"'),
        ("mask_spec", "data", "expected a PartitionSpec"),
        ("mask_spec", mf.P(), 'expected None; there is a mask only with remainder="pad"'),
        ("extras", ["keys"], EXTRAS),
        ("extras", 3, EXTRAS),
        ("extras", [1], EXTRAS),
        ("extras", ["key", "key"], EXTRAS),
        ("max_host_bytes", 0, "expected an integer from 1 to 2^53"),
        ("max_host_bytes", 1.5, "expected an integer from 1 to 2^53"),
        ("max_host_bytes", "1 GB", "expected an integer from 1 to 2^53"),
        ("state", 3, f"expected a state or a path; {STATE}"),
        ("state", [], f"expected a state or a path; {STATE}"),
        (
            "dataset",
            "Ignore",
            'expected "check" or "ignore"; "ignore" accepts the state of another dataset',
        ),
        ("fill", 3, f"expected a dict; {FILL}"),
        ("fill", {"x": "a"}, f"expected a dict of names and numbers; {FILL}"),
        ("fill", {"x": None}, f"expected a dict of names and numbers; {FILL}"),
        ("fill", {1: 1}, f"expected a dict of names and numbers; {FILL}"),
        ("layout", "x", "expected a meshfeed.Layout; make one with mf.layout"),
        (
            "process",
            0,
            "expected a layout= beside it; "
            "without layout= a loader loads for the process it runs in",
        ),
        ("process", 1.5, "expected an integer from 0 to 2147483647"),
    ],
)
def test_an_option_of_a_loader_is_named_as_it_was_typed(
    name: str, value: Any, expected: str
) -> None:
    options: dict[str, Any] = {"batch_size": 4} | {name: value}
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.Loader(numbers(), specs=["x"], **options)
    assert str(caught.value) == f"mf.Loader: {name}={value!r}: {expected}"


def test_a_layout_is_passed_by_name() -> None:
    layout = mf.layout({"data": 2}, mf.P("data"), {"x": ("int32", ())}, batch_size=4)
    unchecked: Any = mf.Loader
    with pytest.raises(mf.InvalidArgumentError) as caught:
        unchecked(numbers(), layout)
    assert str(caught.value) == (
        "mf.Loader: mesh=Layout(mesh=('data': 2), arrays=['x'], batch_size=4):"
        " expected a mesh or a sharding; pass layout= instead"
    )


@pytest.mark.parametrize("name", [3, "", None])
def test_a_mask_has_a_name(name: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        loader(remainder="pad", mask_name=name)
    assert str(caught.value) == f"mf.Loader: mask_name={name!r}: expected a name"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("batch_size", 2.5, BATCH),
        ("batch_size", (4, None), BATCH),
        ("processes", "a", "expected an integer from 1 to 131072"),
        (
            "processes",
            3,
            "expected a divisor of the 8 devices; "
            "if processes have different numbers of devices, list them with devices=",
        ),
        ("devices", 3, "expected a (process, id) for each of the 8 devices, in mesh order"),
        ("devices", [(0, 1)], "expected a (process, id) for each of the 8 devices, in mesh order"),
        ("mesh", 3, MESH),
        ("mesh", [("data", 4)], MESH),
        ("mesh", {3: 4}, MESH),
        ("fields", 3, FIELDS),
        ("fields", {"x": "float32"}, FIELDS),
        ("fields", {"x": ("float32", 3)}, FIELDS),
        ("records", -1, "expected an integer from 0 to 2^40"),
        ("records", "a", "expected an integer from 0 to 2^40"),
        ("seed", 1.5, SEED),
        ("prefetch", 1.5, DEEP),
        ("device_bytes", "a", "expected an integer from 1 to 2^53"),
        ("host_bytes", 0, "expected an integer from 1 to 2^53"),
    ],
)
def test_an_option_of_a_layout_is_named_as_it_was_typed(
    name: str, value: Any, expected: str
) -> None:
    options: dict[str, Any] = {
        "mesh": {"data": 8},
        "specs": mf.P("data"),
        "fields": {"x": ("float32", ())},
        "batch_size": 8,
    }
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.layout(**options | {name: value})
    assert str(caught.value) == f"mf.layout: {name}={value!r}: {expected}"


@pytest.mark.parametrize(
    ("size", "hint"), [(4.0, "; write 4"), (-4, ""), (0, ""), (2**20 + 1, ""), ("4", "")]
)
def test_the_size_of_an_axis(size: Any, hint: str) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.layout({"data": 8, "model": size}, mf.P("data"), {"x": ("float32", ())}, batch_size=8)
    expected = f"mesh['model']={size!r}: expected an integer from 1 to 1048576{hint}"
    assert str(caught.value) == f"mf.layout: {expected}"


@pytest.mark.parametrize("dtype", ["float33", "f32", "U3", "datetime64[s]", object])
def test_a_type_that_is_not_numeric(dtype: Any) -> None:
    fields = {"x": ("float32", ()), "y": (dtype, (3,))}
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.layout({"data": 8}, mf.P("data"), fields, batch_size=8)
    assert str(caught.value) == (
        f"mf.layout: fields['y']={dtype!r}: expected a type of numbers; "
        'such as "float32" or np.int32'
    )


def lay(processes: int = 2, devices: Any = None) -> mf.Layout:
    options: dict[str, Any] = {"processes": processes, "devices": devices, "remainder": "pad"}
    return mf.layout({"d": 2}, mf.P("d"), {"x": ("float32", (8,))}, batch_size=4, **options)


DIMS = "expected two different dimensions from 0 to 1"


@pytest.mark.parametrize(
    ("attempt", "text"),
    [
        (
            lambda: mf.Loader(wrong("a.arrow"), batch_size=1),
            f"mf.Loader: source='a.arrow': {SOURCE}",
        ),
        (lambda: mf.Loader(wrong(None), batch_size=1), f"mf.Loader: source=None: {SOURCE}"),
        (
            lambda: loader().restore(wrong(5)),
            f"Loader.restore: state=5: expected a state or a path; {STATE}",
        ),
        (
            lambda: loader(state=loader().state() | {"epoch": b"0"}),
            f"mf.Loader: state['epoch']=b'0': expected a number or a text; {STATE}",
        ),
        (lambda: mf.open(wrong(5)), f"mf.open: paths=5: {PATHS}"),
        (lambda: mf.open([]), f"mf.open: paths=[]: {PATHS}"),
        (lambda: mf.open(wrong(["a", None])), f"mf.open: paths=['a', None]: {PATHS}"),
        (lambda: mf.open(""), f"mf.open: paths='': {PATHS}"),
        (lambda: mf.open("a\0b"), f"mf.open: paths='a\\x00b': {PATHS}"),
        (lambda: mf.open(wrong({"train": "a"})), f"mf.open: paths={{'train': 'a'}}: {PATHS}"),
        (
            lambda: mf.open(wrong({"a"})),
            f"mf.open: paths={{'a'}}: {PATHS}; "
            "give sorted(paths): the order of the files decides the order of the records",
        ),
        (
            lambda: mf.open(wrong(FOUND)),
            f"mf.open: paths={FOUND}: {PATHS}; "
            "give sorted(paths): the order of the files decides the order of the records",
        ),
        (
            lambda: mf.open(wrong(pa.table({"x": [1]}))),
            "mf.open: Table is not a path; mf.from_arrow makes a dataset of a table",
        ),
        (lambda: mf.from_arrow("a.arrow"), f"mf.from_arrow: str {NEITHER}; mf.open opens files"),
        (
            lambda: mf.from_arrow(Path("a.arrow")),
            f"mf.from_arrow: {type(Path()).__name__} {NEITHER}; mf.open opens files",
        ),
        (
            lambda: mf.from_arrow([{"x": 1}]),
            f"mf.from_arrow: list {NEITHER}; give pyarrow.Table.from_pylist(rows)",
        ),
        (lambda: mf.open(wrong(TEXT)), f"mf.open: paths={TEXT!r}: {PATHS}"),
        (
            lambda: mf.open("a", io="mmap"),  # type: ignore[arg-type]
            'mf.open: io=\'mmap\': expected "auto", "map" or "read"',
        ),
        (lambda: mf.open("a", shapes=wrong(3)), f"mf.open: shapes=3: {SHAPES}"),
        (
            lambda: mf.open("a", shapes=wrong({"a": 3})),
            "mf.open: shapes['a']=3: expected the lengths of a row, such as (16, 16, 3)",
        ),
        (
            lambda: mf.from_arrow(pa.table({"x": [1]}), shapes=wrong(3)),
            f"mf.from_arrow: shapes=3: {SHAPES}",
        ),
        (lambda: mf.from_arrays(wrong(None)), ARRAYS),
        (lambda: mf.from_arrays(wrong({1: np.zeros(3)})), ARRAYS),
        (
            lambda: mf.from_arrays(wrong(pa.table({"x": [1]}))),
            ARRAYS.replace('give a dict, such as {"label": labels}', "mf.from_arrow takes tables"),
        ),
        (
            lambda: mf.from_arrays({"a\0b": np.zeros(3)}),
            "mf.from_arrays: the name 'a\\x00b' has a character that no field name may have; "
            "names are Unicode text without NUL",
        ),
        (
            lambda: mf.from_arrays({"\ud800": np.zeros(3)}),
            "mf.from_arrays: the name '\\ud800' has a character that no field name may have; "
            "names are Unicode text without NUL",
        ),
        (
            lambda: mf.from_arrays({"x": np.zeros(3, np.longdouble)}),
            f"mf.from_arrays: field 'x' has the type {np.dtype(np.longdouble)}, "
            "which JAX does not have; give array.astype(np.float64)",
        ),
        (lambda: loader().seek(epoch=2**64), f"Loader.seek: epoch={2**64}: {WIDE}"),
        (lambda: loader().seek(epoch=wrong(True)), f"Loader.seek: epoch=True: {WIDE}"),
        (
            lambda: loader().seek(epoch=0, position=wrong("a")),
            f"Loader.seek: position='a': {WIDE}",
        ),
        (lambda: loader().records(0, 2**64), f"Loader.records: position={2**64}: {WIDE}"),
        (lambda: loader().one_epoch(2**64), f"Loader.one_epoch: epoch={2**64}: {WIDE}"),
        (lambda: numbers().slice(0, 2**64), f"Dataset.slice: stop={2**64}: {WIDE}"),
        (lambda: numbers().slice(wrong(0.5), 4), f"Dataset.slice: start=0.5: {WIDE}"),
        (
            lambda: lay().draw("y"),
            "mf.Layout: array='y': expected the name of an array; there are 'x', 'valid'",
        ),
        (lambda: lay().draw(dims=wrong(3)), f"mf.Layout: dims=3: {DIMS}"),
        (lambda: lay().draw("x", dims=(0, 2)), f"mf.Layout: dims=(0, 2): {DIMS}"),
        (lambda: lay().draw("x", dims=(1, 1)), f"mf.Layout: dims=(1, 1): {DIMS}"),
        (lambda: lay().draw(dims=wrong((0, 1.0))), f"mf.Layout: dims=(0, 1.0): {DIMS}"),
        (lambda: lay().to_svg("x", dims=(-1, 0)), f"mf.Layout: dims=(-1, 0): {DIMS}"),
        (
            lambda: lay().draw("valid", dims=(0, 1)),
            "mf.Layout: dims=(0, 1): expected None, for an array of fewer than two dimensions",
        ),
        (
            lambda: mf.Loader(numbers(), layout=lay(), process=7),
            "mf.Loader: process=7: expected a process of the layout, 0 to 1",
        ),
        (
            lambda: mf.Loader(numbers(), layout=lay(processes=1), process=7),
            "mf.Loader: process=7: expected a process of the layout, 0",
        ),
        (
            lambda: mf.Loader(numbers(), layout=lay(devices=[(5, 0), (2, 1)]), process=3),
            "mf.Loader: process=3: expected a process of the layout, 2, 5",
        ),
        (
            lambda: mf.Loader(numbers(), mesh=wrong(3), specs=mf.P(), batch_size=4),
            "mf.Loader: mesh=3: expected a jax.sharding.Mesh, which has devices; "
            "jax.make_mesh gives one; mf.layout plans without devices",
        ),
        (
            lambda: mf.Loader(numbers(), mesh=wrong(3), batch_size=4),
            "mf.Loader: a mesh was given, but no spec says how arrays are partitioned over it; "
            "give specs, or leave out mesh= for NumPy arrays",
        ),
        (
            lambda: mf.Loader(numbers(), wrong(mf.P("data")), batch_size=4),
            "mf.Loader: a mesh was given, but no spec says how arrays are partitioned over it; "
            "the mesh is a spec, so write specs= before it",
        ),
        (
            lambda: mf.Layout.from_json(wrong(3)),
            "mf.Layout: document=3: expected the text of a layout document",
        ),
    ],
)
def test_a_wrong_argument_is_named(attempt: Callable[[], object], text: str) -> None:
    with pytest.raises(mf.InvalidArgumentError, match=f"^{re.escape(text)}$"):
        attempt()


def test_a_fill_value_needs_its_field() -> None:
    with pytest.raises(mf.NotFoundError) as caught:
        loader(fill={"xx": 1})
    assert str(caught.value) == (
        "mf.Loader: fill={'xx': 1}: the dataset has no field 'xx'; did you mean 'x'? There are 'x'"
    )


def test_a_missing_state_file() -> None:
    with pytest.raises(mf.NotFoundError) as caught:
        loader(state="/no/such")
    assert str(caught.value) == f"mf.Loader: state='/no/such': there is no such file; {STATE}"


def test_a_long_value_is_cut() -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        loader(epochs="x" * 1000)
    assert str(caught.value) == f"mf.Loader: epochs='{'x' * 76}...: {EPOCHS}"


def test_a_value_of_several_lines_stands_on_one() -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        loader(seed=np.zeros((2, 2)))
    assert str(caught.value) == f"mf.Loader: seed=array([[0., 0.],        [0., 0.]]): {SEED}"


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'bach_size'"):
        loader(bach_size=3)


def test_a_state_of_arrays(tmp_path: Path) -> None:
    with loader() as it:
        next(iter(it))
        np.savez(tmp_path / "all.npz", **it.state())
        with np.load(tmp_path / "all.npz") as saved, loader(state=dict(saved)) as other:
            assert other.state() == it.state()


def test_scalars_of_numpy_and_jax_are_numbers() -> None:
    loaders = [
        loader(shuffle=True, seed=3, epochs=2, prefetch=1),
        loader(shuffle=np.bool_(True), seed=np.int64(3), epochs=np.int64(2), prefetch=np.int32(1)),
        loader(shuffle=True, seed=wrong(jnp.int32(3)), epochs=wrong(jnp.int32(2)), prefetch=0),
    ]
    first, *others = ([batch["x"].tolist() for batch in one] for one in loaders)
    assert others == [first, first]


@pytest.mark.parametrize("columns", [[(3, 2)], [(-1, 2)], [(0, 0)]])
def test_invalid_columns_are_named(columns: list[tuple[int, int]]) -> None:
    text = (
        f"mf.Loader: columns of array 'x' are {columns!r}; "
        "give a list of (start, stop) with 0 <= start < stop, such as [(0, 2048)]"
    )
    source = mf.from_arrays({"x": np.zeros((16, 4), np.int32)})
    with pytest.raises(mf.InvalidArgumentError, match=f"^{re.escape(text)}$"):
        mf.Loader(source, specs={"x": mf.Array("x", columns=columns)}, batch_size=4)


def test_a_batch_size_of_numpy_or_jax_is_a_number() -> None:
    size = wrong((np.int64(2), jnp.uint8(4)))
    with mf.Loader(numbers(), specs=["x"], batch_size=size) as it:
        assert [batch["x"].shape for batch in it] == [(2, 4), (2, 4)]
