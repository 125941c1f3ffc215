"""The warning of a deprecated name, and that no such name outlives the version of its removal."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator

import pytest

from meshfeed._deprecated import deprecated
from tests.python import ROOT

pytestmark = pytest.mark.plain

REMOVAL = re.compile(r'\bdeprecated\((?:[^()]|\([^()]*\))*"(\d+)\.(\d+)\.(\d+)",?\s*\)')


def old_name() -> int:
    deprecated("mf.old_name", "mf.new_name", "0.4.0")
    return 7


def test_the_warning_shows_the_line_of_the_caller() -> None:
    message = r"^mf\.old_name is deprecated and goes in meshfeed 0\.4\.0; use mf\.new_name$"
    with pytest.warns(DeprecationWarning, match=message) as caught:
        assert old_name() == 7
    lines = [linecache.getline(warning.filename, warning.lineno) for warning in caught]
    assert lines == ["        assert old_name() == 7\n"]


def overdue(source: str, version: str) -> Iterator[str]:
    """Yields the calls whose version of removal is reached."""
    for call in REMOVAL.finditer(source):
        if tuple(map(int, call.groups())) <= tuple(map(int, version.split("."))):
            yield call[0]


def test_a_deprecated_name_goes_in_time() -> None:
    version = (ROOT / "VERSION").read_text().strip()
    sources = "".join(path.read_text() for path in (ROOT / "python/meshfeed").rglob("*.py"))
    assert list(overdue(sources, version)) == []
    call = 'deprecated("mf.Loader(batch=)", "batch_size=", "0.10.0")'
    assert list(overdue(call, "0.9.1")) == []
    assert list(overdue(call, "0.10.0")) == [call]
