"""Certificates: what a run delivered, and the evidence that nothing was left out or came twice."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from meshfeed import _native
from meshfeed.arguments import Checks
from meshfeed.errors import DataLossError, InvalidArgumentError


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What one process delivered, or several of one run, or of runs that follow each other.

    `loader.certificate()` gives that of a process. The sum of the certificates of all processes
    is complete if every position was delivered exactly once, to some process: a row that several
    hold counts in the lowest. Add two with `+`, or many with `sum`.

    Attributes:
        order: the name of the order.
        dataset: the fingerprint of the dataset.
        records: how many records it has.
        seed: the seed of the order.
        runs: the positions that were delivered, as (epoch, epochs, first, last): the positions
            [first, last) of each of so many epochs.
        rows: how many rows were counted.
        digest: a sum over all rows of a hash of epoch, position and record.

    Examples:
        >>> import meshfeed as mf, numpy as np
        >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(10)}), batch_size=4, epochs=3)
        >>> delivered = len(list(loader))
        >>> done = loader.certificate()
        >>> done.first, done.last, done.rows, done.complete()
        ((0, 0), (2, 8), 24, True)
        >>> mf.Certificate.from_json(done.to_json()) == done
        True
    """

    order: str
    dataset: str
    records: int
    seed: int
    runs: tuple[tuple[int, int, int, int], ...]
    rows: int
    digest: str

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any]) -> Certificate:
        """Reads what `to_json` gave.

        Args:
            text: the text, or the dict that `json.loads` made of it.

        Raises:
            InvalidArgumentError: it is not a certificate.
        """
        try:
            values = dict(text if isinstance(text, Mapping) else json.loads(text))
            version, runs = values.pop("meshfeed"), values.pop("runs")
            read = cls(runs=tuple((e, n, p, q) for e, n, p, q in runs), **values)
        except (KeyError, TypeError, ValueError):
            version, read = None, None
        if read is None or version != 1:
            message, hint = "this is not a certificate", "pass on what a loader gave, unchanged"
            raise InvalidArgumentError(message, op="mf.Certificate", hint=hint)
        return read

    def to_json(self) -> str:
        """Gives the certificate as one line of JSON, to be kept beside a checkpoint."""
        values = {"meshfeed": 1, **dataclasses.asdict(self)}
        return json.dumps(values, separators=(",", ":"))

    @property
    def first(self) -> tuple[int, int] | None:
        """The epoch and position of the first row; None where nothing was delivered."""
        return (self.runs[0][0], self.runs[0][2]) if self.runs else None

    @property
    def last(self) -> tuple[int, int] | None:
        """The epoch of the last row and the position behind it; None where there is none."""
        if not self.runs:
            return None
        epoch, epochs, _, position = self.runs[-1]
        return epoch + epochs - 1, position

    def __add__(self, other: Certificate) -> Certificate:
        """Gives the sum: all positions of both, and all that was counted.

        Raises:
            IncompatibleError: they are of another dataset, order or seed.
        """
        if not isinstance(other, Certificate):
            return NotImplemented
        with Checks("mf.Certificate"):
            return Certificate.from_json(_native.certificate_add(self.to_json(), other.to_json()))

    def __radd__(self, other: int) -> Certificate:
        return self if other == 0 else NotImplemented  # where `sum` begins

    def check(self) -> None:
        """Checks that every position was delivered exactly once, with its record.

        It computes the records from order and seed anew, some ten nanoseconds for each.

        Raises:
            DataLossError: rows are missing, came twice, or are not those of their positions.
        """
        with Checks("Certificate.check"):
            _native.certificate_check(self.to_json())

    def complete(self) -> bool:
        """Says whether every position was delivered exactly once; `check` says what is wrong."""
        try:
            self.check()
        except DataLossError:
            return False
        return True
