"""Certificates, local orders and single arrays of four real processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import meshfeed as mf
from tests.distributed import data, pieces, proof
from tests.distributed.played import ODD, Kind, Played
from tests.distributed.scenarios import Scenario

Pieces = list[dict[str, Any]]  # by process


@pytest.fixture
def played(run: Callable[[Kind], Played]) -> Pieces:
    return run(ODD).read("pieces")


def whole(played: Pieces, name: str) -> mf.Certificate:
    """Adds the certificates that every process received, which are the same in all."""
    sent = [each["certificates"][name] for each in played]
    assert all(one == sent[0] for one in sent)
    total = sum(mf.Certificate.from_json(text) for text in sent[0])
    assert isinstance(total, mf.Certificate)
    return total


def test_a_correct_job_has_a_proof(played: Pieces) -> None:
    """Blocks of replicas count once, in the lowest process that holds them."""
    total = whole(played, "right")
    total.check()
    assert total.delivered == ((0, 1, 0, 144), (1, 1, 0, 96))
    assert pieces.STEPS * data.BATCH == 240
    (run,) = total.runs
    assert (run.mesh, run.processes, run.parts) == (((0, 4),), ((0, 4),), 2)
    sent = played[0]["certificates"]["right"]
    rows = [mf.Certificate.from_json(text).runs[0].rows for text in sent]
    assert rows == [240, 240, 0, 0]
    whole(played, "in place").check()


def test_a_layout_loads_on_the_mesh_of_a_job(played: Pieces) -> None:
    sent = played[0]["certificates"]
    assert sent["of a layout"] == sent["right"]
    whole(played, "of a layout").check()


def test_all_skip_alike(played: Pieces) -> None:
    total = whole(played, "skipped")
    total.check(last=(1, 48))
    assert total.delivered == ((0, 2, 0, 48),)  # of epochs 0 and 1
    assert total.skipped == ((0, 1, 48, 144),)
    assert total.dropped == ((0, 1, 144, data.RECORDS),)


ONCE = (
    "add each certificate once; restore and seek deliver again what comes after the position to "
    "which they go"
)
ALL = "add the certificates of all processes; if all are there, these stopped earlier"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a dropped row",
            "process 2 of 4 did not deliver 4 positions that others did: [16, 20) of epoch 0; "
            + ALL,
        ),
        (
            "a doubled row",
            "process 2 of 4 delivered 4 positions more than once: [16, 20) of epoch 0; " + ONCE,
        ),
        (
            "one for another",
            "process 1 of 4 delivered 20 positions more than once: [0, 20) of epoch 0; process 2 "
            f"of 4 did not deliver 20 positions that others did: [0, 20) of epoch 0; {ONCE}; {ALL}",
        ),
    ],
)
def test_a_wrong_job_is_found(played: Pieces, name: str, text: str) -> None:
    with pytest.raises(mf.DataLossError) as error:
        whole(played, name).check()
    assert str(error.value) == f"Certificate.check: {text}"


def test_a_local_order(played: Pieces) -> None:
    """Each process reads its own half; the sequence stays with another mesh and batch size."""
    labels, half = data.fields()["label"], data.RECORDS // 2
    with mf.from_arrays(data.fields()) as ds:
        options: dict[str, Any] = {"batch_size": 16, "order": "local.1:2:16", "seed": 5}
        with mf.Loader(ds, **options) as loader:
            order = np.concatenate([loader.records(0, p) for p in range(0, 160, 16)])
    at = 0
    for step in range(pieces.STEPS + pieces.MORE):
        together = [each["local"][step] for each in played]
        assert {str(one["state"]) for one in together} == {str(together[0]["state"])}
        assert together[0]["state"]["order"] == "local.1:2:16"
        rows = {start: list_ for one in together for start, list_ in one["labels"].items()}
        got = [label for start in sorted(rows) for label in rows[start]]
        assert got == labels[order[at : at + len(got)]].tolist(), step
        at += len(got)
        if step < pieces.STEPS:
            for p, one in enumerate(together):
                mine = np.concatenate(list(one["labels"].values())) // 1000 // half
                assert set(mine.tolist()) == {p % 2}


def test_single_arrays(played: Pieces) -> None:
    tokens, image = (data.fields()[name] for name in ("tokens", "image"))
    cases = [(devices, spec) for devices in pieces.MESHES for spec in pieces.BIG]
    for number, (devices, spec) in enumerate(cases):
        axes = {"model": 2, "data": len(devices) // 2}
        on = Scenario("", axes, tuple(devices), {})
        for name, wanted, spec_ in [
            ("tokens", tokens[: pieces.RECORDS], tuple(spec)[:1]),
            ("image", image[pieces.RECORD], tuple(spec)),
        ]:
            parts: dict[int, Any] = {}
            for p, each in enumerate(played):
                assert {d // 2 for d in each["big"][number][name]} <= {p}
                parts |= each["big"][number][name]
            indexes = proof.indexes(on, spec_, wanted.shape)
            assert {d: [tuple(i) for i in index] for d, (index, _) in parts.items()} == indexes
            for index, content in parts.values():
                np.testing.assert_array_equal(content, wanted[tuple(slice(*i) for i in index)])


def test_an_array_of_all_processes_is_drawn_by_each(played: Pieces) -> None:
    """All draw the same picture. Below it, each says which devices it addresses."""
    pictures = []
    for process, each in enumerate(played):
        first = 2048 * process  # JAX numbers CPU devices so
        picture, blank, *notes = each["drawn"][0].rsplit("\n", 3)
        assert (blank, notes) == (
            "",
            [
                f"Process {process} addresses 2 of 8 devices: {first}, {first + 1}.",
                "The parts on the other devices are not addressable from here.",
            ],
        )
        pictures.append((picture, each["drawn"][1]))
    assert pictures == pictures[:1] * 4
    picture, table = pictures[0]
    assert picture.splitlines()[0] == "Mesh('model': 2, 'data': 4)  8 devices  4 processes"
    assert re.search(r"6:8 ┃ +p1 2049 +┃ +p3 6145 +┃", picture)
    assert table.splitlines()[-1] == "1 array, 128 B in all; 16 B on each device"
