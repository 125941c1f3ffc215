"""The first rows of a dataset as a table in HTML, for notebooks."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from meshfeed._data import png

# What a table shows at most, so that it stays small for any dataset.
ROWS, FIELDS = 5, 12
TEXT = 60  # characters of text
VALUES = 6  # shown of an array, or entries of a list
DEPTH = 2  # levels of lists in lists
SKIPPED = 8  # columns that are not fields
PICTURES = 1 << 19  # characters of all pictures; further ones are numbers
ENCODED = 1 << 17  # bytes of a picture that is stored as a file
NAME = 40  # characters of a name

HEIGHT = 56  # pixels of a picture; the pixels of a smaller one are shown as squares

# Colors follow the page, which may be light or dark. Notebooks have rules for cells, with
# selectors of two classes.
_STYLE = """<style>
.mf-rows{overflow-x:auto;font:13px/1.45 system-ui,sans-serif;color:inherit}
.mf-rows p{margin:0 0 6px}
.mf-rows table+p{margin-top:8px}
.mf-rows.mf-rows table{border-collapse:collapse;margin:0;width:max-content;font:inherit}
.mf-rows.mf-rows table{color:inherit;font-variant-numeric:tabular-nums}
.mf-rows.mf-rows tr{background:none;border:0;border-bottom:1px solid rgba(128,128,128,.35)}
.mf-rows.mf-rows :is(th,td){padding:5px 16px 5px 0;border:0;text-align:left;vertical-align:middle}
.mf-rows.mf-rows td{max-width:26em;overflow-wrap:anywhere;white-space:normal}
.mf-rows.mf-rows th{font-weight:600;white-space:nowrap}
.mf-rows.mf-rows .mf-n{text-align:right;white-space:nowrap}
.mf-rows .mf-d{font-weight:400;font-size:12px;opacity:.72}
.mf-rows.mf-rows img{display:block;height:56px;width:auto;max-width:112px;margin:0}
.mf-rows.mf-rows img{object-fit:contain;background:none}
.mf-rows .mf-p{image-rendering:pixelated}
</style>"""
_NUMBER = ' class="mf-n"'


class Field(Protocol):
    """What a column of the table needs to know of a field."""

    @property
    def name(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...


def failure(described: str, error: Exception) -> str:
    """Returns the HTML in place of a table that could not be made.

    Args:
        described: the dataset as text.
        error: what happened.
    """
    lines = described.splitlines()
    more = [f"  … and {len(lines) - FIELDS} more"] if len(lines) > FIELDS else []
    text = "\n".join([*(line[:200] for line in (*lines[:FIELDS], *more)), str(error)[:1000]])
    return f"<pre>{html.escape(text)}</pre>"


def table(
    records: int,
    fields: Sequence[Field],
    rows: Sequence[Mapping[str, Any]],
    skipped: Sequence[tuple[str, str]] = (),
) -> str:
    """Returns a table with a row for each record, and what it leaves out below it.

    Args:
        records: how many records the dataset has.
        fields: all fields. The text of a field begins with its name and a colon.
        rows: the first records, with the first `FIELDS` fields.
        skipped: the names of other columns, and why they are not fields.
    """
    shown, cells = fields[:FIELDS], _Cells()
    first = rows[0] if rows else {}
    head = "".join(_heading(field, first.get(field.name)) for field in shown)
    lines = [f'<tr><th scope="col"><span class="mf-d">record</span></th>{head}</tr>']
    for i, row in enumerate(rows):
        values = "".join(cells.cell(row[field.name], field) for field in shown)
        lines.append(f'<tr><th scope="row"><span class="mf-d">{i}</span></th>{values}</tr>')
    counted = f"{records:,} record{'' if records == 1 else 's'}"
    title = f"Dataset of {counted}, {len(fields):,} field{'' if len(fields) == 1 else 's'}"
    body = f"<table>{''.join(lines)}</table>" if shown else ""
    left_out = _notes(records, fields, rows, skipped)
    notes = "".join(f'<p class="mf-d">{note}</p>' for note in left_out)
    return f'{_STYLE}<div class="mf-rows" tabindex="0"><p>{title}</p>{body}{notes}</div>'


def _notes(
    records: int,
    fields: Sequence[Field],
    rows: Sequence[Any],
    skipped: Sequence[tuple[str, str]],
) -> list[str]:
    """Returns what the table leaves out, as HTML."""
    left = [(records - len(rows), "record"), (len(fields) - FIELDS, "field")]
    more = [f"{n:,} more {noun}{'' if n == 1 else 's'}" for n, noun in left if n > 0]
    notes = [f"… and {' and '.join(more)}"] if more else []
    listed = [f"{_name(name)} ({html.escape(reason[:200])})" for name, reason in skipped[:SKIPPED]]
    if len(skipped) > SKIPPED:
        listed.append("…")
    return [*notes, f"no fields: {', '.join(listed)}"] if listed else notes


def _heading(field: Field, first: Any) -> str:
    """Returns the heading of a column, above its first value."""
    kind = html.escape(str(field)[len(field.name) + 2 :])
    side = _NUMBER if isinstance(first, np.generic) and not field.names else ""
    return f'<th scope="col"{side}>{_name(field.name)}<br><span class="mf-d">{kind}</span></th>'


def _name(name: str) -> str:
    return html.escape(name if len(name) <= NAME else name[: NAME - 1] + "…")


class _Cells:
    """Writes the cells of a table, and counts the characters of the pictures in it."""

    def __init__(self) -> None:
        self._left = PICTURES

    def cell(self, value: Any, field: Field) -> str:
        """Returns a value as HTML: a picture where it looks like one."""
        if drawn := self._picture(value, field.name):
            return f"<td>{drawn}</td>"
        if field.names and isinstance(value, np.integer) and 0 <= value < len(field.names):
            text = f"{_cut(field.names[int(value)], '')} ({value})"
            return f"<td>{html.escape(text)}</td>"
        kind = _NUMBER if isinstance(value, np.generic) else ""
        text = '<span class="mf-d">null</span>' if value is None else html.escape(_text(value))
        return f"<td{kind}>{text}</td>"

    def _picture(self, value: Any, name: str) -> str:
        """Returns an image element; "" if the value does not look like an image."""
        size = kind = ""
        if isinstance(value, bytes):
            uri = _stored(value)
        elif isinstance(value, np.ndarray) and (pixels := picture(value)) is not None:
            uri = _uri("png", png.encode(pixels))
            size = ", " + " x ".join(map(str, value.shape))
            kind = ' class="mf-p"' if len(pixels) < HEIGHT else ""
        else:
            return ""
        if not uri or len(uri) > self._left:
            return ""
        self._left -= len(uri)
        return f'<img src="{uri}" alt="{_name(name)}{size}"{kind}>'


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _stored(data: bytes) -> str:
    """Returns a data URI of the file of an image, which browsers decode; "" of other bytes."""
    if len(data) > ENCODED:
        return ""
    if data.startswith(b"\xff\xd8\xff"):
        return _uri("jpeg", data)
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return _uri("png", data)
    if data.startswith((b"GIF87a", b"GIF89a")):
        return _uri("gif", data)
    return _uri("webp", data) if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def _text(value: Any, depth: int = 0) -> str:
    """Returns a value as short text."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return _cut(value, f" ({len(value):,} characters)")
    if isinstance(value, bytes):
        return _cut(repr(value[:TEXT]), "") + (f" ({len(value):,} bytes)" if value else "")
    if isinstance(value, list):
        if depth >= DEPTH:
            return f"[…] ({len(value):,})" if value else "[]"
        return _listed([_text(v, depth + 1) for v in value[:VALUES]], len(value))
    if not isinstance(value, np.ndarray):
        return _number(value)
    if value.ndim > 1 or depth >= DEPTH:
        numbers = ", ".join(_number(v) for v in value.reshape(-1)[:VALUES])
        more = ", …" if value.size > VALUES else ""
        return f"{list(value.shape)}: {numbers}{more}"
    return _listed([_number(v) for v in value[:VALUES]], len(value))


def _cut(text: str, size: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}…{size}"


def _listed(shown: Sequence[str], count: int) -> str:
    inner = ", ".join(shown)
    return f"[{inner}]" if count <= VALUES else f"[{inner}, …] ({count:,})"


def _number(value: Any) -> str:
    if value is np.ma.masked:
        return "null"
    short = isinstance(value, np.inexact)  # float or complex
    return f"{value:.4g}" if short else str(value)


def picture(value: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]] | None:
    """Returns the pixels of an array that looks like an image; None for any other.

    Such an array has two large dimensions, and perhaps 1, 3 or 4 channels after or before them. Its
    values are bytes, or floats from 0 to 1. The pixels of a large image are means of blocks.

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
    short, long = sorted((height, width))
    if channels not in (1, 3, 4) or short < png.SMALLEST or long > 8 * short:
        return None
    if value.dtype == np.uint8:
        return png.thumbnail(value)
    if value.dtype.kind != "f" and value.dtype.name != "bfloat16":
        return None
    low, high = value.min(), value.max()
    if not (low >= 0 and high <= 1 and high > low):  # also if one is NaN
        return None
    return png.thumbnail((value.astype(np.float32) * 255).round().astype(np.uint8))
