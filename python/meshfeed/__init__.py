"""Arrow data, already sharded, on device meshes.

Define the mesh, the partition spec of each array and the size of the global batch. The loader then
reads exactly the rows that the devices of this process need, and returns global arrays.

Examples:
    >>> import meshfeed as mf, numpy as np
    >>> ds = mf.from_arrays({"x": np.arange(6, dtype=np.int32)})
    >>> [batch["x"].tolist() for batch in mf.Loader(ds, batch_size=2)]
    [[0, 1], [2, 3], [4, 5]]
"""

# A public name is imported on first use. The console script `meshfeed` imports this package and
# then executes a Go program, so it must not wait for the import of NumPy.
#
# The `__module__` of a public class is the private module that defines it. With "meshfeed" there,
# `inspect.getsource`, `typing.get_type_hints` and doctest fail, because they search that module.

_found = None  # the module of every public name, once `_modules` has read the stub


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
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_advice(name)}")
    from importlib import import_module

    if modules[name] == __name__:  # a public module
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(modules[name]), name)
    globals()[name] = value
    return value


def _advice(name):
    """Returns what to write instead of a name of another library."""
    if name.startswith("_"):  # asked by tools; the table needs NumPy
        return ""
    from meshfeed._io import synonyms

    return f"; {synonyms.PACKAGE[name]}" if name in synonyms.PACKAGE else ""


def __dir__():
    """Lists the public names, imported or not."""
    return sorted(_modules())
