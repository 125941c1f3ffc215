"""A file system with reads that take a given time, in the protocol of the kernel (FUSE 7.31).

Run as a program, it serves the files of SOURCE read-only at MOUNT. It reads lines "SECONDS START
STOP" from standard input. After a line, each read takes SECONDS if it starts in bytes START to STOP
of a file. When standard input ends, the program unmounts and ends.

The structures are from the kernel's include/uapi/linux/fuse.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
import sys
import threading
from pathlib import Path

_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _RELEASE, _FLUSH = 1, 2, 3, 14, 15, 18, 25
_INIT, _INTERRUPT, _BATCH_FORGET = 26, 36, 42
_REQUEST = struct.Struct("<IIQQIIIHH")  # length, opcode, unique, node, uid, gid, pid, ...
_ANSWER = struct.Struct("<IiQ")  # length, -errno, unique
_ATTRIBUTES = struct.Struct("<6Q10I")
_ROOT = 1
_ASYNC_READ = 1  # several reads of one file at a time
_DETACH = 2  # umount2: also while it is in use


class SlowFiles:
    """The files of a folder, and the seconds that a read of some of their bytes takes."""

    def __init__(self, source: Path, mount: Path) -> None:
        self.seconds = 0.0
        self.slow = range(0)
        self._over = threading.Event()
        self._files = sorted(path for path in source.iterdir() if path.is_file())
        self._mount = os.fsencode(mount)
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if self._libc.mount(b"slow", self._mount, b"fuse", 0, options.encode()) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), os.fspath(mount))

    def close(self) -> None:
        """Answers the pending reads, and unmounts."""
        self._over.set()
        self._libc.umount2(self._mount, _DETACH)

    def serve(self) -> None:
        """Answers requests until it is unmounted."""
        while True:
            try:
                message = os.read(self._device, 1 << 20)
            except OSError as e:
                if e.errno == errno.ENODEV:
                    return
                continue
            _, code, unique, node, *_ = _REQUEST.unpack_from(message)
            body = message[_REQUEST.size :]
            if code == _READ:  # each read waits on its own
                task = threading.Thread(target=self._read, args=(unique, node, body), daemon=True)
                task.start()
            elif code not in (_FORGET, _BATCH_FORGET, _INTERRUPT):  # these need no answer
                self._answer(unique, *self._reply(code, node, body))

    def _answer(self, unique: int, data: bytes, error: int = 0) -> None:
        answer = _ANSWER.pack(_ANSWER.size + len(data), -error, unique) + data
        with contextlib.suppress(OSError):  # the reader is gone
            os.write(self._device, answer)

    def _reply(self, code: int, node: int, body: bytes) -> tuple[bytes, int]:
        if code == _INIT:
            _, _, ahead, _ = struct.unpack_from("<4I", body)
            limits = 64, 48, 1 << 17, 1, 0, 0  # waiting reads, ..., bytes of a write, nanoseconds
            answer = struct.pack("<4I2H2I2H8I", 7, 31, ahead, _ASYNC_READ, *limits, *[0] * 8)
            return answer, 0
        if code == _LOOKUP:
            names = [os.fsencode(path.name) for path in self._files]
            name = body.rstrip(b"\0")
            if name not in names:
                return b"", errno.ENOENT
            found = names.index(name) + _ROOT + 1
            return struct.pack("<4Q2I", found, 0, 60, 60, 0, 0) + self._attributes(found), 0
        if code == _GETATTR:
            return struct.pack("<Q2I", 60, 0, 0) + self._attributes(node), 0
        if code == _OPEN:
            return struct.pack("<Q2I", 0, 0, 0), 0
        return b"", 0 if code in (_FLUSH, _RELEASE) else errno.ENOSYS

    def _attributes(self, node: int) -> bytes:
        if node == _ROOT:
            size, mode = 0, stat.S_IFDIR | 0o555
        else:
            size, mode = self._files[node - _ROOT - 1].stat().st_size, stat.S_IFREG | 0o444
        owner = os.getuid(), os.getgid()
        return _ATTRIBUTES.pack(node, size, size // 512, *[0] * 6, mode, 1, *owner, 0, 4096, 0)

    def _read(self, unique: int, node: int, body: bytes) -> None:
        _, offset, size = struct.unpack_from("<2QI", body)
        if offset in self.slow:
            self._over.wait(self.seconds)
        with self._files[node - _ROOT - 1].open("rb") as file:
            self._answer(unique, os.pread(file.fileno(), size, offset))


def main(source: str, mount: str) -> None:
    """Serves until standard input ends."""
    files = SlowFiles(Path(source), Path(mount))
    threading.Thread(target=files.serve, daemon=True).start()
    print("serving", flush=True)
    try:
        for line in sys.stdin:
            seconds, start, stop = line.split()
            files.seconds, files.slow = float(seconds), range(int(start), int(stop))
            print(line, end="", flush=True)
    finally:
        files.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
