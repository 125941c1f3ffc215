"""What `meshfeed doctor` asks Python, in a child process, as JSON on standard output.

`python -m meshfeed._selfcheck.environment packages` needs no JAX. With `devices`, JAX is
imported and lists its devices, which does not end while another program holds a TPU.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

import meshfeed
from meshfeed import errors
from meshfeed._native import library

PACKAGES = ("numpy", "jax", "jaxlib", "ml_dtypes", "pyarrow")


def packages() -> dict[str, Any]:
    """Returns the versions of Python and its packages, and the C library that is found."""
    found = {name: _version(name) for name in PACKAGES}
    plugins = {entry.dist for entry in entry_points(group="jax_plugins") if entry.dist}
    return {
        "executable": sys.executable,
        "version": platform.python_version(),
        "packages": {"meshfeed": meshfeed.__version__, **found},
        "plugins": sorted(f"{dist.name} {dist.version}" for dist in plugins),
        "library": _library(),
    }


def devices() -> dict[str, Any]:
    """Returns JAX's backend and how many devices of every kind it has here."""
    try:
        import jax

        backend, local = jax.default_backend(), jax.local_devices()
    except Exception as e:  # from any plugin
        return {"error": " ".join(f"{type(e).__name__}: {e}".split())[:500]}
    kinds: dict[str, dict[str, Any]] = {}
    for device in local:
        kind = kinds.setdefault(device.device_kind, {"kind": device.device_kind, "count": 0})
        kind["count"] += 1
        if stats := device.memory_stats():
            kind["memory_bytes"] = stats.get("bytes_limit", 0)
    return {"backend": backend, "devices": list(kinds.values())}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _library() -> Mapping[str, str]:
    """Opens the C library, and returns its path, ABI and decoder of JPEG files, or the error."""
    found = {"path": str(library.path())}
    try:
        opened = library.library()
    except errors.Error as e:
        return {**found, "error": str(e)}
    number = opened.mf_abi_version()
    abi = f"{number >> 16}.{number & 0xFFFF}"
    return {**found, "abi": abi, "jpeg": opened.mf_jpeg_decoder().decode()}


if __name__ == "__main__":
    print(json.dumps({"packages": packages, "devices": devices}[sys.argv[1]]()))
