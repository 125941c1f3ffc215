"""mf.draw and mf.diagram: pictures of arrays, trees and splits of work."""

from __future__ import annotations

import importlib.util
import json
import random
import re
import xml.etree.ElementTree as ET
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

import meshfeed as mf
from meshfeed._native import reports
from meshfeed._plan.visualized import visualized
from tests.python import ROOT
from tests.python.plan.compiled import compiled
from tests.python.samples import digits

P = PartitionSpec
TABLE = ROOT / "tests/conformance/testdata/visualized.json"
SEED = 20261123


def mesh(*axes: tuple[str, int], order: list[int] | None = None) -> Mesh:
    names, sizes = [name for name, _ in axes], [size for _, size in axes]
    devices = np.array(jax.devices())[: int(np.prod(sizes))]
    return Mesh((devices if order is None else devices[order]).reshape(sizes), names)


def ones(shape: tuple[int, ...], sharding: Any) -> Any:
    return jax.device_put(np.ones(shape, np.float32), sharding)


def abstract(shape: tuple[int, ...], dtype: Any, sharding: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)


DATA_MODEL = """\
Mesh('data': 2, 'model': 2)  4 devices  1 process
128 B per device

array  float32 (8, 16)  P('data', 'model')  shard (4, 8)  128 B
  ↓ dimension 0 over data  → dimension 1 over model
       0:8      8:16
    ┏━━━━━━━━┯━━━━━━━━┓
0:4 ┃  p0 3  │  p0 2  ┃
    ┠────────┼────────┨
4:8 ┃  p0 1  │  p0 0  ┃
    ┗━━━━━━━━┷━━━━━━━━┛

p0 0: device 0 of process 0"""


def test_an_array_on_devices_in_any_order() -> None:
    sharding = NamedSharding(
        mesh(("data", 2), ("model", 2), order=[3, 2, 1, 0]), P("data", "model")
    )
    drawn = mf.draw(ones((8, 16), sharding))
    assert str(drawn) == repr(drawn) == DATA_MODEL
    # A sharding with a shape, and an array without memory, have the same picture.
    assert str(mf.draw(sharding, shape=(8, 16))) == DATA_MODEL
    assert str(mf.draw(abstract((8, 16), jnp.float32, sharding))) == DATA_MODEL
    svg = drawn.to_svg()
    assert drawn._repr_html_() == svg
    root = ET.fromstring(svg)
    assert root[0].text == "Layout of Mesh('data': 2, 'model': 2)"
    chips = [e.text for e in root if e.get("class") == "mf-w"]
    assert chips[:4] == ["3", "2", "1", "0"]


def test_every_device_is_where_jax_says() -> None:
    rng = random.Random(SEED)
    for _ in range(20):
        axes = [("a", rng.choice([1, 2, 4])), ("b", rng.choice([1, 2]))]
        size = axes[0][1] * axes[1][1]
        m = mesh(*axes, order=rng.sample(range(size), size))
        spec = rng.choice([P("a", "b"), P("b", "a"), P(("a", "b")), P(None, ("b", "a")), P("b")])
        sharding = NamedSharding(m, spec)
        text = str(mf.draw(sharding, shape=(8, 16)))
        devices: Any = sharding.devices_indices_map((8, 16))
        parts = {
            device.id: tuple(
                "{}:{}".format(*part.indices(n)) for part, n in zip(index, (8, 16), strict=True)
            )
            for device, index in devices.items()
        }
        rows = {row for row, _ in parts.values()}
        for line in text.splitlines():
            label, _, cells = line.partition("┃")
            if label.strip() in rows and len(rows) > 1:
                found = {int(n) for n in re.findall(r"\d+", re.sub(r"p0", "", cells))}
                expected = {d for d, (row, _) in parts.items() if row == label.strip()}
                assert found == expected, f"{sharding}\n{text}"


