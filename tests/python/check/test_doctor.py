"""`python -m meshfeed doctor`: what it finds out about Python, the C library and JAX."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import meshfeed as mf
from meshfeed import errors
from meshfeed._native import library
from meshfeed._selfcheck import environment


def doctor(*arguments: str, **variables: str) -> tuple[dict[str, Any], int]:
    """Runs the command as a user does, and returns its JSON and its exit status."""
    command = [sys.executable, "-m", "meshfeed", "doctor", "--json", *arguments]
    env = {**os.environ, **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.stderr == ""
    return json.loads(done.stdout), done.returncode


def facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fact["name"], fact["text"]) for fact in found["facts"]]


def test_facts(tmp_path: Path) -> None:
    (tmp_path / "a.arrow").touch()
    found, status = doctor(str(tmp_path), JAX_NUM_CPU_DEVICES="3", JAX_PLATFORMS="cpu")
    listed = facts(found)
    one = dict(listed)
    assert one["meshfeed"].startswith(f"{mf.__version__}, go1")
    assert one["python"] == f"{platform.python_version()} {sys.executable}"
    versions = {"jax": jax.__version__, "meshfeed": mf.__version__, "numpy": np.__version__}
    assert {f"{name} {v}" for name, v in versions.items()} <= set(one["packages"].split(", "))
    decoder = library.library().mf_jpeg_decoder().decode()
    assert one["C library"] == f"{library.path()}, ABI 1.0, JPEG by {decoder}"
    assert one["JAX"] == "cpu: 3 \u00d7 cpu"
    places = [text for name, text in listed if name == "path"]
    assert places[0].startswith(f"{tmp_path}: ")
    assert places[0].endswith(", 1 file")
    assert places[1].startswith(".: ")
    assert "file" not in places[1]
    assert len(places) == 2
    assert ("variable", "JAX_NUM_CPU_DEVICES=3") in listed
    severities = {problem["severity"] for problem in found["problems"]}
    assert (status == 1) == ("error" in severities)


def test_a_jax_that_does_not_answer(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("import threading\nthreading.Event().wait()\n")
    found, _ = doctor("--timeout", "200ms", PYTHONPATH=str(tmp_path))
    messages = [problem["message"] for problem in found["problems"]]
    assert any(m.startswith("JAX did not list its devices within 200ms") for m in messages)


def test_another_python() -> None:
    found, _ = doctor("--python", "/no/such/python")
    assert dict(facts(found))["python"] == "/no/such/python"
    assert found["problems"][0]["message"].startswith("Python could not be asked: /no/such/python")


def test_a_library_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened() -> None:
        raise errors.IncompatibleError("it has ABI 9.0", op="python", hint="reinstall")

    monkeypatch.setattr(library, "library", opened)
    found = environment.packages()["library"]
    assert found == {"path": str(library.path()), "error": "python: it has ABI 9.0; reinstall"}


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "PACKAGES", ("no-such-package",))
    assert environment.packages()["packages"]["no-such-package"] == ""


def test_a_backend_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def backend() -> str:
        raise RuntimeError("Unable to initialize\n  backend 'tpu'")

    monkeypatch.setattr(jax, "default_backend", backend)
    assert environment.devices() == {"error": "RuntimeError: Unable to initialize backend 'tpu'"}


def test_memory_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        device_kind = "NVIDIA H100"

        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 7}

    monkeypatch.setattr(jax, "local_devices", lambda: [Device(), Device()])
    found = environment.devices()["devices"]
    assert found == [{"kind": "NVIDIA H100", "count": 2, "memory_bytes": 7}]


@pytest.mark.parametrize("what", ["packages", "devices"])
def test_the_module_prints_json(what: str) -> None:
    command = [sys.executable, "-m", "meshfeed._selfcheck.environment", what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout) == getattr(environment, what)()
