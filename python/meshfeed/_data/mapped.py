"""Rows that are computed when they are loaded: by functions of the user, and images."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from meshfeed._data import returned
from meshfeed._data.fields import Field, names_of, row_shape
from meshfeed._data.rows import Reader, Rows, rows_of
from meshfeed._io.arguments import Checks
from meshfeed._native import calls, maps
from meshfeed._native.contention import Contention

if TYPE_CHECKING:
    from meshfeed._data.readable import Readable as Base
else:
    Base = object  # `Dataset` is a `Readable`, too

log = logging.getLogger("meshfeed")

_OUT = 'a dict of fields, such as {"x": mf.Field((224, 224, 3), "uint8")}'
_WORKERS = "calls of the function at a time"


class MapMixin(Base):
    """The methods of `Dataset` that compute rows."""

    def map(
        self,
        fn: Callable[..., Mapping[str, Any]],
        out: Mapping[str, Field] | None = None,
        *,
        fields: Iterable[str] | None = None,
        batched: bool = True,
        with_keys: bool = False,
        workers: int | None = None,
        key: str | None = None,
        bad: Literal["error", "zero"] = "error",
    ) -> Self:
        """Returns a view with fields that a function computes, ahead of the step.

        ``fn(rows)`` gets some rows as ``ds[a:b]`` returns them: a dict with an array per field, or
        a list if the field is ragged. It returns a dict of the fields of `out`: arrays, or lists of
        arrays, `str` or `bytes` for a ragged field. The other fields of the dataset stay.

        A process computes the rows of its own devices alone, in threads. Each call gets other rows,
        of any number, so the result for a row must depend on that row and its key alone. Then the
        rows are the same on every mesh and after every resume; `mf.check_map` tests it. Rows are
        computed again in every epoch, unless `cache` keeps them.

        Code that releases Python's lock runs in several threads at a time: large NumPy operations,
        image decoders, ``encode_batch`` of tokenizers. Loops in Python do not.

        Args:
            fn: computes rows. Several threads call it at a time.
            out: the fields that it returns, such as ``{"x": mf.Field((224, 224, 3), "uint8")}``.
                ``mf.Field((None,), "int32")`` is ragged, and with ``logical="string"`` and uint8 it
                holds text. By default one row shows it, which is logged.
            fields: the fields that the function gets; all by default.
            batched: whether `fn` gets several rows. If not, it gets one, as ``ds[i]`` returns it,
                and returns one. That takes Python's lock for every row.
            with_keys: whether `fn` gets a second argument: a key for each row, uint32 of shape
                ``[rows, 2]``. A key follows from the seed and the epoch of the loader and the
                number of the record, so use it for random choices:
                ``np.random.default_rng(key)``. A batch has the same keys with
                ``Loader(extras=["key"])``. Without a loader, seed and epoch are 0.
            workers: the most calls at a time; by default one for each processor.
            key: names what the function does, such as "crop.2": change it with the function. It
                stands in the fingerprint, and so in states, in place of the module and the name of
                the function. `cache` needs it.
            bad: "zero" makes the rows of a record zeros, or empty if they are ragged, if the
                function raises an exception for it or returns rows that do not fit. The first such
                record of a loader is logged, and ``loader.stats()["bad"]`` counts them.

        Raises:
            NotFoundError: there is no field of `fields`.
            InvalidArgumentError: an argument makes no sense. If the function raises an exception,
                or returns other fields, shapes or types than `out` says, the batch that needs the
                row raises this error, with the number of the record. The exception is its cause, so
                a traceback shows the line. `pack` raises it over a map without `cache`, because it
                needs the lengths of all rows.
            InvalidStateError: the function raised SystemExit or KeyboardInterrupt, took batches of
                a loader, or read its own rows; raised by the batch, also with ``bad="zero"``.
            ResourceExhaustedError: it raised MemoryError; likewise.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(6, dtype=np.float32), "y": np.arange(6)})
            >>> scaled = ds.map(lambda rows: {"x": rows["x"] / 2}, {"x": mf.Field((), "float32")})
            >>> scaled[:3]
            {'x': array([0. , 0.5, 1. ], dtype=float32), 'y': array([0, 1, 2])}
        """
        with Checks("Dataset.map") as check:
            if not callable(fn):
                raise check.wrong("fn", fn, "a function of rows")
            names = list(self.schema) if fields is None else names_of(check, "fields", fields)
            with type(self)(calls.dataset_view("select", [self.handle], fields=names)) as seen:
                given = list(seen.schema.values())
            count = check.optional("workers", workers, 1, 256) or min(os.cpu_count() or 1, 256)
            function = _Function(check, fn, given)
            function.batched = bool(check.boolean("batched", batched))
            function.with_keys = bool(check.boolean("with_keys", with_keys))
            function.check_arguments()
            function.out = self._inferred(check, function) if out is None else _fields(check, out)
            handle = maps.dataset_map(
                self.handle,
                function,
                count,
                out=[returned.described(name, field) for name, field in function.out.items()],
                fields=names,
                keys=function.with_keys,
                name=function.name,
                key=None if key is None else check.field("key", key),
                bad=check.choice("bad", bad, "error", "zero"),
            )
            functions = *self._origin.functions, function
            return type(self)(handle, dataclasses.replace(self._origin, functions=functions))

    def _inferred(self, check: Checks, function: _Function) -> dict[str, Field]:
        """Calls a function with the first row, and returns the fields of what it returns."""
        if not len(self):
            raise check.misfit(
                "the dataset has no row that shows what fn returns", f"give out={_OUT}"
            )
        columns = [field.name for field in function.fields]
        rows = {name: values for name, values in self[:1].items() if name in columns}
        found = function.call(rows, np.zeros((1, 2), np.uint32))
        fields = _fields(check, {n: returned.field(check, n, v) for n, v in found.items()})
        log.info("ds.map: out=%s", fields)
        return fields

    def decode_image(
        self,
        field: str,
        *,
        size: tuple[int, int],
        resize: Literal["area"] = "area",
        crop: Literal["center", "random"] = "center",
        flip: Literal["random"] | None = None,
        color: Literal["rgb", "gray"] = "rgb",
        bad: Literal["error", "zero"] = "error",
    ) -> Self:
        """Returns a view in which the rows of a field are images of one size.

        The rows are the bytes of JPEG, PNG and WebP files. They become uint8 of shape ``[height,
        width, channels]`` when they are loaded; nothing is decoded before. 16-bit channels keep
        their upper 8 bits, CMYK becomes RGB, and transparency is dropped. EXIF orientation and
        color profiles are not applied, as in Pillow and torchvision. A null row stays null.

        Random crops and flips follow from the key of seed, epoch and record, so they differ from
        epoch to epoch, and are the same on any mesh. ``ds[i]`` shows them for seed 0 and epoch 0.

        Args:
            field: a field of bytes.
            size: height and width.
            resize: "area" takes the mean over the area that each pixel covers. A large JPEG file is
                decoded at a fraction of its size first, which leaves twice the pixels of `size` or
                more in each direction.
            crop: "center" takes the largest part in the middle that has the proportions of `size`.
                "random" takes 8 to 100 % of the area, with up to 4/3 of these proportions.
            flip: "random" exchanges left and right in half of the images.
            color: "rgb" makes 3 channels, "gray" one, which is the luma.
            bad: "zero" makes an image that cannot be decoded zeros. The first one of a loader is
                logged, and ``loader.stats()["bad"]`` counts them.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the field does not hold bytes, or the size is out of range. Bytes
                that are no image are an error of the batch that needs them; the message names the
                record.
            DataLossError: an image is truncated or damaged; raised by the batch.
            UnsupportedError: an image has another format, such as GIF, or more than 10^8 pixels;
                raised by the batch.

        Examples:
            >>> import io, matplotlib.image, meshfeed as mf, numpy as np, pyarrow as pa
            >>> file, pixels = io.BytesIO(), np.uint8([[[200, 100, 50]]])
            >>> matplotlib.image.imsave(file, pixels, format="png")
            >>> ds = mf.from_arrow(pa.table({"image": [file.getvalue()]}))
            >>> ds.decode_image("image", size=(1, 2))[0]["image"].tolist()
            [[[200, 100, 50], [200, 100, 50]]]
        """
        with Checks("Dataset.decode_image") as check:
            name = check.name("field", field)
            shape = row_shape(check, "size", size) if hasattr(size, "__iter__") else []
            if len(shape) != 2:
                raise check.wrong("size", size, "a height and a width, such as (224, 224)")
            if resize != "area":
                raise check.wrong("resize", resize, '"area"')
            if flip is not None and flip != "random":
                raise check.wrong("flip", flip, '"random" or None')
            handle = calls.dataset_view(
                "decode_image",
                [self.handle],
                field=name,
                size=shape,
                crop=check.choice("crop", crop, "center", "random"),
                flip=flip or "none",
                color=check.choice("color", color, "rgb", "gray"),
                bad=check.choice("bad", bad, "error", "zero"),
            )
            return type(self)(handle, self._origin)


class _Function:
    """A function of the user, and how it is called.

    Attributes:
        fields: the fields that it gets.
        out: the fields that it returns.
        name: its module and name, for the fingerprint.
        batched: whether it gets several rows at a time.
        with_keys: whether it gets keys.
        contention: the waits of its calls for the lock of the interpreter.
    """

    def __init__(self, check: Checks, fn: Callable[..., Any], fields: list[Field]) -> None:
        self._check, self._fn, self.fields = check, fn, fields
        self.out: dict[str, Field] = {}
        self.batched, self.with_keys = True, False
        self.contention = Contention()
        self._reader = Reader(fields, encoded=True)
        while isinstance(fn, functools.partial):
            fn = fn.func
        named = [getattr(fn, part, "") for part in ("__module__", "__qualname__")]
        self.name = ".".join(filter(None, named)) or type(fn).__qualname__

    def check_arguments(self) -> None:
        """Raises an error if the function cannot be called with the rows, and with the keys."""
        try:
            signature = inspect.signature(self._fn)
        except (TypeError, ValueError):  # a function of C may have none
            return
        given = ["rows", "keys"][: 1 + self.with_keys]
        try:
            signature.bind(*given)
        except TypeError as e:
            message = f"fn{signature} cannot be called with {' and '.join(given)}: {e}"
            hint = "write fn(rows), which gets a dict of all fields, or fn(rows, keys) with "
            raise self._check.misfit(message, f"{hint}with_keys=True") from None

    def __call__(self, call: maps.Call) -> None:
        """Computes the rows of a call of the library."""
        n = len(call.records)
        rows = self._reader.arrays(call.columns(self._reader.kinds))
        found = self.call(rows, call.keys, n)
        returned.check_names(self._check, found, self.out)
        for i, (name, field) in enumerate(self.out.items()):
            returned.put(self._check, call, i, name, field, found[name], n)

    def call(self, rows: Rows, keys: Any, n: int = 1) -> Mapping[str, Any]:
        """Returns what the function returns for n rows, by field."""
        if self.batched:
            return self._once(rows, keys)
        keys = [None] * n if keys is None else keys
        every = [self._once(*row) for row in zip(rows_of(rows, n) or [{}] * n, keys, strict=True)]
        for found in every:
            returned.check_names(self._check, found, every[0])
        return {name: returned.joined([found[name] for found in every]) for name in every[0]}

    def _once(self, rows: Rows, keys: Any) -> Mapping[str, Any]:
        found: Any = self._fn(rows, keys) if self.with_keys else self._fn(rows)
        if not isinstance(found, Mapping):
            raise self._check.misfit(
                f"the function returned {type(found).__name__}: expected a dict of fields",
                f"return a dict, such as {{{next(iter(self.out), 'x')!r}: array}}",
            )
        return found


def _fields(check: Checks, out: Any) -> dict[str, Field]:
    if not isinstance(out, Mapping) or not out:
        raise check.wrong("out", out, _OUT)
    for name, field in out.items():
        check.field("out", name)
        if not isinstance(field, Field) or field.ragged > 1:
            raise check.wrong(
                f"out[{name!r}]",
                field,
                'a field with one None at most, such as mf.Field((None, 3), "float32")',
            )
    return dict(out)
