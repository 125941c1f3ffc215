"""Packed, mixed and computed rows in real processes: equal bytes, whatever the processes are."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from tests.distributed import images, tokens
from tests.distributed.job import Job

HANG = 300  # seconds; a job takes ten
JOBS = [([2] * 4, 2, 3), ([4] * 2, 4, 3), ([8], 1, 2)]  # devices by process, parts of a row, steps

Batches = dict[int, dict[str, Any]]  # step, array


def read(folder: Path) -> Batches:
    """Assembles the global batches from the blocks of all devices, which must cover them."""
    batches: Batches = {}
    for path in sorted(folder.glob("got-*.npz")):
        with np.load(path) as blocks:
            for key, block in blocks.items():
                step, name, at, shape = json.loads(key)
                empty = np.ma.masked_all(shape, block.dtype)  # type: ignore[no-untyped-call]
                whole = batches.setdefault(step, {}).setdefault(name, empty)
                index = tuple(slice(*each) for each in at)
                assert np.ma.allequal(whole[index], block)  # copies are equal
                whole[index] = block
    assert not any(np.ma.is_masked(array) for batch in batches.values() for array in batch.values())
    return {step: {k: array.filled() for k, array in b.items()} for step, b in batches.items()}


@pytest.mark.deep
@pytest.mark.parametrize("rows", [tokens, images])
def test_rows_are_equal_on_4_then_2_processes_then_1(tmp_path: Path, rows: ModuleType) -> None:
    rows.write(tmp_path)
    state, got, certificates = None, {}, []
    for number, (devices, seq, steps) in enumerate(JOBS):
        folder = tmp_path / str(number)
        folder.mkdir()
        orders = {"data": str(tmp_path), "state": state, "seq": seq, "steps": steps}
        orders["module"] = rows.__name__
        (folder / "orders.json").write_text(json.dumps(orders))
        with Job("tests.distributed.tokens_player", devices, folder) as job:
            job.wait(HANG)
        for step, batch in read(folder).items():
            assert step not in got
            got[step] = batch
        certificates += [path.read_text() for path in folder.glob("certificate-*.json")]
        state = str(folder / "state.json")

    with rows.opened(tmp_path) as ds, mf.Loader(ds, batch_size=rows.BATCH, epochs=1) as loader:
        wanted = list(loader)
    assert sorted(got) == list(range(len(wanted))) == list(range(rows.STEPS))
    for step, batch in enumerate(wanted):
        for name, array in batch.items():
            np.testing.assert_array_equal(got[step][name], array)
    if rows is tokens:  # each comes once
        every = np.concatenate([got[step]["tokens"].ravel() for step in got])
        assert sorted(every.tolist()) == list(range(1, tokens.TOKENS + 1))

    total = sum(mf.Certificate.from_json(text) for text in certificates)
    assert isinstance(total, mf.Certificate)
    total.check()
    assert total.complete(epochs=1)
    assert [run.processes for run in total.runs] == [((0, 4),), ((0, 2),), ((0, 1),)]