def test_scalars_replicas_and_single_devices() -> None:
    one = str(mf.draw(jnp.ones(3)))
    assert one.splitlines()[0] == "Mesh()  1 device  1 process"
    assert "array  float32 (3,)  P(None,)  shard (3,)  12 B\n  not partitioned" in one
    assert "array  float32 ()  P()  shard ()  4 B\n  not partitioned" in str(
        mf.draw(jnp.float32(1))
    )
    copied = str(mf.draw(ones((9,), NamedSharding(mesh(("x", 8)), P()))))
    assert "shard (9,)  36 B  on 8 devices\n  not partitioned" in copied
    assert "┃  p0 0=…=7  ┃" in copied


def test_a_sharding_without_a_mesh() -> None:
    named = NamedSharding(mesh(("a", 2), ("b", 2), ("c", 2)), P("a", "b"))
    sharding = GSPMDSharding(tuple(jax.devices()), named._to_xla_hlo_sharding(2))
    drawn = str(mf.draw(sharding, shape=(4, 6)))
    assert "shard (2, 3)  24 B" in drawn
    assert "0:2 ┃  p0 0=1  │  p0 2=3  ┃" in drawn
    assert "2:4 ┃  p0 4=5  │  p0 6=7  ┃" in drawn


def test_an_abstract_mesh() -> None:
    large = AbstractMesh((512, 8), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    drawn = str(mf.draw(abstract((4096, 64), jnp.bfloat16, NamedSharding(large, P("data")))))
    assert drawn.startswith("Mesh('data': 512, 'model': 8)  4,096 devices")
    assert "shard (8, 64)  1 KiB" in drawn


def test_inside_jit() -> None:
    drawn = []

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        drawn.append(str(mf.draw(x)))
        return x

    explicit = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Explicit,))
    step(jax.device_put(np.ones((8, 2), np.float32), NamedSharding(explicit, P("data"))))
    assert "array  float32 (8, 2)  P('data', None)  shard (2, 2)  16 B" in drawn[0]


def test_trees_inside_jit() -> None:
    texts = []

    @jax.jit
    def step(tree: dict[str, jax.Array]) -> dict[str, jax.Array]:
        texts.extend([str(mf.draw(tree)), str(mf.memory(tree))])
        return tree

    explicit = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Explicit,))
    x = jax.device_put(np.ones((8, 2), np.float32), NamedSharding(explicit, P("data")))
    step({"x": x})
    step({"x": jnp.ones(3)})
    assert "P('data', None)  (2, 2)" in texts[0]
    assert "16 B" in texts[1]
    assert "no sharding  (3,)" in texts[2]
    assert "12 B" in texts[3]


class Partly(NamedSharding):
    """A sharding over two processes. This one has the first four devices."""

    @property
    def addressable_devices(self) -> set[Any]:
        return set(jax.devices()[:4])


def test_parts_of_other_processes() -> None:
    drawn = mf.draw(Partly(mesh(("data", 8)), P("data")), shape=(8,))
    notes = [
        "Process 0 addresses 4 of 8 devices: 0, 1, 2, 3.",
        "The parts on the other devices are not addressable from here.",
    ]
    assert str(drawn).splitlines()[-3:] == ["", *notes]
    assert drawn._repr_html_().endswith(f"</svg>\n<p>{notes[0]}</p><p>{notes[1]}</p>")


def test_a_sharding_that_does_not_fit() -> None:
    drawn = str(mf.draw(NamedSharding(mesh(("data", 4)), P("data")), shape=(6,)))
    assert "error indivisible at /arrays/array/shape/0" in drawn


TREE = """\
Mesh('data': 4, 'model': 2)  8 devices

array          shape       dtype          spec                shard      per device  copies
embed          (1024, 64)  bfloat16       P('model',)         (512, 64)      64 KiB       4
layers/*/b x3  (64,)       float32        P()                 (64,)           768 B       8
layers/*/w x3  (64, 64)    float8_e4m3fn  P('data', 'model')  (16, 32)      1.5 KiB       1
packed         (3, 8)      int4           P(None, 'data')     (3, 2)            3 B       2
step           ()          int32          no sharding         ()                4 B       1

9 arrays, 141 KiB in all; 66.3 KiB on the fullest device"""


