"""The structs of ctypes have the layout of the structs in C."""

from __future__ import annotations

import ctypes
import re

import pytest

from meshfeed._native import abi
from tests.python import ROOT

pytestmark = pytest.mark.plain

TEXT = (ROOT / "capi/abi.txt").read_text()
STRUCTS = [
    kind
    for kind in vars(abi).values()
    if isinstance(kind, type) and issubclass(kind, ctypes.Structure)
]


def described(kind: type[ctypes.Structure]) -> str:
    """Describes a struct as capi/abi.txt does."""
    lines = [f"struct {(kind.__doc__ or '').strip('`.')}: {ctypes.sizeof(kind)} bytes"]
    for name, *_ in kind._fields_:
        field = getattr(kind, name)
        lines.append(f"  {name:<14} at {field.offset:>4}, {field.size} bytes")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("kind", STRUCTS)
def test_layout(kind: type[ctypes.Structure]) -> None:
    assert described(kind) in TEXT


def test_flags() -> None:
    in_c = dict(re.findall(r"^MF_(\w+) = (\d+)$", TEXT, re.MULTILINE))
    for name in ("ALL_DEVICES", "ALLOW_DUPLICATES", "IGNORE_DATASET", "NO_PREFLIGHT"):
        assert getattr(abi, name) == int(in_c[name]), name
    assert (in_c["IO_AUTO"], in_c["IO_MAP"], in_c["IO_READ"]) == ("0", "1", "2")
    for name in ("TEXT", "SVG", "JSON", "DOCUMENT"):
        assert getattr(abi, name) == int(in_c[name]), name
