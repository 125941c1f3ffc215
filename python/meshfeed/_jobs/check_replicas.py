"""A check that all copies of arrays are equal: weights, optimizer states, batches."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from typing import Any, Literal

from meshfeed._io.arguments import Checks
from meshfeed._jobs.comparison import Comparison, compare_inside, next_call
from meshfeed._jobs.coordinator import Coordinator, jax_coordinator
from meshfeed._jobs.options import check_coordinator, check_name

WAIT = 60.0  # seconds to wait for the other processes by default


@dataclasses.dataclass(frozen=True)
class ReplicaCheck:
    """What `mf.check_replicas` has compared, and found equal.

    Attributes:
        name: the name of the check.
        arrays: the number of arrays.
        blocks: of how many parts of arrays this process compared its copies.
        bytes: how many bytes of this process were compared.
        processes: the processes that compared their copies. It is this process alone if it holds no
            part of the arrays that several processes hold.
        single: the names of arrays of which these processes hold at most one copy of each part, so
            nothing is compared.
    """

    name: str
    arrays: int
    blocks: int
    bytes: int
    processes: Sequence[int]
    single: Sequence[str]

    def __str__(self) -> str:
        if len(self.single) == self.arrays:
            return f"{self.name}: none of {self.arrays} arrays has replicas that are compared here"
        processes = "1 process" if len(self.processes) == 1 else f"{len(self.processes)} processes"
        text = f"{self.name}: {self.arrays - len(self.single)} of {self.arrays} arrays have "
        text += f"replicas, all equal on {processes}; this one compared {self.bytes:,} bytes "
        return f"{text}in {self.blocks} block{'s' * (self.blocks != 1)}"


def check_replicas(
    tree: Any,
    *,
    name: str = "arrays",
    step: int | None = None,
    coordinator: Coordinator | Literal[False] | None = None,
    timeout: float = WAIT,
) -> ReplicaCheck:
    """Checks that all copies of every array are equal, inside this process and across processes.

    JAX does not compare replicas. If two differ, the program computes wrong results without an
    error. Every process hashes the parts that its devices hold, and compares the hashes with the
    others through the key-value store of the job: no array is sent, and no collective operation is
    used. A part that only one device holds has no copy to compare with.

    Bytes are compared, not numbers: -0.0 and 0.0 differ, and NaNs are equal if their bits are. An
    array in host memory, such as one of NumPy, or on devices of one process alone, must be equal in
    all processes.

    In a job, every process that holds a part calls this function. Its n-th call with a name is
    matched with the n-th call of the other processes with that name. In a loop, pass `step`: if a
    process leaves out a call, the error names that process and the step. Without it, arrays of two
    steps are compared, and they differ.

    Args:
        tree: the arrays: weights, the states of an optimizer, a restored checkpoint, a batch.
        name: the name of the check in keys between processes, and in errors.
        step: the number of the training step, which must be equal in all processes.
        coordinator: as in `Loader`. False compares the copies of this process alone.
        timeout: seconds to wait for the computation of the arrays, and then for the other
            processes. It includes their hashing.

    Raises:
        DataLossError: copies differ. The text names the array, the part of it, and the processes
            and devices with another content than most copies.
        IncompatibleError: the processes have different trees: paths, shapes, types or shardings. Or
            they make different calls: a process left one out.
        PeerError: a process has not called in time, or its arrays cannot be read.
        InvalidStateError: an array was deleted or donated.
        InvalidArgumentError: a leaf of the tree has no data, or is on devices of one other process.
        UnsupportedError: the processes cannot communicate.

    Examples:
        >>> import jax, jax.numpy as jnp, meshfeed as mf
        >>> from jax.sharding import NamedSharding, PartitionSpec as P
        >>> mesh = mf.make_mesh({"data": -1})
        >>> weights = jax.device_put({"w": jnp.ones((8, 8))}, NamedSharding(mesh, P()))
        >>> mf.check_replicas(weights, name="weights").arrays
        1
    """
    with Checks("mf.check_replicas") as check:
        from meshfeed._jax.replicas import Tree

        check_name(check, name)
        arrays = Tree(check, tree, alone=coordinator is False)
        number, seconds = None, WAIT
        try:
            check_coordinator(check, coordinator)
            number = check.optional("step", step, 0, 2**63 - 1)
            seconds = check.seconds("timeout", timeout)
        except Exception as e:  # the call counts, and the other processes get the error
            arrays.unfit = e
        if arrays.processes == [arrays.me]:
            blocks = compare_inside(arrays)
        else:
            store = coordinator if isinstance(coordinator, Coordinator) else jax_coordinator()
            keys = next_call(store, name, arrays.me, arrays.processes)
            caller = sys._getframe(1)
            line = f"{os.path.basename(caller.f_code.co_filename)}:{caller.f_lineno}"
            blocks = Comparison(keys, arrays, seconds, step=number, line=line).run()
        return ReplicaCheck(
            name=name,
            arrays=len(arrays.names),
            blocks=len(blocks),
            bytes=sum(block.size * len(block.digests) for block in blocks),
            processes=arrays.processes,
            single=[n for i, n in enumerate(arrays.names) if arrays.is_single(i)],
        )
