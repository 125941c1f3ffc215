"""Calls of functions that compute rows, and the threads of Python that run them.

The library calls a function of C, which puts the call in a queue. Threads of Python take the calls,
so no thread of the library ever needs the interpreter, also while the interpreter exits.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from ctypes import byref, c_uint8, c_void_p, cast, sizeof
from time import monotonic_ns
from typing import Any, Protocol

import numpy as np

from meshfeed import errors
from meshfeed._native import abi, calls, raised
from meshfeed._native.contention import Contention, Meter
from meshfeed._native.handle import Handle
from meshfeed._native.library import library
from meshfeed._native.rows import Level, moved

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Function(Protocol):
    """Computes rows.

    Attributes:
        contention: the waits of its calls for the lock of the interpreter.
    """

    contention: Contention

    def __call__(self, call: Call) -> None:
        """Fills the place for the rows of a call."""


class Call:
    """The rows of some records for a function, and place for the rows that it returns.

    Attributes:
        records: the numbers of the records.
        keys: two words for each record, if the view has keys.
        taken: when a thread took the call from the queue: `time.monotonic_ns`.
    """

    def __init__(self, address: int) -> None:
        rows = abi.MapRows.from_address(address)
        self._rows, n = rows, rows.n_rows
        self.records, self.taken = rows.records[:n], rows.taken_ns
        keys = np.ctypeslib.as_array(rows.keys, (n, 2)).copy() if rows.keys else None
        self.keys: np.ndarray[Any, np.dtype[np.uint32]] | None = keys

    def columns(self, kinds: Sequence[Sequence[int]]) -> list[list[Level]]:
        """Takes the rows that the function gets: the levels of every field."""
        return moved(self._rows.given, kinds)

    def fixed(self, field: int) -> Bytes:
        """Returns the memory for the rows of a field that have one shape."""
        column = self._rows.out[field]
        return _bytes(column.data, column.size)

    def ragged(self, field: int, lengths: Sequence[int], size: int) -> Bytes:
        """Returns memory for the rows of a ragged field.

        Args:
            field: its number among the fields that the function returns.
            lengths: the elements of each row.
            size: the bytes of all rows.

        Raises:
            ResourceExhaustedError: there is no memory.
        """
        column = self._rows.out[field]
        np.ctypeslib.as_array(column.lengths, (len(lengths),))[:] = lengths
        data = library().mf_map_reserve(byref(column), size)
        if not data:
            raise errors.ResourceExhaustedError(f"there is no memory for {size} bytes of rows")
        return _bytes(data, size)


def _bytes(address: int, size: int) -> Bytes:
    return np.ctypeslib.as_array((c_uint8 * size).from_address(address))


_pinned: set[Function] = set()


def pin(compute: Function) -> None:
    """Keeps what computes rows until its threads end, for a user that is no object of Python.

    If the function refers to its own dataset, they do not end.
    """
    _pinned.add(compute)


def dataset_map(handle: int, compute: Function, workers: int, **document: Any) -> Handle:
    """Creates a view with fields that a function of Python computes.

    Threads serve its calls, until the view and everything over it is released.

    Args:
        handle: of the dataset below.
        compute: fills the place for the rows of a call. The caller keeps it: threads refer to it
            weakly.
        workers: how many threads there are.
        document: the members of the document.
    """
    served = Served(compute, workers, "meshfeed.map")
    given = (served.function, 1), served.close
    return calls.dataset_view("map", [handle], *given, workers=workers, **document)


class Served:
    """A function for the library, and threads that run its calls until the library releases it.

    Args:
        compute: fills the place for the rows of a call. The threads refer to it weakly.
        workers: how many threads there are.
        name: of the threads.

    Attributes:
        function: for the library, which owns it from a successful call on.
    """

    def __init__(self, compute: Function, workers: int, name: str) -> None:
        lib = library()
        self._queue = queue = lib.mf_map_queue_new(workers)
        ends = (cast(getattr(lib, f"mf_map_queue_{end}"), c_void_p) for end in ("run", "close"))
        run, close = ends
        self.function = abi.Map(sizeof(abi.Map), 0, run, queue, close)
        arguments = queue, weakref.ref(compute)
        for _ in range(workers):
            threading.Thread(target=_serve, args=arguments, name=name, daemon=True).start()

    def close(self) -> None:
        """Ends the threads of a function that the library does not own."""
        library().mf_map_queue_close(self._queue)


class _Serving(threading.local):
    """What a thread serves: a function of a map, or None."""

    function: Function | None = None


serving = _Serving()


def refuse_reading(functions: Sequence[Any]) -> None:
    """Refuses a read of a dataset by a function that the read would call, and wait for."""
    if serving.function is not None and serving.function in functions:
        message = "the function of a map reads the rows that it computes itself"
        raise errors.InvalidStateError(message, hint="read the dataset below the map")


def no_loading() -> errors.Error:
    """Makes the error for taking batches in a function of a map: the loader may wait for it."""
    message = "the function of a map takes batches of a loader, which may wait for the function"
    return errors.InvalidStateError(message, hint="read rows of a dataset: ds[i]")


def _serve(queue: int, known: weakref.ref[Function]) -> None:
    """Runs the calls of a queue until it is closed."""
    lib = library()
    following, done = lib.mf_map_queue_next, lib.mf_map_queue_done
    process, meter = os.getpid(), Meter()
    while address := following(queue):
        code, message, hint = _computed(known, address, meter)
        if os.getpid() != process:
            os.write(2, b"meshfeed: a forked process has returned from a function; it ends\n")
            os._exit(1)
        done(queue, address, code, _text(message), _text(hint))
    meter.close()
    if compute := known():
        _pinned.discard(compute)


def _computed(known: weakref.ref[Function], address: int, meter: Meter) -> tuple[int, str, str]:
    """Runs a call. Returns the code, the message and the hint of its error."""
    began = monotonic_ns()
    try:
        serving.function = function = _known(known)
        call = Call(address)
        function(call)
        meter.ended(function.contention, call.taken, began)
    except BaseException as e:
        hint = e.hint if isinstance(e, errors.Error) else ""
        message = e.message if isinstance(e, errors.Error) else _described(e)
        raised.keep(e, message)
        return int(_code(e)), message, hint
    finally:
        serving.function = None
    return 0, "", ""


def _code(error: BaseException) -> errors.Code:
    """Returns the code for an exception. Rows are never zeros for the codes of the last two."""
    if isinstance(error, errors.Error):
        return error.code
    if isinstance(error, MemoryError):
        return errors.Code.ResourceExhausted
    plain = isinstance(error, Exception)  # others end a program, such as KeyboardInterrupt
    return errors.Code.InvalidArgument if plain else errors.Code.InvalidState


def _known(compute: weakref.ref[Function]) -> Function:
    if found := compute():
        return found
    raise errors.InvalidStateError("no dataset or loader uses the map")


def _text(text: str) -> bytes:
    return text.replace("\0", "\\0").encode(errors="replace")


def _described(error: BaseException) -> str:
    """Returns an exception as one line, with the place that raised it."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        place = f" ({code.co_filename}, line {trace.tb_lineno}, in {code.co_name})"
        trace = trace.tb_next
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}{notes}{place}"
