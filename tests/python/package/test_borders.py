"""The borders inside the package: which part may import which."""

from __future__ import annotations

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import meshfeed as mf

pytestmark = pytest.mark.plain

PACKAGE = Path(mf.__file__).parent
PUBLIC = "meshfeed"  # the package itself, which users import

# The floors of the package, the lowest first. A part is a folder, or a module beside the folders.
# When it is imported, it may import `errors` and the parts listed here, all of lower floors.
FLOORS = {
    "errors": "",
    "_version": "",
    "_types": "",
    "_deprecated": "",
    "_command": "",
    "_native": "",
    "_io": "",
    "_layout": "_native _io",
    "_jobs": "_version _native _io _layout",
    "_data": "_types _native _io _layout _jobs",
    "_feed": "_types _native _io _layout _jobs",
    "_plan": "_native _io _layout",
    "_jax": "_native _io _layout _jobs _feed _plan",
    "_loader": "_types _command _native _io _layout _jobs _data _feed",
    "_arrays": "_native _io _layout _jobs _data _feed",
    "_measure": "_io",
    PUBLIC: "",
    "_selfcheck": f"_native _layout {PUBLIC}",
    "_converting": f"_native {PUBLIC}",
    "__main__": "_command _native",
}

# What functions of a part may import when they run: optional dependencies and rare paths.
LATER = {
    PUBLIC: "_io",
    "_command": "_selfcheck _converting",
    **dict.fromkeys(("_layout", "_jobs", "_plan", "_loader", "_arrays"), "_jax"),
}

# A public module that belongs to a folder, but has its path at the top for users.
DOORS = {"strategy": "_plan"}

LEVELS = 12  # of imports


def modules() -> dict[str, Path]:
    """Returns the modules of the package by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__") or PUBLIC] = path
    return found


MODULES = modules()


@functools.cache
def level(module: str) -> int:
    """Returns 1 for a module that imports no other, else 1 more than the highest of them."""
    return 1 + max((level(target) for target, later in imports(module) if not later), default=0)


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """Yields the package's modules that a module imports, and whether a function imports them."""
    for name, later in _imports(ast.parse(MODULES[module].read_text()).body, later=False):
        if name.partition(".")[0] == "meshfeed":
            inside = name.removeprefix("meshfeed.")  # a module, or a name in one
            yield inside if inside in MODULES else inside.rpartition(".")[0] or PUBLIC, later


def _imports(body: list[ast.stmt], *, later: bool) -> Iterator[tuple[str, bool]]:
    """Yields every name that statements import at run time, from any package."""
    for node in body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imports(node.orelse, later=later)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", later) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, later) for alias in node.names)
        else:
            for part in ("body", "orelse", "finalbody", "handlers"):
                inside = later or isinstance(node, ast.FunctionDef)
                yield from _imports(getattr(node, part, []), later=inside)


def part_of(module: str) -> str:
    part = module.partition(".")[0]
    return DOORS.get(part, part)


def allowed(part: str, *, later: bool) -> set[str]:
    names = f"{part} errors {FLOORS[part]}"
    return set(f"{names} {LATER.get(part, '')}".split() if later else names.split())


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_what_its_part_may_import(module: str) -> None:
    part = part_of(module)
    found = [
        target
        for target, later in imports(module)
        if part_of(target) not in allowed(part, later=later)
    ]
    assert found == [], f"{module} imports over a border: see FLOORS in this file"


def test_no_floor_imports_upward() -> None:
    below: set[str] = set()
    for part, names in FLOORS.items():
        assert set(names.split()) <= below, part
        below.add(part)


def test_no_border_is_wider_than_needed() -> None:
    used: dict[str, set[str]] = {}
    for module in MODULES:
        for target, _ in imports(module):
            used.setdefault(part_of(module), set()).add(part_of(target))
    for table in (FLOORS, LATER):
        for part, names in table.items():
            assert set(names.split()) <= used.get(part, set()), part


def test_no_import_cycles() -> None:
    graph = {module: {target for target, _ in imports(module)} for module in MODULES}
    assert "_jax.meshes" in graph["_layout.layout"]  # imported in a function
    graphlib.TopologicalSorter(graph).prepare()  # a CycleError lists the modules


def test_imports_are_not_deep() -> None:
    assert max(map(level, MODULES)) <= LEVELS


def test_jax_is_imported_in_few_parts() -> None:
    found = {
        part_of(module)
        for module, path in MODULES.items()
        for name, _ in _imports(ast.parse(path.read_text()).body, later=False)
        if name.partition(".")[0] == "jax"
    }
    assert found == {"_jax", "_selfcheck"}
