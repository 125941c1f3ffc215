"""Train on JPEG files in archives, stop, and resume on other meshes: a minute.

    make demo-images          (or: python docs/demo-images/images.py --out demo-images-out)

It shows, in order:

- pieces of three photographs as JPEG files, in archives of WebDataset;
- eight devices on a 4 by 2 mesh that train a small convolutional network. Images are decoded and
  cropped at random ahead of the step, and each image is split in two;
- the run stops, and continues on one device, then in four processes on a 2 by 4 mesh;
- a check that each byte of each global batch is the byte of an undisturbed loader;
- a report with the loss, the batches on their devices, and the time spent waiting for data.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "drill"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "demo"))

import blocks
import numpy as np
import pieces
import report
from pieces import BATCH, STEPS, TEST
from processes import complete, say, start

import meshfeed as mf

TRAIN = Path(__file__).resolve().parent / "train.py"
STAGES = (
    report.Stage("a 4 by 2 mesh of 8 devices", [8], 2, 50),
    report.Stage("one device", [1], 1, 70),
    report.Stage("a 2 by 4 mesh of 4 processes", [2, 2, 2, 2], 4, STEPS),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo-images-out"), help="folder for files"
    )
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.jsonl"), *out.glob("weights-*.npz"), *out.glob("state.json")):
        old.unlink()
    pieces.write(out)
    train, test = pieces.training(out), pieces.testing(out)
    say(f"{len(train)} JPEG files for training, {len(test)} for the test, in archives:")
    print(train)
    runs = [stage_of(out, number) for number in range(len(STAGES))]
    results = report.Results(
        stages=STAGES, runs=runs, batches=undisturbed(train), epochs=epochs(train),
        state=(out / "state.json").stat().st_size,
    )  # fmt: skip
    check(results)
    for name, value in report.facts(results).items():
        print(f"{name:<26}{value}")
    report.write(out / "report.html", results)
    print(f"\nReport: {out / 'report.html'}")
    if results.right < 0.7 * TEST:
        sys.exit(f"{results.right} of {TEST} pieces were recognized: expected 70 %")


def stage_of(out: Path, number: int) -> list[report.Step]:
    """Runs a stage, which begins where the last one stopped."""
    stage = STAGES[number]
    say(f"train on {stage.name} to step {stage.until}, then stop")
    run = start(
        f"stage{number}", out, TRAIN, stage.devices, "--model", stage.model, "--until", stage.until
    )
    complete(run)
    return run.together()


def undisturbed(train: mf.Dataset) -> list[report.Batch]:
    """Returns all global batches of a run that nothing disturbs, without a mesh or JAX."""
    options = {"batch_size": BATCH, "shuffle": True, "seed": 0, "epochs": -1, "extras": ["key"]}
    with mf.Loader(train, **options) as loader:
        batches = iter(loader)
        return [next(batches) for _ in range(STEPS)]


def epochs(train: mf.Dataset) -> list[np.ndarray]:
    """Returns the first images of the dataset as each of four epochs crops them."""
    with mf.Loader(train, batch_size=report.COLUMNS) as loader:
        return [next(iter(loader.one_epoch(epoch)))["image"] for epoch in range(4)]


def check(results: report.Results) -> None:
    """Compares each batch of all stages with the undisturbed run."""
    steps = [step[0]["step"] for run in results.runs for step in run]
    if steps != list(range(1, STEPS + 1)):
        sys.exit(f"the steps are {steps}, not 1 to {STEPS}")
    compared = blocks.compare_all([step for run in results.runs for step in run], results.batches)
    say(f"steps 1 to {STEPS}: {compared:,} blocks on devices have the bytes of an undisturbed run")


if __name__ == "__main__":
    main()
