"""The columns of a dataset: fields, and what cannot be one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from meshfeed._io.arguments import Checks, is_integer
from meshfeed._layout.blocks import dtype_of


@dataclasses.dataclass(frozen=True, init=False)
class Field:
    """A column of the dataset: rows of one shape, or ragged rows, which vary in length.

    `Dataset.schema` has them, and `Dataset.map` takes them: ``mf.Field((224, 224, 3), "uint8")``
    has rows of one shape, and ``mf.Field((None, 2), "float32")`` has rows of any number of pairs.

    Attributes:
        shape: the shape of one row; empty for a scalar. If the field is ragged, the shape of one
            element of its lists. Each None in front of the shape that is given adds to `ragged`.
        dtype: the name of the element type, such as "float32" or "bfloat16"; "uint8" for text. A
            type of NumPy or JAX may be given, too.
        name: its name; empty if the name stands elsewhere.
        nullable: whether a record may have a null here.
        logical: the type whose stored values these are, such as "timestamp[us, tz=UTC]" of Arrow,
            "datetime64[s]" of NumPy, or "string"; empty for plain numbers.
        ragged: the number of leading dimensions whose size varies: 0 for rows of one shape, 1 for
            lists, text and bytes, 2 for lists of lists or of text.
        names: the names of the classes that integers stand for, as in a `ClassLabel` of
            Hugging Face: value 0 is the first. Empty if the data hold no names.
    """

    shape: tuple[int, ...]
    dtype: str
    name: str
    nullable: bool
    logical: str
    ragged: int
    names: tuple[str, ...]

    def __init__(
        self,
        shape: Sequence[int | None],
        dtype: npt.DTypeLike,
        *,
        name: str = "",
        nullable: bool = False,
        logical: str = "",
        ragged: int = 0,
        names: tuple[str, ...] = (),
    ) -> None:
        lists = next((i for i, n in enumerate(shape) if n is not None), len(shape))
        set_ = object.__setattr__
        set_(self, "shape", tuple(shape[lists:]))
        set_(self, "dtype", dtype if isinstance(dtype, str) else np.dtype(dtype).name)
        set_(self, "name", name)
        set_(self, "nullable", nullable)
        set_(self, "logical", logical)
        set_(self, "ragged", ragged + lists)
        set_(self, "names", names)

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
        functions: what computes rows. Threads of the library refer to it weakly, because a function
            may refer to its dataset. So datasets and loaders keep it.
    """

    files: Sequence[str] = ()
    packed: Mapping[str, str] = dataclasses.field(default_factory=dict)
    compared: bool = False
    repeats: float = 1
    warned: bool = False
    uncached: Sequence[str] = ()
    scattered: Literal["", "pack", "mix"] = ""
    functions: tuple[Any, ...] = ()


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


def names_of(check: Checks, argument: str, names: Any) -> list[str]:
    """Checks a list of names of fields that is not empty."""
    several = hasattr(names, "__iter__") and not isinstance(names, str | bytes)
    listed = list(names) if several else []
    if not listed or not all(isinstance(name, str) for name in listed):
        hint = "ds.take(indices) selects records" if all(map(is_integer, listed or "_")) else ""
        raise check.wrong(argument, names, 'a list of names, such as ["image", "label"]', hint)
    return listed
