"""The C library, opened at first use, and its cold calls as functions.

Every call that may wait does so in slices, so that Ctrl-C is answered.
"""

from __future__ import annotations

import ctypes
import json
import operator
import os
import sys
import threading
from collections.abc import Callable, Mapping
from ctypes import (
    POINTER,
    byref,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meshfeed import errors
from meshfeed.errors import Code

if TYPE_CHECKING:
    import numpy as np

ABI = 1, 0  # what this module was written for: the same major number, at least this minor one
SLICE_MS = 50  # a wait is cut into these, since a signal is seen between calls only


class Failure(ctypes.Structure):
    """`mf_error`."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("code", c_int32),
        ("op", c_char * 64),
        ("message", c_char * 1024),
        ("hint", c_char * 512),
        ("path", c_char * 256),
    )

    def __init__(self) -> None:
        super().__init__(ctypes.sizeof(Failure))

    def exception(self, code: int) -> errors.Error:
        """Makes the exception for a call that returned this code."""
        texts = (self.op, self.message, self.hint, self.path)
        return errors.of(code, *(text.decode(errors="replace") for text in texts))


class Bytes(ctypes.Structure):
    """`mf_bytes`."""

    _fields_ = (("data", c_void_p), ("size", c_size_t))


class Head(ctypes.Structure):
    """The public head of `mf_batch`."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("tensors", c_int32),
        ("data", c_void_p),
        ("bytes", c_int64),
        ("epoch", c_int64),
        ("step", c_int64),
        ("position", c_int64),
        ("rows", c_int64),
        ("next_epoch", c_int64),
        ("next_position", c_int64),
        ("state", c_char_p),
        ("state_size", c_int64),
        ("live", c_int64),
        ("idle", c_int64),
    )


