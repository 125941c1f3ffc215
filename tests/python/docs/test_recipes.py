"""The recipes for clusters: their syntax, and their launch lines with processes on this machine.

`launcher.py` plays `srun` and `gcloud`. JAX finds coordinator, number of processes and rank by its
own detection. One device per process: Gloo, the library of CPU processes, can deadlock if steps
with several devices per process overlap.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
import yaml

from tests.python import ROOT
from tests.python.docs import launcher

pytestmark = pytest.mark.plain

FOLDER = ROOT / "docs/recipes"
STOPPED = 75
STEPS = 4 * 16  # of train.py with the small data


class Host:
    """A machine with data, programs and environment variables of a recipe."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.data, self.saved, self.bin = (folder / name for name in ("data", "saved", "bin"))
        for path in (self.data, self.saved, self.bin):
            path.mkdir()
        self.checkpoints = self.saved / "train"
        rng = np.random.default_rng(0)
        for i in range(2):
            x = rng.normal(size=(rows // 2, 8)).astype(np.float32)
            columns = {"x": pa.FixedSizeListArray.from_arrays(x.ravel(), 8), "y": x.sum(axis=1)}
            path = self.data / f"train-{i}.arrow"
            pyarrow.feather.write_feather(pa.table(columns), path, compression="uncompressed")
        for name in ("python", "python3"):
            self.program(name, f'exec "{sys.executable}" "$@"')
        for name in ("srun", "gcloud"):
            self.program(name, f'exec "{sys.executable}" "{launcher.__file__}" {name} "$@"')
        self.program("scontrol", f'echo "$@" >> "{folder}/scontrol.txt"')
        kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.port = free_port()
        self.env = kept | {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "python"),
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": "1",
            "JAX_COORDINATOR_PORT": str(self.port),
            "DATA": str(self.data),
            "SAVED": str(self.saved),
        }

    def program(self, name: str, line: str) -> None:
        """Writes a shell script that recipes find by its name."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o700)

    def run(self, *command: str, **variables: str) -> tuple[int, str]:
        """Runs a command in the folder of the recipes; returns its status and output."""
        done = subprocess.run(
            command,
            cwd=FOLDER,
            env=self.env | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout

    def steps(self, per_epoch: int) -> int:
        """Returns how many steps the saved weights have, and checks that the state has as many."""
        last = max(int(path.name) for path in self.checkpoints.iterdir())
        state = json.loads((self.checkpoints / f"{last}/state/metadata").read_text())
        assert state["epoch"] * per_epoch + state["position"] // 16 == last
        return last


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def finished(output: str) -> list[str]:
    """Returns what the processes print at the end, in the order of their numbers."""
    return sorted(re.findall(r"process \d of \d: step \d+", output))


ALL = [f"process {i} of 2: step {STEPS}" for i in range(2)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_parse(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)


def test_the_guide_quotes_the_recipes() -> None:
    text = (ROOT / "docs/guides/tuning.py").read_text()
    blocks = re.findall(r"^# ```(?:bash|yaml)\n(.*?)^# ```$", text, flags=re.MULTILINE | re.DOTALL)
    recipes = [path.read_text() for path in FOLDER.iterdir() if path.is_file()]
    lines = {line.strip() for recipe in recipes for line in recipe.splitlines()}
    quoted = [line.removeprefix("#").strip() for block in blocks for line in block.splitlines()]
    assert len(blocks) == 3
    assert [line for line in quoted if line not in lines] == []


@pytest.mark.deep
def test_slurm_stops_and_continues(tmp_path: Path) -> None:
    host = Host(tmp_path, rows=1 << 18)  # many more steps than the test runs
    saved = [0]
    for _ in range(2):
        stop = str(host.checkpoints / f"{saved[-1] // 100 * 100 + 100}")
        status, output = host.run("bash", "slurm.sh", SLURM_JOB_ID="7", STOP_WHEN=stop)
        assert status == STOPPED, output
        first, second = finished(output)
        assert first.rpartition(" ")[2] == second.rpartition(" ")[2]  # after the same step
        saved.append(host.steps(per_epoch=1 << 14))
        assert first.endswith(f"step {saved[-1]}")  # the last step has its checkpoint
        assert f"step {saved[-2]}," not in output
    assert saved == sorted(set(saved))
    assert (tmp_path / "scontrol.txt").read_text() == "requeue 7\n" * 2


@pytest.mark.parametrize(("status", "requeued"), [(0, False), (1, False), (STOPPED, True)])
def test_slurm_requeues_a_job_that_was_stopped(
    tmp_path: Path,
    status: int,
    requeued: bool,
) -> None:
    host = Host(tmp_path, rows=2)
    host.program("srun", f"exit {status}")
    assert host.run("bash", "slurm.sh", SLURM_JOB_ID="7") == (status, "")
    assert (tmp_path / "scontrol.txt").exists() == requeued


@pytest.mark.parametrize("name", ["DATA", "SAVED"])
def test_slurm_needs_two_folders(tmp_path: Path, name: str) -> None:
    host = Host(tmp_path, rows=2)
    host.program("srun", "echo started")
    status, output = host.run("bash", "slurm.sh", **{name: ""}, SLURM_JOB_ID="7")
    assert status == 1
    assert f"{name}: name the folder" in output
    assert "started" not in output


def test_a_tpu_slice_needs_its_name(tmp_path: Path) -> None:
    host = Host(tmp_path, rows=2)
    status, output = host.run("bash", "tpu.sh", ZONE="zone")
    assert (status, "TPU: unbound variable" in output) == (1, True)


@pytest.mark.deep
def test_a_tpu_slice(tmp_path: Path) -> None:
    host = Host(tmp_path, rows=256)
    status, output = host.run("bash", "tpu.sh", TPU="name", ZONE="zone")
    assert (status, finished(output)) == (0, ALL), output
    status, output = host.run("bash", "tpu.sh", TPU="name", ZONE="zone")  # a restart after the end
    assert (status, finished(output)) == (0, ALL), output


# ---- JobSet ----


def an_object(**properties: Any) -> dict[str, Any]:
    """Returns the schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def a_list(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 1}
AMOUNTS = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}

