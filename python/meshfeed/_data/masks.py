"""Masks: which records of a dataset a filter keeps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from meshfeed._io import arraylike
from meshfeed._io.arguments import Checks

Bits = np.ndarray[Any, np.dtype[np.uint8]]

log = logging.getLogger("meshfeed")
PROGRESS = 10  # seconds between two messages of a long computation


def bits(check: Checks, mask: Any, records: int) -> Bits:
    """Checks a mask of booleans and returns its bits, the lowest of each byte first.

    Args:
        check: makes errors that name the called function.
        mask: an array of any library, or a list.
        records: the number of records that the mask is for.
    """
    typed = not isinstance(mask, list) or mask  # an empty list has no type
    given = arraylike.unmasked(check, "mask", mask, "False") if typed else np.empty(0, bool)
    if given.ndim != 1 or given.dtype != bool or len(given) != records:
        message = f"mask={given.dtype}{list(given.shape)}: expected one boolean for each of the "
        hint = "compare, as in array == value"  # astype makes True of NaN, and of the text "False"
        if given.dtype.kind in "iu":
            hint = "give array != 0, or record numbers to ds.take"
        if given.dtype == bool:
            hint = "a mask for a view counts the records of the view"
        raise check.misfit(f"{message}{records} records", hint)
    return np.packbits(given, bitorder="little")


def computed(
    check: Checks,
    keep: Callable[[Any], Any],
    batches: Iterable[tuple[int, int, dict[str, Any]]],
    records: int,
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns the mask that a function computes. It logs its progress now and then.

    An exception of the function gets a note with the records.

    Args:
        check: makes errors that name the called function.
        keep: returns a boolean for each row of a batch.
        batches: the rows of all records: the first one, the one after the last, and the rows.
        records: how many there are.
    """
    mask = np.empty(records, np.bool_)
    reported = time.monotonic()
    for start, stop, rows in batches:
        count = stop - start
        try:
            kept = np.asanyarray(keep(rows))
        except Exception as e:
            e.add_note(f"the function got records {start} to {stop - 1}")
            raise
        if kept.dtype != np.bool_ or kept.shape != (count,):
            message = f"for records {start} to {stop - 1}, the function returned {kept.dtype}"
            expected = f"expected one boolean for each of the {count} rows"
            raise check.misfit(f"{message}{list(kept.shape)}: {expected}", _hint(kept, rows))
        if np.ma.is_masked(kept):
            message = f"for records {start} to {stop - 1}, the function returned missing values"
            hint = "return mask.filled(False), which leaves these rows out; .mask finds nulls"
            raise check.misfit(message, hint)
        mask[start:stop] = kept
        if time.monotonic() - reported > PROGRESS:
            reported = time.monotonic()
            log.info("Dataset.filter: %d of %d records", stop, records)
    return mask


def _hint(kept: np.ndarray[Any, Any], rows: Any) -> str:
    lists = [name for name, column in rows.items() if isinstance(column, list)]
    if kept.ndim == 0 and lists:
        name = lists[0]
        return f"rows[{name!r}] is a list: [value == ... for value in rows[{name!r}]]"
    if kept.ndim == 0 and kept.dtype == np.bool_:
        return "the function gets batches: compare arrays, and combine with & and |, not with and"
    return "compare the arrays of the batch, as in rows['label'] == 3"
