"""Runs the checks, then the measurements in the rest of the time."""

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
from meshfeed._selfcheck import checks, overlap, timing
from meshfeed._selfcheck.report import Report, Result

_LOOPS = 4 * 3 + len(overlap.STEPS) * (len(overlap.AHEAD) + 2)  # measured loops of a round
_LEAST = 0.02  # seconds that a loop runs in a round, at least
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
        minutes: about how long it may take. The measurements get at least half of it.
        size: how much the checks load; by default 4,096 records and 1,000 batches.
        shrink: a divisor of the amount of data that is loaded for the measurements.
        rounds: how often every loop is measured.
        say: is called with the name of each part, to display progress.

    Returns:
        The report. A check that fails or cannot run raises nothing; the report contains it.
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
    """Measures rates and steps. `turns` is (seconds of each loop in a round, rounds)."""
    cases = timing.cases(shrink)
    for case in cases:
        say(f"speed of {case.name}")
        report.rates.append(timing.measure(case, *turns))
    say(f"steps with {cases[0].name}")
    report.steps = overlap.measure(cases[0], *turns)


def machine() -> dict[str, str]:
    """Returns the facts about the machine that explain its numbers."""
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
