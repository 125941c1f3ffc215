"""Certificates: what a run delivered, and the evidence that nothing was left out or came twice."""

from __future__ import annotations

import dataclasses
import functools
import json
import operator
from collections.abc import Mapping
from typing import Any, NamedTuple

from meshfeed._io.arguments import Checks, is_integer
from meshfeed._native import calls
from meshfeed.errors import DataLossError, InvalidArgumentError

Place = tuple[int, int]  # epoch and position


class Span(NamedTuple):
    """The positions [first, last) of each of so many epochs from one epoch on."""

    epoch: int
    epochs: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Run:
    """Batches that followed each other on one mesh, as some of its processes tell of them.

    `restore`, `seek` and `remesh` begin another run in the same certificate.

    Attributes:
        mesh: the processes of the mesh, as ranges (start, stop).
        processes: those whose certificates are in this one, likewise.
        parts: in how many distinct blocks every row is delivered: for each array one, or as many
            as its row is cut into.
        delivered: the positions that were delivered.
        dropped: the ends of epochs that fill no step.
        skipped: the positions that `skip` left out.
        rows: how many rows these processes counted, a row once for each of its parts.
        digest: a sum over these rows of a hash of epoch, position, record and part.
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
    """What one process delivered, or several, in one run or in many.

    `loader.certificate()` gives that of a process. Add those of all processes and of all runs of
    a job, whatever their meshes, with `+` or `sum`. What processes tell of the same run becomes
    one run; different runs stay apart. `print` shows them, with what is missing or came twice.

    `check` proves of the sum that every position was delivered exactly once, with its record, by
    all processes of the mesh, or was dropped or skipped. Every distinct block of every array
    counts, in the lowest process that holds it. It does not look at the bytes of rows, nor at the
    records of further replicas: of a process that holds only these it knows the positions.

    Attributes:
        order: the name of the order.
        dataset: the fingerprint of the dataset.
        records: how many records it has.
        seed: the seed of the order.
        runs: the runs, ordered by their positions.

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

    @classmethod
    def from_json(cls, text: str | bytes | Mapping[str, Any]) -> Certificate:
        """Reads what `to_json` gave.

        Args:
            text: the text, or the dict that `json.loads` made of it.

        Raises:
            InvalidArgumentError: it is not a certificate.
            IncompatibleError: a release with another format has written it.
        """
        with Checks("mf.Certificate"):
            try:
                plain = json.dumps(dict(text)) if isinstance(text, Mapping) else text
                raw = plain.encode() if isinstance(plain, str) else bytes(memoryview(plain))
            except (TypeError, ValueError, RecursionError):
                message, hint = "this is not a certificate", "pass on what a loader gave, unchanged"
                raise InvalidArgumentError(message, op="mf.Certificate", hint=hint) from None
            calls.certificate_report(raw)  # refuses what is none
            return cls._read(raw)

    @classmethod
    def _read(cls, text: str | bytes) -> Certificate:
        """Reads what the library wrote."""
        values = json.loads(text)
        del values["meshfeed"]
        return cls(**values | {"runs": tuple(_run(run) for run in values["runs"])})

    def to_json(self) -> str:
        """Gives the certificate as one line of JSON, to be kept beside a checkpoint."""
        values = {"meshfeed": 2, **dataclasses.asdict(self)}
        return json.dumps(values, separators=(",", ":"))

    @functools.cached_property
    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(calls.certificate_report(self.to_json()))
        return report

    @property
    def first(self) -> Place | None:
        """The epoch and position of the first row delivered; None where there is none."""
        return (self.delivered[0].epoch, self.delivered[0].first) if self.delivered else None

    @property
    def last(self) -> Place | None:
        """The epoch of the last row delivered and the position behind it; None without one."""
        last = self._report["last"]
        return (last[0], last[1]) if self.delivered else None

    @property
    def delivered(self) -> tuple[Span, ...]:
        """The positions that any process delivered in any run."""
        return _spans(self._report["delivered"])

    @property
    def dropped(self) -> tuple[Span, ...]:
        """The ends of epochs that filled no step, and were not delivered by another run."""
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
        place = f"to position {self.last[1]} of epoch {self.last[0]}" if self.last else "empty"
        return f"<Certificate of {self.order}, seed {self.seed}: {runs}, {place}>"

    def __add__(self, other: Certificate) -> Certificate:
        """Gives the sum: the runs of both.

        Raises:
            IncompatibleError: they are of another dataset, order or seed.
        """
        if not isinstance(other, Certificate):
            return NotImplemented
        with Checks("mf.Certificate"):
            return self._read(calls.certificate_add(self.to_json(), other.to_json()))

    def __radd__(self, other: int) -> Certificate:
        return self if other == 0 else NotImplemented  # where `sum` begins

    def check(
        self,
        epochs: int | range | None = None,
        *,
        first: Place | None = None,
        last: Place | None = None,
    ) -> None:
        """Checks that every position asked for was delivered exactly once, with its record.

        Dropped and skipped positions are no gaps; `dropped` and `skipped` name them. Without
        arguments it asks for the positions from the first one of epoch 0 to the last one that
        was delivered, so it does not know whether more should have come: `epochs=` says so.

        It computes the records from order and seed anew, some ten nanoseconds for each.

        Args:
            epochs: whole epochs, as a range, or as a number of them from epoch 0 on.
            first: instead: the epoch and position to begin at, by default (0, 0).
            last: and those to end before, by default behind the last position delivered.

        Raises:
            DataLossError: positions are missing, came twice, or were not delivered by all
                processes; or rows are not those of their positions. It names the positions, the
                processes and what to do. A certificate of nothing is not complete either.
            OutOfRangeError: there is no such place.
        """
        with Checks("Certificate.check") as check:
            calls.certificate_check(self.to_json(), self._range(check, epochs, first, last))

    def complete(
        self,
        epochs: int | range | None = None,
        *,
        first: Place | None = None,
        last: Place | None = None,
    ) -> bool:
        """Says whether `check` finds nothing wrong.

        Args:
            epochs: as for `check`, and so are the others.
            first: likewise.
            last: likewise.
        """
        try:
            self.check(epochs, first=first, last=last)
        except DataLossError:
            return False
        return True

    def report(
        self,
        epochs: int | range | None = None,
        *,
        first: Place | None = None,
        last: Place | None = None,
    ) -> dict[str, Any]:
        """Gives what the runs claim of the positions asked for, without a look at the evidence.

        Args:
            epochs: as for `check`, and so are the others.
            first: likewise.
            last: likewise.

        Returns:
            "first" and "last", what was asked for; "delivered", "dropped" and "skipped", of all
            runs; "missing", which is none of these; "absent", what "processes" did not deliver
            and others did; "repeated", what "processes" delivered more than once; "text".
            Positions are lists of [epoch, epochs, first, last].

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
        self, check: Checks, epochs: int | range | None, first: Place | None, last: Place | None
    ) -> tuple[int, int, int, int] | None:
        """Gives what is asked for as the library takes it."""
        if epochs is None:
            if first is None and last is None:
                return None
            begin = (0, 0) if first is None else _place(check, "first", first)
            end = (self.last or (0, 0)) if last is None else _place(check, "last", last)
            return *begin, *end
        if first is not None or last is not None:
            raise check.misfit("epochs= and first= or last= do not go together", "give one of them")
        given: Any = epochs
        asked = range(operator.index(given)) if is_integer(given) else given
        if not isinstance(asked, range) or asked.step != 1 or not asked or asked.start < 0:
            raise check.wrong("epochs", epochs, "a number of epochs, or a range of them")
        start, stop = check.int64("epochs", asked.start), check.int64("epochs", asked.stop)
        return start, 0, stop, 0


def _place(check: Checks, name: str, place: Any) -> Place:
    """Takes an epoch and a position."""
    if not isinstance(place, tuple | list) or len(place) != 2:
        raise check.wrong(name, place, "an epoch and a position")
    return check.int64(name, place[0]), check.int64(name, place[1])


def _spans(spans: Any) -> tuple[Span, ...]:
    return tuple(Span(*span) for span in spans)


def _run(values: dict[str, Any]) -> Run:
    """Makes a run of what the library wrote."""
    ranges = {key: tuple((a, b) for a, b in values[key]) for key in ("mesh", "processes")}
    spans = {key: _spans(values[key]) for key in ("delivered", "dropped", "skipped")}
    return Run(**values | ranges | spans)
