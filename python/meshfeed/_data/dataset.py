"""Datasets: records with fields, and views of them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from meshfeed._data import masks
from meshfeed._data.fields import DECODED, Field, Origin, Skipped, element, names_of, row_shape
from meshfeed._data.mapped import MapMixin
from meshfeed._data.readable import Readable, warn_of
from meshfeed._io import arraylike, synonyms
from meshfeed._io.arguments import RECORDS, WIDE, Checks
from meshfeed._jobs import early
from meshfeed._native import calls
from meshfeed._native.files import Files
from meshfeed.errors import InvalidStateError, OutOfRangeError

early.watch()

_STACKS = 'a dict of lists of names, such as {"x": ["a", "b"]}'
_GROUP = '"auto" chooses by the lengths'
_PARTS = 'a dict of names and shares, such as {"train": 0.9, "test": 0.1}'
_SPECS = "specs that name fields, such as a list of names, avoid this warning"


class Dataset(MapMixin, Readable):
    """Records, numbered from 0, with fields that a `Loader` delivers.

    Make one with `mf.open`, `mf.from_arrow` or `mf.from_arrays`. A dataset is a context
    manager. Loaders keep what they need of it, so it may be closed as soon as they exist.
    """

    def fingerprint(self) -> str:
        """Returns a hash of schema and content, the same on every host that has the same data.

        States contain it, and the processes of a job compare it. It covers every byte of a file of
        up to 16 MiB, and samples of a larger file. It depends on the division into record batches.

        For data in memory it covers all values of up to 256 MiB, and evenly spread rows of more. It
        does not depend on chunks. `fingerprint_covers` is the covered share; `sha256` reads all
        bytes.
        """
        with Checks("Dataset.fingerprint"):
            return calls.dataset_fingerprint(self.handle)

    @property
    def fingerprint_covers(self) -> float:
        """The share of the data that `fingerprint` covers; 1.0 if it reads everything.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> mf.from_arrays({"label": np.arange(1000)}).fingerprint_covers
            1.0
        """
        covered = self._facts["fingerprinted"]
        return float(covered["bytes"] / covered["of"]) if covered["of"] else 1.0

    def sha256(self) -> str:
        """Returns a SHA-256 over every byte of the files, which it reads once.

        It is the SHA-256 over the SHA-256 of each file, in order; `meshfeed verify --hash` prints
        the same. A view has the SHA-256 of all files below it.

        Raises:
            UnsupportedError: the data are in memory.
        """
        with Checks("Dataset.sha256"):
            hashes = calls.dataset_hash(self.handle, wait=True)
            assert hashes is not None
            return str(hashes["sha256"])

    def slice(self, start: int, stop: int | None = None) -> Dataset:
        """Returns a view of the records from `start` up to `stop`, for example for validation.

        Negative numbers count from the end, as in ``ds[a:b]``, which returns rows and no view.
        Numbers outside of the dataset are an error. With one seed, slices of equal length are
        shuffled in the same order, because an order depends only on seed, epoch and number of
        records. To avoid this, give each loader its own `seed=`.

        Args:
            start: the first record.
            stop: the record after the last one; by default all records from `start` on.

        Raises:
            OutOfRangeError: the slice is not within the dataset.

        Examples:
            >>> import numpy as np, meshfeed as mf
            >>> ds = mf.from_arrays({"x": np.arange(10, dtype=np.int32)})
            >>> train, valid = ds.slice(0, 8), ds.slice(8, 10)
            >>> len(train), len(valid), len(ds.slice(-2))
            (8, 2, 2)
        """
        with Checks("Dataset.slice") as check:
            records = len(self)
            start = check.int64("start", start)
            stop = records if stop is None else check.int64("stop", stop)
            start, stop = (n + records if -records <= n < 0 else n for n in (start, stop))
            handle = calls.dataset_view("slice", [self.handle], start=start, stop=stop)
            return Dataset(handle, self._origin)

    def lengths(self, field: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Returns the length of every row of a field: of its first dimension, -1 for null.

        For lists, text and bytes it reads offsets and no values. `meshfeed inspect --lengths`
        prints a summary.

        Args:
            field: a field of lists, text or bytes, or of rows with a shape.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the field has one value in each record.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [], None]}))
            >>> ds.lengths("tokens").tolist()
            [3, 0, -1]
        """
        with Checks("Dataset.lengths") as check:
            out = np.empty(len(self), np.int64)
            calls.dataset_lengths(self.handle, check.name("field", field), out)
            return out

    def select(self, fields: Iterable[str]) -> Dataset:
        """Returns a view with some of the fields, in this order. Loaders read no others.

        Args:
            fields: their names.

        Raises:
            NotFoundError: there is no such field; the message lists all.
            UnsupportedError: the column cannot be an array; the message says why.
            InvalidArgumentError: a name occurs twice.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(3), "y": np.ones((3, 2)), "z": np.arange(3)})
            >>> ds.select(["z", "y"])
            Dataset of 3 records
              z: int64
              y: float64[2]
        """
        with Checks("Dataset.select") as check:
            names = names_of(check, "fields", fields)
            handle = calls.dataset_view("select", [self.handle], fields=names)
            return Dataset(handle, self._origin)

    def take(self, indices: Any) -> Dataset:
        """Returns a view with record ``indices[k]`` of this dataset as record k.

        Indices may be in any order, and may repeat. The view keeps a copy of them, 8 bytes each,
        and copies no records.

        Args:
            indices: record numbers: a one-dimensional array or a list of integers. Negative ones
                count from the end.

        Raises:
            OutOfRangeError: there is no such record; the message has the position of the index.
            InvalidArgumentError: the indices are not integers in one dimension.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"label": np.array([7, 8, 9])}).take([2, 0, -1, 1])
            >>> with mf.Loader(ds, batch_size=4, shuffle=False) as loader:
            ...     next(iter(loader))["label"].tolist()
            [9, 7, 9, 8]
        """
        with Checks("Dataset.take") as check:
            numbers = _indices(check, indices)
            last = (numbers < 0) & (numbers >= -len(self))
            if last.any():
                numbers = np.where(last, numbers + len(self), numbers)
            handle = calls.dataset_view("take", [self.handle], (numbers, len(numbers)))
            return Dataset(handle, self._origin)

    def split(
        self, parts: Mapping[str, float], *, seed: int = 0, within: str | None = None
    ) -> dict[str, Dataset]:
        """Returns a view for each part of the dataset, such as one for training and one for tests.

        Every record is in one part. The records of a part keep the order of the dataset, so a
        loader of it should shuffle. The parts depend on the shares, the seed, the number of records
        and the values of `within` alone, and are the same in every later release, in Go and in C.
        Each view keeps 1 bit for each record of this dataset, and copies no records.

        Args:
            parts: the share of the records that each part has, by the name of the part. The shares
                add up to 1. They are rounded to records.
            seed: chooses the records.
            within: a field whose equal values stay in one part, such as the number of a patient, so
                that no patient is in the training and in the test set. This call reads the field
                once. The shares hold as far as the numbers of records of the values allow it.

        Raises:
            InvalidArgumentError: the shares do not add up to 1, a part has no record, or a record
                has a null in `within`.
            NotFoundError: there is no field `within`.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"x": np.arange(10), "patient": np.arange(10) // 3})
            >>> parts = ds.split({"train": 0.7, "test": 0.3}, seed=0)
            >>> parts["test"][:]["x"].tolist()
            [1, 4, 6]
            >>> parts = ds.split({"train": 0.7, "test": 0.3}, seed=0, within="patient")
            >>> parts["test"][:]["patient"].tolist()
            [1, 1, 1]
        """
        with Checks("Dataset.split") as check:
            given: Any = parts
            if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
                raise check.wrong("parts", parts, _PARTS)
            shares = [
                {
                    "name": check.field("parts", name),
                    "share": check.fraction(f"parts[{name!r}]", share),
                }
                for name, share in parts.items()
            ]
            number = check.integer("seed", seed, -WIDE, WIDE)
            name = None if within is None else check.name("within", within)
            handles = calls.dataset_views(
                "split", [self.handle], len(shares), parts=shares, seed=number, within=name
            )
            views = (Dataset(handle, self._origin) for handle in handles)
            return dict(zip(parts, views, strict=True))

    def rename(self, names: Mapping[str, str]) -> Dataset:
        """Returns a view with other names of fields. Two fields may exchange theirs.

        Args:
            names: the new name of each field that gets one.

        Raises:
            NotFoundError: there is no such field; the message lists all.
            InvalidArgumentError: two fields would have one name.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"img": np.zeros((3, 2)), "y": np.arange(3)})
            >>> ds.rename({"img": "image", "y": "label"})
            Dataset of 3 records
              image: float64[2]
              label: int64
        """
        with Checks("Dataset.rename") as check:
            given: Any = names
            if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
                expected = 'a dict of present and new names, such as {"img": "image"}'
                raise check.wrong("names", names, expected)
            new = {field: check.field("names", name) for field, name in given.items()}
            handle = calls.dataset_view("rename", [self.handle], names=new)
            return Dataset(handle, self._origin)

    def filter(self, mask: Any, *, fields: Iterable[str] | None = None) -> Dataset:
        """Returns a view of the records where a mask is true, in their order.

        The view keeps 1 bit for each record of this dataset, and copies no records.

        A function may compute the mask. It is called with batches of rows, as ``ds[a:b]`` returns
        them, and returns a boolean for each row. This reads all rows once, before `filter` returns.

        Args:
            mask: one boolean for each record: an array of any library, or a list; or a function.
            fields: the fields that the function gets; all by default.

        Raises:
            InvalidArgumentError: the mask has another length, values that are not booleans, or
                missing values. It names the records if a function returned it.
            NotFoundError: there is no such field; the message lists all.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> label = np.array([3, 1, 3, 2])
            >>> ds = mf.from_arrays({"label": label, "x": np.zeros((4, 8))})
            >>> len(ds.filter(label == 3))
            2
            >>> len(ds.filter(lambda rows: rows["label"] < 3, fields=["label"]))
            2
        """
        with Checks("Dataset.filter") as check:
            if callable(mask):
                view = contextlib.nullcontext(self) if fields is None else self.select(fields)
                with view as seen:
                    batches = seen._reader.batches(seen.handle, len(seen))
                    mask = masks.computed(check, mask, batches, len(self))
            elif fields is not None:
                raise check.misfit("fields= is for a function, and this is a mask", "leave it out")
            bits = masks.bits(check, mask, len(self))
            handle = calls.dataset_view("filter", [self.handle], (bits, len(self)))
            return Dataset(handle, self._origin)

    def window(self, length: int, stride: int = 1, within: str | None = None) -> Dataset:
        """Returns a view with windows of consecutive records as records, for time series.

        Window k joins `length` records, from record ``k * stride`` on. Every field gets a first
        dimension of that length. Ragged fields are skipped: pad them before. Records behind the
        last whole window are left out. Windows are joined when they are loaded; nothing is copied
        before.

        Args:
            length: the number of records in a window.
            stride: the number of records from the start of a window to the next start.
            within: a field that has one value in each window, such as the number of a patient, or
                the text of a key of partitions. Its changes divide the records into runs, and each
                run is divided into windows by itself. This call reads the field once, and keeps 16
                bytes for each run.

        Raises:
            InvalidArgumentError: no run is that long, or a record has a null in `within`.
            NotFoundError: there is no field `within`.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> pulse, patient = np.arange(60, 67), np.array([1, 1, 1, 1, 2, 2, 2])
            >>> ds = mf.from_arrays({"pulse": pulse, "patient": patient})
            >>> with mf.Loader(ds.window(3, within="patient"), batch_size=3) as loader:
            ...     next(iter(loader))["pulse"].tolist()
            [[60, 61, 62], [61, 62, 63], [64, 65, 66]]
        """
        with Checks("Dataset.window") as check:
            size = check.integer("length", length, 1, RECORDS)
            step = check.integer("stride", stride, 1, RECORDS)
            name = None if within is None else check.name("within", within)
            handle = calls.dataset_view(
                "window", [self.handle], length=size, stride=step, within=name
            )
            repeats = self._origin.repeats * max(1, size / step)
            return Dataset(handle, dataclasses.replace(self._origin, repeats=repeats))

    def stack(self, stacks: Mapping[str, Iterable[str]]) -> Dataset:
        """Returns a view in which several fields of one type and shape are one field.

        The first dimension of the new field counts them. So forty columns of a table are one array
        with rows of 40, which is handed over at once. The stacked fields are not fields of the
        view. The others stay in their order, and the stacks follow.

        Args:
            stacks: the fields of each stack, by the name of the stack.

        Raises:
            NotFoundError: there is no such field; the message lists all.
            InvalidArgumentError: the types or shapes differ; the message names both fields.
            UnsupportedError: a field is ragged.

        Examples:
            >>> import meshfeed as mf, numpy as np
            >>> ds = mf.from_arrays({"a": np.ones(3), "y": np.arange(3), "b": np.zeros(3)})
            >>> ds.stack({"x": ["a", "b"]})
            Dataset of 3 records
              y: int64
              x: float64[2]
        """
        with Checks("Dataset.stack") as check:
            if not isinstance(stacks, Mapping):
                raise check.wrong("stacks", stacks, _STACKS)
            given = [
                {
                    "name": check.field("stacks", name),
                    "fields": names_of(check, f"stacks[{name!r}]", fields),
                }
                for name, fields in stacks.items()
            ]
            handle = calls.dataset_view("stack", [self.handle], stacks=given)
            return Dataset(handle, self._origin)

    def pad(
        self,
        field: str,
        *,
        length: int,
        value: float | bool = 0,
        side: Literal["right", "left"] = "right",
        too_long: Literal["error", "truncate"] = "error",
    ) -> Dataset:
        """Returns a view in which the rows of a field all have this length.

        The rows are lists of any length, also if all happen to have one, text or bytes. The view
        also has the field ``f"{field}_length"`` of int32: how many elements of each row are its
        own. A null row becomes padding of length 0. Text becomes its bytes in UTF-8, as uint8. Rows
        are padded when they are loaded; nothing is copied before.

        Args:
            field: a field of lists, text or bytes, or of rows with a shape.
            length: the number of elements of every row.
            value: of the elements that are added.
            side: where they are added.
            too_long: "error" raises an error for a longer row, when a loader is made; "truncate"
                keeps its first elements.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the field has one value in each record, or cannot hold `value`.
            UnsupportedError: the rows are lists of lists.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [], [8]]}))
            >>> with mf.Loader(ds.pad("tokens", length=4, value=-1), batch_size=3) as loader:
            ...     batch = next(iter(loader))
            >>> batch["tokens"].tolist()
            [[5, 6, 7, -1], [-1, -1, -1, -1], [8, -1, -1, -1]]
            >>> batch["tokens_length"].tolist()
            [3, 0, 1]
        """
        with Checks("Dataset.pad") as check:
            handle = calls.dataset_view(
                "pad",
                [self.handle],
                field=check.name("field", field),
                value=check.number("value", value),
                length=check.int64("length", length),
                side=check.choice("side", side, "right", "left"),
                too_long=check.choice("too_long", too_long, "error", "truncate"),
            )
            return Dataset(handle, self._origin)

    def pack(
        self,
        field: str,
        *,
        length: int,
        method: Literal["best_fit", "split"] = "best_fit",
        too_long: Literal["split", "truncate", "drop", "error"] = "split",
        group: int | Literal["auto"] = "auto",
        max_documents: int | None = None,
        overlap: int = 0,
        separator: float | bool | None = None,
        with_fields: Iterable[str] | None = None,
        labels: str | None = None,
        ignored_label: int = -100,
    ) -> Dataset:
        """Returns a view whose rows hold several documents each, so that they have little padding.

        A document is one record's list, such as its tokens, or its text or bytes. A null is an
        empty document, and empty documents are in no row. The view has these fields, with rows of
        `length` elements, and no others:

        - the packed field and `with_fields`, which are 0 in padding;
        - `labels`, if it is given: the next element of the same document;
        - ``segment_ids`` of int32: the number of the document in its row, from 1 on; 0 in padding;
        - ``positions`` of int32: the place in the document, from 0 on. A document that is cut
          begins at 0 again in each row, because attention cannot reach the other rows.

        This call reads the lengths of all documents and no values. Files of compressed lists are
        decompressed for it, and Parquet pages are read. If files have more than 65,536 documents,
        the counts are kept in the cache folder of `mf.open`, for later runs. Elements are copied
        when they are loaded. `packing` counts what is in the rows.

        Args:
            field: a field of lists, text or bytes, or of rows with a shape.
            length: the number of elements of every row.
            method: "best_fit" keeps documents whole that fit into a row, and fills each row with
                documents that suit. "split" joins all documents, and cuts the result into rows; it
                pads the last one.
            too_long: what happens to a document longer than a row: "split" cuts it into several
                pieces, "truncate" keeps its first elements, "drop" leaves it out, and "error" is an
                error.
            group: of "best_fit": how many consecutive documents are fitted together. "auto" takes
                65,536, or more if rows are long.
            max_documents: of "best_fit": the most documents in a row.
            overlap: of "split": the elements that a row has in common with the next one.
            separator: an element that ends each document. It has a segment, a position and a label
                like the others, and is 0 in `with_fields`.
            with_fields: fields that are packed alike, such as a loss mask. Each of their rows is as
                long as the document.
            labels: the name of the field of labels. The label of the last element of a document is
                `ignored_label`, and so is every label in padding. If a document is cut, the label
                of the last element of a piece is the first element of the next piece. Labels of
                unsigned elements have type int32. Rows that a loader adds with ``remainder="pad"``
                are 0 in all fields.
            ignored_label: the label that a loss leaves out.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the field has one value in each record, the fields have rows of
                other lengths, or a type cannot hold a value. The message names field and record.
            OutOfRangeError: a document is too long, with ``too_long="error"``.
            UnsupportedError: the rows are lists of lists.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [1, 2, 3, 4], [8, 9]]}))
            >>> rows = ds.pack("tokens", length=5, labels="labels")[:]
            >>> rows["tokens"].tolist()
            [[5, 6, 7, 8, 9], [1, 2, 3, 4, 0]]
            >>> rows["labels"].tolist()
            [[6, 7, -100, 9, -100], [2, 3, 4, -100, -100]]
            >>> rows["segment_ids"].tolist()
            [[1, 1, 1, 2, 2], [1, 1, 1, 1, 0]]
            >>> rows["positions"].tolist()
            [[0, 1, 2, 0, 1], [0, 1, 2, 3, 0]]
        """
        with Checks("Dataset.pack") as check:
            others = None if with_fields is None else names_of(check, "with_fields", with_fields)
            count = check.integer("length", length, 1, 1 << 24)
            common = check.integer("overlap", overlap, 0, count - 1)
            ends = None if separator is None else check.number("separator", separator)
            handle = calls.dataset_view(
                "pack",
                [self.handle],
                field=check.name("field", field),
                length=count,
                method=check.choice("method", method, "best_fit", "split"),
                too_long=check.choice("too_long", too_long, "split", "truncate", "drop", "error"),
                group=None
                if group == "auto"
                else check.integer("group", group, 1, 1 << 24, _GROUP),
                max_documents=check.optional("max_documents", max_documents, 1, 2**31 - 1),
                overlap=common,
                separator=ends,
                fields=others,
                labels=None if labels is None else check.field("labels", labels),
                ignored_label=check.int64("ignored_label", ignored_label),
            )
            repeats = self._origin.repeats * count / (count - common)
            packed = Dataset(handle, dataclasses.replace(self._origin, repeats=repeats))
            if packed._group_bytes([field, *(others or ())]) > DECODED:
                packed._origin.scattered = "pack"
            return packed

    def _group_bytes(self, fields: list[str]) -> float:
        """Returns about how many bytes have to be decoded for the rows of a group."""
        found = self._facts["packing"]
        _, _, group = found["plan"].partition(":")
        if not group or not found["documents"]:
            return 0
        shapes = [self.schema[name] for name in fields]
        element = sum(math.prod(f.shape[1:]) * f.numpy_dtype.itemsize for f in shapes)
        share = min(int(group) / found["documents"], 1)
        return float(share * (found["tokens"] + found["lost"]) * element)

    def packing(self) -> dict[str, Any]:
        """Returns what the rows of `pack` hold.

        ``real`` is the share of the elements of all rows that are not padding. ``split`` counts
        documents that no row has whole, ``truncated`` and ``dropped`` those that were too long, and
        ``lost`` their elements that are in no row. ``lengths`` counts documents by their lengths.
        If `real` is below 0.9, ``better`` is a length of rows with less padding, counted over the
        first group of documents, unless there is none.

        Raises:
            InvalidArgumentError: this dataset is not what `pack` returned.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [1, 2, 3, 4], [8, 9]]}))
            >>> found = ds.pack("tokens", length=5).packing()
            >>> found["rows"], found["tokens"], found["padding"], found["plan"]
            (2, 9, 1, 'best_fit.1:65536')
        """
        with Checks("Dataset.packing") as check:
            if "packing" not in self._facts:
                message = "this dataset was not packed"
                raise check.misfit(message, 'call it on what ds.pack("tokens", length=…) returned')
            return dict(self._facts["packing"])

    def reshape(self, field: str, shape: Sequence[int], *, dtype: Any = None) -> Dataset:
        """Returns a view in which the rows of a field have a shape, such as images from bytes.

        The rows are binary values or lists of as many elements, or rows of another shape, in C
        order. A null row stays null. Rows are compared with the shape when they are loaded; nothing
        is copied before. `shapes=` of `mf.open` does the same for all files of a dataset.

        Args:
            field: a field of lists or bytes, or of rows with a shape.
            shape: the lengths of the dimensions of a row. All are given; -1 is an error.
            dtype: the type of the elements that bytes hold, little-endian, such as "float32"; by
                default the type of the field.

        Raises:
            NotFoundError: there is no such field.
            InvalidArgumentError: the field holds text or rows of another size, or `dtype` is given
                for a field that does not hold bytes. A list or a binary value of another size is an
                error of the batch that needs it; the message names the record.
            UnsupportedError: the rows are lists of lists.

        Examples:
            >>> import meshfeed as mf, numpy as np, pyarrow as pa
            >>> image = np.float32([[1, 2], [3, 4]])
            >>> ds = mf.from_arrow(pa.table({"image": [image.tobytes()], "xy": [[1, 2, 3, 4]]}))
            >>> ds.reshape("image", (2, 2), dtype="float32")[0]["image"].tolist()
            [[1.0, 2.0], [3.0, 4.0]]
            >>> ds.reshape("xy", (2, 2))[0]["xy"].tolist()
            [[1, 2], [3, 4]]
        """
        with Checks("Dataset.reshape") as check:
            name = check.name("field", field)
            kind = element(check, "dtype", dtype)
            handle = calls.dataset_view(
                "reshape",
                [self.handle],
                field=name,
                shape=row_shape(check, "shape", shape),
                dtype=None if kind is None else kind.name,
            )
            return Dataset(handle, self._origin)

    def cache(
        self,
        folder: Literal["auto", "memory"] | str | os.PathLike[str] = "auto",
        *,
        cache_bytes: int | None = None,
    ) -> Dataset:
        """Returns a view that computes each row once, and keeps it for later epochs and runs.

        Rows are computed when they are first needed, in runs of about 8 MiB with all their fields,
        so `select` the fields before. All processes of a host share the folder. The rows in it
        belong to the fingerprint of this dataset and to the versions of its files: changed data are
        computed again. The records, their order and the fingerprint stay, so states fit.

        Args:
            folder: a folder, which is made if it does not exist. "auto" is
                ``~/.cache/meshfeed/units`` (below ``$XDG_CACHE_HOME`` if that is set); if it cannot
                be used, a loader warns, and memory is used. "memory" keeps up to 256 MiB.
            cache_bytes: as in `mf.open`.

        Raises:
            UnsupportedError: the fingerprint does not tell the rows from others, because it covers
                samples of data in memory. The message says what to do.
            ResourceExhaustedError: a folder that was given has no room; raised by the batch.

        Examples:
            >>> import meshfeed as mf, pyarrow as pa
            >>> ds = mf.from_arrow(pa.table({"tokens": [[5, 6, 7], [], [8]]}))
            >>> kept = ds.pad("tokens", length=4).cache("memory")
            >>> kept[0]["tokens"].tolist()
            [5, 6, 7, 0]
        """
        with Checks("Dataset.cache") as check:
            handle = calls.dataset_view(
                "cache",
                [self.handle],
                folder=cache_folder(check, "folder", folder, '"auto", "memory" or a folder'),
                cache_bytes=check.optional("cache_bytes", cache_bytes, 1, 2**63 - 1),
            )
            packed = {"a view of ds.cache": "computed"}
            kept = dataclasses.replace(self._origin, packed=packed, uncached=(), scattered="")
            return Dataset(handle, kept)

    if not TYPE_CHECKING:  # else type checkers would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            """Raises an error that says what to write instead of a name of another library."""
            synonyms.missing(self, name, synonyms.DATASET)

    def __reduce__(self) -> NoReturn:
        message = "a dataset cannot be pickled: it belongs to this process"
        raise InvalidStateError(
            message, op="mf.Dataset", hint="send the paths, and open them in the other process"
        )


