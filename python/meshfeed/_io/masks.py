"""Masks: which records of a dataset a filter keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from meshfeed._io import arraylike
from meshfeed._io.arguments import Checks

Bits = np.ndarray[Any, np.dtype[np.uint8]]


def bits(check: Checks, mask: Any, records: int) -> Bits:
    """Checks a mask of booleans and returns its bits, the lowest of each byte first.

    Args:
        check: makes errors that name the called function.
        mask: an array of any library, or a list.
        records: the number of records that the mask is for.
    """
    typed = not isinstance(mask, list) or mask  # an empty list has no type
    given = arraylike.unmasked(check, "mask", mask) if typed else np.empty(0, bool)
    if given.ndim != 1 or given.dtype != bool or len(given) != records:
        message = f"mask={given.dtype}{list(given.shape)}: expected one boolean for each of the "
        hint = "give array.astype(bool)"
        if given.dtype.kind in "iu":
            hint += ", or record numbers to ds.take"
        if given.dtype == bool:
            hint = "a mask for a view counts the records of the view"
        raise check.misfit(f"{message}{records} records", hint)
    return np.packbits(given, bitorder="little")
