"""The section of docs/benchmarks.md on many processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "benchmarks-processes.json"

HEAD = """## Many processes

Four processes of two devices each, one `jax.distributed` job on {cores} cores of {processor},
commit {commits}. The loops take turns, of 1,000 steps if they are fast. Before each turn all
processes meet, and all run the same loop. *step* is the median step of the median process. *job* is
the mean step of the slowest process. *CPU* is the processor time of a step in all four together.
All are in ms: medians of the rounds, with their range. *times by hand* compares *job* round by
round with the loop that gathers this process's rows with NumPy and calls
`make_array_from_process_local_data`. *gathered* are the bytes that a process gathers for a step;
meshfeed's are the plan's to the byte. `device_put` gathers the whole batch in every process and
then compares it over the network. Grain gives process p every n-th record. That is right on these
meshes, where the rows follow the processes, and wrong if replicas are in different processes.

With two threads in each of four processes on {cores} cores, no core is ever free. A loop that reads
ahead gains nothing by it, and the processor time decides.
"""

COLUMNS = "| case | mesh | loop | step | job | CPU | times by hand | gathered |"
RULES = "| --- | --- | --- | --: | --: | --: | --: | --: |"


def section(held: dict[str, Any]) -> list[str]:
    """Writes the section, or nothing without measurements."""
    pieces = held["pieces"]
    if not pieces:
        return []
    commits = ", ".join(sorted({piece["commit"] for piece in pieces.values()}))
    lines = [HEAD.format(**held["machine"], commits=commits), COLUMNS, RULES]
    for key, piece in pieces.items():
        if key.startswith("steps/"):
            lines += _rows(key.removeprefix("steps/"), piece["result"])
    lines.append("")
    if "cold" in pieces:
        lines.append(_cold(pieces["cold"]["result"]))
    if "replicas" in pieces:
        lines.append(_replicas(pieces["replicas"]["result"]))
    if "restore" in pieces:
        lines.append(_restore(pieces["restore"]["result"]))
    if "remesh" in pieces:
        lines.append(_remesh(pieces["remesh"]["result"]))
    return lines


def read() -> list[str]:
    """Writes the section from the stored results, if there are any."""
    return section(json.loads(RESULTS.read_text())) if RESULTS.exists() else []


def _rows(case: str, cells: dict[str, Any]) -> Iterator[str]:
    for mesh, cell in cells.items():
        by_hand = cell["loops"]["by hand"]["job"]
        for name, loop in cell["loops"].items():
            pairs = zip(by_hand, loop["job"], strict=True)
            ratio = median(hand / mine for hand, mine in pairs)
            mark = f"**{ratio:.2f} ✗**" if ratio < 1 else f"{ratio:.2f}"
            exact = " = plan" if loop["gathered"] == cell["planned"] else ""
            numbers = [_ranged(loop[key]) for key in ("step", "job", "cpu")]
            gathered = f"{max(loop['gathered']):,.0f}{exact}"
            yield f"| {case} | `{mesh}` | {name} | {' | '.join(numbers)} | {mark} | {gathered} |"


def _ranged(values: list[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _cold(processes: list[dict[str, Any]]) -> str:
    one = processes[0]
    disk = sum(process["read_bytes"] for process in processes) / 1e6
    calls = max(process["rchar"] for process in processes) / 1e6
    planned = one["gathered"] * one["steps"] * len(processes) / 1e6
    return (
        f"A file of {one['file'] / 1e6:,.0f} MB that was not in memory, {one['steps']} steps of "
        f"tokens: the processes gathered {planned:,.0f} MB, and {disk:,.0f} MB came from the disk "
        "for all of them together. The file fits into memory, so all of it is read ahead, and each "
        f"page is read once. Calls of `read` returned {calls:.1f} MB to a process: headers, and "
        "samples for the fingerprint.\n"
    )


def _replicas(result: dict[str, Any]) -> str:
    off, default, always = (result["modes"][mode] for mode in ("off", "first", "always"))
    cost = always["cpu"] - off["cpu"]  # seconds of a comparison
    return (
        "Comparing replicas, with tokens; processes 0 and 2, and 1 and 3, hold the same rows. A "
        f"step of a loop that only loads takes {off['step'] * 1e6:.0f} µs without comparisons. "
        f'With `verify_replicas="always"` it takes {always["step"] * 1e6:,.0f} µs, because the '
        f"processes exchange digests of {always['bytes'] / 1e6:.2f} MB through the job's key-value "
        f"store at every step. A comparison takes {cost * 1e6:,.0f} µs of processor time in each "
        f"process. The default compares three steps, which takes {3 * cost * 1e3:.1f} ms. That is "
        f"1 % of the processor time of a loop of {300 * cost / off['cpu']:,.0f} steps. The first "
        f"batch is ready after {off['first'] * 1e3:.0f} ms without comparisons, and after "
        f"{default['first'] * 1e3:.0f} ms with the default.\n"
    )


def _restore(result: dict[str, Any]) -> str:
    times = [
        f"- {name}: {row['p50']:.1f} ms ({row['low']:.1f} to {row['high']:.1f}), "
        f"above 50 ms {row['above']:.0f} times"
        for name, row in result["ms"].items()
    ]
    return (
        f"From a state of {result['state_bytes']} bytes to the first batch, at {result['tries']} "
        f"positions of {result['records']:,} records of an open file, shuffled:\n\n"
        + "\n".join(times)
        + "\n"
    )


def _remesh(result: dict[str, Any]) -> str:
    times = [
        f"- {name}: {row['p50']:.1f} ms ({row['low']:.1f} to {row['high']:.1f})"
        for name, row in result["ms"].items()
    ]
    return (
        f"`remesh` to a new mesh of {result['devices']:,} devices, {result['tries']} times; the "
        "promise is 10 ms. In a job the processes agree in the next batch. A process with "
        "thousands of local devices describes each of its blocks:\n\n" + "\n".join(times) + "\n"
    )
