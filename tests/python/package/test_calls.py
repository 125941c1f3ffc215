"""Every error begins with the call that the user wrote, wherever it is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import meshfeed as mf
from tests.python.samples import wrong


def numbers() -> mf.Dataset:
    return mf.from_arrays({"x": np.arange(16, dtype=np.int32), "y": np.zeros((16, 4), np.int8)})


def loader(**options: Any) -> mf.Loader:
    return mf.Loader(numbers(), **{"specs": ["x"], "batch_size": 4, **options})


def mesh() -> Any:
    return jax.make_mesh((1,), ("data",))


def sharded(specs: Any, **options: Any) -> mf.Loader:
    return loader(mesh=mesh(), specs=specs, **options)


def sharding(*spec: str) -> NamedSharding:
    return NamedSharding(mesh(), P(*spec))


def lay(**options: Any) -> mf.Layout:
    return mf.layout(
        {"data": 2}, mf.P("data"), {"x": ("int32", ())}, **{"batch_size": 4, **options}
    )


def closed() -> mf.Dataset:
    ds = numbers()
    ds.close()
    return ds


CALLS: list[tuple[str, Callable[[], object]]] = [
    ("mf.open", lambda: mf.open("/no/such.arrow")),
    ("mf.open", lambda: mf.open(__file__)),
    ("mf.from_arrow", lambda: mf.from_arrow(3)),
    ("mf.from_arrays", lambda: mf.from_arrays({})),
    ("mf.from_arrays", lambda: mf.from_arrays({"a": np.zeros(3), "b": np.zeros(4)})),
    ("mf.from_arrays", lambda: mf.from_arrays({"a": [[1], [2, 3]]})),
    ("mf.from_arrays", lambda: mf.from_arrays({"a": ["text"]})),
    ("Dataset.slice", lambda: numbers().slice(3, 99)),
    ("Dataset.slice", lambda: closed().slice(0, 1)),
    ("Dataset.fingerprint", lambda: closed().fingerprint()),
    ("mf.Loader", lambda: mf.Loader(closed(), batch_size=2)),
    ("mf.Loader", lambda: loader(batch_size=99)),
    ("mf.Loader", lambda: loader(max_host_bytes=1)),
    ("mf.Loader", lambda: loader(state={})),
    ("mf.Loader", lambda: loader(state="/no/such")),
    ("mf.Loader", lambda: loader(state=Path(__file__).parent)),
    ("mf.Loader", lambda: loader(order="best.2")),
    ("mf.Loader", lambda: loader(name="a/b")),
    ("mf.Loader", lambda: loader(specs=3)),
    ("mf.Loader", lambda: loader(specs=["z"])),
    ("mf.Loader", lambda: loader(specs={"x": mf.Array("x", columns=[(0, 2)])})),
    ("mf.Loader", lambda: loader(specs={"x": mf.Array("y", columns=[(0, 9)])})),
    ("mf.Loader", lambda: loader(specs=P("data"))),
    ("mf.Loader", lambda: loader(layout=lay())),
    ("mf.Loader", lambda: sharded({"x": P("rows")})),
    ("mf.Loader", lambda: sharded({"x": P("data", "data")})),
    ("mf.Loader", lambda: sharded({"x": P(), "y": mf.Array("y")})),
    ("mf.Loader", lambda: sharded({"valid": mf.Array("x", P())}, remainder="pad")),
    ("Loader.one_epoch", lambda: loader().one_epoch(-1)),
    ("Loader.seek", lambda: loader().seek(epoch=-1)),
    ("Loader.seek", lambda: loader().seek(epoch=0, position=17)),
    ("Loader.skip", lambda: loader().skip(-1)),
    ("Loader.records", lambda: loader().records(0, 99)),
    ("Loader.restore", lambda: loader().restore("/no/such")),
    ("Loader.restore", lambda: loader().restore({**loader().state(), "position": 99})),
    ("Loader.restore", lambda: loader(seed=1).restore(loader().state())),
    ("Loader.save_state", lambda: loader().save_state("/no/such/folder")),
    ("Loader.remesh", lambda: sharded(P()).remesh(wrong(3))),
    ("Loader.remesh", lambda: sharded({"x": P("data")}).remesh(mesh(), {"x": P("rows")})),
    ("Loader.remesh", lambda: loader().remesh(mesh())),
    ("mf.load_array", lambda: mf.load_array(numbers(), "z", sharding())),
    ("mf.load_array", lambda: mf.load_array(numbers(), "x", wrong(P()))),
    ("mf.load_array", lambda: mf.load_array(numbers(), "x", sharding("data"), record=0)),
    ("mf.layout", lambda: lay(loading="all")),
    ("mf.layout", lambda: mf.layout({"d": 2}, P("d"), {"a/": ("int8", ())}, batch_size=wrong(""))),
    ("mf.layout", lambda: mf.layout({"d": 2}, wrong(3), {"x": ("int8", ())}, batch_size=2)),
    ("mf.Layout", lambda: mf.Layout.from_json("{")),
    ("mf.Layout", lambda: lay().draw("q")),
    ("mf.Certificate", lambda: mf.Certificate.from_json("")),
    ("Certificate.check", lambda: loader().certificate().check()),
    ("Certificate.report", lambda: loader().certificate().report(-1)),
]


@pytest.mark.parametrize(
    ("call", "attempt"), CALLS, ids=[f"{i}-{c}" for i, (c, _) in enumerate(CALLS)]
)
def test_an_error_begins_with_the_call(call: str, attempt: Callable[[], object]) -> None:
    with pytest.raises(mf.Error) as caught:
        attempt()
    assert caught.value.op == call
    assert str(caught.value).startswith(f"{call}: {caught.value.message}")


def test_an_unreadable_state_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hint = "give what state() gave, or the path that save_state() wrote"
    with pytest.raises(mf.ReadError) as unread:
        loader().restore(".")
    text = f"Loader.restore: state='.': the file cannot be read: Is a directory; {hint}"
    assert str(unread.value) == text
    contents = (
        "[1]",
        "3",
        '{"meshfeed": 1',
        '{"meshfeed": 1}\0',
        "\udc80",
        "[" * 100_000,
        '{"a":' * 10_000,
        "{}" * 99_999,
        Path(__file__).read_text(),
    )
    for content in contents:
        Path("state").write_bytes(content.encode(errors="surrogateescape"))
        for use in (lambda: loader().restore("state"), lambda: loader(state="state")):
            with pytest.raises(mf.InvalidArgumentError) as error:
                use()
            assert error.value.message.startswith("state='state': this is not a saved state: ")
            assert error.value.hint == "pass on a saved state, unchanged"


def test_a_state_file_with_a_duplicate_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = "s.json"
    Path(path).write_text(json.dumps(loader().state())[:-1] + ', "position": 4}')
    for use in (lambda: loader(state=path), lambda: loader().restore(path)):
        with pytest.raises(mf.InvalidArgumentError) as caught:
            use()
        text = 'this is not a saved state: /position: key "position" occurs twice'
        assert caught.value.message == f"state='s.json': {text}"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_hold(tmp_path: Path, number: float) -> None:
    state = loader().state() | {"epoch": number}
    path = tmp_path / "s.json"
    path.write_text(json.dumps(state))
    for given in (state, path):
        with pytest.raises(mf.InvalidArgumentError, match="/epoch: expected a value, but found"):
            loader(state=given)


def test_numbers_of_numpy_in_a_state_are_numbers() -> None:
    state = loader().state() | {"position": np.int64(4), "epoch": np.asarray(1)}
    it = loader(state=state)
    assert (it.epoch, it.step) == (1, 1)
    it.restore(state | {"epoch": np.uint8(2)})
    assert json.loads(json.dumps(it.state()))["epoch"] == 2
