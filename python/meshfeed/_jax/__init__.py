"""JAX's side of the package: meshes, global arrays over host memory, and trees of arrays.

Other parts import this part inside of functions only, so that meshfeed works without JAX. Only
`runtime` uses private names of JAX.
"""

from meshfeed.errors import UnsupportedError

try:
    from jax.sharding import AxisType as _AxisType  # noqa: F401 - old releases do not have it
except ImportError as e:
    raise UnsupportedError(
        f"jax.Arrays need JAX 0.8 or later: {e}",
        hint='pip install "jax>=0.8"; without mesh and specs a loader gives NumPy arrays',
    ) from None
