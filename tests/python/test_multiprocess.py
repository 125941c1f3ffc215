"""Real JAX processes: each delivers its own shards, and together they hold the batch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.python.data import digits

ROOT = Path(__file__).resolve().parents[2]
PROCESSES, DEVICES = 2, 2

# What every process runs. The mesh is permuted so that no process owns a run of
# rows, the image is split inside rows, and the last case has devices of one
# process only. What each device holds is printed, for the test to compare.
PROGRAM = """
import json, sys
import jax, numpy as np
rank, port = int(sys.argv[1]), sys.argv[2]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=rank,
                           cluster_detection_method="deactivate", initialization_timeout=60)
from jax.sharding import Mesh, PartitionSpec as P
import meshfeed as mf
from tests.python.data import digits

devices = np.array(jax.devices())
meshes = {
    "plain": Mesh(devices.reshape(2, 2), ("data", "model")),
    "permuted": Mesh(devices[[2, 1, 0, 3]].reshape(2, 2), ("data", "model")),
    "one process": Mesh(devices[:2].reshape(2, 1), ("data", "model")),
}
specs = {"image": P("data", None, "model"), "label": P("data")}
held = {}
with mf.from_arrays(digits(64)) as ds:
    options = dict(batch_size=8, shuffle=True, seed=2, device_prefetch=1)
    for name, mesh in meshes.items():
        with mf.Loader(ds, mesh, specs, **options) as it:
            for step, batch in zip(range(3), it):
                for key, array in batch.items():
                    assert array.shape == (8, 8, 8)[:array.ndim] and array.sharding.mesh == mesh
                    for shard in array.addressable_shards:
                        index = [s.indices(n)[:2] for s, n in zip(shard.index, array.shape)]
                        held.setdefault(f"{name}/{step}/{key}", []).append(
                            [shard.device.id, index, np.asarray(shard.data).tolist()])
            held[f"{name}/records"] = [it.records(0, 8 * step).tolist() for step in range(3)]
            held[f"{name}/state"] = it.state()
print(json.dumps(held))
"""


def test_two_processes() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    env = os.environ | {"JAX_NUM_CPU_DEVICES": str(DEVICES), "JAX_PLATFORMS": "cpu"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), port],
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(PROCESSES)
    ]
    try:
        ended = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * PROCESSES, ended
    check([json.loads(out) for out, _ in ended])


def check(held: list[dict[str, Any]]) -> None:
    arrays = digits(64)
    for name, devices in {"plain": 4, "permuted": 4, "one process": 2}.items():
        records = held[0][f"{name}/records"]
        for process in held:
            assert process[f"{name}/records"] == records
            assert process[f"{name}/state"] == held[0][f"{name}/state"]
        for step in range(3):
            for key, array in arrays.items():
                whole = array[records[step]]
                shards = [s for process in held for s in process.get(f"{name}/{step}/{key}", [])]
                assert len({device for device, _, _ in shards}) == devices
                for _, index, data in shards:
                    part = tuple(slice(a, b) for a, b in index)
                    np.testing.assert_array_equal(np.array(data, whole.dtype), whole[part])
