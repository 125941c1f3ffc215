"""Files of a file system in Python: `mf.open(paths, filesystem=...)`.

Threads of Python answer the requests of the library: they find files, and read blocks of up to 8
MiB. See `mf_dataset_options.storage` in ``meshfeed.h`` for the requests.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import logging
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from meshfeed import errors
from meshfeed._io.arguments import Checks
from meshfeed._native import maps, raised
from meshfeed._native.contention import Contention
from meshfeed._native.rows import TEXT

log = logging.getLogger("meshfeed")

_WORKERS = 16  # requests at a time
_ROW = [[TEXT], [TEXT], [TEXT], [64], [64]]  # what, name, version, offset and size of a request
_EXPECTED = "a file system of fsspec, or a store of obstore"

# What tells the content of a file from others: tags, which also tell it from the contents of other
# names, numbers of versions, and times.
_TAGS = ("ETag", "etag", "blob_id", "sha", "md5Hash", "Content-MD5", "content_md5")
_NUMBERS = ("e_tag", "generation", "version_id", "VersionId")
_TIMES = (
    *("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified"),
    *("modificationTime", "last_write_time", "created"),
)
_TAGGING = ("S3Store", "GCSStore", "AzureStore", "HTTPStore")  # stores with an e_tag like an ETag

# What may tell a file system from others of its kind.
_PLACE = ("host", "port", "endpoint_url", "account_name", "repo", "path", "prefix", "url")

Entry = Mapping[str, Any]  # of `meshfeed.h`, or what a file system says


class Files(Protocol):
    """Finds and reads files. It may raise any exception, and `FileNotFoundError` in a search."""

    def name(self, path: str) -> str:
        """Returns the name of a path, with slashes."""

    def stat(self, name: str) -> Entry:
        """Describes a file or a directory."""

    def list(self, name: str) -> Iterable[Entry]:
        """Describes what is in a directory."""

    def glob(self, pattern: str) -> Iterable[Entry]:
        """Describes what a pattern matches."""

    def read(self, name: str, start: int, stop: int, version: str) -> Any:
        """Returns bytes of a file. If it has another version, it may raise `DataLossError`."""


def opened(check: Checks, filesystem: Any, paths: Sequence[str]) -> tuple[list[str], maps.Served]:
    """Returns the names of paths in a file system, and a function that finds and reads files."""
    if hasattr(filesystem, "cat_file") and hasattr(filesystem, "info"):
        files: Files = _Fsspec(filesystem)
    elif hasattr(filesystem, "get_range") and hasattr(filesystem, "head"):
        files = _Obstore(filesystem)
    else:
        hint = "wrap a file system of pyarrow: fsspec.implementations.arrow.ArrowFSWrapper(fs)"
        raise check.wrong("filesystem", filesystem, _EXPECTED, hint)
    storage = _Storage(files)
    names = [files.name(path) for path in paths]
    maps.pin(storage)  # the dataset in the library needs it, and perhaps a loader after it
    return names, maps.Served(storage, _WORKERS, "meshfeed.filesystem")


class _Storage:
    """Answers requests of the library."""

    def __init__(self, files: Files) -> None:
        self._files, self.contention = files, Contention()

    def __call__(self, call: maps.Call) -> None:
        """Answers a request."""
        data = [bytes(levels[0].data) for levels in call.columns(_ROW)]  # type: ignore[arg-type]
        what, name, version = (text.decode(errors="surrogateescape") for text in data[:3])
        start, size = (int.from_bytes(number, "little") for number in data[3:])
        try:
            if what == "read":
                answer = self._files.read(name, start, start + size, version)
            else:
                answer = json.dumps(self._found(what, name)).encode()
        except (errors.Error, MemoryError):
            raise
        except FileNotFoundError as e:
            raise _failed(e, errors.NotFoundError) from None
        except Exception as e:
            raise _failed(e, errors.ReadError) from None
        answer = np.frombuffer(answer, np.uint8)
        place = call.ragged(0, [answer.size], answer.size)
        place[:] = answer

    def _found(self, what: str, name: str) -> list[Entry] | None:
        """Returns the entries that a request asks for, or None if the name has none."""
        try:
            if what == "stat":
                return [self._files.stat(name)]
            found = self._files.list(name) if what == "list" else self._files.glob(name)
            return [e for e in found if e["name"].rstrip("/") != name.rstrip("/")]
        except (FileNotFoundError, NotADirectoryError):
            return None


def _failed(error: Exception, kind: type[errors.Error]) -> errors.Error:
    """Returns the error for an exception of a file system, which becomes its cause."""
    message = f"{type(error).__name__}: {error}"
    raised.keep(error, message)
    return kind(message, hint="look at the cause; the file system makes its own retries")


class _Described:
    """Makes entries of what a file system says about files."""

    def __init__(self, place: Sequence[str]) -> None:
        self._place = hashlib.sha256("|".join(place).encode()).hexdigest()[:16]
        self._warned = False

    def entry(self, name: str, info: Entry) -> Entry:
        """Returns the entry of a file."""
        tag, time = self._first(info, _TAGS), self._first(info, _TIMES)
        version = tag or self._first(info, _NUMBERS) or time
        if not version and not self._warned:
            self._warned = True
            log.warning(
                "mf.open: the file system tells neither a version nor a time of %s, so a change "
                "is not noticed, and decoded rows are kept in memory only",
                name,
            )
        if info.get("size") is None:
            message = f"{name}: the file system does not tell the size of the file"
            raise errors.UnsupportedError(message, hint="download the file")
        size = int(info["size"])
        entry: dict[str, Any] = {"name": name, "size": size, "version": version}
        if version:
            entry["identity"] = f"{self._place}|{name}|{size}|{version}|{time}"
        if tag:
            entry["stamp"] = f"{size} bytes, {tag}"
        return entry

    @staticmethod
    def _first(info: Entry, keys: Sequence[str]) -> str:
        return next((f"{key} {_text(info[key])}" for key in keys if info.get(key)), "")


class _Fsspec:
    """A file system of fsspec."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        inner = getattr(fs, "fs", None)
        parts = [fs, inner] if inner is not None else [fs]
        self._described = _Described([_kind(p) for p in parts] + [_place(p) for p in parts])

    def name(self, path: str) -> str:
        return str(self._fs._strip_protocol(path))

    def stat(self, name: str) -> Entry:
        return self._entry(self._fs.info(name), name)

    def list(self, name: str) -> Iterable[Entry]:
        return map(self._entry, self._fs.ls(name, detail=True))

    def glob(self, pattern: str) -> Iterable[Entry]:
        return map(self._entry, self._fs.glob(pattern, detail=True).values())

    def read(self, name: str, start: int, stop: int, version: str) -> Any:
        data = self._fs.cat_file(name, start=start, end=stop)
        if version:
            self._fs.invalidate_cache(self._fs._parent(name))
            key, info = version.partition(" ")[0], self._fs.info(name)
            now = f"{key} {_text(info.get(key))}"  # a listing may know more than this
            if info.get(key) and now != version:
                raise _changed(version, now)
        return data

    def _entry(self, info: Entry, name: str = "") -> Entry:
        name = name or info["name"]
        if info["type"] == "directory":
            return {"name": name, "dir": True}
        if info.get("size") is None:
            info = self._fs.info(name)
        return self._described.entry(name, info)


