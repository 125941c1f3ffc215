"""Arrays of any library in host memory, as NumPy arrays over the same memory if possible."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from meshfeed._io import arraylike
from meshfeed._io.arguments import Checks, cut, dataclass_hint, getattr_or_none, repr_short

_NumPy = np.ndarray[Any, Any]

_NUMBERS = "give numbers or booleans, and leave other values out of the tree"

# What an object has that NumPy converts. An image of Pillow has only the second.
_CONVERTIBLE = "__array__", "__array_interface__", "__array_struct__"


def host(check: Checks, name: str, given: Any) -> _NumPy:
    """Returns a leaf of a tree as a NumPy array.

    Args:
        check: raises errors with the name of the user's call.
        name: the name of the leaf.
        given: an array of any library in host memory, or a number.

    Raises:
        InvalidArgumentError: the leaf is not an array in host memory.
    """
    if isinstance(given, str | bytes):
        message = f"array {name!r} is {repr_short(given)}, which is text"
        raise check.misfit(message, _NUMBERS)
    try:
        return _converted(check, name, given)
    except (TypeError, ValueError, RuntimeError, BufferError, OverflowError) as e:
        if getattr(e, "op", ""):  # an error of meshfeed itself
            raise
        message = f"array {name!r} of type {_kind(given)} cannot become a NumPy array: "
        message += cut(f"{type(e).__name__}: {e}", 300)
        raise check.misfit(message, "give an array in host memory") from e


def _converted(check: Checks, name: str, given: Any) -> _NumPy:
    if isinstance(given, bool | int | float | complex | np.generic):
        return _of_number(check, name, given)
    if type(given).__module__.partition(".")[0] == "torch":
        return _of_torch(check, name, given)
    if any(hasattr(given, name) for name in _CONVERTIBLE):
        return arraylike.unmasked(check, name, given)
    if hasattr(given, "__dlpack__"):
        return np.from_dlpack(given)
    try:
        memory = memoryview(given)
    except TypeError:
        message = f"array {name!r} is {repr_short(given)}, which is not an array"
        raise check.misfit(message, dataclass_hint(given) or _NUMBERS) from None
    return np.asarray(memory)


def _of_number(check: Checks, name: str, given: Any) -> _NumPy:
    array = np.asarray(given)
    if array.dtype.kind == "O":
        message = f"array {name!r} is {repr_short(given)}, which has more than 64 bits"
        raise check.misfit(message, "give a smaller number, or float(number)")
    return array


def _kind(given: Any) -> str:
    return f"{type(given).__module__}.{type(given).__qualname__}"


def _of_torch(check: Checks, name: str, given: Any) -> _NumPy:
    """Returns the memory of a torch tensor. NumPy alone has no bfloat16 and float8."""
    if given.device.type != "cpu":
        message = f"array {name!r} is a tensor on {given.device}, not in host memory"
        raise check.misfit(message, "give tensor.cpu()")
    tensor = given.detach().resolve_conj().resolve_neg()
    kind = str(tensor.dtype).removeprefix("torch.")
    if tensor.dtype.is_floating_point and (kind == "bfloat16" or kind.startswith("float8")):
        import ml_dtypes

        torch = sys.modules["torch"]
        bits: Any = torch.int16 if kind == "bfloat16" else torch.uint8
        return np.asarray(tensor.view(bits)).view(getattr(ml_dtypes, kind))
    return np.asarray(tensor)


def is_read_only(array: Any) -> bool:
    """Returns whether nothing that is known can write to the memory of an array.

    An array that is not writable may be a view of an array or a buffer that is. If the memory
    belongs to an object that shows neither, such as a tensor of torch, the flag of the array
    decides, which the caller of `setflags` has set.
    """
    while isinstance(array, np.ndarray | memoryview):
        if array.flags.writeable if isinstance(array, np.ndarray) else not array.readonly:
            return False
        array = array.base if isinstance(array, np.ndarray) else array.obj
    if array is None:
        return True
    try:
        return memoryview(array).readonly
    except TypeError:
        interface = getattr_or_none(array, "__array_interface__")
    return not isinstance(interface, dict) or bool(interface["data"][1])


def address(array: _NumPy) -> int:
    """Returns the address of the first element."""
    at: int = array.__array_interface__["data"][0]
    return at
