"""`meshfeed bench --jax`: the time of the batches of a layout, as arrays on JAX's devices."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import meshfeed as mf

MEASURED, FAILED, INTERRUPTED = 0, 2, 130  # exit statuses, as of the other verbs

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
    try:
        import meshfeed as mf

        try:
            import jax
        except ImportError as e:
            return _refused(f"bench --jax needs JAX: {e}", 'pip install "jax>=0.8"')
        try:
            result, report = _measured(options, jax.device_count())
        except (mf.Error, RuntimeError, OSError) as e:  # JAX finds no device, or a file is missing
            return _refused(str(e))
    except KeyboardInterrupt:
        print("meshfeed: interrupted", file=sys.stderr)
        return INTERRUPTED
    if options.json:
        print(json.dumps({"benchmark": result.to_dict(), "report": report.to_dict()}))
    else:
        print(f"{result}\n\n{report}")
    return MEASURED


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
    opened: dict[str, Any] = {"io": options.io, "duplicates": options.duplicates}
    if options.split:
        opened["split"] = options.split
    with mf.open(options.files, shapes=dict(options.shapes or ()), **opened) as ds:
        mesh = mf.make_mesh(axes)
        order = {"order": options.order} if options.order else {"shuffle": not options.sequential}
        with mf.Loader(ds, mesh, layout=layout, epochs=-1, **order) as loader:
            result = mf.benchmark(loader, batches=options.batches)
            return result, loader.report()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _refused(message: str, *hints: str) -> int:
    print(f"meshfeed: {message}", file=sys.stderr)
    for hint in hints:
        print(f"  {hint}", file=sys.stderr)
    return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meshfeed bench --jax",
        description=_ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("layout", metavar="LAYOUT.json", help="a layout document; - for stdin")
    parser.add_argument("files", metavar="FILE", nargs="+", help="files, globs or directories")
    parser.add_argument("--jax", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--batches", type=_count, default=50, metavar="N", help="how many batches to time; 50"
    )
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--order", help="shuffle, sequential, local or blocks; default: shuffle")
    order.add_argument("--sequential", action="store_true", help="in the order of the files")
    parser.add_argument("--io", choices=("auto", "map", "read"), default="auto")
    parser.add_argument(
        "--shapes",
        type=_shape,
        action="append",
        metavar="FIELD=SHAPE",
        help="the shape of a row of a list column, such as image=32x32x3; may be repeated",
    )
    parser.add_argument("--duplicates", choices=("refuse", "allow"), default="refuse")
    parser.add_argument("--split", help="the split of a directory, such as train")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got {text!r}")
    return int(text)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, shape = text.rpartition("=")
    sizes = shape.split("x")
    if not name or not all(size.isdecimal() for size in sizes):
        raise argparse.ArgumentTypeError(
            f"expected a field and the shape of a row, such as image=32x32x3, got {text!r}"
        )
    return name, tuple(int(size) for size in sizes)
