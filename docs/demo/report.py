"""The report of the demo with digits: the layouts and the loss curve."""

from __future__ import annotations

from pathlib import Path

import page
from matplotlib.axes import Axes


def write(
    path: Path,
    *,
    facts: dict[str, str],
    losses: list[float],
    resumed_at: int,
    layouts: dict[str, str],
) -> None:
    """Write the report. `layouts` maps a mesh's name to the picture of its layout as SVG."""
    first, second = layouts

    def curve(axes: Axes) -> None:
        axes.plot(range(1, len(losses) + 1), losses, color=page.CURVE, linewidth=1.4)
        axes.axvline(resumed_at + 0.5, color=page.STOP, linewidth=1, linestyle="--")
        axes.set(xlabel="step", ylabel="cross-entropy", yscale="log")

    page.write(
        path,
        "Handwritten digits on eight devices",
        f"Trained on a {first} mesh, stopped in the middle of an epoch, "
        f"resumed on a {second} mesh.",
        page.facts(facts),
        page.figure(
            "Loss",
            page.plot(curve),
            "The run was stopped and resumed at the vertical line. The global batches continue "
            "exactly there, so the curve has no step.",
        ),
        *(page.figure(f"Layout on {name}", svg) for name, svg in layouts.items()),
    )
