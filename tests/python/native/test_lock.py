"""Ctrl-C around a `with` block leaves no lock locked."""

from __future__ import annotations

import re

import pytest

from meshfeed._native.lock import Lock
from tests.python.interrupts import PACKAGE, trials

pytestmark = pytest.mark.plain


def test_an_interrupt_leaves_no_lock_locked() -> None:
    lock, places = Lock(), 0

    def block() -> None:
        with lock:
            pass

    for trial in trials(lambda: block):
        places += trial.caught is not None
        assert not lock._is_owned(), trial.where  # type: ignore[attr-defined]
    assert places > 1


def test_no_module_has_another_lock() -> None:
    found = [p for p in PACKAGE.rglob("*.py") if re.search(r"threading\.R?Lock", p.read_text())]
    assert [path.name for path in found] == ["lock.py"]  # its text names one
