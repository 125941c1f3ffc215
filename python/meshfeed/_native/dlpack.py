"""DLPack tensors of the C library: as NumPy views, and as capsules for other libraries."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any, ClassVar

import numpy as np

from meshfeed._native.abi import DType
from meshfeed._native.owner import Release, owner_type

CPU = 1, 0  # the type and the number of the device of host memory in DLPack
VERSIONED = np.lib.NumpyVersion(np.__version__) >= "2.1.0"  # whether NumPy has versioned capsules


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
    MODEL: ClassVar[dict[str, Any]] = {}  # arguments with which NumPy returns such a capsule
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


class Versioned(ctypes.Structure):
    """`DLManagedTensorVersioned`."""

    NAME = b"dltensor_versioned"
    MODEL: ClassVar[dict[str, Any]] = {"max_version": (1, 0)}
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
    """Returns a deleter as a function. A library has one deleter of each kind."""
    return ctypes.CFUNCTYPE(None, c_void_p)(address)


def view(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Returns the memory of a `Versioned` tensor as a read-only array, which owns the tensor."""
    tensor = Versioned.from_address(address)
    size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    owner = owner_type(size).from_address(tensor.tensor.data or address)
    lent, deleter = c_void_p(address), _deleter(tensor.deleter)
    release = Release(owner, deleter)
    release._as_parameter_ = lent  # before Ctrl-C can come, because a deleter must not get NULL
    owner.release = release
    array = np.ndarray(shape, dtype, owner)
    array.setflags(write=False)
    return array


def capsule(address: int, kind: type[Legacy | Versioned]) -> Any:
    """Returns a capsule of a tensor. The capsule deletes the tensor unless a consumer takes it."""
    destructor = _destructor(kind)
    return _new(address, kind.NAME, destructor)


@cache
def _destructor(kind: type[Legacy | Versioned]) -> Any:
    """Returns the destructor of NumPy's capsules, which calls the deleter of any tensor.

    A destructor in Python does not work. A consumer that refuses a tensor drops the capsule while
    an exception is set, and no Python code can run then.
    """
    return _destructor_of(np.empty(1).__dlpack__(**kind.MODEL))


_api = ctypes.pythonapi
_new, _destructor_of = _api.PyCapsule_New, _api.PyCapsule_GetDestructor
_new.restype, _new.argtypes = ctypes.py_object, (c_void_p, c_char_p, c_void_p)
_destructor_of.restype, _destructor_of.argtypes = c_void_p, (ctypes.py_object,)