class _Obstore:
    """A store of obstore."""

    def __init__(self, store: Any) -> None:
        self._store, self._described = store, _Described([_kind(store), _place(store)])

    def name(self, path: str) -> str:
        return path.strip("/")

    def stat(self, name: str) -> Entry:
        try:
            return self._entry(self._store.head(name))
        except FileNotFoundError:
            if not any(map(len, self._store.list(prefix=name, chunk_size=1))):
                raise
            return {"name": name, "dir": True}

    def list(self, name: str) -> Iterable[Entry]:
        name = "" if name == "." else name
        found = self._store.list_with_delimiter(prefix=name or None)
        if not found["objects"] and not found["common_prefixes"]:
            raise FileNotFoundError(name)
        dirs = [{"name": path, "dir": True} for path in found["common_prefixes"]]
        return [*dirs, *map(self._entry, found["objects"])]

    def _entry(self, meta: Entry) -> Entry:
        if type(self._store).__name__ in _TAGGING:
            meta = {**meta, "ETag": meta["e_tag"]}
        return self._described.entry(meta["path"], meta)

    def glob(self, pattern: str) -> Iterable[Entry]:
        """Lists one directory after another, along the parts of the pattern."""
        found: list[Entry] = [{"name": "", "dir": True}]
        for part in pattern.split("/"):
            if not any(c in part for c in "*?["):
                found = [{"name": posixpath.join(e["name"], part), "dir": True} for e in found]
                continue
            below = [e for d in found if d.get("dir") for e in self._below(d["name"])]
            found = [e for e in below if fnmatch.fnmatchcase(posixpath.basename(e["name"]), part)]
        return found

    def _below(self, name: str) -> Iterable[Entry]:
        try:
            return self.list(name)
        except FileNotFoundError:
            return []

    def read(self, name: str, start: int, stop: int, version: str) -> Any:
        key, _, etag = version.partition(" ")
        options = {"range": (start, stop), "if_match": etag} if key in ("ETag", "e_tag") else {}
        if not options:
            return self._store.get_range(name, start=start, end=stop)
        try:
            return self._store.get(name, options=options).bytes()
        except Exception as e:
            if type(e).__name__ != "PreconditionError":
                raise
            raise _changed(version, self.stat(name)["version"]) from None


def _changed(was: str, now: str) -> errors.DataLossError:
    message = f"the file has changed since it was opened: it had {was}, and has {now}"
    hint = "do not replace files while they are read; open the dataset again"
    return errors.DataLossError(message, hint=hint)


def _text(value: Any) -> str:
    """Returns a version or a time as text, the same for a time in both of its forms."""
    return str(value.timestamp() if isinstance(value, datetime) else value)


def _kind(store: Any) -> str:
    return f"{type(store).__module__}.{type(store).__qualname__}"


def _place(store: Any) -> str:
    found = ((name, getattr(store, name, None)) for name in _PLACE)
    return " ".join(f"{name}={value}" for name, value in found if isinstance(value, str | int))
