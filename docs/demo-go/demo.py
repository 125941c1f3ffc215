"""Train with GoMLX on two backends, and check that both and JAX get the same batches.

    make demo-go          (or: python docs/demo-go/demo.py --out demo-out)

It writes the files of the Python demo if they are missing, builds the Go program
beside this file, and runs it on eight virtual devices and on XLA's plugin for
CPUs. Each run writes a SHA-256 of every global batch, read back from its devices.
Then meshfeed in Python delivers the same run to JAX, on another mesh and with
other shards, and all digests must be equal.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import argparse
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

import meshfeed as mf

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLUGIN = ROOT / ".build/plugins/cpu/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
BATCH = 64  # as in main.go
SPECS = {"image": P("data", None, "model"), "label": P("data")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for all files")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--virtual", action="store_true", help="leave XLA out")
    options = parser.parse_args()
    began = time.monotonic()
    out: Path = options.out.resolve()
    write_data(out / "data")

    backends = {"virtual": "virtual:8"}
    if options.virtual:
        print("XLA is left out, as --virtual says.")
    elif PLUGIN.exists():
        backends["xla-cpu"] = f"xla:{PLUGIN}?devices=8"
    else:
        print("XLA is left out: its plugin is missing. make plugin-cpu fetches it (63 MB).")
    program = build(out, xla="xla-cpu" in backends)

    digests = {}
    for name, spec in backends.items():
        heading(f"GoMLX on 8 devices: {name}")
        digests[name] = train(program, spec, out, name, options.epochs)

    heading("The same run in JAX, on a 4 by 2 mesh, with the columns of images split too")
    compare(expected(out / "data", options.epochs), digests)
    print(f"\nall in {time.monotonic() - began:.0f} s")


def write_data(folder: Path) -> None:
    """Write the files of the Python demo if they are missing."""
    if not (folder / "test.arrow").exists():
        sys.path.insert(0, str(HERE.parent / "demo"))
        import data

        data.write(folder)


def build(out: Path, *, xla: bool) -> Path:
    """Build the program; with xla it can open plugins."""
    tags = ["-tags", "xla"] if xla else []
    run(["go", "build", *tags, "-o", str(out / "demo-go"), "./docs/demo-go"])
    return out / "demo-go"


def train(program: Path, spec: str, out: Path, name: str, epochs: int) -> list[str]:
    """Run the program, and return the digest of each batch that it trained on."""
    digests = out / f"digests-{name}.txt"
    arguments = ["-data", out / "data", "-backend", spec, "-epochs", epochs, "-digests", digests]
    run([str(program), *map(str, arguments)])
    return digests.read_text().split()


def run(command: list[str]) -> None:
    """Run a command that reports its own errors."""
    done = subprocess.run(command, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def expected(data: Path, epochs: int) -> list[str]:
    """Return the digest of each global batch that JAX gets."""
    mesh = jax.make_mesh((4, 2), ("data", "model"))
    dataset = mf.open(f"{data}/train-*.arrow")
    found = []
    with mf.Loader(
        dataset, mesh, SPECS, batch_size=BATCH, shuffle=True, seed=0, epochs=epochs
    ) as loader:
        while loader.epoch < epochs:
            for batch in loader:
                digest = hashlib.sha256()
                for name in SPECS:
                    digest.update(np.ascontiguousarray(jax.device_get(batch[name])))
                found.append(digest.hexdigest())
    return found


def compare(expected: list[str], digests: dict[str, list[str]]) -> None:
    for name, got in digests.items():
        if len(got) != len(expected):
            sys.exit(f"{name} trained on {len(got)} batches, but JAX got {len(expected)}")
        for step, (theirs, ours) in enumerate(zip(got, expected, strict=True)):
            if theirs != ours:
                sys.exit(f"{name}: the global batch of step {step} is not the one that JAX got")
    print(
        f"all {len(expected)} global batches were the same on {' and '.join(digests)} "
        "and in JAX (SHA-256)"
    )


def heading(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
