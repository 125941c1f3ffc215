"""Atomic writes of files: if a process ends at any time, the file has its old or its new text."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import platform
import re
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from meshfeed.errors import NotFoundError, ReadError

LONGEST = 1.0  # seconds that a save waits for another save
ABANDONED = 3600.0  # seconds after which a scratch file of another host is removed

_saves = itertools.count()  # in this process


def write_whole(
    path: Path, text: str, *, op: str, keeps: Callable[[str], bool] | None = None
) -> None:
    """Replaces the text of a file in one step that survives a power cut.

    The text is written to a scratch file beside it, which is then renamed. Readers see the old
    text or the new one, also after a crash. Several processes may write the same file at once:
    each has its own scratch file, and the last rename wins. Scratch files of dead processes are
    removed. If the path is a link, the file behind it is written.

    Args:
        path: the file.
        text: its new text.
        op: the call that errors name.
        keeps: decides whether the file keeps its old text. No other process of this machine changes
            the file between the decision and the rename.

    Raises:
        NotFoundError: there is no such folder.
        ReadError: the file cannot be written, and is unchanged.
    """
    try:
        path = _target(path)
        # A signal handler may save inside of another save, on the same thread.
        scratch = path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{next(_saves)}.tmp")
        try:
            _write(scratch, text)
            with _locked(path.parent) if keeps else contextlib.nullcontext():
                if not (keeps and path.exists() and keeps(path.read_text(errors="replace"))):
                    scratch.replace(path)
        finally:  # after success it does not exist
            with contextlib.suppress(OSError):
                scratch.unlink()
        _sync_folder(path.parent)
    except FileNotFoundError:
        message = f"{str(path)!r} cannot be written: there is no folder {str(path.parent)!r}"
        raise NotFoundError(message, op=op, hint="make the folder", path=str(path)) from None
    except OSError as e:
        raise _unwritable(path, e, op) from e
    _remove_leftovers(path)


def _target(path: Path) -> Path:
    """Returns the file to write, behind a link; rejects folders, devices and pipes."""
    if path.is_dir():
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(errno.EISDIR, "Is a device or a pipe")
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def _write(scratch: Path, text: str) -> None:
    with scratch.open("w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Locks a folder, except if locks are unsupported or another process holds it for a second."""
    if os.name != "posix":
        yield
        return
    import fcntl

    opened, late = os.open(folder, os.O_RDONLY), time.monotonic() + LONGEST
    try:
        while time.monotonic() < late:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:  # some network file systems have no locks
                break
        yield
    finally:
        os.close(opened)


def _sync_folder(folder: Path) -> None:
    """Makes the rename durable, if the system can sync a folder."""
    if os.name != "posix":
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(opened)


def _unwritable(path: Path, e: OSError, op: str) -> ReadError:
    remedies = {
        errno.ENOSPC: "free some space",
        errno.EDQUOT: "free some space",
        errno.EROFS: "choose a folder that can be written",
        errno.EACCES: "choose a folder that can be written",
        errno.EPERM: "choose a folder that can be written",
        errno.EISDIR: "give the name of a file",
    }
    remedy = remedies.get(e.errno or 0, "try again, or choose another folder")
    message = f"{str(path)!r} cannot be written: {e.strerror or e}"
    hint = f"{remedy}; the old content is unchanged"
    return ReadError(message, op=op, hint=hint, path=str(path))


def _remove_leftovers(path: Path) -> None:
    """Removes scratch files of this file if their processes have ended."""
    with contextlib.suppress(OSError):
        scratch = re.compile(re.escape(f".{path.name}.") + r"([0-9a-f]{8})-(\d+)-\d+\.tmp")
        now = path.stat().st_mtime  # from the clock that also sets the times of scratch files
        for other in path.parent.iterdir():
            named = scratch.fullmatch(other.name)
            if named and _is_gone(other, now, *named.groups()):
                other.unlink(missing_ok=True)


def _is_gone(scratch: Path, now: float, host: str, process: str) -> bool:
    if host != _host() or os.name != "posix":
        return now - scratch.stat().st_mtime > ABANDONED
    try:
        os.kill(int(process), 0)  # tests whether the process exists
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _host() -> str:
    """Returns a short name of the machine or container where process numbers are unique."""
    namespace = ""
    with contextlib.suppress(OSError):  # only Linux has namespaces
        namespace = os.readlink("/proc/self/ns/pid")
    return f"{zlib.crc32(f'{platform.node()} {namespace}'.encode()):08x}"
