"""Secrets of data far away are in requests, and nowhere else."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.python.programs import HANG
from tests.python.webserver import Bucket, Hub, web_server

PLANTED = "planted"  # is in every secret

PROGRAM = """
import json, logging, os, sys, traceback
import meshfeed as mf

logging.basicConfig(level=logging.DEBUG)
for name in json.loads(sys.stdin.read()):
    try:
        with mf.open(name) as ds, mf.Loader(ds, batch_size=100, seed=1, epochs=1) as loader:
            batches = list(loader)
            print("read", len(batches), repr(ds), ds, ds.schema, ds.fingerprint, ds.cache)
            print(repr(loader), loader.state(), loader.stats(), loader.report(), loader.last)
            print(loader.certificate(), loader.layout.to_json(), loader.layout.report())
            loader.save_state("state.json")
    except Exception as error:
        traceback.print_exc()
        print("failed", repr(error), vars(error))
"""

AWS = """\
[profile dev]
credential_process = cat ~/key.json
[profile broken]
credential_process = echo planted-output; echo planted-message >&2; exit 1
"""


KEY = """{"AccessKeyId": "planted-id", "SecretAccessKey": "planted-key",
"SessionToken": "planted-token"}"""


def parquet() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": list(range(1000))}), out)
    return out.getvalue()


def test_secrets_stay(tmp_path: Path) -> None:
    """Planted secrets are in no output, log, error, state, report or file of a process."""
    home, work = tmp_path / "home", tmp_path / "work"
    (home / ".aws").mkdir(parents=True)
    work.mkdir()
    (home / ".aws" / "config").write_text(AWS)
    (home / "key.json").write_text(KEY)
    google = home / "google.json"
    google.write_text('{"type": "service_account", "private_key": "planted"}')
    with web_server() as server:
        Bucket(server).put("x.parquet", parquet())
        Hub(server).commit("a" * 40, {"x.parquet": parquet()})
        address = server.url.replace("//", "//me:planted@")
        good = [
            address + "/bucket/x.parquet?signature=planted",
            "s3://bucket/x.parquet",
            "s3://bucket",
        ]
        good += ["hf://datasets/org/name/data/x.parquet"]
        bad = [address + "/none?signature=planted", address + "/*", "http://me:planted@%zz/"]
        bad += ["s3://bucket/none", "s3://none", "gs://bucket/x", "hf://datasets/org/none/x"]
        kinds = ("AWS_", "GOOGLE_", "HF_")
        inherited = {name: v for name, v in os.environ.items() if not name.startswith(kinds)}
        environment = {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(work),
            "AWS_PROFILE": "dev",
            "AWS_ENDPOINT_URL": server.url,
            "HF_ENDPOINT": server.url,
            "HF_TOKEN": "hf_planted",
            "GOOGLE_APPLICATION_CREDENTIALS": str(google),
        }

        def run(names: list[str], *arguments: str, **others: str) -> str:
            done = subprocess.run(
                [sys.executable, *arguments],
                input=json.dumps(names),
                cwd=work,
                env=inherited | environment | others,
                capture_output=True,
                text=True,
                timeout=HANG,
            )
            return done.stdout + done.stderr

        said = run(good + bad, "-c", PROGRAM)
        assert said.count("read 10 ") == len(good), said
        assert said.count("failed ") == len(bad), said
        said += run(["s3://bucket/x.parquet"], "-c", PROGRAM, AWS_PROFILE="broken")
        assert "credential_process of profile broken of ~/.aws/config failed" in said
        for name in [*good, *bad]:
            said += run([], "-m", "meshfeed", "inspect", name)
        assert said.count("1,000 records") >= len(good), said
    assert all(secret in server.heard for secret in ("planted-id", "planted-token", "hf_planted"))
    written = [path for path in work.rglob("*") if path.is_file()]
    assert any(path.name == "state.json" for path in written)
    assert len(written) > 3  # the cache too
    assert PLANTED not in said
    assert not [path for path in work.rglob("*") if PLANTED in str(path.relative_to(tmp_path))]
    assert not [path for path in written if PLANTED.encode() in path.read_bytes()]
