"""Devices without JAX: the backends of GoMLX, opened through the C library."""

from __future__ import annotations

import os
from typing import NoReturn

from meshfeed._command import BINARY
from meshfeed._io.arguments import Checks
from meshfeed._native import library, rings
from meshfeed._native.handle import Handle, Resource
from meshfeed.errors import InvalidStateError, OutOfRangeError


def devices(
    spec: str, *, preflight: bool = True, prober: str | None = None, timeout: float = 20.0
) -> Devices:
    """Opens devices to place batches on, without JAX.

    Args:
        spec: the kind of devices:

            - ``"virtual:N"``: N devices over a backend in pure Go, to try a layout anywhere;
            - ``"go"``: one device of the same backend;
            - ``"xla:/absolute/plugin.so?devices=N"``: a PJRT plugin (CPU, CUDA, TPU), in an
              installation made by ``MESHFEED_XLA=1 pip install .``
        preflight: whether a child process tries the plugin first. Without this trial, a bad plugin
            may end this process instead of raising an error.
        prober: the program of the trial: a `meshfeed` command built for XLA. The default is the
            command beside the library that `MESHFEED_LIBRARY` names. If there is none, it is
            this package's command, or else the one on PATH.
        timeout: seconds that the trial may take.

    Raises:
        InvalidArgumentError: the specification is wrong.
        UnsupportedError: this library, or this machine, does not support these devices.
        IncompatibleError: the plugin does not work, or its number of devices differs from `spec`.
        NotFoundError: the plugin's file does not exist, or the prober cannot be started.

    Examples:
        >>> import meshfeed as mf
        >>> with mf.devices("virtual:4") as devices:
        ...     print(devices, len(devices), devices.shared)
        Devices('virtual:4', 4 x virtual, shared memory) 4 True
    """
    with Checks("mf.devices") as check:
        preflight = check.boolean("preflight", preflight) is not False  # None means True
        if prober is not None:
            prober = check.name("prober", prober)
        else:
            commands = str(library.path().with_name("meshfeed")), BINARY
            prober = next((path for path in commands if os.access(path, os.X_OK)), None)
        # At least 1 ms, because the C library takes 0 for its default.
        limit = min(int(check.seconds("timeout", timeout) * 1000) or 1, 2**31 - 1)
        name = check.name("spec", spec)
        handle = rings.devices_open(name, prober=prober, timeout_ms=limit, preflight=preflight)
        return Devices(spec, handle)


class Devices(Resource):
    """Opened devices; `mf.devices` makes them.

    The devices are numbered from 0; these numbers are the device ids of a mesh. Close the devices,
    or use them as a context manager. Batches stay valid after that.

    Attributes:
        name: "go", "virtual", "xla-cpu", "xla-cuda" or "xla-tpu".
        platform: the backend's name of its platform, such as "cpu".
        shared: whether the devices use host memory, so that shards are read without a copy.
        dtypes: the names of the supported element types.
    """

    def __init__(self, spec: str, handle: Handle) -> None:
        super().__init__(handle)
        self._spec = spec
        info = rings.devices_info(handle.value)
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
        """Returns `live_buffers` and `live_bytes`: what meshfeed has allocated on the devices.

        The numbers include batches in use, and memory kept for the next batch of a loop.
        """
        with Checks("Devices.stats"):
            info = rings.devices_info(self._handle.value)
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