synonyms.methods(Dataset, "ds")


def _indices(check: Checks, indices: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Checks record numbers and returns them as a contiguous array."""
    if indices is None or isinstance(indices, str | bytes):
        raise check.wrong("indices", indices, "integers in one dimension")
    typed = not isinstance(indices, list) or indices  # an empty list has no type
    given = (
        arraylike.unmasked(check, "indices", indices, "number") if typed else np.empty(0, np.int64)
    )
    if given.size == 0 and given.ndim == 1:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        hint = "ds.filter(mask) takes a mask" if given.dtype.kind == "b" else ""
        if given.ndim == 0 and given.dtype.kind in "iu":
            hint = f"ds.slice(0, {given}) has the first {given} records"
        expected = "integers in one dimension"
        raise check.misfit(f"indices={given.dtype}{list(given.shape)}: expected {expected}", hint)
    if given.dtype == np.uint64 and given.size and given.max() > 2**63 - 1:
        position = int(given.argmax())
        message = f"index {given[position]} at position {position} is in no dataset"
        raise OutOfRangeError(message, op="Dataset.take")
    return np.ascontiguousarray(given, np.int64)


def cache_folder(check: Checks, argument: str, folder: Any, expected: str) -> str:
    """Checks where rows are kept, and returns the word or the path that the library takes."""
    if folder in ("auto", "memory"):
        return str(folder)
    given = isinstance(folder, str | bytes | os.PathLike)
    path = os.path.expanduser(os.fsdecode(folder)) if given else ""
    if not path or "\0" in path:
        raise check.wrong(argument, folder, expected)
    return os.path.abspath(path)


def compare_files(dataset: Dataset) -> None:
    """Makes the processes of a job compare every byte of the files."""
    dataset._origin.compared = True


def compared_files(dataset: Dataset) -> Files | None:
    """Returns the files if the processes of a job compare every byte of them, else None."""
    if not dataset._origin.compared:
        return None
    return Files(
        calls.dataset_view("slice", [dataset.handle], start=0, stop=len(dataset)),
        dataset._origin.files,
    )


def origin(dataset: Dataset) -> Origin:
    """Returns the state that a dataset shares with its views."""
    return dataset._origin


def units(dataset: Dataset) -> Mapping[str, int] | None:
    """Returns the count of the units that are decoded together, and the records of the largest."""
    return dataset._facts.get("units")


def commits(dataset: Dataset) -> Sequence[str]:
    """Returns the names with commits under which the same files of a hub open again."""
    return dataset._commits


def far_bytes(dataset: Dataset) -> int:
    """Returns the size of the files on other machines, as stored."""
    return dataset._far_bytes


def cache(dataset: Dataset) -> Mapping[str, Any]:
    """Returns the folder of decoded data and its bytes, or the problem, or nothing."""
    found: Mapping[str, Any] = calls.dataset_facts(dataset.handle).get("cache", {})
    return found


def fixed_fields(dataset: Dataset) -> dict[str, Field]:
    """Returns the fields that can be arrays, because their rows have one shape."""
    return {name: field for name, field in dataset.schema.items() if not field.ragged}


def not_arrays(dataset: Dataset) -> list[Skipped]:
    """Returns the columns that cannot be arrays, with the reasons."""
    return dataset._not_arrays


def warn_of_skipped(dataset: Dataset) -> None:
    """Warns once that some columns cannot be arrays, so that batches have none."""
    warn_of(origin(dataset), not_arrays(dataset), "batches", _SPECS)


def locked(dataset: Dataset) -> bool:
    """Reports whether functions of maps have waited for the lock of the interpreter."""
    return any(function.contention.locked for function in dataset._origin.functions)
