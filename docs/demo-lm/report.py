"""The demo's report: what the model learned, what was in a batch, and where the time went."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import page
from corpus import BATCH, CHANGE, FIRST, LATER, LENGTH, STEPS
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

MEAN = 64 // BATCH  # steps, after which each source has its share
COLORS = dict(zip(FIRST, (page.CURVE, page.SECOND), strict=True))

Line = dict[str, Any]
Step = tuple[Line, ...]  # the lines of all processes


@dataclass(frozen=True)
class Results:
    """The results of both runs.

    Attributes:
        before: what the processes logged until the kill.
        after: what they logged after the resume.
        batches: the global batches of all steps.
        packing: by source, what `ds.packing()` counted.
        state: the size of the loader's state in bytes.
    """

    before: list[Step]
    after: list[Step]
    batches: list[dict[str, np.ndarray]]
    packing: dict[str, dict[str, Any]]
    state: int

    @property
    def twice(self) -> range:
        """The steps that came before the kill, and again after the resume."""
        return range(self.after[0][0]["step"], len(self.before) + 1)

    def kept(self) -> list[Step]:
        """Returns all steps, without the ones that the kill undid."""
        return self.before[: self.twice[0] - 1] + self.after

    def losses(self) -> dict[str, np.ndarray]:
        """Returns the loss of each source at the steps from MEAN on."""
        return mean_losses(self.kept())


def mean_losses(steps: list[Step]) -> dict[str, np.ndarray]:
    """Returns the mean loss of each source over MEAN steps, for the steps from MEAN on."""
    sums = np.cumsum([[line["losses"], line["labels"]] for line, *_ in steps], 0)
    sums[MEAN:] -= sums[:-MEAN].copy()
    losses, labels = sums[MEAN - 1 :].swapaxes(0, 1)
    return dict(zip(COLORS, (losses / labels).T, strict=True))


def deviation(batches: list[dict[str, np.ndarray]]) -> float:
    """Returns how far a source is off its share, in rows: the worst after every 64 rows."""
    worst = 0.0
    for stage, weights in ((batches[:CHANGE], FIRST), (batches[CHANGE:], LATER)):
        sources = np.concatenate([batch["source"] for batch in stage])
        rows = np.arange(64, len(sources) + 1, 64)
        for number, weight in enumerate(weights.values()):
            counts = np.cumsum(sources == number)[rows - 1]
            worst = max(worst, float(abs(counts - weight * rows).max()))
    return worst


def facts(results: Results) -> dict[str, str]:
    """Returns names and values for the top of the page."""
    cells = np.concatenate([batch["segment_ids"] for batch in results.batches])
    steady = [*results.before[1:], *results.after[1:]]  # the first step compiles
    waiting, computing = (sum(line[name] for line, *_ in steady) for name in ("wait", "compute"))
    tokens = len(steady) * BATCH * LENGTH
    off = deviation(results.batches)
    losses = {n: f"{each[0]:.2f} → {each[-1]:.2f}" for n, each in results.losses().items()}
    return {
        "Steps": f"{STEPS} of {BATCH} rows of {LENGTH} tokens",
        "Global batches": f"all bytes as in an undisturbed run; {len(results.twice)} came twice",
        "State of the loader": f"{results.state} bytes",
        "Mixture": f"at most {off:.2f} rows off its shares, after every 64 rows",
        "Padding": f"{(cells == 0).mean():.2%} of the tokens of all batches",
        **{f"Loss of {name}": text for name, text in losses.items()},
        "Throughput": f"{tokens / (waiting + computing):,.0f} tokens a second",
        "Waiting for data": f"{1000 * waiting / len(steady):.1f} ms a step "
        f"({waiting / (waiting + computing):.1%})",
    }


def write(path: Path, results: Results) -> None:
    """Writes the page."""
    first, killed = results.twice[0], results.twice[-1]
    shown = max(results.twice, key=lambda step: documents(results.batches[step - 1]))
    batch = results.batches[shown - 1]
    shares = [" to ".join(f"{100 * share:.0f}" for share in w.values()) for w in (FIRST, LATER)]
    page.write(
        path,
        "A language model on packed rows of two sources",
        f"Trained by two processes on a 4 by 2 mesh, killed after step {killed}, and resumed from "
        f"step {first - 1} by one process on a 2 by 4 mesh.",
        page.facts(facts(results)),
        page.figure(
            "Loss of each source",
            page.plot(lambda axes: _losses(axes, results)),
            f"Cross-entropy for each token, over {MEAN} steps. Steps {first} to {killed} came "
            "twice (pale: before the kill). Their batches are the same, so the curves do not jump.",
        ),
        page.figure(
            "Rows of each source",
            page.plot(lambda axes: _shares(axes, results), 2.6),
            f"Code and prose are mixed {shares[0]}, and {shares[1]} from step {CHANGE + 1} on "
            f"(the line). Every 64 rows, which are {MEAN} steps, have exact shares.",
        ),
        page.figure(
            f"The batch of step {shown} on two processes, 4 by 2",
            page.plot(lambda axes: _batch(axes, batch, results.before[shown - 1])),
            "Each bar is a row, and each shade a document: blue is code, orange is prose. Frames "
            "are devices. Attention ends where a document ends.",
        ),
        page.figure(
            "The same batch after the resume, on one process, 2 by 4",
            page.plot(lambda axes: _batch(axes, batch, results.after[shown - first])),
        ),
        "<h2>Packing</h2>",
        page.numbers(
            ("source", "documents", "tokens", "rows", "padding", "longer than a row"),
            *(
                (
                    name,
                    f"{found['documents']:,}",
                    f"{found['tokens']:,}",
                    f"{found['rows']:,}",
                    f"{1 - found['real']:.2%}",
                    f"{found['split']:,}",
                )
                for name, found in results.packing.items()
            ),
        ),
        page.figure(
            "Time of each step",
            page.plot(lambda axes: _times(axes, results), 2.6),
            "The loop computes, or it waits for the next batch. A first step compiles the model.",
        ),
    )


def documents(batch: dict[str, np.ndarray]) -> int:
    """Returns the number of documents, or pieces of long ones, in a batch."""
    return int(batch["segment_ids"].max(1).sum())


def _losses(axes: Axes, results: Results) -> None:
    lost, twice = mean_losses(results.before), results.twice
    for name, losses in results.losses().items():
        style = {"color": COLORS[name]}
        axes.plot(range(MEAN, STEPS + 1), losses, linewidth=1.6, **style)
        axes.plot(twice, lost[name][-len(twice) :], linewidth=6, alpha=0.35, **style)
        axes.annotate(f" {name}", (STEPS, losses[-1]), va="center", **style)
    _marks(axes, results)
    axes.set(xlabel="step", ylabel="cross-entropy", xlim=(0, STEPS + 14))


def _marks(axes: Axes, results: Results) -> None:
    """Marks the change of the weights, and the kill."""
    axes.axvline(CHANGE + 0.5, color=page.FAINT, linewidth=1, linestyle=":")
    axes.axvline(len(results.before) + 0.5, color=page.STOP, linewidth=1, linestyle="--")
    top = axes.get_xaxis_transform()
    style = {"transform": top, "va": "top", "fontsize": 9}
    axes.text(CHANGE, 0.98, "new weights", color=page.FAINT, ha="right", **style)
    axes.text(len(results.before) + 1, 0.98, "killed", color=page.STOP, **style)


def _shares(axes: Axes, results: Results) -> None:
    steps, bottom = np.arange(1, STEPS + 1), np.zeros(STEPS)
    for number, (name, color) in enumerate(COLORS.items()):
        rows = np.array([(batch["source"] == number).sum() for batch in results.batches])
        axes.bar(steps, rows, 0.82, bottom, color=color)
        axes.text(STEPS + 2, bottom[-1] + rows[-1] / 2, name, color=color, va="center")
        bottom += rows
    edges = [BATCH * weights["code"] for weights in (FIRST, LATER)]
    axes.stairs(edges, [0.5, CHANGE + 0.5, STEPS + 0.5], color=page.INK, baseline=None, linewidth=2)
    axes.set(xlabel="step", ylabel="rows", xlim=(0, STEPS + 14))


def _batch(axes: Axes, batch: dict[str, np.ndarray], step: Step) -> None:
    for row, (segments, source) in enumerate(
        zip(batch["segment_ids"], batch["source"], strict=True)
    ):
        color, edges = list(COLORS.values())[source], np.flatnonzero(np.diff(segments)) + 1
        for number, (start, end) in enumerate(pairwise([0, *edges, LENGTH])):
            if segments[start]:
                alpha = 0.45 if number % 2 else 0.85
                axes.barh(row, end - start, 0.7, start, color=color, alpha=alpha, linewidth=0)
    for rank, line in enumerate(step):
        for name, ranges, _ in line["blocks"]:
            if name == "tokens":
                (top, bottom), (left, right) = ranges
                corner, size = (left + 1, top - 0.46), (right - left - 2, bottom - top - 0.08)
                axes.add_patch(Rectangle(corner, *size, fill=False, color=page.INK, linewidth=1.2))
                if right == LENGTH:
                    axes.text(LENGTH + 6, (top + bottom - 1) / 2, f"process {rank}", va="center")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set(
        xlabel="token", ylabel="row", xlim=(0, LENGTH + 62), ylim=(BATCH - 0.4, -0.6),
        xticks=range(0, LENGTH + 1, 128), yticks=range(0, BATCH, 2),
    )  # fmt: skip


def _times(axes: Axes, results: Results) -> None:
    for name, color, label in (
        ("compute", page.CURVE, "computing"),
        ("wait", page.SECOND, "waiting for data"),
    ):
        for lines in (results.before, results.after):
            milliseconds = [1000 * line[name] for line, *_ in lines]
            steps = [line["step"] for line, *_ in lines]
            axes.plot(steps, milliseconds, color=color, linewidth=1.4)
        axes.annotate(f" {label}", (STEPS, milliseconds[-1]), color=color, va="center", fontsize=9)
    axes.set(xlabel="step", ylabel="milliseconds", yscale="log", xlim=(0, STEPS + 24))
    axes.set_xticks(range(0, STEPS + 1, 20))
