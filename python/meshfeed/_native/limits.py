"""Checks system limits before the C library is loaded: Go ends the process if they are too low."""

from __future__ import annotations

import contextlib
import mmap
import os

from meshfeed import errors

with contextlib.suppress(ImportError):  # Windows has no such module
    import resource

ADDRESSES = 1 << 30  # bytes of address space: Go reserves 0.8 GiB, and threads need stacks
DESCRIPTORS = 4  # Go opens two, and files are opened one after the other


def check_limits() -> None:
    """Raises an error if a limit of the system is too low for the library.

    Raises:
        ResourceExhaustedError: the message names the limit, and the value that is needed.
    """
    _check_descriptors()
    _check_addresses()


def _check_descriptors() -> None:
    """Tests whether enough file descriptors can be opened."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(DESCRIPTORS))
    except OSError as e:
        limit = _limit("RLIMIT_NOFILE") or 0
        what = f"{DESCRIPTORS} more file descriptors, but RLIMIT_NOFILE is {limit} ({e.strerror})"
        needed = limit + DESCRIPTORS
        hint = f"close files, or raise the limit to at least {needed} (ulimit -n {needed})"
        raise _lacking(what, hint) from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _check_addresses() -> None:
    """Tests whether enough address space can be reserved; it uses no memory."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        mmap.mmap(-1, ADDRESSES, flags=flags, prot=0).close()
    except (OSError, MemoryError):
        taken, limit = _taken(), _limit("RLIMIT_AS")
        why = "the system refuses them"
        if limit is not None:
            why = f"RLIMIT_AS is {_mib(limit)}, of which {_mib(taken)} are taken"
        needed = taken + ADDRESSES
        hint = f"raise the limit to at least {_mib(needed)} (ulimit -v {-(-needed >> 10)}), or "
        hint += "limit memory by a cgroup, which counts what is used and not what is reserved"
        raise _lacking(f"{_mib(ADDRESSES)} of addresses, but {why}", hint) from None


def _lacking(what: str, hint: str) -> errors.ResourceExhaustedError:
    message = f"the C library cannot be loaded: it needs {what}"
    return errors.ResourceExhaustedError(message, op="python", hint=hint)


def _limit(name: str) -> int | None:
    """Returns a soft limit, or None for unlimited."""
    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


def _taken() -> int:
    """Returns the size of this process's address space, or 0 if it is unknown."""
    with contextlib.suppress(OSError, ValueError), open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * mmap.PAGESIZE
    return 0


def _mib(n: int) -> str:
    return f"{-(-n >> 20)} MiB"