def test_a_tree() -> None:
    m = mesh(("data", 4), ("model", 2))
    layer = {
        "w": abstract((64, 64), jnp.float8_e4m3fn, NamedSharding(m, P("data", "model"))),
        "b": abstract((64,), jnp.float32, NamedSharding(m, P())),
    }
    tree = {
        "embed": abstract((1024, 64), jnp.bfloat16, NamedSharding(m, P("model"))),
        "layers": [layer] * 3,
        "packed": abstract((3, 8), jnp.int4, NamedSharding(m, P(None, "data"))),
        "step": jnp.int32(0),
    }
    drawn = mf.draw(tree)
    assert str(drawn) == TREE
    html = drawn._repr_html_()
    assert html.startswith("<pre ")
    assert html.endswith(f">{TREE.replace(chr(39), '&#x27;')}</pre>")
    with pytest.raises(mf.UnsupportedError) as caught:
        drawn.to_svg()
    expected = "Drawing.to_svg: this picture is drawn as text only; print it"
    assert str(caught.value) == expected


def test_a_tree_over_several_meshes() -> None:
    first, second = jax.devices()[:2]
    tree = {
        "a": jax.device_put(np.ones(8, np.float32), first),
        "b": jax.device_put(np.ones(2, np.float32), second),
        "c": ones((4,), NamedSharding(mesh(("x", 2)), P("x"))),
        "d": ones((6,), NamedSharding(mesh(("y", 2)), P("y"))),
    }
    lines = str(mf.draw(tree)).splitlines()
    assert lines[:3] == ["Mesh('x': 2)  2 devices", "Mesh('y': 2)  2 devices", ""]
    assert lines[4].split() == ["a", "(8,)", "float32", "one", "device", "(8,)", "32", "B", "1"]
    # Device 0 holds 32 + 8 + 12 bytes, and device 1 holds 8 + 8 + 12 bytes.
    assert lines[-1] == "4 arrays, 80 B in all; 52 B on the fullest device"


def test_a_tree_with_a_spec_that_does_not_fit() -> None:
    tree = [abstract((6,), jnp.float32, NamedSharding(mesh(("data", 4)), P("data")))]
    lines = str(mf.draw(tree)).splitlines()
    assert lines[3].split()[-4:] == ["does", "not", "fit", "unknown"]
    assert lines[-1].startswith('dimension 0 of array "0" of shape (6,) is split 4 ways')


def test_layouts_and_loaders() -> None:
    layout = mf.layout({"data": 2}, mf.P("data"), {"x": ("float32", (4,))}, batch_size=8)
    drawn = mf.draw(layout)
    assert str(drawn) == layout.draw().rstrip("\n")
    assert drawn.to_svg() == layout.to_svg()
    with mf.Loader(mf.from_arrays(digits()), mesh(("data", 2)), P("data"), batch_size=8) as loader:
        assert str(mf.draw(loader)) == loader.layout.draw().rstrip("\n")


@pytest.mark.parametrize("case", json.loads(TABLE.read_text()), ids=lambda case: case["shape"])
def test_tables_of_jax(case: dict[str, Any]) -> None:
    parts = {device: [slice(*span) for span in spans] for device, spans in case["parts"]}
    assert visualized(case["shape"], "cpu", parts) + "\n" == case["printed"]


def test_the_style_of_jax(capsys: pytest.CaptureFixture[str]) -> None:
    sharding = NamedSharding(mesh(("data", 4), ("model", 2)), P("data", "model"))
    x = ones((8, 16), sharding)
    expected = """\
┌───────────────────────┬───────────────────────┐
│         CPU 0         │         CPU 1         │
├───────────────────────┼───────────────────────┤
│         CPU 2         │         CPU 3         │
├───────────────────────┼───────────────────────┤
│         CPU 4         │         CPU 5         │
├───────────────────────┼───────────────────────┤
│         CPU 6         │         CPU 7         │
└───────────────────────┴───────────────────────┘
"""
    print(mf.draw(x, style="jax"))
    assert capsys.readouterr().out == expected
    if importlib.util.find_spec("rich"):
        jax.debug.visualize_array_sharding(x, use_color=False)
        assert capsys.readouterr().out == expected


