"""The section of docs/benchmarks.md on many processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

HEAD = """\
## Many processes

`python -m tests.bench.distributed` measures this section: four processes of two devices each, one
`jax.distributed` job on {cores} cores of {processor}, commit {commits}. The loops take turns, and
all processes run the same loop. Times are of a step of the job (the slowest process's mean), in
ms: medians of the rounds. *CPU* is the processor time of a step in all processes. *by hand*
gathers the process's rows with NumPy and calls `make_array_from_process_local_data`. `device_put`
gathers the whole batch in every process and compares it over the network. Grain gives process p
every n-th record. With eight threads on {cores} cores, reading ahead gains nothing.
"""

COLUMNS = (
    "| case | mesh | meshfeed | by hand | times by hand | CPU | CPU by hand | device_put | Grain |"
)
RULES = "| --- | --- | --: | --: | --: | --: | --: | --: | --: |"


def section(held: dict[str, Any]) -> str:
    """Writes the section."""
    pieces = held["pieces"]
    commits = ", ".join(sorted({piece["commit"] for piece in pieces.values()}))
    lines = [HEAD.format(**held["machine"], commits=commits), COLUMNS, RULES]
    for key, piece in pieces.items():
        if key.startswith("steps/"):
            lines += _rows(key.removeprefix("steps/"), piece["result"])
    lines.append("")
    lines += [write(pieces[key]["result"]) for key, write in TEXTS.items() if key in pieces]
    lines += ["", "| operation | ms |", "| --- | --- |"]
    lines += [write(pieces[key]["result"]) for key, write in TIMES.items() if key in pieces]
    return "\n".join(lines)


def _rows(case: str, cells: dict[str, Any]) -> Iterator[str]:
    for mesh, cell in cells.items():
        loops = cell["loops"]
        ours, by_hand = loops["meshfeed"], loops["by hand"]
        pairs = zip(by_hand["job"], ours["job"], strict=True)
        ratio = median(hand / mine for hand, mine in pairs)
        numbers = [
            _ranged(ours["job"]),
            _ranged(by_hand["job"]),
            f"**{ratio:.2f} ✗**" if ratio < 1 else f"{ratio:.2f}",
            f"{median(ours['cpu']):.2f}",
            f"{median(by_hand['cpu']):.2f}",
            *(f"{median(loops[name]['job']):.2f}" for name in ("device_put", "Grain")),
        ]
        yield f"| {case} | `{mesh}` | {' | '.join(numbers)} |"


def _ranged(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _cold(processes: list[dict[str, Any]]) -> str:
    one = processes[0]
    disk = sum(process["read_bytes"] for process in processes) / 1e6
    planned = one["gathered"] * one["steps"] * len(processes) / 1e6
    return (
        f"A cold file of {one['file'] / 1e6:,.0f} MB, {one['steps']} steps of tokens: the "
        f"processes gathered {planned:,.0f} MB, and {disk:,.0f} MB came from the disk."
    )


def _replicas(result: dict[str, Any]) -> str:
    off, default, always = (result["modes"][mode] for mode in ("off", "first", "always"))
    cost = always["cpu"] - off["cpu"]  # seconds of a comparison
    return (
        f"A step that only loads takes {off['step'] * 1e6:.0f} µs, and {always['step'] * 1e6:,.0f} "
        f'µs with `verify_replicas="always"`. A comparison takes {cost * 1e6:,.0f} µs of processor '
        f"time in each process; the default compares three steps. The first batch is ready after "
        f"{off['first'] * 1e3:.0f} ms without comparisons, and {default['first'] * 1e3:.0f} ms "
        "with them."
    )


def _restore(result: dict[str, Any]) -> str:
    what = f"state of {result['state_bytes']} bytes to first batch, {result['records']:,} records"
    return f"| {what} | {_times(result['ms'])} |"


def _remesh(result: dict[str, Any]) -> str:
    return f"| `remesh` to {result['devices']:,} devices, target 10 | {_times(result['ms'])} |"


def _times(rows: dict[str, Any]) -> str:
    return "; ".join(
        f"{name}: {row['p50']:.1f} ({row['low']:.1f} to {row['high']:.1f})"
        for name, row in rows.items()
    )


TEXTS: dict[str, Callable[[Any], str]] = {"cold": _cold, "replicas": _replicas}
TIMES: dict[str, Callable[[Any], str]] = {"restore": _restore, "remesh": _remesh}
