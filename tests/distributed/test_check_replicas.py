"""`mf.check_replicas` in a real job: twelve kinds of corruption, and trees that are right.

The job also loads an array of a file.
"""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.distributed.job import Job

HANG = 300
DATA = "DataLossError Error OSError"
TREES = "IncompatibleError Error ValueError"
RESTORE = "; restore the arrays from a checkpoint, and call it after every step to find the cause"
RESTORE += "; copies also differ if a process left out a call: pass step= to know"
CALLS = "every process that holds a part makes the same calls in the same order"
SAME = "; give every process the same tree, with the same shardings"
DIFFER = "the processes have different trees: "
Scenes = list[dict[str, Any]]


@pytest.fixture(scope="module")
def got(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    """Returns what every process got, by scene."""
    folder = tmp_path_factory.mktemp("replicas")
    array = np.arange(2**20, dtype=np.int32).reshape(256, -1)
    save_file({"other": array, "w": array}, folder / "w.safetensors")
    with Job("tests.distributed.replicas_player", [2, 2, 2, 2], folder) as job:
        job.wait(HANG)
    return [pickle.loads((folder / f"got-{p}.pickle").read_bytes()) for p in range(4)]


@pytest.mark.parametrize(
    ("name", "arrays", "blocks", "size"),
    [
        ("sharded", 2, 4, 2 * 2 * 512 // 4),
        ("replicated", 3, 3, 3 * 2 * 512),
        ("mixed", 12, 13, None),
        ("alike again", 3, 3, 3 * 2 * 512),
    ],
)
def test_equal_copies(got: Scenes, name: str, arrays: int, blocks: int, size: int | None) -> None:
    for each in got:
        found = each[name]
        assert isinstance(found, dict), found
        assert (found["arrays"], found["blocks"]) == (arrays, blocks)
        assert found["processes"] == [0, 1, 2, 3]
        assert found["single"] == []
        assert size is None or found["bytes"] == size


def test_parts_without_a_copy(got: Scenes) -> None:
    """Parts that one device holds are not compared, and the result says so."""
    for each in got:
        assert (each["unique"]["blocks"], each["unique"]["single"]) == (0, ["tree"])


# Device d of process p has the id 2048 p + d.
@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "one bit inside",
            "array 'w', index [0:16, 0:8]: process 2 (device 4097) differs from the other 7 copies",
        ),
        (
            "a part of one process",
            "array 'w', index [8:12, 0:8]: process 2 (device 4096) differs from "
            "process 2 (device 4097)",
        ),
        (
            "one bit everywhere",
            "array 'w', index [0:16, 0:8]: process 0 (device 0), process 1 (device 2048), process "
            "2 (device 4096) and process 3 (device 6144) differ from process 0 (device 1), "
            "process 1 (device 2049), process 2 (device 4097) and process 3 (device 6145)",
        ),
        (
            "one bit across",
            "array 'w', index [0:16, 0:8]: process 2 (devices 4096 and 4097) differs from "
            "the other 6 copies",
        ),
        (
            "swapped batches",
            "array '0', index [0:4, 0:8]: process 0 (device 0) differs from "
            "process 2 (device 4096); 1 more array differs",
        ),
        (
            "a step ahead",
            "array 'w', index [0:4, 0:8]: process 0 (device 0) differs from "
            "process 2 (device 4096)",
        ),
        (
            "permuted rows",
            "array 'w', index [4:8, 0:8]: process 0 (device 1) differs from "
            "process 2 (device 4097)",
        ),
        (
            "another seed",
            "array 'w', index [0:4, 0:8]: process 0 (device 0) differs from "
            "process 2 (device 4096)",
        ),
        (
            "a payload of NaN",
            "array 'loss', index [1:2, 0:4]: process 0 (device 1) differs from "
            "process 2 (device 4097)",
        ),
        (
            "truncated",
            "array 'x', index [0:16, 0:8]: process 2 (devices 4096 and 4097) differs from "
            "the other 6 copies",
        ),
        ("step counter", "array 'step': process 2 differs from the other 3 copies"),
        (
            "half",
            "array 'w', index [0:16, 0:8]: process 0 (devices 0 and 1) and process 1 (devices "
            "2048 and 2049) differ from process 2 (devices 4096 and 4097) and process 3 (devices "
            "6144 and 6145)",
        ),
    ],
)
def test_other_bytes(got: Scenes, name: str, text: str) -> None:
    for each in got:
        assert each[name] == [DATA, f"mf.check_replicas: {text}{RESTORE}"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "another dtype",
            "array 'w' has the dtype float32 on processes 0, 1 and 3, float16 on process 2",
        ),
        (
            "another shape",
            "array 'w' has the shape [16, 8] on processes 0, 1 and 3, [8, 8] on process 2",
        ),
        (
            "another spec",
            "array 'w' has the spec P('fsdp') on processes 0, 1 and 3, P('replica') on process 2",
        ),
        (
            "another mesh order",
            "array 'w' has the devices 0 1 2048 2049 4096 4097 6144 6145 on processes 0, 1 and 3, "
            "4096 4097 6144 6145 0 1 2048 2049 on process 2",
        ),
        (
            "another kind",
            "array 'w' has the kind global on processes 0, 1 and 3, local on process 2",
        ),
        ("missing leaf", "array 'bias' is missing on process 2"),
    ],
)
def test_other_trees(got: Scenes, name: str, text: str) -> None:
    for each in got:
        assert each[name] == [TREES, f"mf.check_replicas: {DIFFER}{text}{SAME}"]