def test_random_tables_of_jax(capsys: pytest.CaptureFixture[str]) -> None:
    if not importlib.util.find_spec("rich"):
        pytest.skip("rich is not installed")
    rng = random.Random(SEED)
    for _ in range(40):
        m = mesh(("a", rng.choice([1, 2, 4])), ("b", rng.choice([1, 2])))
        spec = rng.choice([P("a"), P("a", "b"), P(None, ("b", "a")), P(("a", "b"), None), P()])
        shape = (8 * rng.randint(1, 20), 8 * rng.randint(1, 20))
        sharding = NamedSharding(m, spec)
        jax.debug.visualize_sharding(shape, sharding, use_color=False)
        expected = capsys.readouterr().out
        print(mf.draw(sharding, shape=shape, style="jax"))
        assert capsys.readouterr().out == expected, f"{shape} {sharding}"


def wrong(message: str, *args: Any, **kwargs: Any) -> None:
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.draw(*args, **kwargs)
    assert str(caught.value) == f"mf.draw: {message}"


def test_wrong_arguments() -> None:
    data = NamedSharding(mesh(("data", 2)), P("data"))
    far = AbstractMesh((2,), ("data",), axis_types=(AxisType.Auto,))
    give = "give a jax.Array, a jax.ShapeDtypeStruct, a sharding with shape=, a tree or a Layout"
    wrong("style='rich': expected \"jax\" or None", jnp.ones(3), style="rich")
    wrong(
        "a sharding was given without the shape of an array;"
        " pass shape=, for example shape=(8, 16)",
        data,
    )
    for shape in (8, "88"):
        wrong(f"{shape=}: expected a tuple of integers, such as (8, 16)", data, shape=shape)
    wrong(
        "dtype='x': expected an element type of JAX; such as \"bfloat16\" or jnp.bfloat16",
        data,
        shape=(8,),
        dtype="x",
    )
    wrong("shape[1]=2.5: expected an integer from 0 to 2^53", data, shape=(8, 2.5))
    wrong("shape and dtype are for shardings; leave them out", jnp.ones(3), shape=(3,))
    wrong(f'style="jax" is for an array with a sharding; {give}', {"x": data}, style="jax")
    wrong(
        'style="jax" is for arrays of 1 or 2 dimensions, but the shape is (2, 3, 4);'
        " leave out style=, which draws any shape",
        data,
        shape=(2, 3, 4),
        style="jax",
    )
    wrong(
        'style="jax" shows the ids of devices, but the mesh is abstract;'
        " leave out style=, or use a mesh with devices",
        NamedSharding(far, P("data")),
        shape=(2,),
        style="jax",
    )
    wrong(f"x=[] has no arrays; {give}", [])
    layout = mf.layout({"data": 2}, mf.P("data"), {"x": ("float32", (4,))}, batch_size=8)
    wrong("shape, dtype and style are not for layouts; leave them out", layout, style="jax")
    for scalar in ("text", None, 3, np.float32(2)):
        hint = "expected arrays; give arrays or jax.ShapeDtypeStructs"
        wrong(f"x={scalar!r}: {hint}", scalar)
    far = AbstractMesh((2,), ("data",))
    wrong("shape, dtype and style are not for meshes; leave them out", far, shape=(2,))
    missing = (
        "a PartitionSpec was given without a mesh; use NamedSharding(mesh, spec) or jax.set_mesh"
    )
    wrong(missing, P("data"), shape=(8,))
    with jax.set_mesh(mesh(("data", 2))):
        wrong(
            "a sharding was given without the shape of an array;"
            " pass shape=, for example shape=(8, 16)",
            P("data"),
        )
        for spec in (P("model"), mf.P("model")):
            wrong(
                "Resource axis: model of P('model',) is not found in mesh: ('data',).;"
                " name axes of the mesh, each once",
                spec,
                shape=(8,),
            )


