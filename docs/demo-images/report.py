"""The demo's report: what the network learned, what each device held, and where the time went."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import page
import picture
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from pieces import BATCH, SIZE, STEPS, TEST

COLUMNS = 8  # images side by side
GAP = 10  # pixels between images, in the pixels of an image

Line = dict[str, Any]
Step = tuple[Line, ...]  # the lines of all processes
Batch = dict[str, np.ndarray]


@dataclass(frozen=True)
class Stage:
    """A part of the run, on its own mesh.

    Attributes:
        name: what it runs on.
        devices: the number of devices of each process.
        model: the parts of an image.
        until: its last step.
    """

    name: str
    devices: list[int]
    model: int
    until: int


@dataclass(frozen=True)
class Results:
    """The results of the run.

    Attributes:
        stages: the parts of the run.
        runs: what the processes logged, by stage.
        batches: the global batches of all steps.
        epochs: the first images of the dataset, as some epochs crop them.
        state: the size of the loader's state in bytes.
    """

    stages: tuple[Stage, ...]
    runs: list[list[Step]]
    batches: list[Batch]
    epochs: list[np.ndarray]
    state: int

    @property
    def losses(self) -> list[float]:
        return [line["loss"] for run in self.runs for line, *_ in run]

    @property
    def right(self) -> int:
        """The pieces of the test that the network recognizes in the end."""
        return int(self.runs[-1][-1][0]["right"])


def facts(results: Results) -> dict[str, str]:
    """Returns names and values for the top of the page."""
    steady = [line for run in results.runs for line, *_ in run[1:]]  # the first step compiles
    waiting, computing = (sum(line[name] for line in steady) for name in ("wait", "compute"))
    compared = sum(len(line["blocks"]) for run in results.runs for step in run for line in step)
    losses = results.losses
    return {
        "Steps": f"{STEPS} of {BATCH} images of {SIZE} by {SIZE} pixels",
        "Global batches": f"all bytes as in an undisturbed run, in {compared:,} blocks on devices",
        "State of the loader": f"{results.state} bytes",
        "Recognized in the test": f"{results.right} of {TEST} pieces ({results.right / TEST:.1%})",
        "Loss": f"{np.mean(losses[:5]):.2f} → {np.mean(losses[-5:]):.2f}",
        "Throughput": f"{len(steady) * BATCH / (waiting + computing):,.0f} images a second",
        "Waiting for data": f"{1000 * waiting / len(steady):.1f} ms a step "
        f"({waiting / (waiting + computing):.1%})",
    }


def write(path: Path, results: Results) -> None:
    """Writes the page."""
    first, last = results.stages[0], results.stages[-1]
    page.write(
        path,
        "Photographs on three meshes",
        "A convolutional network learns from which photograph a piece comes. It trains on "
        f"{', then on '.join(stage.name for stage in results.stages)}, from JPEG files in "
        "archives.",
        page.facts(facts(results)),
        page.figure(
            "Loss",
            page.plot(lambda axes: _losses(axes, results)),
            "Cross-entropy of each step (pale), and its mean over 8 steps. At each line the run "
            "stops, and continues on other devices with the next batch.",
        ),
        page.figure(
            f"The batch of step {first.until} on {first.name}",
            page.plot(lambda axes: _batch(axes, results, 0), 5.2),
            "Each frame is what a device holds: the upper or the lower half of 8 images. The "
            "images are decoded, cropped and split ahead of the step.",
        ),
        page.figure(
            f"The batch of step {STEPS} on {last.name}",
            page.plot(lambda axes: _batch(axes, results, len(results.stages) - 1), 5.6),
            "Each frame is what a device holds, here in two lines: a quarter of 16 images. Two "
            "processes share each image, so both decode it, and crop it at the same place.",
        ),
        page.figure(
            "The same pieces in four epochs",
            page.plot(lambda axes: _epochs(axes, results.epochs), 4.4),
            "Crop and flip follow from the key of seed, epoch and record. So they differ in every "
            "epoch, and are equal on every mesh and after every stop.",
        ),
        page.figure(
            "Time of each step",
            page.plot(lambda axes: _times(axes, results), 2.6),
            "The loop computes, or it waits for the next batch. The first step of each stage "
            "compiles the model.",
        ),
        "<p>Photographs: china.jpg by danielbuechele and flower.jpg by vultilion, CC BY 2.0, from "
        "scikit-learn; grace_hopper.jpg from matplotlib.</p>",
    )


def _losses(axes: Axes, results: Results) -> None:
    steps, losses = np.arange(1, STEPS + 1), np.array(results.losses)
    axes.plot(steps, losses, color=page.CURVE, linewidth=1, alpha=0.3)
    mean = np.convolve(losses, np.ones(8) / 8, "valid")
    axes.plot(steps[7:], mean, color=page.CURVE, linewidth=1.8)
    start, top = 0, axes.get_xaxis_transform()
    for stage in results.stages:
        if start:
            axes.axvline(start + 0.5, color=page.STOP, linewidth=1, linestyle="--")
        middle = (start + stage.until) / 2
        style = {"ha": "center", "va": "top", "fontsize": 9, "color": page.FAINT}
        axes.text(middle, 0.98, textwrap.fill(stage.name, 16), transform=top, **style)
        start = stage.until
    axes.set(xlabel="step", ylabel="cross-entropy", ylim=(0, None), xlim=(0, STEPS + 1))


def _bare(axes: Axes) -> None:
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set(xticks=[], yticks=[], aspect="equal")


def _batch(axes: Axes, results: Results, stage: int) -> None:
    """Draws a batch. Each device has the same rows of several images, in a frame of its own."""
    step, parts = results.runs[stage][-1], results.stages[stage].model
    images = results.batches[step[0]["step"] - 1]["image"]
    cell, part = SIZE + GAP * parts, SIZE // parts
    for rank, line in enumerate(step):
        color = picture.COLORS[rank] if len(step) > 1 else page.INK
        for name, ranges, _ in line["blocks"]:
            if name == "image":
                (start, stop), (top, bottom) = ranges[:2]
                for first in range(start, stop, COLUMNS):
                    y = first // COLUMNS * cell + top // part * (part + GAP)
                    strip = images[first : first + COLUMNS, top:bottom]
                    _strip(axes, strip, y, color)
                    if len(step) > 1 and top % (2 * part) == 0:
                        style = {"ha": "right", "va": "center", "fontsize": 9, "color": color}
                        axes.text(-GAP, y + part + GAP / 2, f"process {rank}", **style)
    lines = len(images) // COLUMNS
    axes.set(xlim=(-GAP, COLUMNS * (SIZE + 2)), ylim=(lines * cell, -GAP))
    _bare(axes)


def _strip(axes: Axes, strip: np.ndarray, y: int, color: str) -> None:
    """Draws parts of images side by side, in a frame."""
    height, width = strip.shape[1], SIZE + 2
    for i, part in enumerate(strip):
        axes.imshow(part, extent=(i * width, i * width + SIZE, y + height, y), zorder=2)
    size = (len(strip) * width + 2, height + 4)
    axes.add_patch(Rectangle((-2, y - 2), *size, fill=False, color=color, linewidth=1.6, zorder=3))


def _epochs(axes: Axes, epochs: list[np.ndarray]) -> None:
    for line, images in enumerate(epochs):
        y = line * (SIZE + GAP)
        axes.text(-GAP, y + SIZE / 2, f"epoch {line}", ha="right", va="center", fontsize=9)
        for i, image in enumerate(images):
            x = i * (SIZE + 4)
            axes.imshow(image, extent=(x, x + SIZE, y + SIZE, y))
    axes.set(xlim=(-60, COLUMNS * (SIZE + 4)), ylim=(len(epochs) * (SIZE + GAP), 0))
    _bare(axes)


def _times(axes: Axes, results: Results) -> None:
    for name, color, label in (
        ("compute", page.CURVE, "computing"),
        ("wait", page.SECOND, "waiting for data"),
    ):
        for run in results.runs:
            steps, times = zip(
                *((line["step"], 1000 * line[name]) for line, *_ in run), strict=True
            )
            axes.plot(steps, times, color=color, linewidth=1.4)
        axes.annotate(f" {label}", (STEPS, times[-1]), color=color, va="center", fontsize=9)
    axes.set(xlabel="step", ylabel="milliseconds", yscale="log", xlim=(0, STEPS + 20))
    axes.set_xticks(range(0, STEPS + 1, 20))