class Stats(ctypes.Structure):
    """`mf_stats`."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("epoch", c_int64),
        ("step", c_int64),
        ("position", c_int64),
        ("batches", c_int64),
        ("rows", c_int64),
        ("bytes", c_int64),
        ("wait_ns", c_int64),
        ("stall_ns", c_int64),
        ("gather_ns", c_int64),
        ("queued", c_int64),
        ("live_batches", c_int64),
        ("idle_batches", c_int64),
        ("host_bytes", c_int64),
    )


class DType(ctypes.Structure):
    """`mf_dtype`."""

    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class Array(ctypes.Structure):
    """`mf_array`."""

    _fields_ = (
        ("struct_size", c_uint32),
        ("ndim", c_int32),
        ("name", c_char_p),
        ("data", c_void_p),
        ("dtype", DType),
        ("reserved", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    )


RELEASE = ctypes.CFUNCTYPE(None, c_void_p)

_TEXT = (c_char_p, c_size_t)
_ERROR = c_void_p

# For every function that is called: the types of its arguments. They return an
# mf_status unless _RESULTS names another type.
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "mf_abi_version": (),
    "mf_version": (),
    "mf_bytes_free": (c_void_p,),
    "mf_wait": (c_uint64, c_int64, _ERROR),
    "mf_cancel_all": (),
    "mf_release": (c_uint64, _ERROR),
    "mf_layout_create": (*_TEXT, c_void_p, _ERROR),
    "mf_layout_json": (c_uint64, c_void_p, _ERROR),
    "mf_layout_report": (c_uint64, *_TEXT, c_void_p, _ERROR),
    "mf_layout_draw": (c_uint64, *_TEXT, c_void_p, _ERROR),
    "mf_dataset_open": (*_TEXT, c_void_p, _ERROR),
    "mf_dataset_open_stream": (c_void_p, *_TEXT, c_void_p, _ERROR),
    "mf_dataset_open_arrays": (c_void_p, c_int32, RELEASE, c_void_p, c_void_p, _ERROR),
    "mf_dataset_info": (c_uint64, c_void_p, _ERROR),
    "mf_dataset_fingerprint": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_dataset_slice": (c_uint64, c_int64, c_int64, c_void_p, _ERROR),
    "mf_loader_create": (c_uint64, c_uint64, *_TEXT, c_void_p, _ERROR),
    "mf_loader_info": (c_uint64, c_void_p, _ERROR),
    "mf_loader_next": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_loader_state": (c_uint64, c_void_p, _ERROR),
    "mf_loader_restore": (c_uint64, *_TEXT, c_uint32, _ERROR),
    "mf_loader_seek": (c_uint64, c_int64, c_int64, _ERROR),
    "mf_loader_len": (c_uint64, c_void_p, _ERROR),
    "mf_loader_one_epoch": (c_uint64, c_int64, c_void_p, _ERROR),
    "mf_loader_records": (c_uint64, c_int64, c_int64, c_void_p, c_int64, c_void_p, _ERROR),
    "mf_loader_stats": (c_uint64, c_void_p, _ERROR),
    "mf_batch_release": (c_void_p,),
    "mf_order_fill": (*_TEXT, c_int64, c_int64, c_int64, c_int64, c_void_p, c_int64, _ERROR),
    "mf_record_key": (c_int64, c_int64, c_int64, c_void_p, _ERROR),
    "mf_live_handles": (),
    "mf_live_batches": (),
    "mf_live_bytes": (),
}
_RESULTS: dict[str, Any] = {
    "mf_abi_version": c_uint32,
    "mf_version": c_char_p,
    "mf_bytes_free": None,
    "mf_cancel_all": None,
    "mf_batch_release": None,
    "mf_live_handles": c_int64,
    "mf_live_batches": c_int64,
    "mf_live_bytes": c_int64,
}

_opening = threading.Lock()
_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """Gives the C library, and opens it at the first call.

    Raises:
        IncompatibleError: the library has another ABI.
        NotFoundError: there is no library in this installation.
    """
    global _library
    if _library is None:
        with _opening:
            if _library is None:
                _library = _open(_path())
    return _library


def _path() -> Path:
    if path := os.environ.get("MESHFEED_LIBRARY"):
        return Path(path)
    names = {"darwin": "libmeshfeed.dylib", "win32": "meshfeed.dll"}
    return Path(__file__).parent / "_lib" / names.get(sys.platform, "libmeshfeed.so")


def _open(path: Path) -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as e:
        raise errors.NotFoundError(
            f"the C library could not be opened: {e}",
            op="python",
            hint="install a wheel, or in a checkout run: make lib",
            path=str(path),
        ) from None
    version = lib.mf_abi_version()
    major, minor = version >> 16, version & 0xFFFF
    if major != ABI[0] or minor < ABI[1]:
        raise errors.IncompatibleError(
            f"{path} has ABI {major}.{minor}, and this package needs {ABI[0]}.{ABI[1]}",
            op="python",
            hint="install package and library of one version, or run: make lib",
            path=str(path),
        )
    for name, arguments in _ARGUMENTS.items():
        function = getattr(lib, name)
        function.argtypes = arguments
        function.restype = _RESULTS.get(name, c_int32)
    _at_exit(lib.mf_cancel_all)
    return lib


_leaving: list[bool] = []  # not empty once the interpreter exits
_borrowed: dict[int, Any] = {}  # what C borrows from Python, by context number


def _at_exit(cancel_all: Callable[[], None]) -> None:
    """Arranges that calls under way end, and nothing is freed, when the interpreter exits.

    A thread that waits in C must be woken before the interpreter joins its threads, which is
    before `atexit`. The hook for that has no public name, hence the fallback.
    """

    def leave() -> None:
        _leaving.append(True)
        cancel_all()
        # A gather may still read what it borrowed: this reference is never given back.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_borrowed))

    try:
        threading._register_atexit(leave)  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        import atexit

        atexit.register(leave)


def call(name: str, *arguments: Any) -> int:
    """Calls a function whose last argument is an `mf_error`, and raises its errors.

    Returns:
        The code: 0 or a positive outcome.
    """
    failure = Failure()
    code: int = getattr(library(), name)(*arguments, byref(failure))
    if code < 0:
        raise failure.exception(code)
    return code


def _made(name: str, *arguments: Any) -> int:
    """Calls a function that makes a handle, and waits until what it names stands."""
    out = c_uint64()
    call(name, *arguments, byref(out))
    try:
        _patiently("mf_wait", out)
    except Exception:
        library().mf_release(out, None)
        raise
    except BaseException:  # Ctrl-C does not wait for a file that does not answer
        threading.Thread(target=library().mf_release, args=(out, None), daemon=True).start()
        raise
    return out.value


def _patiently(name: str, handle: Any, *arguments: Any) -> None:
    while call(name, handle, SLICE_MS, *arguments) == Code.Timeout:
        pass


def _taken(out: Bytes) -> str:
    """Copies a text out of memory of the library, and frees that."""
    try:
        return ctypes.string_at(out.data, out.size).decode() if out.data else ""
    finally:
        library().mf_bytes_free(byref(out))


def _text(name: str, *arguments: Any) -> str:
    out = Bytes()
    call(name, *arguments, byref(out))
    return _taken(out)


def _encoded(text: str | bytes) -> tuple[bytes, int]:
    data = text.encode() if isinstance(text, str) else text
    return data, len(data)


class Handle:
    """A handle of the library, released once: by `close`, or with the object."""

    __slots__ = ("_lock", "_release", "_value", "_what")

    def __init__(self, value: int, what: str) -> None:
        self._value = value
        self._what = what
        self._release = library().mf_release
        self._lock = threading.Lock()

    @property
    def value(self) -> int:
        """The number; an error once it is released."""
        self.check()
        return self._value

    def check(self) -> None:
        """Raises an error if the handle is released."""
        if self._value == 0:
            message = f"the {self._what} is closed"
            raise errors.InvalidStateError(message, op=self._what, hint="make another")

    def close(self) -> None:
        """Releases the handle. The interpreter's exit releases nothing."""
        with self._lock:
            value, self._value = self._value, 0
        if value and not _leaving:
            self._release(value, None)

    def __del__(self, leaving: list[bool] = _leaving) -> None:
        if not leaving:  # module names may be gone by now
            self.close()


