"""Bytes of the arrays inside a function and its backward pass, from the program that JAX traces."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import jax
from jax.tree_util import tree_leaves

from meshfeed._io.arguments import Checks, cut, repr_short
from meshfeed._jax.trees import leaves
from meshfeed.errors import Error


class Traced:
    """Counts the bytes of arrays inside a function and its backward pass.

    Args:
        check: raises errors with the name of the user's call.
        loss: the function of a tree and a batch.
        tree: the tree.
        batch: the batch; None if the function takes none.
    """

    def __init__(self, check: Checks, loss: Callable[..., Any], tree: Any, batch: Any) -> None:
        self._check, self._loss = check, loss
        self._tree, self._parameters = self._flat("tree", tree)
        self._batch, self._inputs = self._flat("batch", () if batch is None else batch)
        self._has_batch = batch is not None

    def _flat(self, argument: str, tree: Any) -> tuple[Any, list[jax.ShapeDtypeStruct]]:
        found = [leaf.struct() for leaf in leaves(self._check, argument, tree)]
        return jax.tree_util.tree_structure(tree), found

    def _scalar(self, tree: Any, batch: Any) -> Any:
        """Calls the function, and returns the scalar."""
        out = self._loss(tree, batch) if self._has_batch else self._loss(tree)
        out = out[0] if isinstance(out, tuple) and out else out
        if getattr(out, "shape", None) != ():
            shape = getattr(out, "shape", None)
            message = f"loss returned {repr_short(out) if shape is None else f'shape {shape}'}"
            raise self._check.misfit(message, "return a scalar, or a tuple that begins with one")
        return out

    def _program(self, function: Callable[..., Any], shapes: Sequence[Sequence[int]]) -> Any:
        """Traces a function of the tree and of a batch with these shapes."""
        inputs = [
            jax.ShapeDtypeStruct(tuple(shape), old.dtype)
            for shape, old in zip(shapes, self._inputs, strict=True)
        ]
        tree, batch = self._tree.unflatten(self._parameters), self._batch.unflatten(inputs)
        try:
            return jax.make_jaxpr(function)(tree, batch).jaxpr
        except Error:
            raise
        except Exception as e:
            message = f"loss failed for these shapes: {type(e).__name__}: {cut(str(e), 300)}"
            raise self._check.misfit(
                message, "it is called as loss(tree), or as loss(tree, batch)"
            ) from e

    def residuals(self, shapes: Sequence[Sequence[int]], policy: Any = None) -> int:
        """Returns the bytes that the forward pass stores for the backward pass.

        Args:
            shapes: of the batch.
            policy: a policy of `jax.checkpoint`, with which the forward pass stores less.
        """

        def forward(tree: Any, batch: Any) -> Any:
            scalar: Callable[..., Any] = partial(self._scalar, batch=batch)
            if policy is not None:
                scalar = jax.checkpoint(scalar, policy=policy)
            return tree_leaves(jax.vjp(scalar, tree)[1])

        program = self._program(forward, shapes)
        return sum(map(_bytes, _made(program.outvars, program)))

    def products(self, shapes: Sequence[Sequence[int]]) -> int:
        """Returns the bytes of matrix products among the residuals.

        A function that uses `jax.checkpoint` itself may keep fewer residuals than all products. The
        result then counts its residuals.

        Args:
            shapes: of the batch.
        """
        policy = jax.checkpoint_policies.dots_saveable
        return min(self.residuals(shapes), self.residuals(shapes, policy))

    def peak(self, shapes: Sequence[Sequence[int]]) -> int:
        """Returns the peak bytes of a step without fusion. Gradients of the tree do not count.

        Args:
            shapes: of the batch.
        """

        def step(tree: Any, batch: Any) -> Any:
            out, backward = jax.vjp(partial(self._scalar, batch=batch), tree)
            return backward(jax.numpy.ones_like(out))

        program = self._program(step, shapes)
        gradients = {var for var in program.outvars if _is_var(var)}
        return max(_peak(program, gradients), self.residuals(shapes))


def _is_var(atom: Any) -> bool:
    """Returns whether an operand of a program is a variable, and not a literal."""
    return not hasattr(atom, "val")


def _bytes(var: Any) -> int:
    shape, dtype = getattr(var.aval, "shape", None), getattr(var.aval, "dtype", None)
    return 0 if shape is None or dtype is None else math.prod(shape) * int(dtype.itemsize)


def _made(atoms: Sequence[Any], program: Any) -> set[Any]:
    """Returns the operands that the program computes, each once: no arguments and literals."""
    return {atom for atom in atoms if _is_var(atom)} - {*program.invars, *program.constvars}


def _peak(program: Any, skipped: Collection[Any] = ()) -> int:
    """Returns the largest sum of bytes of the variables that a program needs at one time.

    Args:
        program: a jaxpr, whose operations run in order.
        skipped: variables that do not count.
    """
    ends: dict[Any, int] = {}
    for i, operation in enumerate(program.eqns):
        ends |= dict.fromkeys(_made([*operation.invars, *operation.outvars], program), i)
    ends |= dict.fromkeys(_made(program.outvars, program), len(program.eqns))
    freed: dict[int, int] = {}
    for var, i in ends.items():
        if var not in skipped:
            freed[i] = freed.get(i, 0) + _bytes(var)
    live = most = 0
    for i, operation in enumerate(program.eqns):
        created = sum(_bytes(var) for var in operation.outvars if var not in skipped)
        inside = max(map(_peak, _programs(operation)), default=0)
        # A loop stores its results in addition to the results of its body. Other calls return the
        # results of their body, which count once.
        loop = operation.primitive.name in ("scan", "while")
        most = max(most, live + (created + inside if loop else max(created, inside)))
        live += created - freed.get(i, 0)
    return most


def _programs(operation: Any) -> Iterator[Any]:
    """Yields the programs that an operation runs, such as the body of a loop."""
    for value in operation.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(part, "jaxpr", part)
            if hasattr(inner, "eqns"):
                yield inner
