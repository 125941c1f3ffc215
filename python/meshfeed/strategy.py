"""The strategy planner: how to split a model over devices, what it costs, what the input needs.

`mf.advise` takes a model, its training and a cluster. The functions of this module describe them:

Examples:
    >>> import meshfeed as mf
    >>> advice = mf.advise(
    ...     model=mf.strategy.preset("llama3-8b"),
    ...     training=mf.strategy.training(batch=128),
    ...     cluster=mf.strategy.cluster("h100-80", devices=8))
    >>> advice.best.mesh, advice.best.memory["capacity"]
    ({'fsdp': 8}, 80000000000)
    >>> advice.layout
    Layout(mesh=('fsdp': 8), arrays=['tokens'], batch_size=128)
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from meshfeed._io.arguments import Checks
from meshfeed._native import calls
from meshfeed._plan.questions import delivered, plain, translated
from meshfeed.errors import InvalidArgumentError
from meshfeed.planning import Layout, Problem
from meshfeed.specs import P

if TYPE_CHECKING:
    from collections.abc import Callable

_Axes = Literal["pipe", "data", "fsdp", "expert", "context", "tensor"]


@dataclasses.dataclass(frozen=True)
class Part:
    """A checked part of a strategy document. The functions of this module return it.

    Attributes:
        call: the text of the function call that returned it, for `repr`.
        document: the part as in a strategy document.
    """

    call: str
    document: Mapping[str, Any]

    def __repr__(self) -> str:
        return self.call


@dataclasses.dataclass(frozen=True, repr=False)
class Model(Part):
    """The model: `transformer`, `preset` or `parameters` returns it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Training(Part):
    """The training of the model: `training` returns it."""


@dataclasses.dataclass(frozen=True, repr=False)
class Cluster(Part):
    """The devices: `cluster` returns it."""


# A minimal document. Its other parts complete a single part, so that it can be checked.
_REST: Mapping[str, Any] = {
    "meshfeed": 1,
    "model": {
        "transformer": dict.fromkeys(("layers", "hidden", "heads", "ffn", "vocab", "sequence"), 1)
    },
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
    gated: bool | None = None,
    tied: bool | None = None,
    biases: bool | None = None,
    qkv_biases: bool | None = None,
    norm: Literal["rms", "layer"] | None = None,
    positions: Literal["rotary", "learned"] | None = None,
    dropout: bool | None = None,
    causal: bool | None = None,
    experts: Mapping[str, Any] | None = None,
    inputs: Mapping[str, tuple[Any, Sequence[int]]] | None = None,
) -> Model:
    """Describes a decoder-only transformer by its sizes.

    Args:
        layers: the number of layers.
        hidden: the width of the residual stream.
        heads: query heads.
        ffn: the width of the feed-forward block.
        vocab: the number of tokens that the model knows.
        sequence: tokens per example.
        kv_heads: key and value heads; by default `heads`.
        head_dim: the width of a head; by default `hidden / heads`.
        gated: whether the feed-forward block has three matrices, as in SwiGLU. By default two.
        tied: whether the head uses the token embedding; by default not.
        biases: whether matrices have biases; by default not.
        qkv_biases: whether query, key and value have biases; by default as `biases`.
        norm: "rms", the default, or "layer".
        positions: "rotary", the default, or "learned".
        dropout: whether layers have dropout; by default not.
        causal: whether only the attention scores that a causal mask leaves count as operations. By
            default all count, as in published figures.
        experts: of a mixture of experts: "count" and "active", and optionally "every", "ffn",
            "shared" and "capacity".
        inputs: the type and the shape of a row of every array of a batch. By default an array
            "tokens" of type int32.

    Raises:
        InvalidArgumentError: a size is wrong, or does not fit another one.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.transformer(layers=2, hidden=8, heads=2, ffn=32, vocab=100, sequence=16)
        transformer(layers=2, hidden=8, heads=2, ffn=32, vocab=100, sequence=16)
    """
    return _model("transformer", _given(locals(), but=("inputs",)), "transformer", inputs)


def preset(
    name: str, *, inputs: Mapping[str, tuple[Any, Sequence[int]]] | None = None, **overrides: Any
) -> Model:
    """Describes a published transformer.

    Args:
        name: its name, such as "llama3-8b"; `meshfeed advise --list` prints all.
        inputs: as in `transformer`.
        overrides: sizes to change, with the names of the arguments of `transformer`.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.preset("llama3-8b", sequence=4096)
        preset('llama3-8b', sequence=4096)
    """
    return _model("preset", {"name": name, **overrides}, "transformer", inputs)


