"""Memory: how many bytes of a device the arrays of a model take."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from meshfeed._io.arguments import WIDE, Checks, getattr_or_none
from meshfeed._io.notebook import Preformatted
from meshfeed._layout.layout import Problem
from meshfeed._native import reports
from meshfeed._plan.questions import naming_arguments
from meshfeed.errors import InvalidArgumentError

if TYPE_CHECKING:
    from jax.sharding import AbstractMesh, Mesh

    from meshfeed._jax.traced import Traced


@dataclasses.dataclass(frozen=True)
class ArrayMemory:
    """The memory of one array on a device.

    Attributes:
        shape: the shape of the whole array.
        dtype: its type in JAX.
        spec: the entries of its partition spec; None if only `shard_shape` is known.
        memory_kind: "device", or in the memory of the host "pinned_host" or "unpinned_host".
        shard_shape: the shape of the part that a device has; None if the spec does not fit.
        bytes: the size of this part.
        gradient_bytes: for a parameter that is trained, the size of the gradient of this part.
        optimizer_bytes: for a parameter, the size of its states if the optimizer was given by
            name.
        global_bytes: the size of the whole array.
        copies: how many devices have the same part.
        replicated: the axes with several devices that have the same part.
    """

    shape: Sequence[int]
    dtype: str
    spec: Sequence[Any] | None
    memory_kind: str
    shard_shape: Sequence[int] | None
    bytes: int | None
    gradient_bytes: int | None
    optimizer_bytes: int | None
    global_bytes: int | None
    copies: int | None
    replicated: Sequence[str]


class Memory(Preformatted):
    """The memory of the arrays of a model on every device. `mf.memory` returns it.

    Printing it shows a table; so does a notebook.

    Attributes:
        arrays: the parameters by name.
        optimizer: the states of the optimizer by name.
        batch: the arrays of the batch by name.
        totals: sums of bytes per device by name: "parameter_bytes", "optimizer_bytes",
            "batch_bytes", "stored_bytes" for the three together, "gradient_bytes", "host_bytes",
            and the intervals "activation_bytes" and "peak_bytes" as [low, high]. A number that is
            not known is None.
        axes: the size of every axis of the mesh.
        devices: the number of devices.
        fits: whether a step fits into `capacity`; None if that depends on the compiler.
        problems: errors, and arrays that are probably replicated by mistake.
    """

    def __init__(self, document: str) -> None:
        self._document = document
        self.axes: Mapping[str, int] = dict(json.loads(document)["mesh"]["axes"])
        report = reports.memory_report(document)
        groups = (report[key] for key in ("arrays", "optimizer", "batch"))
        self.arrays, self.optimizer, self.batch = (
            {name: ArrayMemory(**row) for name, row in group.items()} for group in groups
        )
        self.totals: Mapping[str, Any] = report["totals"]
        self.devices: int = report["devices"]
        self.fits: bool | None = report["fits"]
        self.problems = [Problem(**problem) for problem in report["problems"]]

    @property
    def stored(self) -> int | None:
        """The exact bytes per device of parameters, optimizer and batch. None after an error."""
        stored: int | None = self.totals["stored_bytes"]
        return stored

    @property
    def peak(self) -> tuple[int, int] | None:
        """The least and the most bytes of a device in a step; None without `loss`."""
        peak = self.totals["peak_bytes"]
        return None if peak is None else (peak[0], peak[1])

    def table(self) -> str:
        """Returns a table of at most 100 columns."""
        return reports.memory_text(self._document)

    def to_json(self) -> str:
        """Returns the document, which `meshfeed memory` and C's `mf_memory` also read.

        `meshfeed schema memory` prints its JSON Schema, which is also the file memory.schema.json
        of this package.
        """
        return self._document

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Memory(arrays={len(self.arrays)}, devices={self.devices}, stored={self.stored})"


def memory(
    tree: Any,
    shardings: Any = None,
    *,
    optimizer: Any = None,
    batch: Any = None,
    loss: Callable[..., Any] | None = None,
    mesh: Mapping[str, int] | Mesh | AbstractMesh | None = None,
    precision: Mapping[str, Any] | None = None,
    capacity: int | None = None,
) -> Memory:
    """Computes the memory of the arrays of a model on every device, without allocating any.

    The bytes that are stored are exact: they are the bytes of the arguments of a compiled step. A
    TPU also pads the last two dimensions of an array to its tiles, which is not counted.
    Activations are an interval, because the compiler chooses what it keeps:

    - The low end has the results of matrix products that the backward pass needs, spread over all
      devices. The compiler can compute everything else again.
    - The high end has all arrays that exist at the same time if the operations run in the order of
      the program, each with memory of its own. A device has its rows of the batch, and everything
      else as a whole. If devices share the batch, there are also the gradients before they are
      summed, and copies of the parameters and gradients that are partitioned over the same axes.

    The high end is an estimate: a compiler may still reorder operations, change layouts and widen
    types. On Auto axes, it may also split activations otherwise than the batch, which takes more
    memory, unless the function uses `jax.lax.with_sharding_constraint`.

    Args:
        tree: the parameters: a pytree of `jax.ShapeDtypeStruct`s, `jax.Array`s or NumPy arrays. An
            array without a sharding is counted as a whole on every device, and a NumPy array with
            JAX's type: without x64, float64 takes 4 bytes.
        shardings: a sharding or a spec for every array, for parts of the tree, or for all of it.
            By default the arrays' own shardings.
        optimizer: the name of an optimizer ("adamw", "adafactor", "lion", "sgd", "momentum" or
            "muon"), an object with a method `init` such as `optax.adamw(1e-3)`, or the tree of its
            states. States that are not given have the type and the sharding of their parameter.
        batch: the arrays of a batch with their shardings, such as `loader.element_spec`.
        loss: the function to train, called as ``loss(tree, batch)``, or as ``loss(tree)`` without
            a batch. It returns a scalar, or a tuple that begins with one. It is traced, and the
            activations of a training step become an interval.
        mesh: the mesh of bare specs, or its axes and sizes, such as ``{"data": 4, "model": 2}``. By
            default the mesh of the shardings or of `jax.set_mesh`.
        precision: the types of "gradients", of "moments", and of a "master" copy of the
            parameters. By default gradients and moments have the type of their parameter, and there
            is no copy.
        capacity: the memory of a device in bytes, to check whether the step fits.

    Raises:
        InvalidArgumentError: a leaf is not an array, the trees differ, or arrays are on different
            devices. A spec that does not divide its array is a problem of the result instead.

    Examples:
        >>> import jax, jax.numpy as jnp, meshfeed as mf
        >>> from jax.sharding import PartitionSpec as P
        >>> params = {"w": jax.ShapeDtypeStruct((8192, 8192), jnp.float32)}
        >>> used = mf.memory(params, P("fsdp"), mesh={"fsdp": 64}, optimizer="adamw")
        >>> used.arrays["w"].shard_shape, used.arrays["w"].bytes
        ([128, 8192], 4194304)
        >>> used.stored
        12582916
    """
    from meshfeed._jax import documents, traced, trees

    with Checks("mf.memory") as check:
        if loss is not None and not callable(loss):
            raise check.wrong("loss", loss, "a function of the tree and the batch")
        groups = {"arrays": trees.leaves(check, "tree", tree, shardings)}
        init = getattr_or_none(optimizer, "init")
        if callable(init):
            states = documents.optimizer_states(check, init, tree, groups["arrays"])
            groups["optimizer"] = states
        elif optimizer is not None and not isinstance(optimizer, str):
            groups["optimizer"] = trees.leaves(check, "optimizer", optimizer)
        if batch is not None:
            groups["batch"] = trees.leaves(check, "batch", batch)
        document = documents.memory_document(check, mesh, groups)
        if isinstance(optimizer, str):
            document["optimizer"] = optimizer
        if precision is not None:
            document["precision"] = documents.precision(check, precision)
        if capacity is not None:
            document["capacity_bytes"] = check.integer("capacity", capacity, 1, WIDE)
        given = {"optimizer": optimizer, "precision": precision}
        with naming_arguments({"": "", "/arrays": "tree"}, given):
            found = Memory(json.dumps(document))
        if loss is None or found.stored is None:
            return found
        document["activation_bytes"] = _activations(found, traced.Traced(check, loss, tree, batch))
        return Memory(json.dumps(document))


def _activations(known: Memory, traced: Traced) -> list[int]:
    """Returns the interval of the activations; see `memory`.

    Args:
        known: the memory of the parameters and the batch.
        traced: traces the function for any shapes of the batch.
    """
    whole = [row.shape for row in known.batch.values()]
    local, split = [], 1
    for row in known.batch.values():
        rows = row.shard_shape[:1] if row.shard_shape is not None else row.shape[:1]
        local.append([*rows, *row.shape[1:]])
        if rows and rows[0]:
            split = max(split, row.shape[0] // rows[0])
    low = traced.products(whole)
    try:
        high = traced.peak(local)
    except InvalidArgumentError:  # the function needs the whole batch
        high = traced.peak(whole)
    axes = {axis for row in known.batch.values() for axis in _axes(row)}
    for row in known.arrays.values() if split > 1 else ():
        gathered = math.prod(known.axes[axis] for axis in axes & set(_axes(row)))
        assert row.bytes is not None
        unsummed = row.bytes  # the gradient before it is summed over devices
        copies = 2 * (gathered - 1) * row.bytes  # gathered parts of parameter and gradient
        high += unsummed + copies
    low = -(-low // known.devices)
    return [min(low, high), high]


def _axes(row: ArrayMemory) -> list[str]:
    """Returns the axes that partition an array."""
    return [
        axis
        for entry in row.spec or ()
        for axis in ([entry] if isinstance(entry, str) else entry or ())
    ]
