"""Builds the C library and the command into the wheel.

The library's recipe is `capi/build.sh`, the same that `make lib` runs. The
wheel's tag follows from what came out of it: the highest GLIBC version whose
symbols the library asks for.

Environment:
    MESHFEED_LIBRARY: a library built before, which is taken instead.
    MESHFEED_COMMAND: a command built before, which is taken instead.
    MESHFEED_WHEEL_PLAT: the platform part of the wheel's tag.
    MESHFEED_GO: the go command; by default the one on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = {"darwin": "libmeshfeed.dylib", "win32": "meshfeed.dll"}.get(
    sys.platform, "libmeshfeed.so"
)
COMMAND = "meshfeed.exe" if sys.platform == "win32" else "meshfeed"


class BuildHook(BuildHookInterface[Any]):
    """Compiles the native parts before hatchling collects the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds, and names what was built to hatchling.

        Args:
            version: "standard" or "editable"; both build into the package.
            build_data: hatchling's record of the wheel, changed in place.
        """
        package = Path(self.root) / "python" / "meshfeed"
        library = package / "_lib" / LIBRARY
        command = package / "_bin" / COMMAND
        self._library(library)
        build_data["artifacts"].append(f"/{library.relative_to(self.root).as_posix()}")
        if self._command(command):
            build_data["artifacts"].append(f"/{command.relative_to(self.root).as_posix()}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(library)}"

    def _library(self, out: Path) -> None:
        out.parent.mkdir(exist_ok=True)
        if ready := os.environ.get("MESHFEED_LIBRARY"):
            shutil.copyfile(ready, out)
            return
        go = find_go()
        build = ["sh", "capi/build.sh", str(out), *tags(Path(self.root))]
        self._run(build, go, {"CGO_ENABLED": "1"})

    def _command(self, out: Path) -> bool:
        out.parent.mkdir(exist_ok=True)
        if ready := os.environ.get("MESHFEED_COMMAND"):
            shutil.copy(ready, out)
            return True
        if not any((Path(self.root) / "cmd" / "meshfeed").glob("*.go")):
            return False
        go = find_go()
        build = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
        build += tags(Path(self.root))
        self._run([*build, "-o", str(out), "./cmd/meshfeed"], go, {"CGO_ENABLED": "0"})
        return True

    def _run(self, command: list[str], go: str, env: dict[str, str]) -> None:
        path = os.pathsep.join([str(Path(go).parent), os.environ.get("PATH", "")])
        full = {**os.environ, **env, "PATH": path}
        done = subprocess.run(command, cwd=self.root, env=full, check=False)
        if done.returncode != 0:
            sys.exit(f"meshfeed: {' '.join(command)} failed with exit status {done.returncode}")


def find_go() -> str:
    """Gives the path of the go command, or ends the build with what to do."""
    go = shutil.which(os.environ.get("MESHFEED_GO") or "go")
    if go is None:
        sys.exit(
            "meshfeed: building from source needs Go (go.mod names the version) and a C compiler, "
            "but there is no go command on PATH; install Go, or install a wheel, "
            "or point MESHFEED_LIBRARY at a library that was built before"
        )
    return go


def tags(root: Path) -> list[str]:
    """Gives the flags that put the browser page into library and command, where it has been built.

    It is in the sdist; in a checkout `make page` builds it.
    """
    built = (root / "wasm" / "page" / "dist" / "layout.html").exists()
    return ["-tags", "page"] if built else []


def platform(library: Path) -> str:
    """Gives the platform part of the wheel's tag."""
    if plat := os.environ.get("MESHFEED_WHEEL_PLAT"):
        return plat
    plat = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not plat.startswith("linux_"):
        return plat
    major, minor = glibc_need(library.read_bytes())
    return f"manylinux_{major}_{minor}_{plat.removeprefix('linux_')}"


def glibc_need(library: bytes) -> tuple[int, int]:
    """Gives the highest version among the GLIBC_x.y names in the string table."""
    found = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", library)
    if not found:
        sys.exit("meshfeed: the library names no GLIBC version; only glibc is supported on Linux")
    return max((int(major), int(minor)) for major, minor in found)
