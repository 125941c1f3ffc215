"""What the C library answers to a document: a canonical text, a report, a table or a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int32, sizeof
from typing import Any

from meshfeed._native import abi
from meshfeed._native.handle import LayoutHandle
from meshfeed._native.library import encoded, read_json, read_text


def layout_canonical(document: str | bytes) -> str:
    """Parses a layout document and returns its canonical form."""
    with LayoutHandle(document) as handle:
        return read_text("mf_layout_json", handle)


def layout_report(document: str, *, tables: bool) -> dict[str, Any]:
    """Returns the report of a layout, with or without a list of all devices."""
    with LayoutHandle(document) as handle:
        return read_json("mf_layout_report", handle, abi.ALL_DEVICES if tables else 0)


def layout_drawing(
    document: str, *, svg: bool, array: str | None, dims: Sequence[int] | None
) -> str:
    """Draws a layout, as SVG or text: one array or all, in two dimensions or the default ones."""
    picture = abi.Picture(sizeof(abi.Picture), int(svg))
    picture.array = None if array is None else array.encode()
    if dims is not None:
        picture.dims = (c_int32 * len(dims))(*dims)
    with LayoutHandle(document) as handle:
        return read_text("mf_layout_draw", handle, byref(picture))


def diagram(document: str, *, svg: bool) -> str:
    """Draws a diagram document, as SVG or text."""
    return read_text("mf_diagram", *encoded(document), int(svg), 0)


def layout_page(document: str) -> str:
    """Returns the browser page with a layout loaded."""
    with LayoutHandle(document) as handle:
        return read_text("mf_layout_page", handle)


def memory_text(document: str) -> str:
    """Returns the table of the memory that the arrays of a document take."""
    return read_text("mf_memory", *encoded(document), abi.TEXT)


def memory_report(document: str) -> dict[str, Any]:
    """Returns the report of the memory that the arrays of a document take."""
    return read_json("mf_memory", *encoded(document), abi.JSON)


def diagnose(document: str, form: str) -> str:
    """Diagnoses a measurements document, as "text" or "json"."""
    return read_text("mf_diagnose", *encoded(document), getattr(abi, form.upper()))


def advise(document: str | bytes, form: str) -> str:
    """Answers a strategy document as "text", "json" or, canonical, "document"."""
    return read_text("mf_advise", *encoded(document), getattr(abi, form.upper()))
