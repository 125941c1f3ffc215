"""Record batches: the batches of a loader for Arrow's libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from meshfeed._native import arrow
from meshfeed._native.abi import Head
from meshfeed._native.owner import Owner
from meshfeed.errors import InvalidStateError


class RecordBatch:
    """A batch of `Loader(ds, arrow=True)`, for every library that reads Arrow data.

    It has the methods of Arrow's PyCapsule protocol. So `pyarrow.record_batch(batch)`,
    `polars.DataFrame(batch)` and `FROM batch` in DuckDB read it. They use the memory of the batch
    without a copy, and keep it alive, also after the loader is closed. Two types are converted,
    because Arrow has no other form of them: booleans become bits, and bfloat16 becomes float32.

    Rows with a shape are fixed-size lists, one inside the other. A complex number is a list of its
    two parts. Dates, times and durations have their Arrow type again.

    Args:
        owner: keeps the memory of the batch alive.
        names: the names of the columns.
        formats: the Arrow format string of each array of the layout; None: the format of its type.
    """

    __slots__ = ("_formats", "_names", "_owner")

    def __init__(self, owner: Owner, names: Sequence[str], formats: arrow.Formats) -> None:
        self._owner, self._names, self._formats = owner, names, formats

    @property
    def _address(self) -> int:
        held = self._owner.release._as_parameter_
        assert held is not None
        assert held.value is not None
        return held.value

    @property
    def num_rows(self) -> int:
        """The number of records. The batch has no padding rows."""
        return int(Head.from_address(self._address).rows)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self._names)

    def __len__(self) -> int:
        return self.num_rows

    def __arrow_c_schema__(self) -> Any:
        """Returns a capsule of the schema."""
        return arrow.schema_of_batch(self._address, self._formats)

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Returns capsules of the schema and the values.

        Args:
            requested_schema: ignored, as the protocol allows; the consumer casts.
        """
        return arrow.record_of_batch(self._address, self._formats)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a capsule of a stream of this one record batch.

        Args:
            requested_schema: ignored, as the protocol allows; the consumer casts.
        """
        return arrow.stream_of_batch(self._address, self._formats)

    def __repr__(self) -> str:
        return f"RecordBatch of {self.num_rows} rows: {', '.join(self._names)}"

    def __reduce__(self) -> NoReturn:
        message = "a record batch cannot be pickled: its memory belongs to this process"
        hint = "send pyarrow.record_batch(batch)"
        raise InvalidStateError(message, op="mf.RecordBatch", hint=hint)
