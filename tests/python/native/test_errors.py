"""The error codes and classes, equal in Go, C and Python."""

from __future__ import annotations

import pickle
import re

import pytest

import meshfeed as mf
from meshfeed import errors
from tests.python import ROOT

pytestmark = pytest.mark.plain


def go_codes() -> dict[str, int]:
    text = (ROOT / "core/status/status.go").read_text()
    return {n: int(v) for n, v in re.findall(r"^\t(\w+) +Code = (-?\d+)", text, re.MULTILINE)}


def c_codes() -> dict[str, int]:
    text = (ROOT / "capi/include/meshfeed.h").read_text()
    found = re.findall(r"^  MF_([A-Z_]+) = (-?\d+)", text, re.MULTILINE)
    return {name: int(value) for name, value in found}


def test_codes_are_the_same_in_go_c_and_python() -> None:
    python = {code.name: code.value for code in mf.Code}
    assert len(python) == 15
    assert go_codes() == python
    assert {name.replace("_", ""): value for name, value in c_codes().items()} == {
        name.upper(): value for name, value in python.items()
    }


def test_every_negative_code_has_a_class_with_a_builtin_base() -> None:
    builtin = {
        mf.InvalidArgumentError: ValueError,
        mf.OutOfRangeError: IndexError,
        mf.NotFoundError: FileNotFoundError,
        mf.InvalidStateError: RuntimeError,
        mf.IncompatibleError: ValueError,
        mf.DataLossError: OSError,
        mf.ReadError: OSError,
        mf.ResourceExhaustedError: MemoryError,
        mf.UnsupportedError: NotImplementedError,
        mf.CancelledError: Exception,
        mf.ForkedError: RuntimeError,
        mf.InternalError: RuntimeError,
    }
    assert set(errors.CLASSES) == {code for code in mf.Code if code < 0}
    assert set(errors.CLASSES.values()) == set(builtin)
    for cls, base in builtin.items():
        assert issubclass(cls, base)
        assert issubclass(cls, mf.Error)
        assert getattr(mf, cls.__name__) is cls


@pytest.mark.parametrize("cls", errors.CLASSES.values())
def test_the_text_is_op_message_and_hint(cls: type[mf.Error]) -> None:
    error = cls("30 % 4 = 2", op="sharding", hint="use 28", path="/arrays/x")
    assert str(error) == "sharding: 30 % 4 = 2; use 28"
    assert (error.op, error.message, error.hint) == ("sharding", "30 % 4 = 2", "use 28")
    assert (error.path, error.code) == ("/arrays/x", cls.code)
    assert str(cls("a message alone")) == "a message alone"


def test_errors_survive_pickling() -> None:
    error = pickle.loads(pickle.dumps(errors.of(-7, "arrowio", "no", "ask", "/data/x.arrow")))
    assert type(error) is mf.ReadError
    assert str(error) == "arrowio: no; ask"
    assert error.path == "/data/x.arrow"


@pytest.mark.parametrize("origin", [ValueError, mf.DataLossError, mf.PeerError])
def test_an_error_of_another_process_survives_pickling(origin: type[BaseException]) -> None:
    error = errors.at(errors.peer(origin)("no", op="mf.Loader"), 1, 2, 3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.process, again.epoch, again.step) == ("mf.Loader: no", 1, 2, 3)
    assert str(pickle.loads(pickle.dumps(mf.PeerError("plain")))) == "plain"


def test_an_unknown_code_is_internal() -> None:
    assert type(errors.of(-99, "", "", "", "")) is mf.InternalError
