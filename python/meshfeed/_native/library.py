"""The C library: opened at first use, left in peace when the interpreter exits."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from ctypes import byref, c_uint64
from pathlib import Path
from typing import Any

from meshfeed import errors
from meshfeed._native import abi
from meshfeed._native.limits import check_room

SLICE_MS = 50  # a wait is cut into these, since a signal is seen between calls only

_opening = threading.Lock()
_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """Gives the C library, and opens it at the first call.

    Raises:
        IncompatibleError: the library has another ABI.
        NotFoundError: there is no library in this installation.
        ResourceExhaustedError: a limit of the system leaves no room for it.
    """
    global _library
    if _library is None:
        with _opening:
            if _library is None:
                _library = _opened(path())
    return _library


def path() -> Path:
    """Gives where the C library is: MESHFEED_LIBRARY names another than the package's."""
    if chosen := os.environ.get("MESHFEED_LIBRARY"):
        return Path(chosen)
    return packaged()


def packaged() -> Path:
    """Gives where the package's own C library is, under the name that the system loads it by."""
    names = {"darwin": "libmeshfeed.dylib", "win32": "meshfeed.dll"}
    return Path(__file__).parents[1] / "_lib" / names.get(sys.platform, "libmeshfeed.so.1")


def _opened(path: Path) -> ctypes.CDLL:
    check_room()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as e:
        raise errors.NotFoundError(
            f"the C library could not be opened: {e}",
            op="python",
            hint="reinstall the package, or in a checkout run: make lib",
            path=str(path),
        ) from None
    if misfit := _misfit(lib, path):
        hint = "install package and library of one version, or in a checkout run: make lib"
        raise errors.IncompatibleError(misfit, op="python", hint=hint, path=str(path))
    _at_exit(lib.mf_cancel_all)
    return lib


def _misfit(lib: ctypes.CDLL, path: Path) -> str:
    """Tells ctypes the library's functions; gives why that is not possible, or ""."""
    try:
        version, needed = lib.mf_abi_version(), abi.VERSION
        major, minor = version >> 16, version & 0xFFFF
        if major != needed[0] or minor < needed[1]:
            return f"{path} has ABI {major}.{minor}, and this package needs {needed[0]}.{needed[1]}"
        abi.declare(lib)
    except AttributeError as e:  # it names the file and the function
        return f"the C library lacks a function that this package calls: {e}"
    return ""


leaving: list[bool] = []  # not empty once the interpreter exits
borrowed: dict[int, Any] = {}  # what C borrows from Python, by context number
_releasing: set[threading.Thread] = set()


def _at_exit(cancel_all: Callable[[], None]) -> None:
    """Arranges that calls under way end, and nothing is freed, when the interpreter exits.

    A thread that waits in C must be woken before the interpreter joins its threads, which is
    before `atexit`.
    """

    def leave() -> None:
        leaving.append(True)
        cancel_all()
        # A release of borrowed memory calls back into Python, and is quick. One that waits for
        # a file calls nothing back, and is left behind.
        for thread in tuple(_releasing):
            thread.join(SLICE_MS / 1000)
        # A gather may still read what it borrowed: this reference is never given back.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(borrowed))

    before_exit(leave)


def before_exit(leave: Callable[[], None]) -> None:
    """Has a function called when the interpreter begins to exit, before it joins threads.

    The hook for that has no public name, hence the fallback.
    """
    try:
        threading._register_atexit(leave)  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        import atexit

        atexit.register(leave)


def release_later(handle: int | c_uint64) -> None:
    """Releases a handle on a thread of its own, for a caller whom Ctrl-C interrupted.

    A release waits up to a second for a file system that does not answer.
    """

    def release() -> None:
        library().mf_release(handle, None)
        _releasing.discard(thread)

    thread = threading.Thread(target=release, name="meshfeed.release", daemon=True)
    _releasing.add(thread)
    thread.start()


def call(name: str, *arguments: Any) -> int:
    """Calls a function whose last argument is an `mf_error`, and raises its errors.

    Returns:
        The code: 0 or a positive outcome.
    """
    failure = abi.Failure()
    code: int = getattr(library(), name)(*arguments, byref(failure))
    if code < 0:
        raise exception(failure, code)
    return code


def exception(failure: abi.Failure, code: int, op: str = "") -> BaseException:
    """Makes the exception for a call that returned this code; `op` is what the user called."""
    return unless_leaving(failure.exception(code, op))


def unless_leaving(error: BaseException) -> BaseException:
    """Gives an error that ends a call, or what ends its thread in silence.

    A daemon thread that works when the interpreter exits did nothing wrong, and nobody waits for
    it: it ends without a traceback.
    """
    return SystemExit() if leaving and threading.current_thread().daemon else error
