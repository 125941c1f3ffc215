"""Train on real images over eight devices, stop, and resume on another mesh.

    make demo          (or: python docs/demo/digits.py --out demo-out)

It shows, in order:

- Arrow files on disk, and what meshfeed finds in them;
- which device holds and which process reads what on a 4 by 2 mesh;
- a training run with the batch split over "data" and the image columns over "model";
- a stop in the middle of an epoch, and a resume from the saved state on a 2 by 4 mesh;
- a check that the global batches match an uninterrupted run;
- the accuracy on a padded test set with its mask.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import data
import jax
import model
import report
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from tqdm import tqdm

import meshfeed as mf

BATCH = 64
EPOCHS = 20
SPECS = {"image": P("data", None, "model"), "label": P("data")}


@dataclass
class Run:
    """The results of the training run."""

    losses: list[float] = field(default_factory=list)
    records: list[int] = field(default_factory=list)
    waiting: float = 0.0
    computing: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder for data and report"
    )
    out: Path = parser.parse_args().out
    began = time.monotonic()

    heading("Real data: 1,797 handwritten digits, written as uneven Arrow files")
    train_files, test_file = data.write(out / "data")
    meshfeed("inspect", *train_files)

    train, test = mf.open(train_files), mf.open(test_file)
    wide, tall = mesh(4, 2), mesh(2, 4)
    run = Run()

    heading("Which device holds and which process reads what, on a 4 by 2 mesh")
    loader = open_loader(train, wide)
    first_layout = loader.layout
    print(first_layout)

    total = loader.steps_per_epoch * EPOCHS
    stop = total // 2 + 7  # in the middle of an epoch
    heading(f"Training: {total} steps of {BATCH} images, stopping after {stop}")
    bar = tqdm(total=total, unit="step", disable=not sys.stderr.isatty())
    with loader:
        params, momenta = train_on(wide, loader, *model.init(wide), run, bar, steps=stop)
        state = loader.state()
    print(f"stopped at step {stop}; the whole state of the loader is {json.dumps(state)}")

    heading("Resuming on a 2 by 4 mesh")
    with open_loader(train, tall, state=state) as loader:
        second_layout = loader.layout
        params, momenta = model.place(params, tall), model.place(momenta, tall)
        params, momenta = train_on(tall, loader, params, momenta, run, bar)
    bar.close()
    check_records(train, run, total)

    heading("Evaluating on a padded test set")
    accuracy = evaluate(tall, test, params)
    rows = len(run.records) / (run.waiting + run.computing)
    share = run.waiting / (run.waiting + run.computing)
    facts = {
        "Images": f"{len(train):,} in {len(train_files)} files, and {len(test)} for the test",
        "Accuracy on the test set": f"{accuracy:.1%}",
        "Steps": f"{total} of {BATCH} images, {EPOCHS} epochs",
        "Loss": f"{run.losses[0]:.3f} → {run.losses[-1]:.3f}",
        "Throughput": f"{rows:,.0f} rows per second",
        "Waiting for data": f"{run.waiting:.2f} s ({share:.0%})",
        "Computing": f"{run.computing:.2f} s ({1 - share:.0%})",
    }
    for name, value in facts.items():
        print(f"{name:<26}{value}")
    layouts = {"4 by 2": first_layout.to_svg(), "2 by 4": second_layout.to_svg()}
    report.write(
        out / "report.html", facts=facts, losses=run.losses, resumed_at=stop, layouts=layouts
    )
    print(f"\nReport: {out / 'report.html'}; all in {time.monotonic() - began:.0f} s")
    if accuracy < 0.95:
        sys.exit(f"the accuracy is {accuracy:.1%}, but at least 95 % was expected")


def mesh(data_axis: int, model_axis: int) -> Mesh:
    return jax.make_mesh((data_axis, model_axis), ("data", "model"))


def open_loader(dataset: mf.Dataset, on: Mesh, state: dict[str, Any] | None = None) -> mf.Loader:
    return mf.Loader(
        dataset, on, SPECS, batch_size=BATCH, shuffle=True, seed=0, epochs=EPOCHS,
        extras=("record",), state=state,
    )  # fmt: skip


def train_on(
    on: Mesh,
    loader: mf.Loader,
    params: model.Tree,
    momenta: model.Tree,
    run: Run,
    bar: tqdm,
    steps: int | None = None,
) -> tuple[model.Tree, model.Tree]:
    """Train until the loader ends, or for the given number of steps."""
    with jax.set_mesh(on):
        while loader.epoch < EPOCHS:
            asked = time.monotonic()
            for batch in loader:
                got = time.monotonic()
                params, momenta, loss = model.train_step(params, momenta, batch)
                run.losses.append(float(loss))
                run.records.extend(record_numbers(batch["record"]))
                done = time.monotonic()
                run.waiting += got - asked
                run.computing += done - got
                asked = done
                bar.update()
                if len(run.losses) == steps:
                    return params, momenta
    return params, momenta


def record_numbers(record: jax.Array) -> list[int]:
    """Return the record number of each row, which the loader delivers as two 32-bit halves."""
    halves = jax.device_get(record).astype("uint64")
    return [int(n) for n in halves[:, 0] | halves[:, 1] << 32]


def check_records(dataset: mf.Dataset, run: Run, total: int) -> None:
    """Compare the record numbers with the sequence of one uninterrupted loader."""
    with mf.Loader(dataset, batch_size=BATCH, shuffle=True, seed=0) as loader:
        steps = range(loader.steps_per_epoch)
        expected = [
            int(n) for e in range(EPOCHS) for s in steps for n in loader.records(e, s * BATCH)
        ]
    if run.records != expected:
        sys.exit("the resumed run did not continue where the first one stopped")
    print(
        f"all {total} global batches match an uninterrupted run: "
        f"{len(expected):,} rows in the same order"
    )


def evaluate(on: Mesh, test: mf.Dataset, params: model.Tree) -> float:
    right = seen = 0
    with jax.set_mesh(on), mf.Loader(test, on, SPECS, batch_size=BATCH, remainder="pad") as loader:
        for batch in loader.one_epoch():
            hits, real = model.count_correct(params, batch)
            right, seen = right + int(hits), seen + int(real)
    print(
        f"{len(test)} images in {-(-len(test) // BATCH)} batches of {BATCH}; "
        f"the mask counts {seen} real rows"
    )
    if seen != len(test):
        sys.exit(f"the mask should count {len(test)} rows, but counts {seen}")
    return right / seen


def heading(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def meshfeed(*arguments: object) -> None:
    """Run the command that is installed with the package."""
    subprocess.run([sys.executable, "-m", "meshfeed", *map(str, arguments)], check=True)


if __name__ == "__main__":
    main()