# The fields that the recipe uses, of the APIs jobset.x-k8s.io/v1alpha2, batch/v1 and core/v1.
CONTAINER = an_object(
    name=TEXT,
    image=TEXT,
    command=a_list(TEXT),
    env=a_list(an_object(name=TEXT, value=TEXT)),
    ports=a_list(an_object(containerPort=COUNT)),
    resources=an_object(requests=AMOUNTS, limits=AMOUNTS),
    volumeMounts={"type": "array"},
)
POD = an_object(
    restartPolicy={"const": "Never"},
    terminationGracePeriodSeconds=COUNT,
    containers=a_list(CONTAINER),
    volumes=a_list({"type": "object", "required": ["name", "persistentVolumeClaim"]}),
)
JOB = an_object(
    completionMode={"const": "Indexed"},
    completions=COUNT,
    parallelism=COUNT,
    backoffLimit={"const": 0},
    template=an_object(spec=POD),
)
JOBSET = an_object(
    apiVersion={"const": "jobset.x-k8s.io/v1alpha2"},
    kind={"const": "JobSet"},
    metadata=an_object(name=TEXT),
    spec=an_object(
        failurePolicy=an_object(maxRestarts=COUNT),
        replicatedJobs=a_list(an_object(name=TEXT, replicas=COUNT, template=an_object(spec=JOB))),
    ),
)


def test_a_jobset(tmp_path: Path) -> None:
    document = yaml.safe_load((FOLDER / "jobset.yaml").read_text())
    jsonschema.validate(document, JOBSET)
    (group,) = document["spec"]["replicatedJobs"]
    job = group["template"]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    env = {variable["name"]: variable["value"] for variable in container["env"]}
    name, port = document["metadata"]["name"], container["ports"][0]["containerPort"]
    # JobSet names a pod JOBSET-GROUP-JOB-POD, in the domain JOBSET.
    assert env["JAX_COORDINATOR_ADDRESS"] == f"{name}-{group['name']}-0-0.{name}:{port}"
    assert int(env["PROCESSES"]) == job["completions"] == job["parallelism"] == launcher.PROCESSES
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in job["template"]["spec"]["volumes"]}

    host = Host(tmp_path, rows=256)
    env["JAX_COORDINATOR_ADDRESS"] = f"localhost:{host.port}"
    line = [word.replace("/data", str(host.data)) for word in container["command"]]
    line = [word.replace("/saved", str(host.saved)) for word in line]
    pods = [
        subprocess.Popen(
            line,
            cwd=FOLDER,
            env=host.env | env | {"JOB_COMPLETION_INDEX": str(i)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for i in range(launcher.PROCESSES)
    ]
    try:
        outputs = [pod.communicate(timeout=120)[0] for pod in pods]
    finally:
        for pod in pods:
            pod.kill()
    assert finished("".join(outputs)) == ALL, outputs
    assert [pod.returncode for pod in pods] == [0, 0]
