"""A splitter of the C library: it cuts host arrays into the blocks of one process."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from ctypes import addressof, byref, c_int32, c_uint64, c_void_p
from typing import Any

from meshfeed._native import calls, library
from meshfeed._native.abi import Failure, Head
from meshfeed._native.handle import batch_release
from meshfeed._native.owner import Owner, Release, owner_type


class Splitter:
    """Copies host arrays of fixed shapes and strides into the memory of batches.

    Args:
        document: the layout of the arrays.
        process: the process whose blocks to cut.
        arrays: the memory of every array.

    Attributes:
        described: the description of every array and its blocks.
    """

    def __init__(self, document: str, process: int, arrays: Sequence[calls.HostArray]) -> None:
        self._handle = calls.splitter_create(document, process, arrays)
        info = calls.splitter_info(self._handle.value)
        self.described: list[dict[str, Any]] = info["arrays"]
        self._release = batch_release()
        # ctypes converts nothing for a function without argtypes.
        self._split = library.library()["mf_split"]
        self._split.restype = c_int32
        self._number, self._count = c_uint64(self._handle.value), c_int32(len(arrays))
        self._addresses = c_void_p * len(arrays)
        self._owner = owner_type(info["batch_bytes"])
        self._live = self._kept = 1  # batches: at the last call, and those that the program keeps

    def __call__(self, addresses: Sequence[int]) -> Owner:
        """Copies the arrays at these addresses, and returns the owner of the copies.

        Raises:
            OutOfRangeError: a 32-bit integer cannot hold a number.
            ResourceExhaustedError: there is no memory.
        """
        # JAX releases memory late, at its next call or a collection of garbage. Memory that was
        # used last is in the cache of the processor.
        collects, before = self._live > self._kept, self._live
        if collects:
            gc.collect(0)
        batch, data = c_void_p(), self._addresses(*addresses)
        try:
            if self._split(self._number, data, self._count, byref(batch), None):
                self._again(data, batch)
            head = Head.from_address(batch.value)  # type: ignore[arg-type]
            owner: Owner = self._owner.from_address(head.data or addressof(head))
            owner.release = release = Release(owner, self._release)
            held = c_void_p(batch.value)
            self._live = head.live
            if collects and head.live > before:  # the collection has freed nothing
                self._kept = head.live
        except BaseException:  # such as Ctrl-C; without a batch this releases nothing
            self._release(batch)
            raise
        release._as_parameter_ = held
        return owner

    def _again(self, data: Any, batch: c_void_p) -> None:
        """Repeats a call that failed, to raise its error. Most calls need no memory for a text."""
        failure = Failure()
        code = self._split(self._number, data, self._count, byref(batch), byref(failure))
        if code:
            raise library.exception(failure, code)