def parameters(
    count: int,
    *,
    activation_bytes_per_example: int | None = None,
    flops_per_example: int | None = None,
    inputs: Mapping[str, tuple[Any, Sequence[int]]] | None = None,
) -> Model:
    """Describes a model by its number of parameters, for example a convolutional network.

    Args:
        count: the number of parameters.
        activation_bytes_per_example: bytes of activations of one example that the backward pass
            needs. Without it, memory does not include activations.
        flops_per_example: floating-point operations of the forward pass of one example. Without it,
            there are no times.
        inputs: the type and the shape of a row of every array of a batch. Without it, there is no
            layout.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.parameters(25_557_032, flops_per_example=8_200_000_000,
        ...                        inputs={"image": ("uint8", (224, 224, 3))})
        parameters(25557032, flops_per_example=8200000000, inputs=['image'])
    """
    return _model("parameters", _given(locals(), but=("inputs",)), "", inputs)


def training(
    *,
    batch: int | None = None,
    tokens: int | None = None,
    micro_batch: int | Literal["auto"] | None = None,
    optimizer: str | None = None,
    precision: Mapping[str, Any] | None = None,
    recomputation: Literal["auto", "none", "selective", "full"] | None = None,
    attention: Literal["flash", "plain"] | None = None,
    schedule: str | None = None,
    chunks: int | None = None,
    sequence_parallel: bool | None = None,
    overlap: Mapping[_Axes, bool] | None = None,
    efficiency: tuple[float, float] | None = None,
) -> Training:
    """Describes how a model is trained.

    Args:
        batch: examples of the global batch.
        tokens: tokens of the global batch, instead of `batch`.
        micro_batch: examples that a replica computes at once. By default several are tried.
        optimizer: "adamw" by default; "adafactor", "lion", "sgd", "momentum" or "muon".
        precision: the types of "compute", "weights", "gradients" (bfloat16 by default), "master"
            and "moments" (float32). None for "master" means that there is no copy.
        recomputation: what the backward pass computes again. By default all are tried.
        attention: "flash" by default; "plain" keeps the scores.
        schedule: of a pipeline: "1f1b" by default.
        chunks: chunks of layers per stage, with the schedule "interleaved".
        sequence_parallel: whether tensor parallelism also splits norms and dropout; by default yes.
        overlap: by axis, whether its communication runs during computation.
        efficiency: the least and the most share of the peak FLOP/s that matrix products reach, with
            up to three decimals; by default (0.4, 0.75).

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.training(batch=128, optimizer="lion")
        training(batch=128, optimizer='lion')
    """
    given = _given(locals())
    return Training(*_checked("training", given, "training", {"/training": ""}))


def cluster(
    kind: str | None = None,
    *,
    devices: int,
    per_node: int | None = None,
    memory_bytes: int | None = None,
    flops_per_second: int | None = None,
    hbm_bytes_per_second: int | None = None,
    node_bytes_per_second: int | None = None,
    network_bytes_per_second: int | None = None,
    node_latency_ns: int | None = None,
    network_latency_ns: int | None = None,
    topology: str | None = None,
    host_bytes: int | None = None,
) -> Cluster:
    """Describes the devices.

    Args:
        kind: a kind of device, such as "h100-80"; `meshfeed advise --list` prints all. The other
            numbers replace those of the kind. Without a kind, a missing number is unknown, and so
            are the results that need it.
        devices: the number of devices.
        per_node: devices of a node; by default the usual number for the kind.
        memory_bytes: the memory of a device.
        flops_per_second: dense, of a device, in the type of computation.
        hbm_bytes_per_second: between a device and its memory.
        node_bytes_per_second: between devices of a node: one way, per device.
        network_bytes_per_second: between nodes: one way, per device.
        node_latency_ns: of one step of a collective inside a node.
        network_latency_ns: of one step of a collective between nodes.
        topology: "switch", "torus2", "torus3" or "none" inside a node.
        host_bytes: the memory of a host.

    Examples:
        >>> import meshfeed as mf
        >>> mf.strategy.cluster("h100-80", devices=16, per_node=8)
        cluster('h100-80', devices=16, per_node=8)
    """
    given = _given(locals())
    return Cluster(
        *_checked("cluster", given, "cluster", {"/cluster/device": "kind", "/cluster": ""})
    )