def test_processes_without_a_part(got: Scenes) -> None:
    """They compare nothing, and do not say that their own arrays are equal to others."""
    for p, each in enumerate(got):
        found = each["on some processes"]
        assert len(found) == (3 if p < 2 else 1)
        for one in found:
            assert one["processes"] == ([0, 1] if p < 2 else [p])
            assert (one["blocks"], one["single"]) == ((2, []) if p < 2 else (0, ["local", "w"]))


def test_an_array_on_devices_of_one_process(got: Scenes) -> None:
    """To its process it is a local array, of which the others must have one too."""
    text = "array 'v' is on devices of process 0 alone"
    hint = "leave it out: to that process it is an array of which every process has its own"
    expected = f"mf.check_replicas: {text}; {hint}"
    first, *others = [each["on one process"] for each in got]
    assert first[0].split()[0] == "PeerError"
    assert first[1].startswith(f"mf.check_replicas: process 1: {text}; ")
    for each in others:
        assert each == ["InvalidArgumentError Error ValueError", expected]


def test_a_process_that_never_calls(got: Scenes) -> None:
    """It is named; when it calls at last, it gets the same error. The next call works."""
    text = "mf.check_replicas: process 2 has not made call 1 with name='late' within 4 s; "
    text += f"{CALLS}; see its log, or raise timeout="
    assert [each["never"] for each in got] == [["PeerError PeerError TimeoutError", text, 2]] * 4


def test_arrays_that_cannot_be_read(got: Scenes) -> None:
    text = "array 'w' was deleted, or donated to a computation; "
    own = f"mf.check_replicas: {text}give the arrays that the computation returned"
    other = f"mf.check_replicas: process 2: {text}see its log"
    for p, each in enumerate(got):
        if p == 2:
            assert each["deleted"] == ["InvalidStateError Error RuntimeError", own]
        else:
            assert each["deleted"] == ["PeerError PeerError InvalidStateError", other]


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        (
            "no data",
            "array 'name' is 'adam', which has no data to compare",
            "; give arrays in dicts, lists and tuples, and leave out others",
        ),
        (
            "no order",
            "the keys of the dict tree are of the types int, str",
            "; JAX sorts them, so give keys of one type, such as str",
        ),
        ("timeout", "timeout=0: expected a positive number of seconds", ""),
        ("step", "step=0.5: expected an integer from 0 to 2^63-1", ""),
        (
            "coordinator",
            "coordinator=3: expected a mf.Coordinator",
            "; give an object with the five methods of mf.Coordinator, or False for none",
        ),
    ],
)
def test_a_wrong_argument_in_one_process(got: Scenes, name: str, text: str, hint: str) -> None:
    """The others get its error at once. Its call counts, so the next calls belong together."""
    for p, each in enumerate(got):
        first, second = each["wrong"][name]
        if p == 2:
            own = f"mf.check_replicas: {text}{hint}"
            assert first == ["InvalidArgumentError Error ValueError", own]
        else:
            other = f"mf.check_replicas: process 2: {text}; see its log"
            assert first == ["PeerError PeerError InvalidArgumentError", other]
        assert second["blocks"] == 1


def test_a_call_that_is_left_out(got: Scenes) -> None:
    """The error names the process and the call, by the step or by the line."""
    text = "mf.check_replicas: call 1 with name='steps' has step=100 on processes 0, 1 and 3, "
    text += "step=200 on process 2: process 2 has left out the call of step 100; "
    assert [each["left out, with steps"] for each in got] == [
        [TREES, f"{text}{CALLS}, with the same step="]
    ] * 4
    line = r"replicas_player\.py:\d+"
    text = rf"mf\.check_replicas: call 1 with name='lines' is made at {line} on processes 0, 1 and "
    text += rf"3, {line} on process 2, and their arrays differ; {CALLS}; give calls at different "
    text += "lines names of their own"
    for each in got:
        kinds, found = each["left out"]
        assert kinds == TREES
        assert re.fullmatch(text, found), found


def test_a_call_that_is_left_out_of_a_loop(got: Scenes) -> None:
    """The wait is bounded for arrays if their computation waits for the other processes."""
    own = "in call 1 with name='loop', the arrays were not computed within 4 s: the computation "
    own += "may wait for another process"
    hint = "make the same steps and calls in every process, or raise timeout="
    absent = f"process 2 has not made call 1 with name='loop' within 4 s; {CALLS}; see its log, or "
    absent += "raise timeout="
    for p, each in enumerate(got):
        kinds, text = each["left out of a loop"]
        assert kinds == "PeerError PeerError TimeoutError"
        texts = {f"{own}; {hint}"} if p == 2 else {f"process 2: {own}; see its log", absent}
        assert text.removeprefix("mf.check_replicas: ") in texts


def test_keys_that_are_left(got: Scenes) -> None:
    """Only the keys of the last call of each name are left."""
    calls = {"/".join(key.split("/")[:3]) for each in got for key in each["keys"]}
    names = {call.removesuffix("/0").removeprefix("meshfeed-replicas/") for call in calls}
    last = f"scene.0-3/{got[0]['calls'] - 1}"
    assert names == {"late.0-3", "steps.0-3", "lines.0-3", "loop.0-3", "half.0-1/2", last}


def test_a_process_reads_its_part_of_a_file(got: Scenes) -> None:
    """Each byte that its devices hold, once."""
    shares = {"('fsdp',)": 2, "(('replica', 'fsdp'),)": 4, "(None, 'fsdp')": 2, "()": 1}
    for each in got:
        for spec, share in shares.items():
            size, right = each["stored"][spec]
            assert right
            assert 2**22 // share <= size <= 2**22 // share + 2**16, spec
