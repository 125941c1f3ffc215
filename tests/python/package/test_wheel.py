"""A source distribution, the wheel built from it, and its use in a new environment with NumPy."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import meshfeed as mf
from tests.python import ROOT
from tests.python.docs import test_c_readme
from tests.python.loader.test_plugins import plugin
from tests.python.programs import HANG

pytestmark = [pytest.mark.plain, pytest.mark.deep]

LICENSES = ["LICENSE", "THIRD_PARTY_LICENSES"]
LAYOUT = """{"meshfeed":1,"mesh":{"axes":[["data",4]]},
"arrays":{"x":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":30}}"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a source distribution and the wheel built from it."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def build(sources: Path, out: Path) -> Path:
    """Builds a source distribution, and from it a wheel, into a folder, and returns that."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check"]
    done = subprocess.run(
        [*command, "--outdir", out, sources],
        env=os.environ | {"GOFLAGS": ""},  # the command is static
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def fresh(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the bin folder of an environment with only the wheel and NumPy."""
    (wheel,) = dist.glob("*.whl")
    return installed(wheel, tmp_path_factory.mktemp("fresh"))


def installed(wheel: Path, venv: Path) -> Path:
    """Installs a wheel into a new environment with NumPy; returns its bin folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (site,) = venv.glob("lib/python3.*/site-packages")
    for name in Path(np.__file__).parent.parent.glob("numpy*"):
        (site / name.name).symlink_to(name)
    pip = [sys.executable, "-m", "pip", "--python", str(venv)]
    subprocess.run([*pip, "install", "--quiet", "--no-index", wheel], check=True, timeout=HANG)
    return venv / "bin"


def output(folder: Path, *command: str | Path, text: str = "", status: int = 0) -> str:
    """Returns the output of a command, in a folder outside the checkout."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        input=text,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_the_source_distribution_holds_sources_and_the_page(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    page = {"wasm/page/dist/layout.html", "wasm/page/dist/hosted/meshfeed.wasm"}
    assert page | {"LICENSE", "THIRD_PARTY_LICENSES"} <= names
    built = {"/".join(name.split("/")[:4]) for name in names if name.startswith("wasm/page/dist/")}
    assert built == {f"wasm/page/dist/{n}" for n in ("hosted", "layout.html", "packages.json")}
    assert [n for n in names if "node_modules" in n or n.endswith("_test.go")] == []


def test_the_wheel_holds_the_library_and_the_command(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert "-py3-none-manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as z:
        names = set(z.namelist())
    assert {
        "meshfeed/__init__.pyi",
        "meshfeed/_bin/meshfeed",
        "meshfeed/_lib/libmeshfeed.so",
        "meshfeed/_lib/libmeshfeed.so.1",
        "meshfeed/_lib/pkgconfig/meshfeed.pc",
        "meshfeed/include/meshfeed.h",
        "meshfeed/include/meshfeed.hpp",
        "meshfeed/include/meshfeed_certificate.h",
        "meshfeed/include/meshfeed_devices.h",
        "meshfeed/include/meshfeed_views.h",
        "meshfeed/diagnosis.schema.json",
        "meshfeed/diagram.schema.json",
        "meshfeed/layout.schema.json",
        "meshfeed/measurements.schema.json",
        "meshfeed/memory.schema.json",
        "meshfeed/strategy.schema.json",
        "meshfeed/view.schema.json",
        "meshfeed/py.typed",
    } <= names
    assert [name for name in names if "test" in name] == []


def test_the_wheel_holds_its_licenses_and_its_sbom(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    info = f"meshfeed-{mf.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as z:
        metadata = z.read(f"{info}/METADATA").decode()
        texts = {z.read(f"{info}/licenses/{name}") for name in LICENSES}
        bill = json.loads(z.read(f"{info}/sboms/meshfeed.cdx.json"))
        library = z.read("meshfeed/_lib/libmeshfeed.so.1")
    assert [line for line in metadata.splitlines() if line.startswith("License-File")] == [
        f"License-File: {name}" for name in LICENSES
    ]
    assert texts == {(ROOT / name).read_bytes() for name in LICENSES}
    files = {part["name"]: part for part in bill["components"] if part["type"] == "file"}
    assert set(files) == {"libmeshfeed.so.1", "meshfeed"}
    assert files["libmeshfeed.so.1"]["hashes"][0]["content"] == sha256(library).hexdigest()


def test_another_folder_gives_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    """The builds share Go's cache. Compiling and linking depend on no folder, or this fails."""
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path / "another folder", filter="data")
    (sources,) = (tmp_path / "another folder").iterdir()
    again = build(sources, tmp_path / "again")
    assert {file.name for file in again.iterdir()} == {file.name for file in dist.iterdir()}
    assert [
        file.name
        for file in again.iterdir()
        if file.read_bytes() != (dist / file.name).read_bytes()
    ] == []


def test_the_description_renders_and_its_links_lead_outside(dist: Path) -> None:
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, dist.iterdir())]
    done = subprocess.run(check, capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout + done.stderr
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as z:
        (name,) = (n for n in z.namelist() if n.endswith(".dist-info/METADATA"))
        description = z.read(name).decode().partition("\n\n")[2]
    links = re.findall(r"\]\(([^)\s]+)\)", description)
    here = f"https://github.com/meshfeed/meshfeed/blob/v{mf.__version__}/"
    files = [link.removeprefix(here) for link in links if link.startswith(here)]
    assert len(files) > 10
    assert [link for link in links if not link.startswith("https://")] == []
    assert [file for file in files if not (ROOT / file.partition("#")[0]).exists()] == []


def test_c_programs_are_built_against_the_wheel(fresh: Path, tmp_path: Path) -> None:
    test_c_readme.write_programs(tmp_path)
    python, lines = f"PATH={fresh}:$PATH\n", test_c_readme.LINES[0]
    assert output(tmp_path, "sh", "-euc", python + lines) == test_c_readme.PRINTED["program.c"]
    lines = f"{test_c_readme.CXX[0]} && ./program"
    assert output(tmp_path, "sh", "-euc", python + lines) == test_c_readme.printed_by_cpp(tmp_path)

    lines = """
export PKG_CONFIG_PATH=$(python -m meshfeed --pkgconfigdir)
pkg-config --modversion meshfeed
cc program.c $(pkg-config --cflags --libs meshfeed) -o program
./program
"""
    printed = f"{mf.__version__}\n{test_c_readme.PRINTED['program.c']}"
    assert output(tmp_path, "sh", "-euc", python + lines) == printed

    opened = "import ctypes, meshfeed as mf; print(ctypes.CDLL(mf.get_library()).mf_abi_version())"
    assert output(tmp_path, fresh / "python", "-c", opened) == f"{1 << 16}\n"


def test_batches_without_jax(fresh: Path, tmp_path: Path) -> None:
    program = """
import sys
import numpy as np
import meshfeed as mf
loader = mf.Loader(mf.from_arrays({"x": np.arange(4)}), batch_size=2, epochs=1)
print(mf.__file__.startswith(sys.prefix), [batch["x"].tolist() for batch in loader])
"""
    printed = output(tmp_path, fresh / "python", "-c", program)
    assert printed == "True [[0, 1], [2, 3]]\n"


def test_missing_dependencies_are_named(fresh: Path, tmp_path: Path) -> None:
    program = """
import numpy as np
import meshfeed as mf
ds = mf.from_arrays({"x": np.arange(8, dtype=np.int32)})
for call in (
    lambda: mf.Loader(ds, None, mf.P("data"), batch_size=4),
    lambda: mf.load_array(ds, "x", None),
    lambda: mf.devices("xla:/opt/plugin.so"),
):
    try:
        call()
    except mf.UnsupportedError as e:
        print(e)
"""
    jax = (
        "jax.Arrays need JAX 0.8 or later: No module named 'jax'; "
        'pip install "jax>=0.8"; without mesh and specs a loader gives NumPy arrays'
    )
    xla = (
        '"xla:/opt/plugin.so": this program was built without XLA; '
        'a Go program imports _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"; the command and '
        "the C library are built with -tags xla, the Python package by MESHFEED_XLA=1 pip install ."
    )
    assert output(tmp_path, fresh / "python", "-c", program) == (
        f"mf.Loader: {jax}\nmf.load_array: {jax}\nmf.devices: {xla}\n"
    )


def test_the_command(fresh: Path, tmp_path: Path) -> None:
    version = output(tmp_path, fresh / "meshfeed", "--version")
    assert version == f"meshfeed {mf.__version__}\n"
    assert output(tmp_path, fresh / "python", "-m", "meshfeed", "--version") == version


def test_the_page_is_inside(fresh: Path, tmp_path: Path) -> None:
    page = output(tmp_path, fresh / "meshfeed", "page")
    assert page.startswith("<!doctype html>")
    program = """
import meshfeed as mf
mf.layout({"a": 2}, mf.P("a"), {"x": ("int8", ())}, batch_size=2).to_html("layout.html")
"""
    output(tmp_path, fresh / "python", "-c", program)
    assert (tmp_path / "layout.html").read_text().startswith("<!doctype html>")


def test_the_validator_is_inside(fresh: Path, tmp_path: Path) -> None:
    plain = output(tmp_path, fresh / "meshfeed", "check", "-", text=LAYOUT, status=1)
    assert "(indivisible)" in plain
    module = output(tmp_path, fresh / "meshfeed", "check", "--wasm", "-", text=LAYOUT, status=1)
    assert module == plain


def runs(python: str) -> bool:
    """Says whether an interpreter is there. A name of pyenv may stand for none."""
    there = shutil.which(python) is not None
    return there and not subprocess.run([python, "--version"], check=False).returncode


def test_the_newest_release_of_python(dist: Path) -> None:
    """test_release.py tests a wheel on the oldest one."""
    python = next(filter(runs, ["python3.14", "python3.13", "python3.12"]), None)
    if python is None:
        pytest.skip("there is no python3.12 or later")
    (wheel,) = dist.glob("*.whl")
    subprocess.run(
        ["sh", "tools/release/check_wheel.sh", wheel],
        cwd=ROOT,
        env=os.environ | {"PYTHON": python},
        timeout=1200,
        check=True,
    )


def test_a_build_for_xla_opens_a_plugin(dist: Path, tmp_path: Path) -> None:
    path = plugin()
    (sdist,) = dist.glob("*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    env = os.environ | {"MESHFEED_XLA": "1"}
    subprocess.run([*pip, "--wheel-dir", tmp_path, sdist], check=True, timeout=600, env=env)
    (wheel,) = tmp_path.glob("*.whl")
    python = installed(wheel, tmp_path / "venv") / "python"
    program = f"""
import meshfeed as mf
with mf.devices("xla:{path}?devices=2") as devices:
    print(len(devices), devices.shared)
"""
    assert output(tmp_path, python, "-c", program) == "2 True\n"
