"""Runs the checks, then the measurements in what is left of the time."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax

import meshfeed as mf
from meshfeed.selfcheck import checks, overlap, timing
from meshfeed.selfcheck.report import Report, Result, Steps, as_rates

_LOOPS = 4 * 3 + len(overlap.STEPS) * (len(overlap.AHEAD) + 2)  # stretches of a round
_LEAST = 0.02  # seconds of a stretch
_CPU = "CPU devices share the host's cores and memory: times show loading, not transfers"

Say = Callable[[str], None]


def run(
    minutes: float = 2.0,
    *,
    size: checks.Size | None = None,
    shrink: int = 1,
    rounds: int = 5,
    say: Say = lambda text: None,
) -> Report:
    """Checks and measures meshfeed on the devices that JAX sees.

    Args:
        minutes: about how long it may take. Half goes to the measurements at least.
        size: how much the checks load; by default 4,096 records and 1,000 batches.
        shrink: divides the data that is measured.
        rounds: how often every loop is measured.
        say: is told what runs, for a display of progress.

    Returns:
        The report. A check that fails, or cannot run, stands in it; nothing is raised for it.
    """
    began = time.monotonic()
    report = Report(machine(), shared=jax.devices()[0].platform == "cpu")
    for name, check in checks.every(size or checks.Size()).items():
        say(name)
        report.checks.append(_checked(name, check))
    budget = max(30 * minutes, 60 * minutes - (time.monotonic() - began))
    seconds = max(_LEAST, budget / _LOOPS / (rounds + 1))
    try:
        _measure(report, (seconds, rounds), shrink, say)
    except Exception as e:  # such as too little memory: the checks still count
        report.untimed = f"{type(e).__name__}: {e}"
    report.minutes = (time.monotonic() - began) / 60
    return report


def _checked(name: str, check: checks.Check) -> Result:
    began = time.monotonic()
    try:
        passed, text = True, check()
    except checks.Mismatch as e:
        passed, text = False, str(e)
    except Exception as e:
        passed, text = False, f"could not run: {type(e).__name__}: {e}"
    return Result(name, passed, text, time.monotonic() - began)


def _measure(report: Report, turns: tuple[float, int], shrink: int, say: Say) -> None:
    """Measures in turns of so many seconds and rounds."""
    cases = timing.cases(shrink)
    for case in cases:
        say(f"speed of {case.name}")
        report.rates.append(as_rates(timing.measure(case, *turns)))
    say(f"steps over {cases[0].name}")
    for found in overlap.measure(cases[0], *turns):
        loops = {name: t for name, t in found.seconds.items() if name != overlap.ALONE}
        alone = found.seconds[overlap.ALONE]
        report.steps.append(Steps(cases[0].name, found.asked, alone, loops))


def machine() -> dict[str, str]:
    """Gives what a reader must know of the machine to compare its numbers."""
    first = jax.devices()[0]
    kinds = ", ".join(memory.kind for memory in first.addressable_memories())
    facts = {
        "devices": f"{jax.device_count()} x {first.device_kind} ({first.platform})",
        "device memory kinds": kinds,
        "runtime": " ".join(str(getattr(first.client, "platform_version", "unknown")).split()),
        "meshfeed": mf.__version__,
        "JAX": f"{jax.__version__}, jaxlib {_version('jaxlib')}, NumPy {_version('numpy')}",
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{_processor()}, {_cores()} cores usable",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    if first.platform == "cpu":
        facts["note"] = _CPU
    return facts


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