class Next:
    """`mf_loader_next`: the one call per batch, with all its arguments made beforehand.

    A loader's threads share it under the cursor's lock.
    """

    def __init__(self, handle: int) -> None:
        self._batch = c_void_p()
        self._failure = Failure()
        # A function object of its own, without argtypes: ctypes converts nothing.
        function = library()["mf_loader_next"]
        function.restype = c_int32
        out = byref(self._batch), byref(self._failure)
        self._wait = partial(function, c_uint64(handle), c_int64(SLICE_MS), *out)
        self._poll = partial(function, c_uint64(handle), c_int64(0), *out)

    def __call__(self, *, wait: bool) -> Head | None:
        """Gives a batch; None at the end of the pass and, without waiting, where none is ready."""
        code = self._wait() if wait else self._poll()
        while code == _TIMEOUT and wait:
            code = self._wait()
        if code == 0:
            return Head.from_address(self._batch.value)  # type: ignore[arg-type]
        if code < 0:
            raise self._failure.exception(code)
        return None

    def hand_over(self) -> c_void_p:
        """Gives the address of the batch to its new owner."""
        batch = c_void_p(self._batch.value)
        self._batch.value = None
        return batch

    def drop(self) -> None:
        """Releases the batch of a call that was interrupted before it got an owner."""
        library().mf_batch_release(self.hand_over())


_TIMEOUT = int(Code.Timeout)


def batch_release() -> Any:
    """Gives `mf_batch_release` as a function object of its own, without argtypes."""
    function = library()["mf_batch_release"]
    function.restype = None
    return function


# ---- layouts ----


class _Layout:
    """A layout handle for the time of one call."""

    def __init__(self, document: str | bytes) -> None:
        self._document = document

    def __enter__(self) -> int:
        out = c_uint64()
        call("mf_layout_create", *_encoded(self._document), byref(out))
        self._handle = out.value
        return self._handle

    def __exit__(self, *_: object) -> None:
        library().mf_release(self._handle, None)


def layout_canonical(document: str | bytes) -> str:
    """Reads a layout document and gives its canonical form."""
    with _Layout(document) as handle:
        return _text("mf_layout_json", handle)


def layout_report(document: str, *, tables: bool) -> str:
    """Gives the report of a layout, as JSON."""
    with _Layout(document) as handle:
        options = json.dumps({"tables": tables})
        return _text("mf_layout_report", handle, *_encoded(options))


def layout_drawing(document: str, options: Mapping[str, Any]) -> str:
    """Draws a layout, as text or SVG."""
    with _Layout(document) as handle:
        return _text("mf_layout_draw", handle, *_encoded(json.dumps(options)))


# ---- datasets ----


