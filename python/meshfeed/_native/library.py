"""The C library: opened at first use, and never closed."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable
from ctypes import byref
from pathlib import Path
from typing import Any

from meshfeed import errors
from meshfeed._native import abi
from meshfeed._native.limits import check_limits
from meshfeed._native.lock import Lock
from meshfeed._native.owner import Release

SLICE_MS = 50  # the longest wait in one call, because Python handles signals between calls

_opening = Lock()
_library: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """Returns the C library, and opens it at the first call.

    Raises:
        IncompatibleError: the library has another ABI.
        NotFoundError: this installation has no library.
        ResourceExhaustedError: a limit of the system is too low for the library.
        UnsupportedError: this is Windows.
    """
    global _library
    if _library is None:
        with _opening:
            if _library is None:
                _library = _opened(path())
    return _library


def path() -> Path:
    """Returns the path of the C library: that in MESHFEED_LIBRARY, or else the package's."""
    if chosen := os.environ.get("MESHFEED_LIBRARY"):
        return Path(chosen)
    return packaged()


def packaged() -> Path:
    """Returns the path of the package's C library, with the name for the dynamic loader."""
    name = "libmeshfeed.dylib" if sys.platform == "darwin" else "libmeshfeed.so.1"
    return Path(__file__).parents[1] / "_lib" / name


def _opened(path: Path) -> ctypes.CDLL:
    if sys.platform == "win32":
        raise errors.UnsupportedError(
            "there is no C library for Windows, and the Python package needs it",
            op="python",
            hint="use WSL, or meshfeed's Go packages and command, which compile for Windows",
        )
    check_limits()
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
    lib.mf_python_set(byref(abi.Python()))
    _at_exit(lib)
    return lib


def _misfit(lib: ctypes.CDLL, path: Path) -> str:
    """Declares the functions of the library. Returns why the library does not fit, or ""."""
    try:
        version, needed = lib.mf_abi_version(), abi.VERSION
        major, minor = version >> 16, version & 0xFFFF
        if major != needed[0] or minor < needed[1]:
            return f"{path} has ABI {major}.{minor}, and this package needs {needed[0]}.{needed[1]}"
        abi.declare(lib)
    except AttributeError as e:  # its text names the file and the function
        return f"the C library lacks a function that this package calls: {e}"
    return ""


exiting: list[bool] = []  # not empty when the interpreter exits

# The weak references that release a handle when its object is collected, by id. Python does not
# call a weak reference that is garbage itself, so the object must not be its only owner.
ends: dict[int, Release] = {}
_releasing: set[threading.Thread] = set()


def _at_exit(lib: ctypes.CDLL) -> None:
    """Makes the exit of the interpreter end running calls. It frees nothing.

    A thread that waits in C must wake before the interpreter joins its threads. That is earlier
    than `atexit`.
    """

    def end_calls() -> None:
        exiting.append(True)
        ends.clear()
        lib.mf_cancel_all()
        # A release of borrowed memory calls back into Python, and is quick. A release that waits
        # for a file calls nothing back, and may continue.
        for thread in tuple(_releasing):
            thread.join(SLICE_MS / 1000)
        # From here on, releases of borrowed memory and of capsules keep it: a gather may still
        # read it, and the interpreter soon has no lock to take.
        lib.mf_python_set(None)

    before_exit(end_calls)


def before_exit(function: Callable[[], None]) -> None:
    """Registers a function for the exit of the interpreter, before it joins threads.

    Python's function for that is private. `atexit` is the fallback.
    """
    try:
        threading._register_atexit(function)  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        import atexit

        atexit.register(function)


def release_later(handle: int) -> None:
    """Releases a handle on a new thread, after Ctrl-C has interrupted the caller.

    A release waits up to a second for a file system that does not respond.
    """

    def release() -> None:
        library().mf_release(handle, None)
        _releasing.discard(thread)

    thread = threading.Thread(target=release, name="meshfeed.release", daemon=True)
    _releasing.add(thread)
    thread.start()


def call(name: str, *arguments: Any) -> int:
    """Calls a function with an `mf_error` as its last argument, and raises its errors.

    Returns:
        The code: 0 or a positive outcome.
    """
    failure = abi.Failure()
    code: int = getattr(library(), name)(*arguments, byref(failure))
    if code < 0:
        raise exception(failure, code)
    return code


def copied(out: abi.Bytes) -> str:
    """Copies a text from memory of the library, and frees that memory."""
    try:
        return ctypes.string_at(out.data, out.size).decode() if out.data else ""
    finally:
        library().mf_bytes_free(byref(out))


def read_text(name: str, *arguments: Any) -> str:
    """Calls a function that returns a text."""
    out = abi.Bytes()
    call(name, *arguments, byref(out))
    return copied(out)


def read_json(name: str, *arguments: Any) -> dict[str, Any]:
    """Calls a function that returns a JSON object."""
    value: dict[str, Any] = json.loads(read_text(name, *arguments))
    return value


def encoded(text: str | bytes) -> tuple[bytes, int]:
    """Returns a text as the library takes it: bytes and their number."""
    # The library reports half of a surrogate pair as a byte that is not UTF-8.
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return data, len(data)


def exception(failure: abi.Failure, code: int, op: str = "") -> BaseException:
    """Builds the exception of a call that returned this code. `op` names the user's call."""
    return unless_exiting(failure.exception(code, op))


def unless_exiting(error: BaseException) -> BaseException:
    """Returns the error, or a SystemExit for a daemon thread while the interpreter exits.

    The exit itself causes the error, so the thread ends without a traceback.
    """
    return SystemExit() if exiting and threading.current_thread().daemon else error
