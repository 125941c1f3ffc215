"""DLPack tensors of the C library: as NumPy views, and as capsules for other libraries."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

import numpy as np

from meshfeed._abi import DType
from meshfeed.cursor import Release, owner_type

CPU = 1, 0  # the type and the number of DLPack's device for memory of the host


class _Tensor(ctypes.Structure):
    """`DLTensor`."""

    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("dtype", DType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class Legacy(ctypes.Structure):
    """`DLManagedTensor`, for consumers older than DLPack 1.0."""

    NAME = b"dltensor"
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    NAME = b"dltensor_versioned"
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _Tensor),
    )


@cache
def _deleter(address: int) -> Any:
    """Gives a deleter as a function; there is one of each kind in a library."""
    return ctypes.CFUNCTYPE(None, c_void_p)(address)


def view(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Gives the memory of a `Versioned` tensor, read-only, which the array and its views own."""
    tensor = Versioned.from_address(address)
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    owner = owner_type(size).from_address(tensor.tensor.data or address)
    owner.release = release = Release(owner, _deleter(tensor.deleter))
    release._as_parameter_ = c_void_p(address)
    array = np.ndarray(shape, dtype, owner)
    array.setflags(write=False)
    return array


def capsule(address: int, kind: type[Legacy | Versioned]) -> Any:
    """Gives a tensor as a capsule, which deletes it unless a consumer takes it."""
    return _new(address, kind.NAME, _drop)


_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
# Function objects of their own: a capsule that dies must not become a Python object again.
_is_valid = ctypes.PYFUNCTYPE(c_int32, c_void_p, c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _api))


@ctypes.PYFUNCTYPE(None, c_void_p)
def _drop(dying: int) -> None:
    """The destructor of capsules: a consumer that took the tensor has renamed the capsule."""
    for kind in (Versioned, Legacy):
        if _is_valid(dying, kind.NAME):
            address = _pointer(dying, kind.NAME)
            _deleter(kind.from_address(address).deleter)(address)