def _given(arguments: Mapping[str, Any], but: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the arguments of a call that are not None."""
    return {key: value for key, value in arguments.items() if value is not None and key not in but}


def _model(call: str, given: dict[str, Any], form: str, inputs: Any) -> Model:
    """Checks the part "model"."""
    arguments = dict(given)
    if inputs is not None:
        arguments["inputs"] = inputs
    names = {"/model/inputs": "inputs", "/model/preset": "name", "/model/parameters": "count"}
    names |= {f"/model/{form}" if form else "/model": "", "/model": ""}
    return Model(*_checked(call, arguments, "model", names))


def _checked(
    call: str, given: Mapping[str, Any], part: str, names: Mapping[str, str]
) -> tuple[str, dict[str, Any]]:
    """Returns the text of a call, and the part of a document that it describes.

    Args:
        call: the function.
        given: its arguments.
        part: the part of the document.
        names: the argument that a JSON Pointer stands for.
    """
    with Checks(f"mf.strategy.{call}") as check:
        document = _PARTS[call](check, plain(check, given))
        question = json.dumps({**_REST, part: document})
        try:
            calls.advise(question, "document")
        except InvalidArgumentError as error:
            raise translated(error, names, given) from None
        shown = plain(check, {**given, "inputs": list(given.get("inputs", ()))})
    first = {"preset": "name", "parameters": "count", "cluster": "kind"}.get(call)
    text = [
        repr(value) if key == first else f"{key}={value!r}"
        for key, value in shown.items()
        if key in given
    ]
    return f"{call}({', '.join(text)})", document


def _transformer_part(check: Checks, given: dict[str, Any]) -> dict[str, Any]:
    inputs = _inputs(check, given)
    return {"transformer": given, **inputs}


def _preset_part(check: Checks, given: dict[str, Any]) -> dict[str, Any]:
    inputs = _inputs(check, given)
    name = given.pop("name")
    return {"preset": name, **({"transformer": given} if given else {}), **inputs}


def _parameters_part(check: Checks, given: dict[str, Any]) -> dict[str, Any]:
    inputs = _inputs(check, given)
    return {"parameters": given.pop("count"), **given, **inputs}


def _cluster_part(_: Checks, given: dict[str, Any]) -> dict[str, Any]:
    return {("device" if key == "kind" else key): value for key, value in given.items()}


def _inputs(check: Checks, given: dict[str, Any]) -> dict[str, Any]:
    """Takes the arrays of a batch out of the arguments."""
    if "inputs" not in given:
        return {}
    fields = check.fields(given.pop("inputs"), "inputs")
    return {"inputs": {k: {"shape": ["B", *row], "dtype": t} for k, (t, row) in fields.items()}}


_PARTS: Mapping[str, Callable[[Checks, dict[str, Any]], dict[str, Any]]] = {
    "transformer": _transformer_part,
    "preset": _preset_part,
    "parameters": _parameters_part,
    "training": lambda _, given: given,
    "cluster": _cluster_part,
}


@dataclasses.dataclass(frozen=True, repr=False)
class Candidate:
    """One way of splitting a model.

    Attributes:
        mesh: the size of every axis, outermost first; empty for one device.
        zero: the stage of ZeRO over the replicas of the weights, 0 to 2. The axis "fsdp" is
            stage 3.
        recomputation: "none", "selective" or "full".
        micro_batch: examples that a replica computes at once.
        micro_batches: how many of them a step has.
        schedule: of the pipeline; None without one.
        chunks: the number of chunks of layers per pipeline stage.
        memory: bytes of a device by part: "weights", "gradients", "optimizer", "activations" with
            "activations_low" and "activations_high", "buffers", "total", "capacity" and "free".
        time: nanoseconds of a step: "step" with "low" and "high", its parts, the largest part
            "bound", the second largest part "next", and their difference "behind". None if it is
            not known.
        tokens_per_second: None if it is not known.
        examples_per_second: None if it is not known.
        mfu: operations of the model per second over the peak. None if it is not known.
        fits: whether it fits into the memory of a device, with the margin.
        reasons: why it has its rank.
        layout: the layout for `mf.Loader(dataset, mesh, layout=…)`. None for all candidates but
            the best.
    """

    mesh: Mapping[str, int]
    zero: int
    recomputation: str
    micro_batch: int
    micro_batches: int
    schedule: str | None
    chunks: int
    memory: Mapping[str, Any]
    time: Mapping[str, Any] | None
    tokens_per_second: int | None
    examples_per_second: float | None
    mfu: float | None
    fits: bool
    reasons: Sequence[str]
    layout: Layout | None

    @property
    def specs(self) -> dict[str, P] | None:
        """The specs of the arrays of a batch, for `mf.Loader(dataset, mesh, specs, …)`."""
        if self.layout is None:
            return None
        arrays = json.loads(self.layout.to_json())["arrays"]
        return {name: P(*array.get("spec", ())) for name, array in arrays.items()}

    def __repr__(self) -> str:
        axes = ", ".join(f"{name} {size}" for name, size in self.mesh.items()) or "one device"
        step = "" if self.time is None else f", {self.time['step'] / 1e9:.3g} s per step"
        batches = f"{self.micro_batches} micro-batches of {self.micro_batch}"
        return f"Candidate({axes}, recomputation={self.recomputation!r}, {batches}{step})"


class Advice:
    """The report of the planner. `mf.advise` returns it.

    Printing it shows a table; so does a notebook.

    Attributes:
        report: the whole report, as `meshfeed advise --json` prints it.
        candidates: the candidates, the best one first.
        best: the fastest candidate that fits; None if none does.
        problems: faults of the document, and numbers that are unknown in the report.
    """

    def __init__(self, document: str | bytes) -> None:
        with Checks("mf.strategy.Advice") as check:
            if not isinstance(document, str | bytes):
                raise check.wrong("document", document, "the text of a strategy document")
            self._text = calls.advise(document, "document")
            self.report: dict[str, Any] = json.loads(calls.advise(self._text, "json"))
        layout = self.report["layout"]
        self.candidates: Sequence[Candidate] = [
            _candidate(found, layout if i == self.report["best"] else None)
            for i, found in enumerate(self.report["candidates"])
        ]
        best = self.report["best"]
        self.best: Candidate | None = None if best is None else self.candidates[best]
        self.problems = [Problem(**problem, facts={}) for problem in self.report["problems"]]

    @property
    def fits(self) -> bool:
        """Whether a candidate fits."""
        return self.best is not None

    @property
    def layout(self) -> Layout | None:
        """The layout of the best candidate's batch; None without one."""
        return None if self.best is None else self.best.layout

    def table(self) -> str:
        """Returns the report as text of at most 100 columns."""
        return calls.advise(self._text, "text")

    def to_json(self) -> str:
        """Returns the strategy document, which `meshfeed advise` also reads."""
        return self._text

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Advice(best={self.best!r}, candidates={len(self.candidates)})"

    def _repr_html_(self) -> str:
        return calls.advise(self._text, "html")


def _candidate(found: Mapping[str, Any], layout: Any) -> Candidate:
    values = {**found, "mesh": dict(found["mesh"])}
    for name in ("examples_per_second", "mfu"):
        if values[name] is not None:
            values[name] /= 1000
    return Candidate(layout=None if layout is None else Layout(json.dumps(layout)), **values)


def advise(
    model: Model | str | Mapping[str, Any],
    training: Training | Mapping[str, Any],
    cluster: Cluster | Mapping[str, Any],
    search: Mapping[str, Any] | None = None,
    input: float | Mapping[str, Any] | None = None,  # noqa: A002
) -> Advice:
    """Plans how to split a model over devices: memory, time, and what the input needs.

    It needs neither devices nor data, and takes milliseconds.

    Args:
        model: the result of `mf.strategy.transformer`, `preset` or `parameters`, the name of a
            preset, or the part "model" of a strategy document.
        training: the result of `mf.strategy.training`, or the part "training" of a document.
        cluster: the result of `mf.strategy.cluster`, or the part "cluster" of a document.
        search: which candidates to try: "axes" with the sizes that an axis may have, "zero" with
            stages, the "margin" of memory that stays free, how many candidates to "keep", and
            whether to list the meshes that were "pruned".
        input: how fast the data arrive, to see whether they keep up: rows per second of all
            processes, or what one process measured: `loader.stats()` after a loop that only takes
            batches, or the JSON of `meshfeed bench --json`.

    Raises:
        InvalidArgumentError: a part is wrong, or does not fit another one.

    Examples:
        >>> import meshfeed as mf
        >>> advice = mf.advise(
        ...     model=mf.strategy.preset("gpt2-xl"),
        ...     training=mf.strategy.training(batch=64),
        ...     cluster=mf.strategy.cluster("a100-40", devices=8),
        ...     search={"axes": {"tensor": 1, "pipe": 1}}, input=500)
        >>> advice.best.mesh, advice.report["input"]["keeps_up"]
        ({'data': 8}, True)
    """
    with Checks("mf.advise") as check:
        if isinstance(model, str):
            model = {"preset": model}
        question: dict[str, Any] = {"meshfeed": 1}
        for name, part, kind in (
            ("model", model, Model),
            ("training", training, Training),
            ("cluster", cluster, Cluster),
        ):
            if isinstance(part, kind):
                question[name] = part.document
            elif isinstance(part, Mapping):
                question[name] = plain(check, part)
            else:
                expected = f"a {kind.__name__} of mf.strategy, or a part of a strategy document"
                raise check.wrong(name, part, expected)
        if search is not None:
            if not isinstance(search, Mapping):
                raise check.wrong("search", search, "a dict")
            question["search"] = plain(check, search)
        try:
            if input is not None:
                report = json.loads(calls.advise(json.dumps(question), "json"))
                question["input"] = delivered(check, input, report["input"])
            return Advice(json.dumps(question))
        except InvalidArgumentError as error:
            raise translated(error, {"": ""}, question) from None
