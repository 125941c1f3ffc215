"""The strategy planner: how to split a model over devices, what it costs, what the input needs.

`mf.advise` takes a model, its training and a cluster. The functions of this module describe
them. They check their arguments, and need neither devices nor data. All sizes are integers. A GB
in a text is 10^9 bytes.

Examples:
    >>> import meshfeed as mf
    >>> advice = mf.advise(
    ...     model=mf.strategy.preset("llama3-8b"),
    ...     training=mf.strategy.training(batch=128),
    ...     cluster=mf.strategy.cluster("h100-80", devices=8))
    >>> advice.best.mesh, advice.best.memory["capacity"]
    ({'data': 8}, 84932978278)
    >>> advice.layout
    Layout(mesh=('data': 8), arrays=['tokens'], batch_size=128)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from meshfeed._io.arguments import Checks
from meshfeed._native import reports
from meshfeed._plan.devices import described, processes
from meshfeed._plan.questions import json_values, naming_arguments

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh

    from meshfeed import _types
    from meshfeed._data.dataset import Dataset

Axis = Literal["pipe", "data", "fsdp", "expert", "context", "tensor"]


@dataclasses.dataclass(frozen=True)
class Part:
    """A checked part of a strategy document. The functions of this module return it.

    Attributes:
        call: the text of the function call that returned it, for `repr`.
        document: the part as in a strategy document, a dict that `json.dumps` writes.
    """

    call: str
    document: Mapping[str, Any]

    def __repr__(self) -> str:
        return self.call


@dataclasses.dataclass(frozen=True, repr=False)
class Model(Part):
    """The model: `transformer`, `preset`, `tree` or `parameters` returns it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Training(Part):
    """The training of the model: `training` returns it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Cluster(Part):
    """The devices: `cluster` returns it.

    Attributes:
        processes: how many processes have the devices; None if that is not known.
    """

    processes: int | None = None


_SIZES = ("layers", "hidden", "heads", "ffn", "vocab", "sequence")

# A minimal document. Its other parts complete a single part, so that it can be checked.
_REST: Mapping[str, Any] = {
    "meshfeed": 1,
    "model": {"transformer": dict.fromkeys(_SIZES, 1)},
    "training": {"batch": 1},
    "cluster": {"devices": 1},
}


def transformer(
    *,
    layers: int,
    hidden: int,
    heads: int,
    ffn: int,
    vocab: int,
    sequence: int,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    latent: Mapping[str, int] | None = None,
    gated: bool | None = None,
    tied: bool | None = None,
    biases: bool | None = None,
    qkv_biases: bool | None = None,
    norm: Literal["rms", "layer"] | None = None,
    positions: Literal["rotary", "learned"] | None = None,
    dropout: bool | None = None,
    causal: bool | None = None,
    experts: Mapping[str, Any] | None = None,
    inputs: Dataset | Mapping[str, tuple[Any, Sequence[int]]] | None = None,
) -> Model:
    """Describes a decoder-only transformer by its sizes.

    Args:
        layers: the number of layers.
        hidden: the width of the residual stream.
        heads: query heads.
        ffn: the width of the feed-forward block; with `experts`, of an expert.
        vocab: the number of tokens that the model knows.
        sequence: tokens per example.
        kv_heads: key and value heads; by default `heads`.
        head_dim: the width of a head; by default `hidden / heads`.
        latent: for multi-head latent attention, as in DeepSeek-V3, a dict of widths: "key_value"
            and "rotary", and optionally "query" and "value". `head_dim` is then without the rotary
            part.
        gated: whether the feed-forward block has three matrices, as in SwiGLU. By default two.
        tied: whether the head uses the token embedding; by default not.
        biases: whether matrices have biases; by default not.
        qkv_biases: whether query, key and value have biases; by default as `biases`.
        norm: "rms", the default, or "layer".
        positions: "rotary", the default, or "learned".
        dropout: whether layers have dropout; by default not.
        causal: whether attention has a causal mask; by default yes. Then flash attention takes the
            time of half of the scores. The utilization (MFU) counts all scores, as published
            figures do.
        experts: for a mixture of experts, a dict: "count" per layer and "active" per token.
            Optional are "every" (2 means that every second layer has experts), "after" (how many
            of the first layers have none), "ffn" (the width of an expert), "shared" (experts that
            compute every token), and "capacity" (how many times its equal share of the tokens an
            expert can take, such as 1.25).
        inputs: the type and the shape of a row of every array of a batch, such as
            ``{"tokens": ("int32", (8192,))}``, which is the default for a sequence of 8192; or a
            dataset with these fields.

    Raises:
        InvalidArgumentError: a size is wrong, or does not fit another one.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.transformer(layers=2, hidden=8, heads=2, ffn=32, vocab=100, sequence=16)
        transformer(layers=2, hidden=8, heads=2, ffn=32, vocab=100, sequence=16)
    """
    return _model("transformer", _given(locals(), _SIZES), "transformer")


def preset(
    name: str,
    *,
    inputs: Dataset | Mapping[str, tuple[Any, Sequence[int]]] | None = None,
    **overrides: Unpack[_types.Sizes],
) -> Model:
    """Describes a published transformer.

    Args:
        name: its name, such as "llama3-8b"; `meshfeed advise --list` prints all.
        inputs: as in `transformer`.
        overrides: sizes to change, with the names of the arguments of `transformer`.

    Raises:
        InvalidArgumentError: there is no such model, or a size is wrong.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.preset("llama3-8b", sequence=4096)
        preset('llama3-8b', sequence=4096)
    """
    given: dict[str, Any] = {"name": name, **overrides}
    return _model("preset", given if inputs is None else given | {"inputs": inputs}, "transformer")


def parameters(
    count: int,
    *,
    activation_bytes_per_example: int | None = None,
    flops_per_example: int | None = None,
    inputs: Dataset | Mapping[str, tuple[Any, Sequence[int]]] | None = None,
) -> Model:
    """Describes a model by its number of parameters, for example a convolutional network.

    Args:
        count: the number of parameters.
        activation_bytes_per_example: bytes of activations of one example that the backward pass
            needs. Without it, memory does not include activations.
        flops_per_example: floating-point operations of the forward pass of one example. Without it,
            there are no times.
        inputs: as in `transformer`. Without it, there is no layout.

    Raises:
        InvalidArgumentError: a number is wrong.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.parameters(25_557_032, flops_per_example=8_200_000_000,
        ...                        inputs={"image": ("uint8", (224, 224, 3))})
        parameters(25557032, flops_per_example=8200000000, inputs=['image'])
    """
    return _model("parameters", _given(locals(), ("count",)), "")


def tree(
    tree: Any,
    shardings: Any = None,
    *,
    activation_bytes_per_example: int | None = None,
    flops_per_example: int | None = None,
    inputs: Dataset | Mapping[str, tuple[Any, Sequence[int]]] | None = None,
) -> Model:
    """Describes a model by its arrays, for example the parameters of a model of JAX.

    Only shapes and types count, so nothing needs to be allocated. Unless `precision` of `training`
    names them, gradients and moments have the type of their array, without a master copy.

    Args:
        tree: the parameters: a pytree of `jax.ShapeDtypeStruct`s, `jax.Array`s or NumPy arrays,
            such as ``jax.eval_shape(init, key)``. The arrays' own shardings do not count.
        shardings: a spec or a `NamedSharding` for every array, for parts of the tree, or for all of
            it. They may name "fsdp", "expert" and "tensor", whose sizes the planner chooses. If
            none names "fsdp", this axis splits the largest dimension of an array that it divides.
            Times are not known for meshes that have "expert" or "tensor".
        activation_bytes_per_example: as in `parameters`.
        flops_per_example: as in `parameters`.
        inputs: as in `parameters`.

    Raises:
        InvalidArgumentError: a leaf is not an array, a spec names another axis, or a number is
            wrong.
        UnsupportedError: JAX is not installed.

    Examples:
        >>> import jax, meshfeed as mf
        >>> from jax.sharding import PartitionSpec as P
        >>> params = {"in": jax.ShapeDtypeStruct((1024, 4096), "float32"),
        ...           "out": jax.ShapeDtypeStruct((4096, 1024), "float32")}
        >>> specs = {"in": P("fsdp", "tensor"), "out": P("tensor", "fsdp")}
        >>> model = mf.strategy.tree(params, specs)
        >>> model
        tree(<2 arrays>)
        >>> advice = mf.advise(model, mf.strategy.training(batch=8),
        ...                    mf.strategy.cluster("h100-80", devices=8),
        ...                    search={"axes": {"fsdp": 4, "tensor": 2}})
        >>> advice.best.memory["weights"], 2 * 1024 * 4096 * 4 // 8
        (4194304, 4194304)
    """
    from meshfeed._jax import documents

    with Checks("mf.strategy.tree") as check:
        arrays = documents.model_arrays(check, tree, shardings)
    costs = {
        "activation_bytes_per_example": activation_bytes_per_example,
        "flops_per_example": flops_per_example,
        "inputs": inputs,
    }
    return _model("tree", {"tree": arrays} | _given(costs), "")


def training(
    *,
    batch: int | None = None,
    tokens: int | None = None,
    total_tokens: int | None = None,
    micro_batch: int | Literal["auto"] | None = None,
    optimizer: Literal["adamw", "adafactor", "lion", "sgd", "momentum", "muon"] | None = None,
    precision: Mapping[str, Any] | None = None,
    recomputation: Literal["auto", "none", "dots", "selective", "full"] | None = None,
    attention: Literal["flash", "plain"] | None = None,
    schedule: Literal["auto", "gpipe", "1f1b", "interleaved", "zero-bubble"] | None = None,
    chunks: int | None = None,
    sequence_parallel: bool | None = None,
    overlap: Mapping[Axis, bool] | None = None,
    efficiency: tuple[float, float] | None = None,
    link_efficiency: tuple[float, float] | None = None,
) -> Training:
    """Describes how a model is trained.

    Args:
        batch: examples of the global batch, over all devices. This or `tokens` is required.
        tokens: tokens of the global batch, instead of `batch`; a multiple of the sequence.
        total_tokens: tokens of the whole training of a transformer. The report then has its days
            and device-hours.
        micro_batch: examples that a replica computes at once. By default, or with "auto", several
            are tried.
        optimizer: "adamw" by default; "adafactor", "lion", "sgd", "momentum" or "muon".
        precision: a dict of types: of "compute", "weights" and "gradients" (bfloat16 by default),
            of "master", a copy of the weights, and of "moments" (float32). None for "master" means
            that there is no copy, and "int8" for "moments" that they are quantized.
        recomputation: which activations of a transformer the backward pass computes again: "none",
            "dots", which keeps the results of matrix products with weights, as `jax.checkpoint`
            does with the policy `dots_with_no_batch_dims_saveable`, "selective", which is the
            scores of attention only, as in Megatron-LM, or "full". By default, or with "auto",
            "none", "dots" and "full" are tried.
        attention: "flash" by default; "plain" keeps the scores.
        schedule: of a pipeline: "1f1b", "interleaved", "gpipe" or "zero-bubble". By default, or
            with "auto", the first two are tried.
        chunks: chunks of layers per stage, with the schedule "interleaved"; by default the fewest
            and the most that are possible are tried.
        sequence_parallel: whether tensor parallelism also splits norms and dropout; by default yes.
        overlap: by axis, whether its communication runs during computation, such as
            ``{"tensor": True}``. By default on all axes but "tensor" and "expert".
        efficiency: the least and the most share of the peak FLOP/s that matrix products reach, with
            up to three decimals. The default depends on the kind of device.
        link_efficiency: the least and the most share of their bandwidth that links between devices
            reach; by default (0.35, 1.0).

    Raises:
        InvalidArgumentError: there is no batch, or a value is wrong.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.training(batch=128, optimizer="lion")
        training(batch=128, optimizer='lion')
    """
    given = _given(locals())
    if not isinstance(given.get("optimizer", ""), str):
        hint = "mf.memory also takes an optimizer of optax"
        expected = 'the name of an optimizer, such as "adamw"'
        raise Checks("mf.strategy.training").wrong("optimizer", optimizer, expected, hint)
    return Training(*_checked("training", given, "training", {"/training": ""}))


def cluster(
    kind: str | _types.Device | Sequence[_types.Device] | Mesh | AbstractMesh | None = None,
    *,
    devices: int | None = None,
    per_node: int | None = None,
    memory_bytes: int | None = None,
    flops_per_second: int | None = None,
    hbm_bytes_per_second: int | None = None,
    node_bytes_per_second: int | None = None,
    network_bytes_per_second: int | None = None,
    node_latency_ns: int | None = None,
    network_latency_ns: int | None = None,
    topology: Literal["none", "switch", "pcie", "torus2", "torus3"] | None = None,
    host_bytes: int | None = None,
) -> Cluster:
    """Describes the devices.

    Args:
        kind: a kind of device, such as "h100-80"; `meshfeed advise --list` prints all. Also the
            name that JAX has for it, such as "NVIDIA H100 80GB HBM3"; or `jax.devices()`, or a
            mesh, which also say how many devices there are, and how many in a node. The other
            numbers replace the kind's. Without a kind, a missing number is unknown, and so
            are the results that need it.
        devices: the number of devices, which are chips for TPUs up to v6e: a slice "v5p-128" has
            64. Required unless `kind` is a list of devices or a mesh.
        per_node: devices of a node, or chips of a TPU slice; by default the usual number for the
            kind.
        memory_bytes: the memory of a device, such as ``80 * 10**9``.
        flops_per_second: operations per second of a device, dense, in the type of computation.
        hbm_bytes_per_second: bytes per second between a device and its memory.
        node_bytes_per_second: bytes per second from a device to others of its node, one way.
        network_bytes_per_second: bytes per second from a device to other nodes, one way.
        node_latency_ns: nanoseconds of one step of a collective inside a node.
        network_latency_ns: nanoseconds of one step of a collective between nodes.
        topology: how the devices of a node are connected: "switch", "pcie", "torus2", "torus3", or
            "none" if they use the network.
        host_bytes: the memory of a host.

    Raises:
        InvalidArgumentError: the kind is unknown, the number of devices is missing, or a number is
            wrong.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.cluster("h100-80", devices=16, per_node=8)
        cluster('h100-80', devices=16, per_node=8)

        `mf.strategy.cluster(jax.devices())` describes the accelerators of this run, and
        `mf.strategy.cluster(jax.devices()[0], devices=1024)` more of the same kind.
    """
    given = _given(locals())
    names = {"/cluster/device": "kind", "/cluster": ""}
    text, document = _checked("cluster", given, "cluster", names)
    return Cluster(text, document, processes(kind, document["devices"]))


def _given(arguments: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the arguments of a call without the optional ones that are None."""
    return {key: value for key, value in arguments.items() if value is not None or key in required}


