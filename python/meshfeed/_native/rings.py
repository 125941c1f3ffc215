"""Devices that are not JAX's, and rings: memory on them for batches."""

from __future__ import annotations

from ctypes import byref, c_void_p, sizeof
from typing import TYPE_CHECKING, Any

from meshfeed._native import abi
from meshfeed._native.handle import Handle, LayoutHandle, created
from meshfeed._native.library import call, encoded, read_json

if TYPE_CHECKING:
    import numpy as np


def devices_open(spec: str, *, prober: str | None, timeout_ms: int, preflight: bool) -> Handle:
    """Opens devices."""
    options = abi.DevicesOptions(sizeof(abi.DevicesOptions), 0 if preflight else abi.NO_PREFLIGHT)
    options.prober = None if prober is None else prober.encode()
    options.timeout_ms = timeout_ms
    what = "backend of these devices"
    return created(what, "mf_devices_open", *encoded(spec), byref(options))


def devices_info(handle: int) -> dict[str, Any]:
    """Describes the devices, and what meshfeed holds on them."""
    return read_json("mf_devices_info", handle)


def ring_create(devices: int, document: str) -> Handle:
    """Creates a ring: memory on devices for the batches of a layout."""
    with LayoutHandle(document) as layout:
        return created("ring", "mf_ring_create", devices, layout)


def ring_info(handle: int) -> dict[str, Any]:
    """Describes the shards of a batch on the devices of a ring."""
    return read_json("mf_ring_info", handle)


def ring_transfer(ring: int, batch: Any) -> Handle:
    """Copies the batch at this address to devices. The caller keeps the batch alive."""
    moved = Handle("batch")
    call("mf_ring_transfer", ring, batch, byref(moved.out))
    return moved


def device_batch_read(batch: int, array: int, position: int, out: np.ndarray[Any, Any]) -> None:
    """Copies a shard to an array."""
    call("mf_device_batch_read", batch, array, position, out.ctypes.data, out.nbytes)


def device_batch_lend(batch: int, array: int, position: int, *, legacy: bool) -> int:
    """Returns the address of a DLPack tensor of a shard. The caller must call its deleter."""
    out = c_void_p()
    function = "mf_device_batch_dlpack_legacy" if legacy else "mf_device_batch_dlpack"
    call(function, batch, array, position, byref(out))
    assert out.value is not None
    return out.value
