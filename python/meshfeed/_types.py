"""Types of arguments and batches. Only type checkers read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    import jax
    import numpy as np
    import numpy.typing as npt
    from _typeshed import DataclassInstance
    from jax.sharding import NamedSharding
    from typing_extensions import TypedDict, TypeVar

    from meshfeed._jobs.coordinator import Coordinator
    from meshfeed._layout.specs import Array, Spec
    from meshfeed._loader.orders import Blocks

    # The type of a batch: Any if the tree of specs is unknown or `Loader` has no type argument.
    BatchT = TypeVar("BatchT", default=Any)

    Leaf = Spec | NamedSharding | Array
    Tree = Leaf | Mapping[str, object] | tuple[object, ...] | list[Any] | DataclassInstance

    JaxBatch = dict[str, jax.Array]
    NumpyBatch = dict[str, npt.NDArray[Any]]
    Block = tuple[tuple[slice, ...], npt.NDArray[Any]]
    BlocksBatch = dict[str, list[Block]]

    # Saved states also contain full names with parameters, such as "local.1:4:64".
    Order = (
        Literal["sequential", "shuffle", "local", "blocks", "sequential.1", "shuffle.1"] | Blocks
    )
    Remainder = Literal["drop", "pad", "error"]
    Loading = Literal["process", "global", "device", "reshard"]
    SavedState = Mapping[str, Any] | str | os.PathLike[str]
    Fill = Mapping[str, complex | np.number[Any] | np.bool_]
    Shapes = Mapping[str, Sequence[int] | jax.ShapeDtypeStruct]

    class Device(Protocol):
        """A `jax.Device`, which is an unknown type to pyright.

        In strict mode pyright refuses programs that call a function of partially unknown type.
        """

        @property
        def platform(self) -> str: ...

        @property
        def device_kind(self) -> str: ...

    class Sizes(TypedDict, total=False):
        """The sizes of a transformer; see `mf.strategy.transformer`."""

        layers: int
        hidden: int
        heads: int
        kv_heads: int
        head_dim: int
        latent: Mapping[str, int]
        ffn: int
        gated: bool
        vocab: int
        tied: bool
        sequence: int
        biases: bool
        qkv_biases: bool
        norm: Literal["rms", "layer"]
        positions: Literal["rotary", "learned"]
        dropout: bool
        causal: bool
        experts: Mapping[str, Any]

    class Options(TypedDict, total=False):
        """The arguments of a loader that do not determine the type of its batches; see `Loader`."""

        shuffle: bool | None
        order: Order | None
        seed: int | None
        epochs: int | None
        prefetch: int | None
        device_prefetch: int | None
        max_host_bytes: int | None
        state: SavedState | None
        dataset: Literal["check", "ignore"]
        fill: Fill | None
        name: str | None
        coordinator: Coordinator | Literal[False] | None
        agree_timeout: float
        on_peer_error: Literal["end", "raise", "abort"]
        verify_replicas: Literal["first", "always", "off"] | int
        late_after: float

    class WholeOptions(Options, total=False):
        """The arguments of a loader of whole batches, besides `batch_size`."""

        remainder: Remainder
        mask_name: str
        mask_spec: Spec | None
        extras: Sequence[Literal["key", "record"]]
        loading: Loading
else:
    from typing import TypeVar

    BatchT = TypeVar("BatchT")

__all__ = ["BatchT"]
