"""The columns of a dataset: fields, and what cannot be one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from meshfeed._io.arguments import Checks
from meshfeed._layout.blocks import dtype_of


@dataclasses.dataclass(frozen=True)
class Field:
    """A column of the dataset: rows of one shape, or ragged rows, which vary in length.

    Attributes:
        name: its name.
        dtype: the name of the element type, such as "float32" or "bfloat16"; "uint8" for text.
        shape: the shape of one row; empty for a scalar. If the field is ragged, the shape of one
            element of its lists.
        nullable: whether a record may have a null here.
        logical: the type whose stored values these are, such as "timestamp[us, tz=UTC]" of Arrow,
            "datetime64[s]" of NumPy, or "string"; empty for plain numbers.
        ragged: the number of leading dimensions whose size varies: 0 for rows of one shape, 1 for
            lists, text and bytes, 2 for lists of lists or of text.
        names: the names of the classes that integers stand for, as in a `ClassLabel` of
            Hugging Face: value 0 is the first. Empty if the data hold no names.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nullable: bool
    logical: str = ""
    ragged: int = 0
    names: tuple[str, ...] = ()

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The element type of NumPy."""
        return dtype_of(self.dtype)

    def __str__(self) -> str:
        stored = f" ({self.logical})" if self.logical else ""
        sizes = ", ".join(["…"] * self.ragged + [str(n) for n in self.shape])
        return f"{self.name}: {self.dtype}{f'[{sizes}]' if sizes else ''}{stored}"


@dataclasses.dataclass(frozen=True)
class Skipped:
    """A column that cannot be an array, and why."""

    name: str
    type: str
    reason: str


DECODED = 2**28  # bytes of decoded record batches that the library keeps in memory


@dataclasses.dataclass
class Origin:
    """The state that a dataset shares with its views.

    Attributes:
        files: the paths of the files; none for data in memory.
        packed: the encoding of each file whose rows must be decoded, by path.
        compared: whether `mf.open(fingerprint="full")` asks to compare every byte of the files.
        repeats: how often windows that overlap contain a record.
        warned: whether the warning about skipped columns was logged.
        uncached: the paths of files that must be decoded, but are opened with `cache=None`.
        scattered: which view reads its records far apart, whatever the order of the loader: "pack"
            with large groups of documents, or "mix" with shuffled datasets; empty for none.
    """

    files: Sequence[str] = ()
    packed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    compared: bool = False
    repeats: float = 1
    warned: bool = False
    uncached: Sequence[str] = ()
    scattered: Literal["", "pack", "mix"] = ""


_ELEMENTS = re.compile(r"u?int(8|16|32|64)|b?float16|float(32|64)|complex(64|128)")


def row_shape(check: Checks, argument: str, shape: Any) -> list[int]:
    """Checks the lengths of the dimensions of a row."""
    if not hasattr(shape, "__iter__"):
        raise check.wrong(argument, shape, "the lengths of a row, such as (16, 16, 3)")
    hint = "give every length: none is computed from the others"
    return [check.integer(f"{argument}[{i}]", n, 0, 2**63 - 1, hint) for i, n in enumerate(shape)]


def element(check: Checks, argument: str, dtype: Any) -> np.dtype[Any] | None:
    """Checks the type of the elements that bytes hold. None stands for the type of the field."""
    if dtype is None:
        return None
    try:
        kind = dtype_of(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if not _ELEMENTS.fullmatch(kind.name) or not kind.isnative:
        raise check.wrong(argument, dtype, 'a little-endian type of numbers, such as "float32"')
    return kind