def test_diagrams() -> None:
    drawn = mf.diagram("mesh", mesh={"data": 4, "model": 2})
    assert str(drawn).splitlines()[-2:] == [
        "2 groups over data: {0, 2, 4, 6} {1, 3, 5, 7}",
        "4 groups over model: {0, 1} {2, 3} {4, 5} {6, 7}",
    ]
    assert ET.fromstring(drawn.to_svg())[0].text == "Groups of Mesh('data': 4, 'model': 2)"
    layout = mf.layout({"data": 2}, mf.P("data"), {"x": ("float32", (4,))}, batch_size=8)
    assert str(mf.diagram("loading", layout=layout)).startswith("Ways to load a batch of 8 rows")
    four: Any = np.int64(4)
    assert str(mf.diagram("collective", op="permute", devices=four)).startswith("permute")


def test_a_mesh_is_drawn_as_its_groups() -> None:
    m = mesh(("data", 2), ("model", 2))
    wanted = mf.diagram("mesh", mesh={"data": 2, "model": 2})
    abstract_mesh = AbstractMesh((2, 2), ("data", "model"))
    axes = {"data": 2, "model": 2}
    for drawn in (mf.draw(m), mf.draw(abstract_mesh), mf.draw(axes), mf.diagram("mesh", mesh=m)):
        assert (str(drawn), drawn.to_svg()) == (str(wanted), wanted.to_svg())
    product = {"x": {"shape": (8, 8), "spec": P("data")}, "w": {"shape": (8, 8), "spec": P()}}
    assert "Mesh('data': 2, 'model': 2)" in str(mf.diagram("matmul", mesh=m, **product))


def test_a_spec_is_drawn_on_the_mesh_of_set_mesh() -> None:
    m = mesh(("data", 2), ("model", 2))
    wanted = mf.draw(NamedSharding(m, P("data", "model")), shape=(8, 16), dtype="bfloat16")
    with jax.set_mesh(m):
        for spec in (P("data", "model"), mf.P("data", "model")):
            assert str(mf.draw(spec, shape=(8, 16), dtype="bfloat16")) == str(wanted)


def test_the_memory_of_candidates_is_drawn() -> None:
    advice = mf.advise("llama3-8b", {"batch": 128}, {"device": "h100-80", "devices": 8})
    first, second = advice.candidates[:2]
    parts = ("weights", "gradients", "optimizer", "activations", "buffers")
    bars = [
        {"label": label} | {name: candidate.memory[name] for name in parts}
        for label, candidate in (("data 8", first), ("candidate 2", second))
    ]
    wanted = mf.diagram("memory", bars=bars, capacity=first.memory["capacity"])
    found = mf.diagram("memory", bars=(first, second.memory))
    assert (str(found), found.to_svg()) == (str(wanted), wanted.to_svg())
    assert "A device has 90 GB." in str(mf.diagram("memory", bars=[first], capacity=90 * 10**9))
    unknown = mf.advise("llama3-8b", {"batch": 8}, {"devices": 8}).candidates
    assert "A device has" not in str(mf.diagram("memory", bars=unknown[:2]))


KINDS = ["mesh", "matmul", "pipeline", "collective", "memory", "loading"]


@pytest.mark.parametrize("members", [{}, {"layout": 3}, {"layout": [0]}, {"lay": 0}, {"x": 1}])
def test_the_ways_to_load_need_a_layout(members: dict[str, Any]) -> None:
    layout = mf.layout({"x": 8}, P("x"), {"x": ("float32", ())}, batch_size=8)
    if "x" in members:
        members = {"layout": layout} | members
    if members.get("layout") == [0]:
        members = {"layout": [layout]}
    with pytest.raises(mf.InvalidArgumentError) as caught:
        mf.diagram("loading", **members)
    assert str(caught.value) == (
        "mf.diagram: loading needs layout=, a Layout, and no other argument; "
        "mf.layout(mesh, specs, fields, batch_size=n) makes one"
    )


