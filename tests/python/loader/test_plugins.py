"""Devices of PJRT plugins, with the library that is built for XLA."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.python import ROOT
from tests.python.loader.placing import BESIDE
from tests.python.programs import run


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of a library and a command that were built for XLA."""
    folder = tmp_path_factory.mktemp("full")
    subprocess.run(
        [ROOT / "capi" / "build.sh", folder / "libmeshfeed.so", "-tags=xla"],
        check=True,
        timeout=900,
    )
    subprocess.run(
        ["go", "build", "-tags=xla", "-o", folder / "meshfeed", "./cmd/meshfeed"],
        cwd=ROOT,
        env={**os.environ, "CGO_ENABLED": "1"},
        check=True,
        timeout=900,
    )
    return folder


def plugin() -> str:
    """Returns the path of XLA's plugin for CPUs."""
    path = ROOT / ".build/plugins/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
    if not path.exists():
        pytest.skip(f"NOT TESTED: {path} is not there; fetch it with: make plugin-cpu")
    return str(path)


@pytest.mark.deep
@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
@pytest.mark.parametrize("shared", ["true", "false"])
def test_plugin_beside_jax(full: Path, order: tuple[str, str], shared: str) -> None:
    spec = f"xla:{plugin()}?devices=4&shared={shared}"
    code = f"SPEC, ORDER = {spec!r}, {order}\n{BESIDE}"
    env = {"MESHFEED_LIBRARY": str(full / "libmeshfeed.so"), "JAX_NUM_CPU_DEVICES": "4"}
    assert run(code, **env) == "4 xla-cpu 2016.0\n"


UNSHARED = """
import json, numpy as np, meshfeed as mf
devices = mf.devices(SPEC)
ds = mf.from_arrays({"x": np.arange(64, dtype=np.float32)})
lay = mf.layout({"data": 4}, mf.P("data"), ds, batch_size=8)
shard = next(mf.Loader(ds, layout=lay, process=0).place(devices))["x"].shards[3]
texts = []
for call in [lambda: shard.__dlpack__(), lambda: np.array(shard, copy=False)]:
    try:
        call()
    except (mf.UnsupportedError, ValueError) as e:
        texts.append(str(e))
print(json.dumps([repr(devices), np.asarray(shard).tolist(), *texts]))
"""


@pytest.mark.deep
def test_devices_with_separate_memory(full: Path) -> None:
    spec = f"xla:{plugin()}?devices=4&shared=false"
    code = f"SPEC = {spec!r}\n{UNSHARED}"
    assert json.loads(run(code, MESHFEED_LIBRARY=str(full / "libmeshfeed.so"))) == [
        f"Devices({spec!r}, 4 x xla-cpu, memory of their own)",
        [6.0, 7.0],
        "Shard.__dlpack__: the memory of xla-cpu is not shared; read the shard, which copies it",
        "the shard on device 3 cannot be exported without a copy: its memory is not the host's",
    ]


PROBED = """
import json, meshfeed as mf
texts = []
for more in [{"prober": "/no/such"}, {"prober": SLOW, "timeout": 0.3}, {"prober": "/bin/true"}]:
    try:
        mf.devices(SPEC, **more)
    except mf.Error as e:
        texts.append([type(e).__name__, str(e)])
with mf.devices(SPEC, preflight=False) as devices:
    texts.append(len(devices))
print(json.dumps(texts))
"""


@pytest.mark.deep
def test_probers(full: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    spec = f"xla:{plugin()}?devices=2"
    code = f"SPEC, SLOW = {spec!r}, {str(slow)!r}\n{PROBED}"
    begin = f'mf.devices: "{spec}" was not opened: '
    assert json.loads(run(code, MESHFEED_LIBRARY=str(full / "libmeshfeed.so"))) == [
        ["NotFoundError", begin + 'the prober "/no/such" cannot be started'],
        [
            "IncompatibleError",
            begin + "its preflight did not end within 300ms; raise the timeout if the device is "
            "slow to start or in use by another program",
        ],
        [
            "IncompatibleError",
            begin + 'the prober "/bin/true" ended without an answer (exit status 0); its main must '
            "call gomlxfeed.RunProbe first",
        ],
        2,
    ]
