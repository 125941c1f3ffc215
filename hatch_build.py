"""Builds the layout page, the C library and the command into the wheel.

Each part has one recipe, which make runs too: `wasm/guest/build.sh`, `wasm/page/build.sh` and
`capi/build.sh`. The wheel's tag follows from the results: it names the highest GLIBC version with
symbols that library or command use.

An sdist contains the page and the source of libjpeg-turbo, so that a wheel is built from it without
Node and without pip. In a checkout the page is rebuilt. If PATH has no Node that is new enough,
Node is a requirement of the build.

Environment:
    MESHFEED_PAGE: 0 builds without the layout page and without Node.
    MESHFEED_JPEG: 0 builds without libjpeg-turbo. With 1 the build fails if that cannot be built.
    MESHFEED_XLA: 1 builds library and command so that they open PJRT plugins (XLA devices).
    MESHFEED_TARGET: x86_64 or aarch64 builds a release wheel for that machine under Linux. zig, of
        the package ziglang, compiles the C code for an old glibc.
    MESHFEED_LIBRARY: a library to use instead of building one.
    MESHFEED_COMMAND: a command to use instead of building one.
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
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# The names under which linkers find the library, and under which programs load it.
LINKED = "libmeshfeed.dylib" if sys.platform == "darwin" else "libmeshfeed.so"
LIBRARY = f"{LINKED}.1" if LINKED.endswith(".so") else LINKED

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}  # of release wheels, with Go's names
OLDEST = (2, 17)  # the glibc that release wheels need: manylinux2014


class BuildHook(BuildHookInterface[Any]):
    """Compiles the parts that are not Python before hatchling collects the files."""

    def dependencies(self) -> list[str]:
        """Requires Node if the machine has none for the page, and pip to fetch libjpeg-turbo."""
        root = Path(self.root)
        if ready("MESHFEED_LIBRARY", "MESHFEED_COMMAND"):
            return []
        needs = [] if any(root.glob(".build/libjpeg/*.tar.gz")) else ["pip"]
        if builds_page(root):
            found = subprocess.run(
                ["sh", "wasm/page/node.sh", "--installed"], cwd=root, check=False
            )
            needs += [] if found.returncode == 0 else [node_pin(root)]
        return needs

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the parts and adds them to the distribution.

        Args:
            version: "standard", or "editable", which builds into the package of the checkout.
            build_data: hatchling's record of the distribution, changed in place.
        """
        if self.target_name == "sdist":
            self._page()
            subprocess.run(
                [sys.executable, "tools/libjpeg.py", "--fetch"], cwd=self.root, check=False
            )
            return
        if sys.platform == "win32":
            sys.exit(
                "meshfeed: the Python package needs the C library, which does not compile for "
                "Windows; use WSL, or the command: go install ./cmd/meshfeed"
            )
        root, editable = Path(self.root), version == "editable"
        package = root / "python/meshfeed" if editable else root / ".build/wheel" / target()
        library, command = package / "_lib" / LIBRARY, package / "_bin/meshfeed"
        if not ready("MESHFEED_LIBRARY", "MESHFEED_COMMAND"):
            self._page()
        self._library(library)
        self._command(command)
        if not editable:  # a checkout has the files of linking in other folders
            for built in (library, command):
                inside = f"meshfeed/{built.relative_to(package).as_posix()}"
                build_data["force_include"][str(built)] = inside
            build_data["force_include"].update(linking(root))
            build_data["sbom_files"].append(sbom(root, library, command))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(library, command)}"

    def _page(self) -> None:
        """Builds the page in a checkout; an sdist contains it already."""
        root = Path(self.root)
        if not page_wanted():
            return
        if not builds_page(root):
            if not (root / "wasm/page/dist/layout.html").exists():
                sys.exit(
                    "meshfeed: this source distribution was made without the layout page; "
                    "set MESHFEED_PAGE=0 to install without the page"
                )
            return
        go = find_go()
        layout, strategy = (str(root / ".build" / f"{n}.wasm") for n in ("meshfeed", "strategy"))
        without = "; set MESHFEED_PAGE=0 to install without the layout page"
        with tempfile.TemporaryDirectory() as node:
            self._run(["sh", "wasm/guest/build.sh", "layout", layout], go, {}, without)
            self._run(["sh", "wasm/guest/build.sh", "strategy", strategy], go, {}, without)
            self._run(["sh", "wasm/page/node.sh", sys.executable, node], go, {}, without)
            self._run(["sh", "wasm/page/build.sh", node, layout, strategy], go, {}, without)

    def _library(self, out: Path) -> None:
        if take("MESHFEED_LIBRARY", out):
            return
        build = ["sh", "capi/build.sh", str(out.with_name(LINKED)), *tags()]
        env = {"MESHFEED_JPEG": "1"} if target() else {}  # releases decode to the same bytes, fast
        self._run(build, find_go(), {"CGO_ENABLED": "1", **env, **cross()})

    def _command(self, out: Path) -> None:
        if take("MESHFEED_COMMAND", out):
            return
        go = find_go()
        build = [go, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", *tags()]
        cgo = "1" if xla_wanted() else "0"
        self._run([*build, "-o", str(out), "./cmd/meshfeed"], go, {"CGO_ENABLED": cgo, **cross()})

    def _run(self, command: list[str], go: str, env: dict[str, str], remedy: str = "") -> None:
        folders = [str(Path(tool).parent) for tool in (sys.executable, go)]
        path = os.pathsep.join([*folders, os.environ.get("PATH", "")])
        full = {**os.environ, **env, "PATH": path}
        done = subprocess.run(command, cwd=self.root, env=full, check=False)
        if done.returncode != 0:
            failed = f"{' '.join(command)} failed with exit status {done.returncode}"
            sys.exit(f"meshfeed: {failed}{remedy}")


class ReadmeHook(MetadataHookInterface):
    """Makes the README the description of the package, with links that work outside a checkout."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Adds the description.

        Args:
            metadata: the table `project` of pyproject.toml, changed in place.
        """
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        at = f"{metadata['urls']['Source']}/blob/v{metadata['version']}/"
        absolute = re.sub(r"\]\((?!https:)", f"]({at}", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute}


def linking(root: Path) -> dict[str, str]:
    """Returns the files for building other programs, with their paths in the wheel.

    Wheels contain no links, so the library's short name is a linker script.
    """
    made = root / ".build" / "wheel"
    made.mkdir(parents=True, exist_ok=True)
    version = (root / "VERSION").read_text().strip()
    pc = (root / "capi/meshfeed.pc.in").read_text().replace("@VERSION@", version)
    (made / "meshfeed.pc").write_text(pc)
    files = {made / "meshfeed.pc": "_lib/pkgconfig/meshfeed.pc"}
    if LIBRARY != LINKED:
        (made / LINKED).write_text(f"/* GNU ld script */\nINPUT({LIBRARY})\n")
        files[made / LINKED] = f"_lib/{LINKED}"
    for schema in root.glob("core/**/document/*.schema.json"):
        files[schema] = schema.name
    for header in (root / "capi/include").glob("*.h*"):
        files[header] = f"include/{header.name}"
    return {str(path): f"meshfeed/{inside}" for path, inside in files.items()}


def sbom(root: Path, *built: Path) -> str:
    """Writes the SBOM of library and command, and returns its path."""
    out = str(root / ".build/wheel/meshfeed.cdx.json")
    command = [sys.executable, "tools/sbom.py", out, *map(str, built)]
    if subprocess.run(command, cwd=root, check=False).returncode:
        sys.exit("meshfeed: the SBOM of library and command could not be written")
    return out


def find_go() -> str:
    """Returns the path of the go command, or ends the build with a remedy."""
    go = shutil.which(os.environ.get("MESHFEED_GO") or "go")
    if go is None:
        sys.exit(
            "meshfeed: building from source needs Go (go.mod names the version) and a C compiler, "
            "but there is no go command on PATH; install Go, or install a wheel, "
            "or point MESHFEED_LIBRARY at a library that is already built"
        )
    return go


def ready(*names: str) -> bool:
    """Says whether all these variables name parts that are already built."""
    return all(os.environ.get(name) for name in names)


def take(name: str, out: Path) -> bool:
    """Copies the part that a variable names, and says whether it names one."""
    out.parent.mkdir(parents=True, exist_ok=True)
    built = os.environ.get(name)
    if built and Path(built).resolve() != out.resolve():
        shutil.copy(built, out)
    return bool(built)


def page_wanted() -> bool:
    """Says whether library and command contain the layout page."""
    return os.environ.get("MESHFEED_PAGE", "") != "0"


def xla_wanted() -> bool:
    """Says whether library and command open PJRT plugins."""
    return os.environ.get("MESHFEED_XLA", "") not in ("", "0")


def builds_page(root: Path) -> bool:
    """Says whether this build makes the page: it is wanted, and the source is not an sdist."""
    return page_wanted() and not (root / "PKG-INFO").exists()


def node_pin(root: Path) -> str:
    """Returns the requirement of Node's wheel that tools/node.txt pins."""
    pins = (root / "tools/node.txt").read_text()
    return next(word for word in pins.split() if "==" in word)


def tags() -> list[str]:
    """Returns the flags of go build that select the contents of library and command."""
    chosen = [tag for tag, wanted in (("page", page_wanted()), ("xla", xla_wanted())) if wanted]
    return ["-tags", ",".join(chosen)] if chosen else []


def target() -> str:
    """Returns the machine in MESHFEED_TARGET, or an empty string for a build for this machine."""
    machine = os.environ.get("MESHFEED_TARGET", "")
    if machine not in ("", *MACHINES):
        sys.exit(f"meshfeed: MESHFEED_TARGET is {machine!r}; expected {' or '.join(MACHINES)}")
    return machine


def cross() -> dict[str, str]:
    """Returns the variables of go build for MESHFEED_TARGET.

    CC has no path of this machine, because Go's cache compares it.
    """
    if not (machine := target()):
        return {}
    cc = f"python3 -m ziglang cc -target {machine}-linux-gnu.{OLDEST[0]}.{OLDEST[1]}"
    return {"GOOS": "linux", "GOARCH": MACHINES[machine], "CC": cc}


def platform(*built: Path) -> str:
    """Returns the wheel's platform tag: the oldest platform that all built parts run on."""
    if plat := os.environ.get("MESHFEED_WHEEL_PLAT"):
        return plat
    plat = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not target() and not plat.startswith("linux_"):
        return plat
    machine = target() or plat.removeprefix("linux_")
    needs = [need for part in built if (need := glibc_need(part.read_bytes()))]
    if not needs:
        sys.exit("meshfeed: the library names no GLIBC version; only glibc is supported on Linux")
    major, minor = need = max(OLDEST, *needs)
    tag = f"manylinux_{major}_{minor}_{machine}"
    if need == OLDEST:
        return f"manylinux2014_{machine}.{tag}"
    if target():
        sys.exit(f"meshfeed: a release wheel needs glibc {major}.{minor}, newer than 2.17")
    return tag


def glibc_need(binary: bytes) -> tuple[int, int] | None:
    """Returns the highest version among the GLIBC_x.y names in the string table, if any."""
    found = re.findall(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", binary)
    return max(((int(major), int(minor)) for major, minor in found), default=None)
