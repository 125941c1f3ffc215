"""Arrow data, already sharded, on device meshes.

Say what the mesh is, how each array is partitioned and how large the global batch is; the
loader reads exactly the rows that every device needs and hands over global arrays.

Examples:
    >>> import meshfeed as mf, numpy as np
    >>> ds = mf.from_arrays({"x": np.arange(6, dtype=np.int32)})
    >>> [batch["x"].tolist() for batch in mf.Loader(ds, batch_size=2)]
    [[0, 1], [2, 3], [4, 5]]
"""

# A public name is imported on first use: the command starts in this package and replaces its
# process before NumPy would be imported.

_found = None


def _modules():
    """Reads the stub and returns the module of every public name."""
    global _found
    if _found is None:
        import builtins  # this module has a public name `open`

        with builtins.open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:
            lines = [line.split() for line in stub if line.startswith("from ")]
        _found = {words[-1]: words[1] for words in lines}
    return _found


def __getattr__(name):
    """Imports a public name."""
    modules = _modules()
    if name == "__all__":
        return sorted(set(modules) - {"__version__"})
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(modules[name]), name)
    globals()[name] = value
    return value


def __dir__():
    """Lists the public names, imported or not."""
    return sorted(_modules())