def test_diagrams_with_wrong_members() -> None:
    with pytest.raises(mf.InvalidArgumentError) as known:
        reports.diagram('{"meshfeed":1,"diagram":{"x":{}}}', svg=False)
    assert known.value.hint == "the keys here are " + ", ".join(KINDS)
    listed = ", ".join(f'"{kind}"' for kind in KINDS[:-1]) + ' or "loading"'
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ("pipeline", {"stages": 2}, "a pipeline needs schedule="),
        ("pipeline", {"stages": 1.5}, "stages=1.5: expected an integer"),
        ("pipeline", {"stages": 2.0}, "stages=2.0: expected an integer; write 2"),
        (
            "matmul",
            {"x": (8, 8)},
            "x=(8, 8): expected a matrix, but found a list; a matrix has the keys shape, spec",
        ),
        (
            "pipeline",
            {"schedule": "gpipe", "stages": 2, "micro_batches": 2, "weight": []},
            "weight=[]: the list has no durations; "
            "use one number for equal parts, or a list of stages \N{MULTIPLICATION SIGN} chunks",
        ),
        (
            "memory",
            {"bars": [{"label": "a", "weights": 1e9}]},
            "bars[0]['weights']=1000000000.0: expected an integer; write 10**9",
        ),
        (
            "mesh",
            {"mesh": 8},
            "mesh=8: expected the size of every axis, or a JAX mesh; "
            'such as {"data": 4, "model": 2}',
        ),
        (
            "pipeline",
            {"stage": 2},
            'stage=2: "stage" is not an argument; did you mean "stages"? The arguments here are '
            "schedule, stages, micro_batches, chunks, forward, backward, weight",
        ),
        ("pipelines", {}, f"kind='pipelines': expected {listed}"),
        (
            AbstractMesh((2,), ("data",)),
            {},
            f"kind={AbstractMesh((2,), ('data',))}: expected {listed}; "
            'for a mesh write mf.diagram("mesh", mesh=mesh)',
        ),
    ]
    for kind, members, message in cases:
        with pytest.raises(mf.InvalidArgumentError) as caught:
            mf.diagram(kind, **members)
        assert str(caught.value) == f"mf.diagram: {message}"


@pytest.mark.parametrize(
    ("x", "w", "collectives"),
    [
        (P("data", None), P(None, "model"), set()),
        (P(("data", "model"), None), P(None, None), set()),
        (P(None, None), P(None, "model"), set()),
        (P("data", "model"), P("model", None), {"all-reduce"}),
        (P(None, "model"), P("model", "data"), {"all-reduce"}),
        (P("data", None), P("data", "model"), {"all-gather"}),
        (P("data", "model"), P("model", "data"), {"all-gather", "all-reduce"}),
    ],
    ids=str,
)
def test_a_product_moves_what_xla_moves(x: Any, w: Any, collectives: set[str]) -> None:
    m = mesh(("data", 4), ("model", 2))
    members = {"x": {"shape": (128, 256), "spec": x}, "w": {"shape": (256, 512), "spec": w}}
    text = str(mf.diagram("matmul", mesh={"data": 4, "model": 2}, **members))
    assert {name for name in ("all-gather", "all-reduce") if name in text} == collectives
    columns = [axis for axis in w[1:] if axis not in x[:1]]
    program = jax.jit(lambda a, b: a @ b, out_shardings=NamedSharding(m, P(x[0], *columns))).lower(
        abstract((128, 256), jnp.float32, NamedSharding(m, x)),
        abstract((256, 512), jnp.float32, NamedSharding(m, w)),
    )
    hlo = compiled(program).as_text() or ""
    names = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute"
    assert set(re.findall(rf" ({names})(?:-start)?\(", hlo)) == collectives
