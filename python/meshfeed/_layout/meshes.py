"""Meshes over any number of devices."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from meshfeed._io.arguments import DEVICES, Checks, is_integer

if TYPE_CHECKING:
    from jax.sharding import AxisType, Mesh

    from meshfeed._types import Device

_AXES = 'such as {"data": -1, "model": 2}, where -1 is the rest of the devices'


def make_mesh(
    axes: Mapping[str, int],
    *,
    devices: Sequence[Device] | None = None,
    axis_types: AxisType | tuple[AxisType, ...] | None = None,
) -> Mesh:
    """Makes a JAX mesh over all devices, whatever their number.

    The order of the devices is as in `jax.make_mesh`, which follows the network of TPUs.

    Args:
        axes: the size of every axis, in the order of the mesh. One size may be -1: it becomes the
            number of devices divided by the other sizes.
        devices: the devices of the mesh; by default `jax.devices()`, of all processes.
            A mesh has all of them: to leave some out, pass fewer.
        axis_types: the type of every axis, or one type for all; by default Auto, with which XLA
            chooses the shardings inside of a jitted function. `jax.make_mesh` has Explicit axes
            by default.

    Raises:
        InvalidArgumentError: the devices cannot form the mesh; the text lists the sizes that
            divide their number.
        UnsupportedError: JAX is not installed.

    Examples:
        >>> import jax, meshfeed as mf
        >>> mesh = mf.make_mesh({"data": -1, "model": 1}, devices=jax.devices()[:1])
        >>> dict(mesh.shape)
        {'data': 1, 'model': 1}
        >>> batch_size = 64 * mesh.shape["data"]  # 64 rows per device of the axis "data"
    """
    with Checks("mf.make_mesh") as check:
        from meshfeed._jax import meshes

        sizes = _sizes(check, axes)
        found = meshes.listed_devices(check, devices)
        return meshes.make_mesh(check, _filled(check, sizes, len(found)), found, axis_types)


def _sizes(check: Checks, axes: Any) -> dict[str, int]:
    """Checks the size of every axis."""
    if not isinstance(axes, Mapping) or not axes:
        raise check.wrong("axes", axes, "the size of every axis", _AXES)
    for name, size in axes.items():
        if not isinstance(name, str) or not name:
            raise check.wrong("axes", axes, "names of axes, each with its size", _AXES)
        if not is_integer(size) or not (size == -1 or 1 <= size <= DEVICES):
            expected = f"an integer from 1 to {DEVICES}, or -1 for the rest"
            raise check.wrong(f"axes[{name!r}]", size, expected)
    sizes = {name: operator.index(size) for name, size in axes.items()}
    if rests := [name for name, size in sizes.items() if size == -1][1:]:
        message = f"axes={dict(axes)}: more than one axis has the size -1"
        raise check.misfit(message, f"give the size of {rests[0]!r}")
    return sizes


def _filled(check: Checks, sizes: dict[str, int], count: int) -> dict[str, int]:
    """Replaces -1 by the rest of the devices, and checks that the mesh has all of them."""
    fixed = {name: size for name, size in sizes.items() if size != -1}
    product = math.prod(fixed.values())
    rest = len(fixed) < len(sizes)
    if not count:
        raise check.misfit("there are no devices", "leave out devices=, or give some")
    if product == count or (rest and count % product == 0):
        return {name: count // product if size == -1 else size for name, size in sizes.items()}
    shown = " x ".join(f"{name}={size}" for name, size in fixed.items())
    shown += f", which is {product}" if len(fixed) > 1 else ""
    devices = "1 device" if count == 1 else f"{count} devices"
    divisors = ", ".join(str(n) for n in range(1, count + 1) if count % n == 0)
    message = f"{devices} cannot form {shown}"
    hint = f"sizes that divide {count} are {divisors}"
    if product < count:
        most = count - count % product if rest else product
        hint += f"; devices=jax.devices()[:{most}] leaves the others out"
    elif not rest:
        hint += f"; on CPUs, JAX_NUM_CPU_DEVICES={product} makes as many"
    raise check.misfit(message, hint)
