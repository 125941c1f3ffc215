"""Orders of records that have parameters."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Literal

from meshfeed._io.arguments import RECORDS, Checks, is_integer

_WINDOW = 2**20  # the most blocks of a window


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The order "blocks" with parameters: a shuffle for data that are slow to read at random.

    A block is a run of consecutive records, by default a unit of the dataset, such as a record
    batch. Every epoch permutes all blocks. The first `window` of them are a window, the next
    `window` are the second one, and so on; windows have equal numbers of blocks, or one less. The
    records of a window are permuted among themselves. So a loader needs the blocks of one window
    at a time.

    The more blocks are in a window, the better the shuffle. If all records of a block are alike,
    the variance of a batch's mean is `1 + (batch_size - 1) / window * (1 - window / blocks)` times
    the variance of a full shuffle. With "auto" a window has four blocks per row of a batch, which
    is at most 1.25, or as many as have 128 MiB of rows if these are fewer. So it does not depend on
    the memory of a host, and is the same in all processes.

    Files that have to be decoded are decoded one window ahead, so that no batch waits where a
    window begins, if two windows fit in the decoded data that are kept: 256 MiB.

    Args:
        records: how many records a block has; by default the blocks are the dataset's units.
        window: how many blocks a window has at most, or "auto", the default.

    Raises:
        InvalidArgumentError: an argument is not a positive integer, or too large.

    Examples:
        >>> import numpy as np, meshfeed as mf
        >>> ds = mf.from_arrays({"x": np.arange(1000)})
        >>> loader = mf.Loader(ds, batch_size=8, order=mf.Blocks(records=10, window=20))
        >>> loader.state()["order"]
        'blocks.1:20:10:0'
        >>> sorted({int(x) // 10 for x in next(iter(loader))["x"]}) == list(range(100))
        False
    """

    records: int | None = None
    window: int | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        with Checks("mf.Blocks") as check:
            _bounded(check, "records", self.records, None, RECORDS)
            _bounded(check, "window", self.window, "auto", _WINDOW)

    @property
    def name(self) -> str:
        """The order in the form that other languages and the command take."""
        window = 0 if self.window == "auto" else self.window
        return f"blocks:{window}:{self.records or 0}"


def _bounded(check: Checks, name: str, value: Any, default: Any, most: int) -> None:
    if value is default or (isinstance(value, str) and value == default):
        return
    if not (is_integer(value) and 1 <= operator.index(value) <= most):
        raise check.wrong(name, value, f"an integer from 1 to {most}, or {default!r}")
