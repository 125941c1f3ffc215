"""The advice of the strategy planner: how to split a model, what it costs, what the input needs."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeGuard, get_args

from meshfeed._io.arguments import Checks, getattr_or_none
from meshfeed._io.notebook import Preformatted
from meshfeed._layout.layout import Layout, Problem
from meshfeed._layout.specs import P
from meshfeed._native import reports
from meshfeed._plan.questions import input_part, json_values, naming_arguments
from meshfeed.strategy import Axis, Cluster, Model, Training

if TYPE_CHECKING:
    from jax.sharding import AxisType, Mesh

    from meshfeed._types import Device


@dataclasses.dataclass(frozen=True, repr=False)
class Candidate:
    """One way of splitting a model.

    Attributes:
        mesh: the size of every axis, outermost first; empty for one device.
        zero: the stage of ZeRO over the replicas of the weights, 0 to 2. The axis "fsdp" is
            stage 3.
        recomputation: "none", "dots", "selective" or "full".
        micro_batch: examples that a replica computes at once.
        micro_batches: the number of micro-batches in a step.
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
        days: of the whole training; None unless the training has `total_tokens`.
        device_hours: of the whole training; None unless the training has `total_tokens`.
        fits: whether it fits into the memory of a device, with the margin.
        reasons: why it has its rank.
        layout: the layout for `mf.Loader(dataset, mesh, layout=…)`. Only the best candidate has
            one; it is None for the others.
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
    days: float | None
    device_hours: float | None
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

    def make_mesh(
        self,
        axes: Sequence[str] = (),
        *,
        devices: Sequence[Device] | None = None,
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
    ) -> Mesh:
        """Makes the JAX mesh of the candidate, with `jax.make_mesh`.

        Args:
            axes: axes that specs of the model name, such as ``("fsdp", "tensor")``. The mesh also
                has the ones that the candidate lacks, with size 1.
            devices: the devices of the mesh; by default `jax.devices()`.
            axis_types: the type of every axis, or one type for all; by default Auto, as in
                `mf.make_mesh`.

        Raises:
            InvalidArgumentError: there are too few devices, they cannot form the mesh, or an axis
                is not one of the planner.
            UnsupportedError: JAX is not installed.

        Examples:
            >>> import meshfeed as mf
            >>> advice = mf.advise("gpt2", {"batch": 8}, {"device": "h100-80", "devices": 1})
            >>> dict(advice.best.make_mesh().shape)
            {'data': 1}
            >>> dict(advice.best.make_mesh(("fsdp", "tensor")).shape)
            {'data': 1, 'fsdp': 1, 'tensor': 1}
        """
        with Checks("Candidate.make_mesh") as check:
            from meshfeed._jax import meshes

            if not isinstance(axes, list | tuple):
                raise check.wrong("axes", axes, 'names of axes, such as ("data", "fsdp")')
            known = get_args(Axis)
            for i, name in enumerate(axes):
                check.choice(f"axes[{i}]", name, *known)
            split = self.mesh or {"data": 1}
            sizes = {name: split.get(name, 1) for name in known if name in split or name in axes}
            return meshes.make_mesh(check, sizes, devices, axis_types)

    def __repr__(self) -> str:
        axes = shown_axes(self.mesh)
        step = "" if self.time is None else f", {self.time['step'] / 1e9:.3g} s per step"
        plural = "" if self.micro_batches == 1 else "es"
        batches = f"{self.micro_batches} micro-batch{plural} of {self.micro_batch}"
        return f"Candidate({axes}, recomputation={self.recomputation!r}, {batches}{step})"


def shown_axes(mesh: Mapping[str, int]) -> str:
    """Returns the axes and sizes of a mesh as a text, as in the table of a report."""
    return ", ".join(f"{name} {size}" for name, size in mesh.items()) or "one device"


class Advice(Preformatted):
    """The report of the planner. `mf.advise` returns it.

    Printing it shows a table; so does a notebook.

    Args:
        document: the text of a strategy document, such as `to_json` returns.

    Attributes:
        report: the whole report, a dict, as `meshfeed advise --json` prints it. `meshfeed schema
            report` prints what each key means, with its unit.
        candidates: the candidates, the best one first.
        best: the fastest candidate that fits; None if none does.
        problems: faults of the document, and numbers that are unknown in the report.

    Raises:
        InvalidArgumentError: it is not a strategy document; the message says where.

    Examples:
        >>> import meshfeed as mf
        >>> advice = mf.advise("llama3-8b", {"batch": 128}, {"device": "h100-80", "devices": 8})
        >>> advice.fits, advice.best.mesh, advice.best.memory["free"] > 0
        (True, {'data': 8}, True)
        >>> mf.Advice(advice.to_json()).report == advice.report
        True
    """

    def __init__(self, document: str | bytes) -> None:
        with Checks("mf.Advice") as check:
            if not isinstance(document, str | bytes):
                hint = "json.dumps(document) writes it" if isinstance(document, Mapping) else ""
                raise check.wrong("document", document, "the text of a strategy document", hint)
            self._text = reports.advise(document, "document")
            self.report: dict[str, Any] = json.loads(reports.advise(self._text, "json"))
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
        return reports.advise(self._text, "text")

    def to_json(self) -> str:
        """Returns the strategy document, which `meshfeed advise` also reads."""
        return self._text

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Advice(best={self.best!r}, candidates={len(self.candidates)})"


def _candidate(found: Mapping[str, Any], layout: Any) -> Candidate:
    """Returns a candidate of the report."""
    values = {**found, "mesh": dict(found["mesh"])}
    return Candidate(layout=None if layout is None else Layout(json.dumps(layout)), **values)


