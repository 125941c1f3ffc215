"""The release wheel for x86-64, which zig builds for glibc 2.17, in a new environment."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hatch_build import glibc_need
from tests.python import ROOT

pytestmark = [pytest.mark.deep, pytest.mark.plain]


def test_the_release_wheel_loads_in_a_new_environment(tmp_path: Path) -> None:
    env = os.environ | {"PYTHON": sys.executable, "GOFLAGS": ""}  # the command is static
    build = [str(ROOT / "tools/release/wheels.sh"), str(tmp_path), "x86_64"]
    subprocess.run(build, env=env, check=True, timeout=1200)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl")
    with zipfile.ZipFile(wheel) as z:
        assert glibc_need(z.read("meshfeed/_lib/libmeshfeed.so.1")) == (2, 17)
        assert glibc_need(z.read("meshfeed/_bin/meshfeed")) is None  # it is static
    check = [ROOT / "tools/release/check_wheel.sh", wheel]
    done = subprocess.run(check, env=env, stdout=subprocess.PIPE, text=True, timeout=1200)
    print(done.stdout)
    assert done.returncode == 0
    assert re.search(r"[1-9]\d* passed", done.stdout)