def _int64(value: Any, what: str) -> int:
    """Gives an integer that C can take: ctypes would wrap a larger one silently."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not -(2**63) <= number < 2**63:
        message = f"{what} is {value!r}"
        raise errors.InvalidArgumentError(message, op="meshfeed", hint="give an int of 64 bits")
    return number


def dataset_open(options: str) -> int:
    """Opens files."""
    return _made("mf_dataset_open", *_encoded(options))


def dataset_from_stream(address: int) -> int:
    """Moves an Arrow C stream into a dataset."""
    return _made("mf_dataset_open_stream", address, None, 0)


@RELEASE
def _give_back(context: int) -> None:
    _borrowed.pop(context, None)


def dataset_from_arrays(arrays: Mapping[str, np.ndarray[Any, Any]]) -> int:
    """Lends NumPy arrays to a dataset until its last user is gone."""
    descriptions = (Array * len(arrays))()
    for out, (name, array) in zip(descriptions, arrays.items(), strict=True):
        out.struct_size = ctypes.sizeof(Array)
        out.ndim = array.ndim
        out.name = name.encode()
        out.data = array.ctypes.data
        out.dtype = DType(_DLPACK[array.dtype.kind], 8 * array.dtype.itemsize, 1)
        out.shape = (c_int64 * array.ndim)(*array.shape)
        out.strides = (c_int64 * array.ndim)(*array.strides)
    lent = list(arrays.values())
    _borrowed[id(lent)] = lent
    return _made("mf_dataset_open_arrays", descriptions, len(arrays), _give_back, id(lent))


# DLPack's type codes by NumPy's kind; the only "V" that gets here is bfloat16.
_DLPACK = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}


def dataset_facts(handle: int) -> dict[str, Any]:
    """Gives what is in a dataset."""
    facts: dict[str, Any] = json.loads(_text("mf_dataset_info", handle))
    return facts


def dataset_fingerprint(handle: int) -> str:
    """Gives the hash of the content."""
    out = Bytes()
    _patiently("mf_dataset_fingerprint", handle, byref(out))
    return _taken(out)


def dataset_slice(handle: int, start: int, stop: int) -> int:
    """Gives a handle of the records [start, stop)."""
    return _made("mf_dataset_slice", handle, _int64(start, "start"), _int64(stop, "stop"))


# ---- loaders ----


def loader_create(dataset: int, document: str, options: Mapping[str, Any]) -> int:
    """Begins to load."""
    with _Layout(document) as layout:
        return _made("mf_loader_create", dataset, layout, *_encoded(json.dumps(options)))


def loader_one_epoch(handle: int, epoch: int) -> int:
    """Begins an independent pass over one epoch."""
    return _made("mf_loader_one_epoch", handle, _int64(epoch, "epoch"))


def loader_info(handle: int) -> dict[str, Any]:
    """Gives what every batch of a loader looks like."""
    info: dict[str, Any] = json.loads(_text("mf_loader_info", handle))
    return info


def loader_state(handle: int) -> dict[str, Any]:
    """Gives the state after the last batch handed out by C."""
    state: dict[str, Any] = json.loads(_text("mf_loader_state", handle))
    return state


def loader_restore(handle: int, state: str, *, ignore_dataset: bool) -> None:
    """Continues where a state stands."""
    call("mf_loader_restore", handle, *_encoded(state), int(ignore_dataset))


def loader_seek(handle: int, epoch: int, position: int) -> None:
    """Continues at a position of an epoch."""
    call("mf_loader_seek", handle, _int64(epoch, "epoch"), _int64(position, "position"))


def loader_len(handle: int) -> int:
    """Gives the number of batches until the end of the pass, -1 without end."""
    out = c_int64()
    call("mf_loader_len", handle, byref(out))
    return out.value


def loader_records(handle: int, epoch: int, position: int, out: np.ndarray[Any, Any]) -> int:
    """Writes the records of a batch into an int64 array, and gives their number."""
    count = c_int64()
    epoch, position = _int64(epoch, "epoch"), _int64(position, "position")
    call("mf_loader_records", handle, epoch, position, out.ctypes.data, out.size, byref(count))
    return count.value


def loader_stats(handle: int) -> dict[str, int]:
    """Gives the counters of a loader."""
    stats = Stats(ctypes.sizeof(Stats))
    call("mf_loader_stats", handle, byref(stats))
    return {name: getattr(stats, name) for name, _ in Stats._fields_[2:]}
