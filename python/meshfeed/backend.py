"""Devices without JAX: the backends of GoMLX, opened through the C library."""

from __future__ import annotations

import os
from typing import NoReturn

from meshfeed._command import BINARY
from meshfeed._io.arguments import Checks
from meshfeed._native import calls, library
from meshfeed._native.handle import Handle, Resource
from meshfeed.errors import InvalidStateError, OutOfRangeError


def devices(
    spec: str, *, preflight: bool = True, prober: str | None = None, timeout: float = 20.0
) -> Devices:
    """Opens devices to place batches on, without JAX.

    Args:
        spec: the kind of devices:

            - ``"virtual:N"``: N devices over a backend in pure Go, to try a layout anywhere;
            - ``"go"``: one such device;
            - ``"xla:/absolute/plugin.so?devices=N"``: a PJRT plugin (CPU, CUDA, TPU), in an
              installation made by ``MESHFEED_XLA=1 pip install .``
        preflight: whether a plugin is tried in a child process first. Without it, a bad plugin may
            end this process instead of raising an error.
        prober: the program that tries it, a `meshfeed` command built for XLA; by default the one
            beside the library that `MESHFEED_LIBRARY` names, else this package's, else on PATH.
        timeout: seconds that the trial of a plugin may take.

    Raises:
        InvalidArgumentError: the specification is wrong.
        UnsupportedError: this library, or this machine, does not have such devices.
        IncompatibleError: the plugin does not work, or has another number of devices.
        NotFoundError: there is no such plugin.

    Examples:
        >>> import meshfeed as mf
        >>> with mf.devices("virtual:4") as devices:
        ...     print(devices, len(devices), devices.shared)
        Devices('virtual:4', 4 x virtual, shared memory) 4 True
    """
    with Checks("mf.devices") as check:
        preflight = check.boolean("preflight", preflight) is not False
        if prober is not None:
            prober = check.name("prober", prober)
        else:
            beside = str(library.path().with_name("meshfeed")), BINARY
            prober = next((path for path in beside if os.access(path, os.X_OK)), None)
        limit = min(int(check.seconds("timeout", timeout) * 1000) or 1, 2**31 - 1)
        name = check.name("spec", spec)
        handle = calls.devices_open(name, prober=prober, timeout_ms=limit, preflight=preflight)
        return Devices(spec, handle)


class Devices(Resource):
    """Opened devices; `mf.devices` makes them.

    Their numbers, from 0, are the device ids of a mesh. Close them, or use them as a context
    manager; batches on them stay valid.

    Attributes:
        name: "go", "virtual", "xla-cpu", "xla-cuda" or "xla-tpu".
        platform: the backend's name of its platform, such as "cpu".
        shared: whether they use host memory, so that shards are read without a copy.
        dtypes: the names of the supported element types.
    """

    def __init__(self, spec: str, handle: Handle) -> None:
        super().__init__(handle)
        self._spec = spec
        info = calls.devices_info(handle.value)
        self.name: str = info["name"]
        self.platform: str = info["platform"]
        self.shared: bool = info["shared"]
        self.dtypes: tuple[str, ...] = tuple(info["dtypes"])
        self._descriptions: list[str] = info["devices"]

    def __len__(self) -> int:
        return len(self._descriptions)

    def describe(self, device: int) -> str:
        """Returns the backend's description of a device.

        Raises:
            OutOfRangeError: there is no such device.
        """
        with Checks("Devices.describe") as check:
            number = check.int64("device", device)
            if not 0 <= number < len(self):
                message = f"there is no device {number}, only 0 to {len(self) - 1}"
                raise OutOfRangeError(message)
            return self._descriptions[number]

    def stats(self) -> dict[str, int]:
        """Returns the `live_buffers` and `live_bytes` of meshfeed on the devices.

        This counts batches in use, and memory kept for the next batch of a loop.
        """
        with Checks("Devices.stats"):
            info = calls.devices_info(self._handle.value)
            return {name: info[name] for name in ("live_buffers", "live_bytes")}

    def check(self) -> None:
        """Raises an error if the devices are closed."""
        self._handle.check()

    def __repr__(self) -> str:
        memory = "shared memory" if self.shared else "memory of their own"
        return f"Devices({self._spec!r}, {len(self)} x {self.name}, {memory})"

    def __reduce__(self) -> NoReturn:
        message = "devices cannot be pickled: they belong to this process"
        hint = "open them in the other process"
        raise InvalidStateError(message, op="mf.Devices", hint=hint)
