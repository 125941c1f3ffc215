"""Clusters of devices of JAX, for strategy documents."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from meshfeed._io.arguments import Checks, getattr_or_none

_KINDS = "the name of a kind, devices such as jax.devices(), or a mesh"
_COUNT = "pass devices=8, or all devices: mf.strategy.cluster(jax.devices())"
_NAMED = 'name the devices to plan for, such as mf.strategy.cluster("h100-80", devices=8)'
_OWN = ", or give numbers of your own: mf.strategy.cluster(devices=8, memory_bytes=…)"


def described(check: Checks, given: dict[str, Any]) -> dict[str, Any]:
    """Replaces devices of JAX among the arguments of a cluster by their kind and number.

    Args:
        check: raises errors with the name of the user's call.
        given: the arguments. They have precedence over what the devices say.
    """
    kind = given.get("kind")
    if isinstance(given.get("devices"), list | tuple):
        hint = "pass the devices first: mf.strategy.cluster(jax.devices())"
        raise check.wrong("devices", given["devices"], "the number of devices", hint)
    if kind is not None and not isinstance(kind, str):
        given = _of(check, kind) | {key: value for key, value in given.items() if key != "kind"}
    if "devices" not in given:
        raise check.misfit("the number of devices is missing", _COUNT)
    return given


def processes(kind: Any, count: int) -> int | None:
    """Returns how many processes have the devices of a cluster, if each has equally many.

    Args:
        kind: the argument of the cluster.
        count: the number of devices of the cluster.
    """
    devices = None if _is_abstract(kind) else _listed(kind)
    if not isinstance(devices, list | tuple) or len(devices) != count:
        return None
    each = collections.Counter(device.process_index for device in devices)
    return len(each) if len(set(each.values())) == 1 else None


def _is_abstract(kind: Any) -> bool:
    return type(kind).__name__ == "AbstractMesh"


def _listed(kind: Any) -> Any:
    """Returns the devices of a mesh, or the argument itself."""
    devices = kind.devices if getattr_or_none(kind, "axis_names") is not None else kind
    return devices.ravel().tolist() if isinstance(devices, np.ndarray) else devices


def _of(check: Checks, kind: Any) -> dict[str, Any]:
    """Returns what is known of a device, of several devices or of a mesh."""
    if _is_abstract(kind):
        device = getattr(kind, "abstract_device", None)  # not in old JAX
        if device is None:
            raise check.wrong("kind", kind, "a mesh that has devices", _NAMED)
        return {"kind": _name(check, [device]), "devices": kind.size}
    if getattr_or_none(kind, "device_kind") is not None:
        return {"kind": _name(check, [kind])}
    devices = _listed(kind)
    right = isinstance(devices, list | tuple) and all(
        getattr_or_none(d, "device_kind") for d in devices
    )
    if not right or not devices:
        hint = "pass the number of devices as devices="
        raise check.wrong("kind", kind, _KINDS, hint if isinstance(kind, int) else "")
    found = {"kind": _name(check, devices), "devices": len(devices)}
    sizes = set(collections.Counter(map(_node, devices)).values())
    if sizes == {1} and len(devices) > 1 and not hasattr(devices[0], "slice_index"):
        return found  # a process for every device says nothing about nodes
    return found | ({"per_node": sizes.pop()} if len(sizes) == 1 else {})


def _name(check: Checks, devices: list[Any]) -> str:
    """Returns the name of the kind of all devices."""
    kinds = sorted({str(d.device_kind) for d in devices})
    if len(kinds) > 1:
        message = f"the devices are of {len(kinds)} kinds: {', '.join(kinds)}"
        raise check.misfit(message, "plan for devices of one kind")
    if devices[0].platform == "cpu":
        raise check.misfit(
            "the devices are CPUs, and the planner has no numbers of CPUs", _NAMED + _OWN
        )
    return kinds[0]


def _node(device: Any) -> Any:
    """Returns which node a device is in: on TPUs its slice, on GPUs what NVLink joins."""
    by_default = 0 if device.platform == "tpu" else device.process_index
    return getattr(device, "slice_index", by_default)
