"""Drawings: where arrays are, and how work is split over devices."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from meshfeed._io.arguments import Checks, getattr_or_none, is_integer
from meshfeed._io.notebook import Preformatted
from meshfeed._layout.layout import Layout
from meshfeed._layout.specs import entries, is_spec
from meshfeed._native import reports
from meshfeed._plan.advice import Candidate, shown_axes
from meshfeed._plan.questions import json_values, naming_arguments
from meshfeed.errors import UnsupportedError

_Kinds = Literal["mesh", "matmul", "pipeline", "collective", "memory", "loading"]


class Drawing(Preformatted):
    """A picture: text in a terminal, SVG in a notebook. `mf.draw` and `mf.diagram` make one.

    Args:
        text: the picture as text.
        svg: the picture as SVG; None if it is drawn as text only.
        notes: sentences below the picture.
    """

    def __init__(self, text: str, svg: str | None = None, notes: Sequence[str] = ()) -> None:
        self._text = "\n".join([text.rstrip("\n"), *([""] if notes else []), *notes])
        self._svg = svg
        self._notes = notes

    def to_svg(self) -> str:
        """Returns the picture as an SVG document.

        Raises:
            UnsupportedError: the picture of a tree, or with `style="jax"`, is text only.
        """
        if self._svg is None:
            message = "this picture is drawn as text only"
            raise UnsupportedError(message, op="Drawing.to_svg", hint="print it")
        return self._svg

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        if self._svg is None:
            return super()._repr_html_()
        return self._svg + "".join(f"<p>{html.escape(note)}</p>" for note in self._notes)


def draw(
    x: Any,
    *,
    shape: Sequence[int] | None = None,
    dtype: Any = None,
    style: Literal["jax"] | None = None,
) -> Drawing:
    """Draws where the parts of an array are: devices, processes, replicas, ranges and bytes.

    It reads no data, so it also draws arrays that span processes.

    Args:
        x: a `jax.Array`, a `jax.ShapeDtypeStruct` or a sharding; a spec, on the mesh of
            `jax.set_mesh`; a pytree of arrays, such as the parameters of a model, which becomes a
            table (a NumPy array has JAX's type there: without x64, float64 is float32); a mesh, or
            a dict of its axes, to draw its groups of devices; a `Layout`, a `Loader` or the
            `Advice` of `mf.advise`.
        shape: the shape of the array, if `x` is a sharding or a spec.
        dtype: the type of the array, if `x` is a sharding or a spec; float32 by default.
        style: "jax" draws the table that `jax.debug.visualize_array_sharding` prints, for arrays of
            one or two dimensions, without the package rich. The table has no colors.

    Returns:
        A drawing, which prints as text and shows as SVG in a notebook.

    Raises:
        InvalidArgumentError: `x` has another type, or is a sharding without `shape`.
        UnsupportedError: the sharding has parts of several shapes.

    Examples:
        >>> import jax, meshfeed as mf
        >>> from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P
        >>> mesh = AbstractMesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
        >>> mf.draw(NamedSharding(mesh, P("data", "model")), shape=(8, 16))
        Mesh('data': 2, 'model': 2)  4 devices  1 process
        128 B per device
        <BLANKLINE>
        array  float32 (8, 16)  P('data', 'model')  shard (4, 8)  128 B
          ↓ dimension 0 over data  → dimension 1 over model
               0:8      8:16
            ┏━━━━━━━━┯━━━━━━━━┓
        0:4 ┃  p0 0  │  p0 1  ┃
            ┠────────┼────────┨
        4:8 ┃  p0 2  │  p0 3  ┃
            ┗━━━━━━━━┷━━━━━━━━┛
        <BLANKLINE>
        p0 3: device 3 of process 0

        A tree becomes a table:

        >>> w = jax.ShapeDtypeStruct((8, 16), "bfloat16", sharding=NamedSharding(mesh, P("data")))
        >>> mf.draw({"layers": [{"w": w}, {"w": w}]})
        Mesh('data': 2, 'model': 2)  4 devices
        <BLANKLINE>
        array          shape    dtype     spec        shard    per device  copies
        layers/*/w x2  (8, 16)  bfloat16  P('data',)  (4, 16)       256 B       2
        <BLANKLINE>
        2 arrays, 512 B in all; 256 B on each device
    """
    with Checks("mf.draw") as check:
        given: Any = style  # any type, such as an array: comparing it returns no bool
        if given is not None and not (isinstance(given, str) and given == "jax"):
            raise check.wrong("style", style, '"jax" or None')
        layout = x if isinstance(x, Layout) else getattr_or_none(x, "layout")
        is_mesh = _is_mesh(x) or _is_axes(x)
        for found, name in ((isinstance(layout, Layout), "layouts"), (is_mesh, "meshes")):
            if found and (style is not None or shape is not None or dtype is not None):
                message = f"shape, dtype and style are not for {name}"
                raise check.misfit(message, "leave them out")
        if isinstance(layout, Layout):
            return Drawing(layout.draw(), layout.to_svg())
        if is_mesh:
            return diagram("mesh", mesh=x)
        from meshfeed._jax import draw

        return Drawing(*draw.draw(check, x, shape, dtype, style))


def diagram(kind: _Kinds, /, **members: Any) -> Drawing:
    """Draws how work and data are split over devices.

    Args:
        kind: "mesh", "matmul", "pipeline", "collective", "memory" or "loading".
        members: the numbers and names of the diagram.

            - mesh: mesh, a JAX mesh or a dict of axes and sizes
            - matmul: mesh; x and w, dicts of shape and spec; dtype="bfloat16"
            - pipeline: schedule ("gpipe", "1f1b", "interleaved" or "zero-bubble"), stages,
              micro_batches, chunks=1; forward, backward and weight, the ticks of the tasks
            - collective: op, devices, algorithm; bytes of the array, and device, the kind of
              devices, for the time
            - memory: bars, a list of dicts of label, weights, gradients, optimizer, activations and
              buffers in bytes, or of candidates of `mf.advise`; capacity, title
            - loading: layout, a `Layout`

    Raises:
        InvalidArgumentError: a member is missing, unknown or wrong.

    Examples:
        >>> import meshfeed as mf
        >>> mf.diagram("pipeline", schedule="gpipe", stages=2, micro_batches=2)
        Pipeline gpipe: 2 stages, 2 micro-batches
        The stages are idle for 33.3 % of the time: 6 of 18 ticks. The closed form is
        33.3 %.
        <BLANKLINE>
        stage 0 ▕0░░1░░·········1▓▓▓▓▓0▓▓▓▓▓▏ 2
        stage 1 ▕···0░░1░░1▓▓▓▓▓0▓▓▓▓▓······▏ 2
        <BLANKLINE>
        ░ forward  ▓ backward  · bubble
        <BLANKLINE>
        The last number is how many micro-batches a stage keeps the activations of, at
        its peak.
        >>> product = mf.diagram("matmul", mesh={"data": 4, "model": 2},
        ...                      x={"shape": (128, 4096), "spec": mf.P("data")},
        ...                      w={"shape": (4096, 2048), "spec": mf.P(None, "model")})
    """
    with Checks("mf.diagram") as check:
        check.choice("kind", kind, *get_args(_Kinds), hint=_MESH_HINT if _is_mesh(kind) else "")
        layout = members.get("layout")
        if kind == "loading" and not (len(members) == 1 and isinstance(layout, Layout)):
            message = "loading needs layout=, a Layout, and no other argument"
            raise check.misfit(message, _LAYOUT_HINT)
        part = _members(check, _planned(members) if kind == "memory" else members)
        if kind == "mesh" and isinstance(part.get("mesh"), dict):
            part = part["mesh"]
        elif kind == "loading":
            part = part["layout"]
        text = json.dumps({"meshfeed": 1, "diagram": {kind: part}})
        with naming_arguments({f"/diagram/{kind}": ""}, members):
            return Drawing(reports.diagram(text, svg=False), reports.diagram(text, svg=True))


_BAR = ("weights", "gradients", "optimizer", "activations", "buffers")


def _planned(members: Mapping[str, Any]) -> dict[str, Any]:
    """Replaces candidates of a plan, or their memory, by bars of a memory diagram."""
    given, bars, capacity = members.get("bars"), [], None
    for i, bar in enumerate(given if isinstance(given, list | tuple) else ()):
        label = shown_axes(bar.mesh) if isinstance(bar, Candidate) else f"candidate {i + 1}"
        memory = bar.memory if isinstance(bar, Candidate) else bar
        if isinstance(memory, Mapping) and {*_BAR, "capacity"} <= memory.keys():
            capacity = memory["capacity"]
            memory = {"label": label} | {name: memory[name] for name in _BAR}
        bars.append(memory)
    known = {"capacity": capacity} if capacity else {}
    return {**known, **members, **({"bars": bars} if bars else {})}


_LAYOUT_HINT = "mf.layout(mesh, specs, fields, batch_size=n) makes one"
_MESH_HINT = 'for a mesh write mf.diagram("mesh", mesh=mesh)'


def _is_mesh(x: Any) -> bool:
    """Returns whether x is a mesh of JAX, with devices or abstract."""
    return getattr_or_none(x, "axis_names") is not None and isinstance(
        getattr_or_none(x, "shape"), Mapping
    )


def _is_axes(x: Any) -> bool:
    """Returns whether x is a dict of the sizes of axes, as for `mf.layout`."""
    return isinstance(x, Mapping) and len(x) > 0 and all(map(is_integer, x.values()))


def _members(check: Checks, given: Mapping[Any, Any]) -> dict[str, Any]:
    """Returns the members of a diagram in the form of its document."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        if _is_mesh(value):
            value = dict(value.shape)
        if name == "mesh":
            out[name] = {"axes": check.axes(value)}
        elif isinstance(value, Layout):
            out[name] = json.loads(value.to_json())
        elif is_spec(value):
            out[name] = entries(value)
        elif isinstance(value, Mapping):
            out[name] = _members(check, value)
        else:
            out |= json_values(check, {name: value})
    return out
