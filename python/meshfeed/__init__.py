"""Arrow data, already sharded, on device meshes.

Say what the mesh is, how each array is partitioned and how large the global batch is; the
loader reads exactly the rows that every device needs and hands over global arrays.

Examples:
    >>> import meshfeed as mf, numpy as np
    >>> ds = mf.from_arrays({"x": np.arange(6, dtype=np.int32)})
    >>> [batch["x"].tolist() for batch in mf.Loader(ds, batch_size=2)]
    [[0, 1], [2, 3], [4, 5]]
"""

# Names are imported when they are first used: the command, which lives in this package,
# replaces itself by another program before NumPy would have been imported. Type checkers know
# this constant by its name; importing it would import all of `typing`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from meshfeed._version import __version__ as __version__
    from meshfeed.arrays import load_array as load_array
    from meshfeed.backend import Devices as Devices
    from meshfeed.backend import devices as devices
    from meshfeed.certificate import Certificate as Certificate
    from meshfeed.coordinator import Coordinator as Coordinator
    from meshfeed.dataset import Dataset as Dataset
    from meshfeed.dataset import Field as Field
    from meshfeed.dataset import Skipped as Skipped
    from meshfeed.dataset import from_arrays as from_arrays
    from meshfeed.dataset import from_arrow as from_arrow
    from meshfeed.dataset import open as open
    from meshfeed.errors import EXIT_PEER_ERROR as EXIT_PEER_ERROR
    from meshfeed.errors import CancelledError as CancelledError
    from meshfeed.errors import Code as Code
    from meshfeed.errors import DataLossError as DataLossError
    from meshfeed.errors import Error as Error
    from meshfeed.errors import ForkedError as ForkedError
    from meshfeed.errors import IncompatibleError as IncompatibleError
    from meshfeed.errors import InternalError as InternalError
    from meshfeed.errors import InvalidArgumentError as InvalidArgumentError
    from meshfeed.errors import InvalidStateError as InvalidStateError
    from meshfeed.errors import NotFoundError as NotFoundError
    from meshfeed.errors import OutOfRangeError as OutOfRangeError
    from meshfeed.errors import PeerError as PeerError
    from meshfeed.errors import ReadError as ReadError
    from meshfeed.errors import ResourceExhaustedError as ResourceExhaustedError
    from meshfeed.errors import UnsupportedError as UnsupportedError
    from meshfeed.linking import get_include as get_include
    from meshfeed.linking import get_library as get_library
    from meshfeed.loader import Loader as Loader
    from meshfeed.placed import PlacedArray as PlacedArray
    from meshfeed.placed import Shard as Shard
    from meshfeed.planning import Layout as Layout
    from meshfeed.planning import Problem as Problem
    from meshfeed.planning import layout as layout
    from meshfeed.specs import Array as Array
    from meshfeed.specs import P as P
else:
    # The same names by module; a test compares the two lists.
    _NAMES = {
        "_version": "__version__",
        "arrays": "load_array",
        "backend": "Devices devices",
        "certificate": "Certificate",
        "coordinator": "Coordinator",
        "dataset": "Dataset Field Skipped from_arrays from_arrow open",
        "errors": """
            CancelledError Code DataLossError EXIT_PEER_ERROR Error ForkedError IncompatibleError
            InternalError InvalidArgumentError InvalidStateError NotFoundError OutOfRangeError
            PeerError ReadError ResourceExhaustedError UnsupportedError
        """,
        "linking": "get_include get_library",
        "loader": "Loader",
        "placed": "PlacedArray Shard",
        "planning": "Layout Problem layout",
        "specs": "Array P",
    }
    _MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
    __all__ = sorted(set(_MODULES) - {"__version__"})

    def __getattr__(name):
        """Imports a public name."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        """Lists the public names, imported or not."""
        return sorted(_MODULES)
