"""`meshfeed convert --map`: writes the rows that a function computes as Arrow IPC files."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import meshfeed as mf
from meshfeed._native import calls, interruptible

_ABOUT = """Opens files as one dataset, computes fields by a Python function, as ds.map does, and
writes them into the last argument, a folder, as Arrow IPC files without compression.

The function gets some rows: a dict with an array for each field, or a list for text and lists. It
returns a dict of fields with as many rows, and its result for a row depends on that row alone. The
first row shows the types.

A run that was ended continues with the same command, and does not repeat finished files. With
--part 1/8 to --part 8/8, eight runs convert an eighth of the files each. If the file of the
function has changed since, a run is refused: name a new folder. The exit status is 0 if the files
of the part are there, 130 after Ctrl-C, and 2 otherwise."""

_EXAMPLE = "example: meshfeed convert --map prepare:tokenize --columns tokens text/*.parquet tokens"


def main(arguments: Sequence[str]) -> int:
    """Runs the command with the arguments after the verb. Returns its exit status."""
    logging.basicConfig(level=logging.INFO, format="meshfeed: %(message)s")
    options = _parser().parse_args(arguments)
    try:
        print(_converted(options))
    except mf.Error as e:
        if e.__cause__ is not None:
            sys.excepthook(type(e.__cause__), e.__cause__, e.__cause__.__traceback__)
        print(f"meshfeed: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("meshfeed: interrupted; the same command continues", file=sys.stderr)
        sys.stderr.flush()
        os._exit(130)  # at once: the function may run for long
    return 0


def _converted(options: argparse.Namespace) -> str:
    """Converts the part. Returns what was done."""
    part, parts = options.part
    with contextlib.ExitStack() as stack:
        ds = stack.enter_context(mf.open(options.inputs, cache="memory"))
        if options.columns is None and ds.skipped:
            message = f"the column {ds.skipped[0].name!r} cannot be converted"
            raise mf.UnsupportedError(message, hint="choose columns of the output: --columns")
        function = _Function(options.map)
        view = stack.enter_context(ds.map(function, key=function.key))
        if options.columns is not None:
            view = stack.enter_context(view.select(options.columns.split(",")))
        flags = ["--map", options.map]
        if options.columns is not None:
            flags += ["--columns", options.columns]
        if options.rows_per_file:
            flags += ["--rows-per-file", str(options.rows_per_file)]
        with _progress(function):
            report = interruptible.call(
                lambda: calls.dataset_convert(
                    view.handle,
                    options.folder,
                    part=part,
                    parts=parts,
                    rows_per_file=options.rows_per_file,
                    arguments=[*flags, *options.inputs],
                )
            )
    missing = len(report["missing"])
    rest = f"; other parts have yet to write {missing}" if missing else "; the folder is finished"
    written = f"wrote {_counted(report['written'], 'file')} with {report['bytes']:,} bytes"
    all_ = f"{_counted(report['records'], 'record')} in {_counted(report['files'], 'file')}"
    return f"{all_}: {written}{rest}"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


class _Function:
    """A function of the command line, which counts its rows.

    Attributes:
        key: its name, and a digest of the file that it is in.
        rows: how many rows it has computed.
    """

    def __init__(self, text: str) -> None:
        self._function = found = _named(text)
        self.__module__, self.__qualname__ = text.split(":")  # for errors
        self.key, self.rows = text, 0
        with contextlib.suppress(TypeError, OSError):  # such as a function of C
            file = Path(inspect.getfile(inspect.unwrap(found)))
            self.key += f" {hashlib.sha256(file.read_bytes()).hexdigest()}"

    def __call__(self, rows: Mapping[str, Any]) -> Any:
        result = self._function(rows)
        self.rows += len(next(iter(rows.values()), ()))
        return result


@contextlib.contextmanager
def _progress(function: _Function) -> Iterator[None]:
    """Writes how many rows a function has computed to a terminal, twice a second."""
    ended = threading.Event()

    def write() -> None:
        while not ended.wait(0.5):
            text = f"\rcomputed {_counted(function.rows, 'row')}"
            print(text, end="", file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        yield
        return
    thread = threading.Thread(target=write, name="meshfeed.progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _named(text: str) -> Callable[..., Any]:
    """Returns the function that "module:function" names. Modules in the working directory count."""
    module, _, name = text.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        hint = "give module:function, such as prepare:tokenize for a function of prepare.py"
        raise mf.NotFoundError(f"--map {text}: {e}", hint=hint) from None
    if not callable(found):
        message = f"--map {text} names no function"
        raise mf.InvalidArgumentError(message, hint="give a function of rows")
    function: Callable[..., Any] = found
    return function


def _part(text: str) -> tuple[int, int]:
    """Reads 3/8."""
    part, _, parts = text.partition("/")
    i, n = int(part), int(parts)
    if not 1 <= i <= n:
        raise ValueError(text)
    return i, n


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="meshfeed convert",
        description=_ABOUT,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--map", required=True, metavar="MODULE:FUNCTION", help="the function")
    parser.add_argument("--columns", metavar="A,B", help="fields of the output; all by default")
    parser.add_argument(
        "--part", type=_part, default=(1, 1), metavar="I/N", help="one of several parts"
    )
    parser.add_argument(
        "--rows-per-file", type=int, default=0, metavar="N", help="records of each file"
    )
    parser.add_argument("inputs", nargs="+", metavar="FILE", help="files, globs or directories")
    parser.add_argument("folder", metavar="FOLDER", help="where files are written")
    return parser
