"""The first rows of a dataset as a table in HTML, for notebooks."""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

TEXT = 60  # characters that are shown of text
VALUES = 6  # that are shown of an array
SIDE = 112  # pixels of a picture at most
SMALLEST = 8  # pixels of the sides of an array that is drawn

# Colors follow the page, so that the table is readable on dark ones.
_TABLE = "border-collapse:collapse;font-size:13px;text-align:left"
_CELL = (
    "padding:4px 10px;border-bottom:1px solid rgba(128,128,128,.4);text-align:left;"
    "vertical-align:middle;white-space:nowrap"
)
_IMAGE = '<img src="{}" alt="{}" style="height:56px;max-width:none;image-rendering:pixelated">'


class Field(Protocol):
    """What a column of the table needs to know of a field."""

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...


def table(title: str, fields: Sequence[Field], rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns a table with a row for each record.

    Args:
        title: the line above it.
        fields: the columns. The text of a field begins with its name and a colon.
        rows: the records.
    """
    cell = f'style="{_CELL}"'
    head = [f"<th {cell}></th>"]
    for field in fields:
        kind = html.escape(str(field).partition(": ")[2])
        name = html.escape(field.name)
        head.append(
            f'<th {cell}>{name}<br><span style="font-weight:normal;opacity:.7">{kind}</span></th>'
        )
    lines = [f"<tr>{''.join(head)}</tr>"]
    for i, row in enumerate(rows):
        cells = [f'<td {cell}><span style="opacity:.7">{i}</span></td>']
        cells += [f"<td {cell}>{_shown(row[field.name], field)}</td>" for field in fields]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "".join(lines)
    return (
        f'<div style="overflow-x:auto"><p style="margin:0 0 4px">{html.escape(title)}</p>'
        f'<table style="{_TABLE}">{body}</table></div>'
    )


def _shown(value: Any, field: Field) -> str:
    """Returns a value as HTML: a picture where it looks like one."""
    if isinstance(value, np.ndarray):
        pixels = picture(value)
        if pixels is not None:
            size = " x ".join(str(n) for n in value.shape)
            return _IMAGE.format(png(pixels), f"{field.name}, {size}")
    elif field.names and value is not None and 0 <= value < len(field.names):
        return html.escape(f"{field.names[int(value)]} ({value})")
    return html.escape(_text(value))


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str | bytes):
        unit = "characters" if isinstance(value, str) else "bytes"
        shown = value[:TEXT]
        quoted = shown if isinstance(shown, str) else repr(shown)
        return quoted if len(value) <= TEXT else f"{quoted}… ({len(value)} {unit})"
    if isinstance(value, list):
        inner = ", ".join(_text(v) for v in value[:VALUES])
        return f"[{inner}]" if len(value) <= VALUES else f"[{inner}, …] ({len(value)})"
    if not isinstance(value, np.ndarray):
        return str(value)
    flat = value.reshape(-1)
    inner = ", ".join(_number(v) for v in flat[:VALUES])
    if flat.size <= VALUES and value.ndim == 1:
        return f"[{inner}]"
    return f"[{inner}, …]" if value.ndim == 1 else f"{list(value.shape)}: {inner}, …"


def _number(value: Any) -> str:
    if value is np.ma.masked:
        return "null"
    return f"{value:.4g}" if isinstance(value, np.floating) else str(value)


def picture(value: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """Returns the pixels of an array that looks like an image; None for any other.

    Such an array has two large dimensions, and perhaps 1, 3 or 4 channels before or after them. Its
    values are bytes, or floats from 0 to 1. Large images are thinned out.

    Returns:
        uint8 of shape [height, width, channels].
    """
    if isinstance(value, np.ma.MaskedArray) or value.ndim not in (2, 3):
        return None
    if value.ndim == 2:
        value = value[:, :, None]
    elif value.shape[2] not in (1, 3, 4) and value.shape[0] in (1, 3, 4):
        value = np.moveaxis(value, 0, 2)
    height, width, channels = value.shape
    if channels not in (1, 3, 4) or min(height, width) < SMALLEST:
        return None
    if max(height, width) > 8 * min(height, width):
        return None
    every = math.ceil(max(height, width) / SIDE)
    value = value[::every, ::every]
    if value.dtype == np.uint8:
        return value
    if value.dtype.kind == "f" and value.dtype.itemsize <= 8:
        value = value.astype(np.float32)
        if value.min() >= 0 and value.max() <= 1:
            return (value * 255).round().astype(np.uint8)
    return None


def png(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> str:
    """Returns a data URI of pixels of shape [height, width, 1, 3 or 4]."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, 0
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    ]
    out = b"\x89PNG\r\n\x1a\n"
    for name, data in parts:
        out += struct.pack(">I", len(data)) + name + data
        out += struct.pack(">I", zlib.crc32(name + data))
    return "data:image/png;base64," + base64.b64encode(out).decode()
