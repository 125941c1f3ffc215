"""The strategy planner: the same answers as in Go and C, and layouts that a loader runs."""

from __future__ import annotations

import html
import inspect
import json
import random
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import jax
import jax.numpy as jnp
import jsonschema
import numpy as np
import pyarrow as pa
import pytest
from jax.sharding import AbstractMesh, AxisType

import meshfeed as mf
from meshfeed import strategy
from meshfeed._native import reports
from tests.python import ROOT

COMMAND = Path(mf.__file__).parent / "_bin" / "meshfeed"
SIZES: dict[str, Any] = {
    "layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 100, "sequence": 16,
}  # fmt: skip
LLAMA = strategy.preset("llama3-8b")
H100 = strategy.cluster("h100-80", devices=8)


def advised(document: str, *flags: str) -> tuple[str, int]:
    """Returns what the command prints about a document, and its exit status."""
    done = subprocess.run(
        [COMMAND, "advise", "-", *flags],
        input=document,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout, done.returncode


def test_the_example_of_the_readme_fits() -> None:
    advice = mf.advise(
        model=mf.strategy.transformer(
            layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, gated=True, vocab=128256,
            sequence=8192,
        ),
        training=mf.strategy.training(batch=128),
        cluster=mf.strategy.cluster("h100-80", devices=8, per_node=8),
    )  # fmt: skip
    assert advice.fits
    assert advice.best is not None
    assert advice.report["model"]["parameters"] == 8_030_261_248
    assert advice.best.memory["capacity"] == 84_932_978_278
    assert advice.best.layout == advice.layout
    assert len(advice.candidates) == len(advice.report["candidates"])


@pytest.mark.parametrize("devices", [8, 1])
def test_go_c_and_python_write_the_same_bytes(devices: int) -> None:
    advice = mf.advise(LLAMA, strategy.training(batch=128), {**H100.document, "devices": devices})
    text, status = advised(advice.to_json())
    assert text == advice.table() == str(advice)
    report, again = advised(advice.to_json(), "--json")
    assert report == reports.advise(advice.to_json(), "json") + "\n"
    assert json.loads(report) == advice.report
    assert status == again == (0 if advice.fits else 1)
    assert max(map(len, text.splitlines())) <= 100


def test_nothing_fits() -> None:
    advice = mf.advise("llama3-8b", {"batch": 1}, {"device": "l4-24", "devices": 1})
    assert not advice.fits
    assert (advice.best, advice.layout, advice.report["best"]) == (None, None, None)
    assert advice.candidates[0].memory["free"] < 0
    assert advice.candidates[0].reasons
    assert repr(advice).startswith("Advice(best=None, candidates=")


def test_a_notebook_shows_a_table() -> None:
    advice = mf.advise(LLAMA, strategy.training(batch=128), H100)
    assert html.escape(advice.table().splitlines()[0]) in advice._repr_html_()


def test_numbers_of_a_candidate() -> None:
    best = mf.advise(LLAMA, strategy.training(batch=128), H100).best
    assert best is not None
    assert best.time is not None
    assert best.tokens_per_second is not None
    assert best.examples_per_second is not None
    assert best.examples_per_second == pytest.approx(128e9 / best.time["step"], abs=1e-3)
    assert best.tokens_per_second == pytest.approx(8192 * best.examples_per_second, rel=1e-3)
    assert best.mfu is not None
    assert 0.3 < best.mfu <= 0.6
    parts = ("weights", "gradients", "optimizer", "activations", "buffers")
    assert best.memory["total"] == sum(best.memory[part] for part in parts)


MESHES = [
    {"data": 8},
    {"data": 2, "fsdp": 4},
    {"pipe": 2, "fsdp": 2, "tensor": 2},
    {"data": 2, "context": 2, "tensor": 2},
]


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_the_best_layout_drives_a_loader(mesh: dict[str, int]) -> None:
    axes = dict.fromkeys(("pipe", "data", "fsdp", "context", "tensor"), 1) | mesh
    advice = mf.advise(
        strategy.transformer(**SIZES),
        strategy.training(batch=16),
        H100,
        search={"axes": axes},
    )
    best = advice.best
    assert best is not None
    assert best.layout is not None
    assert best.specs is not None
    assert best.mesh == mesh
    tokens = np.arange(64 * 16, dtype=np.int32).reshape(64, 16)
    dataset = mf.from_arrays({"tokens": tokens})
    devices = best.make_mesh(axis_types=(AxisType.Auto,) * len(mesh))
    loader = mf.Loader(dataset, devices, layout=best.layout)
    with mf.Loader(dataset, devices, best.specs, batch_size=16) as same:
        assert loader.layout == same.layout
    batches = [batch["tokens"] for batch in loader]
    assert np.array_equal(np.concatenate([np.asarray(b) for b in batches]), tokens)
    shard = best.layout.report()["arrays"]["tokens"]["shard_shape"]
    assert [list(s.data.shape) for s in batches[0].addressable_shards] == [shard] * 8
    with mf.Loader(dataset, layout=best.layout, process=0) as blocks:
        assert len(blocks) == 4


def test_the_input_of_a_loader() -> None:
    loader = mf.Loader(mf.from_arrays({"tokens": np.zeros((64, 16), np.int32)}), batch_size=16)
    before = loader.stats()
    training = strategy.training(batch=16)
    model = strategy.transformer(**SIZES)
    with pytest.raises(
        mf.InvalidArgumentError, match="statistics of a loader that delivered rows; call"
    ):
        mf.advise(model, training, H100, input=before)
    for _ in loader:
        pass
    stats = loader.stats()
    needs = mf.advise(model, training, H100, input=stats).report["input"]
    assert needs["available"] == int(stats["rows"] / stats["build_seconds"])
    assert needs["keeps_up"] in (True, False)
    # Two processes gather half of a step each.
    two = mf.advise(
        model, training, strategy.cluster("h100-80", devices=16),
        search={"axes": {"data": 16, "fsdp": 1, "tensor": 1, "pipe": 1}}, input=stats,
    ).report["input"]  # fmt: skip
    assert two["process_rows"] == 8
    assert two["available"] == int(2 * stats["rows"] / stats["build_seconds"])


def test_the_input_of_the_command_bench(tmp_path: Path) -> None:
    """The command measures files with the layout of the best candidate: the input of a plan."""
    training, model = strategy.training(batch=16), strategy.transformer(**SIZES)
    sixteen = strategy.cluster("h100-80", devices=16)
    search = {"axes": {"data": 16, "fsdp": 1, "tensor": 1, "pipe": 1}}
    advice = mf.advise(model, training, sixteen, search=search)
    assert advice.layout is not None
    layout, file = tmp_path / "layout.json", tmp_path / "tokens.arrow"
    layout.write_text(advice.layout.to_json())
    tokens = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(64 * 16, dtype=np.int32)), 16)
    table = pa.table({"tokens": tokens})
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    done = subprocess.run(
        [COMMAND, "bench", "--time=10ms", "--json", layout, file],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    needs = mf.advise(model, training, sixteen, search=search, input=found).report["input"]
    # Two processes load half of a step each.
    assert needs["available"] == int(2 * found["rows"] / found["seconds"])
    with pytest.raises(mf.InvalidArgumentError, match="of a loader that delivered rows"):
        mf.advise(model, training, sixteen, input={"rows": "64", "seconds": 1})


def test_the_rate_of_an_input() -> None:
    rates: tuple[Any, ...] = (1_000_000, 1.5, {"rows_per_second": 1})
    for given, keeps_up in zip(rates, (True, False, False), strict=True):
        advice = mf.advise(LLAMA, strategy.training(batch=128), H100, input=given)
        assert advice.report["input"]["keeps_up"] is keeps_up, given


def test_parts_show_their_calls() -> None:
    assert repr(LLAMA) == "preset('llama3-8b')"
    assert repr(H100) == "cluster('h100-80', devices=8)"
    two: Any = np.int64(2)
    assert repr(strategy.cluster(devices=two)) == "cluster(devices=2)"
    halves: Any = (np.float32(0.5), jnp.float32(0.75))
    assert strategy.training(batch=8, efficiency=halves).document["efficiency"] == [0.5, 0.75]
    precision = {"gradients": jnp.float32, "master": None}
    training = strategy.training(
        batch=8, precision=precision, efficiency=(0.4, 0.625), link_efficiency=(0.5, 1.0)
    )
    assert training.document == {
        "batch": 8,
        "precision": {"gradients": "float32", "master": None},
        "efficiency": [0.4, 0.625],
        "link_efficiency": [0.5, 1.0],
    }
    model = strategy.parameters(10, inputs={"x": (np.uint8, (4,))})
    assert repr(model) == "parameters(10, inputs=['x'])"
    assert model.document == {
        "parameters": 10,
        "inputs": {"x": {"shape": ["B", 4], "dtype": "uint8"}},
    }


class Device(NamedTuple):
    """The attributes of a JAX device that `mf.strategy.cluster` reads."""

    device_kind: str
    platform: str
    process_index: int


class Sliced(NamedTuple):
    """The attributes of a JAX device in a slice, or in a group that NVLink joins."""

    device_kind: str
    platform: str
    process_index: int
    slice_index: int


class Meshed(NamedTuple):
    """The attributes of a JAX mesh that `mf.strategy.cluster` reads."""

    axis_names: tuple[str, ...]
    devices: Any


H100_DEVICES = [Device("NVIDIA H100 80GB HBM3", "gpu", i // 8) for i in range(16)]
V5E = [Device("TPU v5 lite", "tpu", i // 4) for i in range(16)]
NVLINK = [Sliced("NVIDIA H200", "gpu", i, i // 4) for i in range(8)]
ALONE = [Device("NVIDIA L4", "gpu", i) for i in range(4)]
HOSTS = [Sliced("NVIDIA L4", "gpu", i, i) for i in range(4)]
UNEVEN = [Device("NVIDIA L4", "gpu", i // 3) for i in range(4)]
OBJECTS = np.array([*H100_DEVICES, None], object)[:-1].reshape(2, 8)
NAMED = "cluster('NVIDIA H100 80GB HBM3', devices=16, per_node=8)"
CLUSTERS: list[tuple[Any, dict[str, Any], str]] = [
    (H100_DEVICES, {}, NAMED),
    (Meshed(("data", "model"), OBJECTS), {}, NAMED),
    (OBJECTS, {}, NAMED),
    (H100_DEVICES, {"per_node": 4}, NAMED.replace("8)", "4)")),
    (H100_DEVICES[0], {"devices": 64}, "cluster('NVIDIA H100 80GB HBM3', devices=64)"),
    (V5E, {}, "cluster('TPU v5 lite', devices=16, per_node=16)"),
    (NVLINK, {}, "cluster('NVIDIA H200', devices=8, per_node=4)"),
    (UNEVEN, {}, "cluster('NVIDIA L4', devices=4)"),
    (ALONE, {}, "cluster('NVIDIA L4', devices=4)"),
    (HOSTS, {}, "cluster('NVIDIA L4', devices=4, per_node=1)"),
    (ALONE[:1], {}, "cluster('NVIDIA L4', devices=1, per_node=1)"),
    ("TPU7x", {"devices": 8}, "cluster('TPU7x', devices=8)"),
]


if hasattr(jax.sharding, "AbstractDevice"):  # in JAX from 0.9 on
    H200 = jax.sharding.AbstractDevice("NVIDIA H200", num_cores=None, platform="gpu")
    FAR = AbstractMesh((4, 2), ("data", "model"), abstract_device=H200)
    CLUSTERS.append((FAR, {}, "cluster('NVIDIA H200', devices=8)"))


PROCESSES: list[tuple[Any, dict[str, Any], int]] = [
    (H100_DEVICES, {}, 2),
    (OBJECTS, {"per_node": 16}, 2),
    (V5E, {}, 4),
    (NVLINK, {}, 8),
    (ALONE, {}, 4),
    (ALONE[:1], {}, 1),
    (ALONE, {"devices": 8}, 1),
    (UNEVEN, {}, 1),
    (H100_DEVICES[0], {"devices": 16}, 2),
]


@pytest.mark.parametrize(("kind", "given", "processes"), PROCESSES)
def test_the_processes_of_jax_load_the_input(
    kind: Any, given: dict[str, Any], processes: int
) -> None:
    cluster = strategy.cluster(kind, **given)
    for rate in (None, 10, {"rows_per_second": 10}):
        advice = mf.advise("gpt2", {"batch": 64}, cluster, input=rate)
        assert advice.report["input"]["processes"] == processes
    stats = {"rows": 64, "build_seconds": 1.0}
    needs = mf.advise("gpt2", {"batch": 64}, cluster, input=stats).report["input"]
    assert needs["available"] == int(64 * needs["rows_per_step"] / needs["process_rows"])
    own = mf.advise("gpt2", {"batch": 64}, cluster, input={"processes": 1})
    assert own.report["input"]["processes"] == 1


@pytest.mark.parametrize(("kind", "given", "call"), CLUSTERS, ids=lambda x: str(x)[:40])
def test_the_devices_of_jax(kind: Any, given: dict[str, Any], call: str) -> None:
    cluster = strategy.cluster(kind, **given)
    assert repr(cluster) == call
    assert strategy.cluster(**_arguments(cluster)).document == cluster.document
    advice = mf.advise("gpt2", {"batch": 64}, cluster)
    assert advice.report["devices"] == cluster.document["devices"]


def _arguments(cluster: strategy.Cluster) -> dict[str, Any]:
    document = dict(cluster.document)
    return {"kind": document.pop("device"), **document}


def test_a_name_of_jax_means_the_same_kind() -> None:
    def numbers(kind: str) -> Any:
        report = mf.advise("gpt2", {"batch": 64}, {"device": kind, "devices": 8}).report
        return report["candidates"]

    assert numbers("NVIDIA H100 80GB HBM3") == numbers("h100-80")
    assert numbers("TPU v5") == numbers("tpu-v5p") != numbers("tpu-v5e")


def test_devices_of_two_kinds() -> None:
    mixed: Any = [H100_DEVICES[0], NVLINK[0]]
    with pytest.raises(mf.InvalidArgumentError) as caught:
        strategy.cluster(mixed)
    assert str(caught.value) == (
        "mf.strategy.cluster: the devices are of 2 kinds: NVIDIA H100 80GB HBM3, NVIDIA H200; "
        "plan for devices of one kind"
    )


# Names that are only there for type checkers.
TYPES = {
    **dict.fromkeys(("AbstractMesh", "Dataset", "Mesh"), Any),
    "_types": SimpleNamespace(Device=Any, Sizes=Any),
}
WORDS = [
    (function, name, word)
    for function in (strategy.transformer, strategy.training, strategy.cluster)
    for name, hint in get_type_hints(function, localns=TYPES).items()
    for kind in get_args(hint)
    if get_origin(kind) is Literal
    for word in get_args(kind)
]  # fmt: skip
REQUIRED: dict[Any, dict[str, Any]] = {
    strategy.transformer: SIZES,
    strategy.training: {"batch": 8},
    strategy.cluster: {"devices": 1},
}


@pytest.mark.parametrize(("function", "name", "word"), WORDS)
def test_every_literal_type_is_accepted_and_documented(function: Any, name: str, word: str) -> None:
    assert len(WORDS) == 2 + 2 + 1 + 6 + 5 + 2 + 5 + 5
    function(**REQUIRED[function], **{name: word})
    assert word in function.__doc__.replace('``"', '"')
    with pytest.raises(mf.InvalidArgumentError) as caught:
        function(**REQUIRED[function], **{name: "another"})
    assert word in str(caught.value)


def test_the_sizes_of_a_preset_are_those_of_a_transformer() -> None:
    lines = (ROOT / "python/meshfeed/_types.py").read_text().partition("class Sizes")[2]
    typed = re.findall(r"^        (\w+): ", lines.partition("class Options")[0], re.MULTILINE)
    wanted = set(inspect.signature(strategy.transformer).parameters) - {"inputs"}
    assert sorted(typed) == sorted(wanted)


NAMES = {
    "AbstractMesh": AbstractMesh, "H100": H100, "LLAMA": LLAMA, "SIZES": SIZES, "jax": jax,
    "jnp": jnp, "mf": mf, "np": np, "strategy": strategy,
}  # fmt: skip
ERRORS = Path(__file__).with_name("strategy_errors.txt").read_text().split("\n\n")


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case.partition("\n")[0])
def test_errors_name_the_argument(case: str) -> None:
    call, _, message = case.partition("\n")
    with pytest.raises(mf.InvalidArgumentError) as caught:
        eval(call, NAMES)
    assert re.sub("0x[0-9a-f]+", "0x…", str(caught.value)) == message.strip()


def test_randomly_changed_documents_are_refused_or_planned(seed: int) -> None:
    rng = random.Random(seed)
    whole = mf.advise(LLAMA, strategy.training(batch=8), H100, search={"axes": {"pipe": [1, 2]}})
    text = bytearray(whole.to_json().encode())
    for _ in range(300):
        changed = bytearray(text)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(changed))
            changed[at : at + rng.randrange(3)] = rng.choice([b"", b"9", b"0", b"-", b"{", b"\xff"])
        try:
            advice = mf.Advice(bytes(changed))
        except mf.InvalidArgumentError:
            continue
        assert advice.report["meshfeed"] == 1, changed


def test_documents_fit_the_schema() -> None:
    done = subprocess.run(
        [COMMAND, "schema", "strategy"], capture_output=True, text=True, timeout=240, check=True
    )
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    accepted = [
        mf.advise(LLAMA, strategy.training(tokens=8192), H100).to_json(),
        mf.advise(
            strategy.preset(
                "mixtral-8x7b",
                experts={"count": 8, "active": 2, "capacity": 1.25},
            ),
            strategy.training(
                batch=8, micro_batch="auto", precision={"master": None}, overlap={"fsdp": False},
                efficiency=(0.3, 0.5), recomputation="full",
            ),
            strategy.cluster(devices=8, memory_bytes=10**11, node_latency_ns=0),
            search={"axes": {"tensor": [1, 8], "pipe": 1}, "zero": [0, 1], "margin": 0.05},
            input=100,
        ).to_json(),
        '{"meshfeed":1,"model":{"tree":{"w":{"shape":[8,8],"dtype":"float32","spec":["fsdp",null]}}},'
        '"training":{"batch":8},"cluster":{"devices":8}}',
    ]  # fmt: skip
    ready = sorted((ROOT / "docs/strategies").glob("*.json"))
    assert len(ready) >= 8
    for document in accepted + [path.read_text() for path in ready]:
        mf.Advice(document)
        validator.validate(json.loads(document))
    changes: tuple[dict[str, Any], ...] = (
        {"model": {"preset": ""}},
        {"training": {}},
        {"training": {"batch": 8, "tokens": 8}},
        {"cluster": {"devices": 0}},
        {"search": {"margin": 1}},
        {"search": {"axes": {"model": 1}}},
        {"meshfeed": 2},
        {"more": 1},
    )
    for change in changes:
        document = json.dumps({**json.loads(accepted[0]), **change})
        with pytest.raises(mf.InvalidArgumentError):
            mf.Advice(document)
        assert not validator.is_valid(json.loads(document)), change