def _model(call: str, given: Mapping[str, Any], form: str) -> Model:
    """Returns the model of a call.

    Args:
        call: the function.
        given: its arguments.
        form: the member of the part "model" that has the sizes; "" if the part itself has them.
    """
    names = {"/model/inputs": "inputs", "/model/preset": "name", "/model/parameters": "count"}
    names |= {f"/model/{form}" if form else "/model": "", "/model": ""}
    return Model(*_checked(call, given, "model", names))


def _checked(
    call: str, given: Mapping[str, Any], part: str, names: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Returns the text of a call, and the part of a document that it describes.

    Args:
        call: the function.
        given: its arguments.
        part: the part of the document.
        names: the argument that each JSON Pointer stands for, for errors.
    """
    with Checks(f"mf.strategy.{call}") as check:
        values = dict(given)
        inputs = _inputs(check, values.pop("inputs", None))
        if call == "cluster":
            values = described(check, values)
        values = json_values(check, values)
        document = _PARTS[call](dict(values)) | inputs
        question = json.dumps({**_REST, part: document})
        with naming_arguments(names, {**values, **given}):
            reports.advise(question, "document")
    if inputs:
        values["inputs"] = list(inputs["inputs"])
    text = [_shown(key, value) for key, value in values.items()]
    return f"{call}({', '.join(text)})", document


def _shown(key: str, value: Any) -> str:
    """Returns the text of an argument."""
    if key == "tree":
        return f"<{len(value)} arrays>" if len(value) != 1 else "<1 array>"
    return repr(value) if key in ("name", "count", "kind") else f"{key}={value!r}"


def _preset_part(given: dict[str, Any]) -> dict[str, Any]:
    name = given.pop("name")
    return {"preset": name, **({"transformer": given} if given else {})}


def _inputs(check: Checks, inputs: Any) -> dict[str, Any]:
    """Returns the member "inputs" of a model: the arrays of a batch."""
    if inputs is None:
        return {}
    fields = check.fields(inputs, "inputs")
    return {"inputs": {k: {"shape": ["B", *row], "dtype": t} for k, (t, row) in fields.items()}}


def _renamed(name: str, key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Returns a function that changes the name of an argument to a key of a document."""
    return lambda given: {(key if k == name else k): value for k, value in given.items()}


_PARTS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "transformer": lambda given: {"transformer": given},
    "preset": _preset_part,
    "parameters": _renamed("count", "parameters"),
    "tree": dict,
    "training": dict,
    "cluster": _renamed("kind", "device"),
}
