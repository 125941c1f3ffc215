"""Certificates: what a run delivered, with evidence that no row is missing or repeated."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

from meshfeed._data.dataset import Dataset
from meshfeed._io.arguments import Checks, is_integer
from meshfeed._native import calls
from meshfeed.errors import DataLossError

Position = tuple[int, int]  # epoch and position


class Span(NamedTuple):
    """The positions [first, last) in each of `epochs` consecutive epochs, from `epoch` on."""

    epoch: int
    epochs: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Run:
    """Consecutive batches on one mesh, as recorded by one or more of its processes.

    `restore`, `seek` and `remesh` begin another run in the same certificate.

    Attributes:
        mesh: the processes of the mesh, as ranges (start, stop).
        processes: the processes whose certificates are added in this one, as ranges.
        parts: the number of distinct blocks that contain a part of one row: one per array, or more
            if the spec splits the row.
        delivered: the positions that were delivered.
        dropped: the positions at the ends of epochs that are too few to fill a step.
        skipped: the positions that `skip` left out.
        rows: the number of rows that these processes counted, each once for each of its parts.
        digest: the sum of a hash of epoch, position, record and part over these rows.
    """

    mesh: tuple[tuple[int, int], ...]
    processes: tuple[tuple[int, int], ...]
    parts: int
    delivered: tuple[Span, ...]
    dropped: tuple[Span, ...]
    skipped: tuple[Span, ...]
    rows: int
    digest: str


@dataclasses.dataclass(frozen=True, repr=False)
class Certificate:
    """The positions that one or several processes delivered, in one or several runs.

    `loader.certificate()` returns the certificate of one process. Add the certificates of all
    processes and runs of a job, on any meshes, with `+` or `sum`. Certificates of one run by
    several processes become one `Run`. `print` shows the runs, and missing and repeated positions.

    `check` proves of the sum that all processes of the mesh delivered every position exactly once,
    with its record. Dropped and skipped positions are allowed.

    If several processes hold a block, only the one with the lowest number counts its rows. So the
    check does not cover the records of further replicas, only their positions. It does not cover
    the bytes of rows.

    Attributes:
        order: the name of the order.
        dataset: the fingerprint of the dataset.
        records: the number of records of the dataset.
        seed: the seed of the order.
        runs: the runs, ordered by their positions.
        commits: the names under which the files of a hub open again, such as
            ``hf://datasets/ORG/NAME@COMMIT``; empty for other files.

    Examples:
        >>> import meshfeed as mf, numpy as np
        >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(10)}), batch_size=4, epochs=3)
        >>> delivered = len(list(loader))
        >>> done = loader.certificate()
        >>> done.last, done.delivered
        ((2, 8), (Span(epoch=0, epochs=3, first=0, last=8),))
        >>> done.dropped
        (Span(epoch=0, epochs=3, first=8, last=10),)
        >>> done.complete(), done.complete(epochs=3), done.complete(epochs=range(1, 4))
        (True, True, False)
        >>> mf.Certificate.from_json(done.to_json()) == done
        True
    """

    order: str
    dataset: str
    records: int
    seed: int
    runs: tuple[Run, ...]
    commits: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any]) -> Certificate:
        """Parses the text that `to_json` returned.

        Args:
            text: the text, or the dict that `json.loads` makes of it.

        Raises:
            InvalidArgumentError: the text is not a certificate.
            IncompatibleError: the text was written by a release with another format.
        """
        with Checks("mf.Certificate") as check:
            try:
                plain = json.dumps(dict(text)) if isinstance(text, Mapping) else text
                raw = plain.encode() if isinstance(plain, str) else bytes(memoryview(plain))
            except (TypeError, ValueError, RecursionError):
                hint = "pass on what a loader gave, unchanged"
                raise check.misfit("this is not a certificate", hint) from None
            calls.certificate_report(raw)  # rejects other texts
            return cls._read(raw)

    @classmethod
    def _read(cls, text: str | bytes) -> Certificate:
        """Parses a text that the library wrote or has accepted."""
        values = json.loads(text)
        del values["meshfeed"]
        commits = tuple(values.pop("commits", ()))
        return cls(**values | {"runs": tuple(map(_run, values["runs"])), "commits": commits})

    def to_json(self) -> str:
        """Returns the certificate as one line of JSON, for storage beside a checkpoint."""
        values = {"meshfeed": 2, **dataclasses.asdict(self)}
        if not self.commits:
            del values["commits"]
        return json.dumps(values, separators=(",", ":"))

    @functools.cached_property
    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(calls.certificate_report(self.to_json()))
        return report

    @property
    def first(self) -> Position | None:
        """The epoch and position of the first delivered row; None if no row was delivered."""
        return (self.delivered[0].epoch, self.delivered[0].first) if self.delivered else None

    @property
    def last(self) -> Position | None:
        """The epoch of the last delivered row and the position after that row; None if none was."""
        last = self._report["last"]
        return (last[0], last[1]) if self.delivered else None

    @property
    def delivered(self) -> tuple[Span, ...]:
        """The positions that any process delivered in any run."""
        return _spans(self._report["delivered"])

    @property
    def dropped(self) -> tuple[Span, ...]:
        """The positions at the ends of epochs that fill no step, and that no run delivered."""
        return _spans(self._report["dropped"])

    @property
    def skipped(self) -> tuple[Span, ...]:
        """The positions that `skip` left out, and that no run delivered or dropped."""
        return _spans(self._report["skipped"])

    def __str__(self) -> str:
        text: str = self._report["text"]
        return text

    def __repr__(self) -> str:
        runs = f"{len(self.runs)} run" + "s" * (len(self.runs) != 1)
        reached = f"to position {self.last[1]} of epoch {self.last[0]}" if self.last else "empty"
        return f"<Certificate of {self.order}, seed {self.seed}: {runs}, {reached}>"

    def __add__(self, other: Certificate) -> Certificate:
        """Returns the sum: the runs of both.

        Raises:
            IncompatibleError: the certificates differ in dataset, order or seed.
        """
        if not isinstance(other, Certificate):
            return NotImplemented
        with Checks("mf.Certificate"):
            return self._read(calls.certificate_add(self.to_json(), other.to_json()))

    def __radd__(self, other: int) -> Certificate:
        return self if other == 0 else NotImplemented  # `sum` starts at 0

    def check(
        self,
        epochs: int | range | None = None,
        *,
        first: Position | None = None,
        last: Position | None = None,
        dataset: Dataset | None = None,
    ) -> None:
        """Checks that every position was delivered exactly once, with its record.

        Dropped and skipped positions are not missing; `dropped` and `skipped` list them. Without
        arguments, it checks from the start of epoch 0 to the last delivered position. To check that
        a run reached its end, give `epochs=`.

        It computes the records again from order and seed, in about ten nanoseconds each.

        Args:
            epochs: whole epochs, as a range, or as a number of them from epoch 0 on.
            first: the epoch and position to begin at, by default (0, 0); not with `epochs`.
            last: the epoch and position to end before, by default after the last delivered one.
            dataset: the dataset of the loader. It is needed if the blocks of the order are its
                record batches or row groups, as with ``order="blocks"``.

        Raises:
            DataLossError: positions are missing, repeated, or not delivered by all processes; or
                rows do not have the records of their positions; or no row was delivered. The
                message names positions, processes and what to do.
            OutOfRangeError: the dataset has no such position.
            InvalidArgumentError: the order needs `dataset`.
            IncompatibleError: the dataset has other records, or another division into record
                batches or row groups.
        """
        with Checks("Certificate.check") as check:
            given: Any = dataset
            if given is not None and not isinstance(given, Dataset):
                raise check.wrong("dataset", dataset, "a dataset, such as mf.open returns")
            asked = self._range(check, epochs, first, last)
            handle = 0 if dataset is None else dataset.handle
            calls.certificate_check(self.to_json(), asked, handle)

    def complete(
        self,
        epochs: int | range | None = None,
        *,
        first: Position | None = None,
        last: Position | None = None,
        dataset: Dataset | None = None,
    ) -> bool:
        """Returns whether `check` succeeds with the same arguments."""
        try:
            self.check(epochs, first=first, last=last, dataset=dataset)
        except DataLossError:
            return False
        return True

    def report(
        self,
        epochs: int | range | None = None,
        *,
        first: Position | None = None,
        last: Position | None = None,
    ) -> dict[str, Any]:
        """Returns the recorded positions of all runs, without a check of the evidence.

        The arguments are as in `check`.

        Returns:
            "first" and "last", the ends of the range; "delivered", "dropped" and "skipped", the
            positions of all runs within it; "missing", the rest of the range; "absent", positions
            that "processes" did not deliver and others did; "repeated", positions that "processes"
            delivered more than once; "text", a summary. Positions are lists of
            [epoch, epochs, first, last].

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> loader = mf.Loader(mf.from_arrays({"x": np.arange(10)}), batch_size=5)
            >>> loader.seek(epoch=0, position=5)
            >>> delivered = len(list(loader))
            >>> loader.certificate().report()["missing"]
            [[0, 1, 0, 5]]
        """
        with Checks("Certificate.report") as check:
            asked = self._range(check, epochs, first, last)
            report: dict[str, Any] = json.loads(calls.certificate_report(self.to_json(), asked))
            return report

    def _range(
        self,
        check: Checks,
        epochs: int | range | None,
        first: Position | None,
        last: Position | None,
    ) -> tuple[int, int, int, int] | None:
        """Returns the epochs and positions of both ends of the range; None for the default."""
        if epochs is None:
            if first is None and last is None:
                return None
            begin = (0, 0) if first is None else _position(check, "first", first)
            end = (self.last or (0, 0)) if last is None else _position(check, "last", last)
            return *begin, *end
        if first is not None or last is not None:
            raise check.misfit("epochs= and first= or last= do not go together", "give one of them")
        given: Any = epochs
        asked = range(operator.index(given)) if is_integer(given) else given
        if not isinstance(asked, range) or asked.step != 1 or not asked or asked.start < 0:
            raise check.wrong("epochs", epochs, "a number of epochs, or a range of them")
        start, stop = check.int64("epochs", asked.start), check.int64("epochs", asked.stop)
        return start, 0, stop, 0


def _position(check: Checks, name: str, given: Any) -> Position:
    """Checks that an argument is an epoch and a position, and returns both."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise check.wrong(name, given, "an epoch and a position")
    return check.int64(name, given[0]), check.int64(name, given[1])


def _spans(spans: Any) -> tuple[Span, ...]:
    return tuple(Span(*span) for span in spans)


def _run(values: dict[str, Any]) -> Run:
    """Makes a run from the library's JSON."""
    ranges = {key: tuple((a, b) for a, b in values[key]) for key in ("mesh", "processes")}
    spans = {key: _spans(values[key]) for key in ("delivered", "dropped", "skipped")}
    return Run(**values | ranges | spans)
