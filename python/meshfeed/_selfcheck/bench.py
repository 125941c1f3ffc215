"""`meshfeed bench --jax`: the time of the batches of a layout, as arrays on JAX's devices."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from meshfeed._selfcheck import verbs

if TYPE_CHECKING:
    import meshfeed as mf

_TRIAL, _LEAST, _MOST = 10, 5, 10**6  # batches with --time: to see how long one takes, and bounds

_ABOUT = """Loads the batches of a layout on the devices that JAX sees, and waits until each one is
ready there. Without --jax, the command measures the loader alone, without devices.

On CPUs, JAX_NUM_CPU_DEVICES=8 makes eight devices."""


def main(arguments: Sequence[str]) -> int:
    """Measures and prints.

    Args:
        arguments: the arguments after the verb.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    if options.process is not None:
        return verbs.refused(
            "bench --jax: --process chooses whose blocks to load without devices, and these are "
            "the devices of this process",
            "leave out --process, or --jax",
        )
    return verbs.run(lambda: _printed(options), name="bench --jax")


def _printed(options: argparse.Namespace) -> tuple[int, str]:
    """Measures. Returns the exit status and the text."""
    import jax

    result, report = _measured(options, jax.device_count())
    if options.json:
        return 0, json.dumps({"benchmark": result.to_dict(), "report": report.to_dict()})
    return 0, f"{result}\n\n{report}"


def _measured(options: argparse.Namespace, devices: int) -> tuple[mf.Benchmark, mf.Report]:
    import meshfeed as mf

    text = sys.stdin.buffer.read() if options.layout == "-" else _read(options.layout)
    layout = mf.Layout.from_json(text)
    axes = dict(json.loads(layout.to_json())["mesh"]["axes"])
    if (needed := math.prod(axes.values())) != devices:
        raise mf.InvalidArgumentError(
            f"the mesh of the layout has {needed} devices, but JAX sees {devices}",
            op="bench --jax",
            hint=f"on CPUs, JAX_NUM_CPU_DEVICES={needed} makes so many",
        )
    opened: dict[str, Any] = {
        "io": options.io,
        "duplicates": options.duplicates,
        "cache": options.cache,
        "dtype": options.dtype,
        "skip": options.skip,
    }
    if options.split:
        opened["split"] = options.split
    with mf.open(options.files, shapes=dict(options.shapes or ()), **opened) as ds:
        mesh = mf.make_mesh(axes)
        order = {"order": options.order} if options.order else {"shuffle": not options.sequential}
        with mf.Loader(ds, mesh, layout=layout, epochs=-1, **order) as loader:
            batches = options.batches
            if options.time:
                trial = mf.benchmark(loader, batches=_TRIAL)
                each = sum(trial.seconds) / len(trial.seconds)
                batches = min(max(math.ceil(options.time / each), _LEAST), _MOST)
            result = mf.benchmark(loader, batches=batches)
            return result, loader.report()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meshfeed bench --jax",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("layout", metavar="LAYOUT.json", help="a layout document; - for stdin")
    parser.add_argument("files", metavar="FILE", nargs="+", help="files, globs or directories")
    parser.add_argument("--jax", action="store_true", help=argparse.SUPPRESS)
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--batches", type=_count, default=50, metavar="N", help="how many batches to time; 50"
    )
    length.add_argument(
        "--time", type=_seconds, metavar="TIME", help="about how long to time batches, such as 10s"
    )
    parser.add_argument("--process", help=argparse.SUPPRESS)
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--order", help="shuffle, sequential, local or blocks; default: shuffle")
    order.add_argument("--sequential", action="store_true", help="in the order of the files")
    parser.add_argument("--io", choices=("auto", "map", "read"), default="auto")
    parser.add_argument(
        "--cache", default="auto", help="where decoded rows are kept: auto, memory or a folder"
    )
    parser.add_argument(
        "--shapes",
        type=_shape,
        action="append",
        metavar="FIELD=SHAPE",
        help="the shape of a row of lists or bytes, such as image=32x32x3 or image=32x32x3:float32",
    )
    parser.add_argument("--duplicates", choices=("refuse", "allow"), default="refuse")
    parser.add_argument("--split", help="the split of a directory, such as train")
    parser.add_argument("--dtype", help="the type of the elements of raw files, such as uint16")
    parser.add_argument("--skip", type=int, default=0, help="the bytes before their first element")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    """Returns the seconds of a time such as 500ms, 10s or 1m30s.

    Examples:
        >>> _seconds("1m30s"), _seconds("500ms")
        (90.0, 0.5)
    """
    parts = re.fullmatch(r"(?:([\d.]+)m)?(?:([\d.]+)s)?(?:([\d.]+)ms)?", text)
    try:
        seconds = sum(
            float(part) * unit
            for part, unit in zip(parts.groups() if parts else (), (60, 1, 0.001), strict=False)
            if part
        )
    except ValueError:  # two points in a number
        seconds = 0.0
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"expected a time, such as 10s, 500ms or 1m, got {text!r}")
    return float(seconds)


def _shape(text: str) -> tuple[str, Any]:
    name, _, rest = text.rpartition("=")
    shape, _, dtype = rest.partition(":")
    sizes = shape.split("x")
    if not name or not all(size.isdecimal() for size in sizes):
        raise argparse.ArgumentTypeError(
            f"expected a field and the shape of a row, such as image=32x32x3, got {text!r}"
        )
    dims = tuple(int(size) for size in sizes)
    return name, types.SimpleNamespace(shape=dims, dtype=dtype) if dtype else dims
