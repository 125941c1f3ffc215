"""The files, and the server that has them."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.bench.pieces import ROOT

LENGTH = 1024  # tokens of a row


@dataclass(frozen=True)
class Case:
    """Files of Parquet with rows of tokens and their numbers.

    Attributes:
        name: of the case.
        files: their number.
        rows: of a file.
        group: rows of a row group.
        batch: rows of a batch.
        share: of the requests that fail.
    """

    name: str
    files: int
    rows: int
    group: int = 1024
    batch: int = 256
    share: float = 0.0

    @property
    def total(self) -> int:
        return self.files * self.rows

    def names(self) -> list[str]:
        return [f"train-{i:02}.parquet" for i in range(self.files)]

    def write(self, folder: Path) -> None:
        """Writes the files: 2 bytes of noise in each token, so that they compress by half."""
        folder.mkdir(parents=True, exist_ok=True)
        for i, name in enumerate(self.names()):
            if (folder / name).exists():
                continue
            rng = np.random.default_rng(i)
            tokens = rng.integers(0, 2**16, self.rows * LENGTH, np.int32)
            table = pa.table(
                {
                    "tokens": pa.FixedSizeListArray.from_arrays(tokens, LENGTH),
                    "id": np.arange(i * self.rows, (i + 1) * self.rows, dtype=np.int32),
                }
            )
            pq.write_table(
                table,
                folder / "part",
                row_group_size=self.group,
                compression="zstd",
                use_dictionary=False,
            )
            os.replace(folder / "part", folder / name)


CASES = [
    Case("far", 8, 8192),
    Case("faults", 8, 2048, share=0.05),
]
QUICK = [Case("quick", 4, 1024, 512)]
TINY = Case("tiny", 2, 128, 32, 32)


def named(name: str) -> Case:
    """Returns a case by its name."""
    return next(case for case in [*CASES, *QUICK, TINY] if case.name == name)


class Server:
    """A running server. `address` has the files, without a slash at its end."""

    def __init__(self, address: str) -> None:
        self.address = address

    def counts(self) -> dict[str, int]:
        """Returns the requests and bytes since the last call."""
        with urllib.request.urlopen(self.address + "/counts") as answer:
            counts: dict[str, int] = json.load(answer)
        return counts


def build(folder: Path) -> Path:
    """Builds the server."""
    program = folder / "serve"
    subprocess.run(["go", "build", "-o", program, "./tests/far/serve"], cwd=ROOT, check=True)
    return program


@contextmanager
def serve(program: Path, case: Case, folder: Path) -> Iterator[Server]:
    """Runs the server until the end of the block."""
    command = [program, f"-share={case.share}", folder]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server:  # type: ignore[call-overload]
        try:
            yield Server(server.stdout.readline().strip())
        finally:
            server.stdin.close()