_HINTS = {
    "model": "make it with mf.strategy.transformer(…), or of your parameters with "
    'mf.strategy.tree(params), or name a preset, such as "llama3-8b"',
    "training": "make it with mf.strategy.training(batch=128)",
    "cluster": 'make it with mf.strategy.cluster("h100-80", devices=8), or of jax.devices()',
}


def _is_part(part: Any) -> TypeGuard[Mapping[str, Any]]:
    """Returns whether it is a dict, and no tree of arrays, such as the parameters of a model."""
    if not isinstance(part, Mapping):
        return False
    nodes = [part, *(value for value in part.values() if isinstance(value, Mapping))]
    shapes = [getattr_or_none(leaf, "shape") for node in nodes for leaf in node.values()]
    return not any(isinstance(shape, tuple) and len(shape) > 0 for shape in shapes)


_Arguments = ParamSpec("_Arguments")


def _explained(function: Callable[_Arguments, Advice]) -> Callable[_Arguments, Advice]:
    """Adds to the error of a missing argument how to make it."""

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Advice:
        for name in list(_HINTS)[len(args) :]:
            if name not in kwargs:
                raise Checks("mf.advise").misfit(f"the argument {name}= is missing", _HINTS[name])
        return function(*args, **kwargs)

    return call


@_explained
def advise(
    model: Model | str | Mapping[str, Any],
    training: Training | Mapping[str, Any],
    cluster: Cluster | Mapping[str, Any],
    search: Mapping[str, Any] | None = None,
    input: float | Mapping[str, Any] | None = None,  # noqa: A002
) -> Advice:
    """Plans how to split a model over devices: memory, time, and what the input needs.

    It needs neither devices nor data, and takes milliseconds. It tries meshes of these axes, the
    outermost first:

    - "pipe" splits the layers, as a pipeline.
    - "data" splits the rows of a batch, and every device has all weights.
    - "fsdp" splits the rows of a batch, and also weights, gradients and optimizer, as ZeRO 3.
    - "expert" splits the rows of a batch, and also the experts of a layer.
    - "context" splits the sequence.
    - "tensor" splits heads, feed-forward blocks and the vocabulary.

    Args:
        model: the result of `mf.strategy.transformer`, `preset`, `tree` or `parameters`, the name
            of a preset, or the part "model" of a strategy document.
        training: the result of `mf.strategy.training`, or the part "training" of a document.
        cluster: the result of `mf.strategy.cluster`, or the part "cluster" of a document.
        search: which candidates to try, a dict:

            - "axes": the sizes that axes may have, such as ``{"tensor": [1, 8], "pipe": 1}``
            - "zero": the stages of ZeRO over the replicas of the weights, such as ``[0, 1]``
            - "margin": the share of memory that stays free, 0.1 by default
            - "keep": how many candidates to list, 20 by default
            - "pruned": True, to list the meshes that were not computed
        input: how fast batches load, to see whether this is fast enough for the best candidate:
            rows per second of all processes, or what one process measured. That is
            `loader.stats()` after a loop that only takes batches, or the JSON of
            `meshfeed bench --json`.

    Returns:
        The advice. Its `best` candidate has memory, time, a mesh, and the layout for a loader.

    Raises:
        InvalidArgumentError: a part is missing or wrong, or does not fit another one.

    Examples:
        >>> import meshfeed as mf
        >>> advice = mf.advise(
        ...     model=mf.strategy.preset("gpt2-xl"),
        ...     training=mf.strategy.training(batch=64),
        ...     cluster=mf.strategy.cluster("a100-40", devices=8),
        ...     search={"axes": {"tensor": 1, "pipe": 1}}, input=500)
        >>> advice.best.mesh, advice.report["input"]["keeps_up"]
        ({'data': 8}, True)

        The best candidate has the mesh and the layout for a loader:

        >>> import numpy as np
        >>> shape = dict(layers=2, hidden=64, heads=4, ffn=256, vocab=100, sequence=16)
        >>> advice = mf.advise(
        ...     mf.strategy.transformer(**shape), mf.strategy.training(batch=8),
        ...     mf.strategy.cluster("h100-80", devices=1))
        >>> ds = mf.from_arrays({"tokens": np.zeros((64, 16), np.int32)})
        >>> loader = mf.Loader(ds, advice.best.make_mesh(), layout=advice.layout)
        >>> next(iter(loader))["tokens"].shape
        (8, 16)
    """
    with Checks("mf.advise") as check:
        parts = {
            "model": ({"preset": model} if isinstance(model, str) else model, Model),
            "training": (training, Training),
            "cluster": (cluster, Cluster),
        }
        question: dict[str, Any] = {"meshfeed": 1}
        for name, (part, kind) in parts.items():
            if isinstance(part, kind):
                question[name] = part.document
            elif _is_part(part):
                question[name] = json_values(check, part)
            else:
                expected = f"a {kind.__name__} of mf.strategy, or a part of a strategy document"
                raise check.wrong(name, part, expected, _HINTS[name])
        if search is not None:
            if not isinstance(search, Mapping):
                hint = 'such as {"axes": {"tensor": 1}}'
                raise check.wrong("search", search, "a dict", hint)
            question["search"] = json_values(check, search)
        if isinstance(cluster, Cluster) and cluster.processes:
            question["input"] = {"processes": cluster.processes}
        names, given = {"": ""}, question
        if isinstance(model, str):
            names, given = names | {"/model/preset": "model"}, question | {"model": model}
        with naming_arguments(names, given):
            if input is not None:
                report = json.loads(reports.advise(json.dumps(question), "json"))
                rate = input_part(check, input, report["input"])
                question["input"] = question.get("input", {}) | rate
            return Advice(json.dumps(question))
