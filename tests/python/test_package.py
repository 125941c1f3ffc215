"""The package itself: its names, its version, and what importing it costs."""

from __future__ import annotations

import ast
import graphlib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest

import meshfeed as mf
from meshfeed import _command, _version
from tests.python.programs import run

pytestmark = pytest.mark.plain


def imported_by(statement: str) -> list[str]:
    """Gives the modules that a statement imports, beyond those Python has from the start."""
    program = (
        f"import sys; before = set(sys.modules); {statement}; print(*set(sys.modules) - before)"
    )
    return sorted(run(program).split())


def test_the_command_imports_nothing_but_itself() -> None:
    assert imported_by("import meshfeed._command") == [
        "__future__",
        "meshfeed",
        "meshfeed._command",
    ]


def test_a_name_imports_what_it_needs() -> None:
    modules = imported_by("from meshfeed import InvalidArgumentError")
    assert [m for m in modules if m.startswith("meshfeed")] == ["meshfeed", "meshfeed.errors"]
    assert "numpy" not in modules


def modules_of(path: Path) -> set[str]:
    """Gives the modules of the package that one of them names, wherever in its text."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "meshfeed":
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.removeprefix("meshfeed."))
    return found


def test_no_module_leads_back_to_itself() -> None:
    folder = Path(mf.__file__).parent
    graph = {p.stem: modules_of(p) for p in folder.glob("*.py") if p.stem != "__init__"}
    assert "jax" in graph["planning"]  # where it imports it, in a function
    graphlib.TopologicalSorter(graph).prepare()  # a CycleError lists the modules


def test_type_checkers_see_the_names_there_are() -> None:
    tree = ast.parse(Path(mf.__file__).read_text())
    seen = {
        alias.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    modules: dict[str, str] = vars(mf)["_MODULES"]
    assert seen == {name: f"meshfeed.{module}" for name, module in modules.items()}


def test_every_public_name_is_listed_and_documented() -> None:
    names = set(dir(mf))
    assert {"Loader", "layout", "open", "__version__"} < names
    assert set(vars(mf)["__all__"]) == names - {"__version__"}
    assert [name for name in names if not getattr(mf, name).__doc__] == []


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^module 'meshfeed' has no attribute 'Lodaer'$"):
        mf.Lodaer  # type: ignore[attr-defined]  # noqa: B018


def not_installed(_: str) -> NoReturn:
    raise PackageNotFoundError


def test_the_version_of_a_checkout_is_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_version, "version", not_installed)
    package = tmp_path / "python" / "meshfeed"
    assert _version.version_at(package) == "0+unknown"
    (tmp_path / "VERSION").write_text("3.2.1\n")
    assert _version.version_at(package) == "3.2.1"
    assert _version.version_at(tmp_path / "site-packages" / "meshfeed") == "0+unknown"


def test_an_installed_package_has_the_version_of_its_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "VERSION").write_text("somebody else's\n")
    monkeypatch.setattr(_version, "version", {"meshfeed": "1.2.3"}.__getitem__)
    assert _version.version_at(tmp_path / "site-packages" / "meshfeed") == "1.2.3"


def test_an_installation_without_the_command_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_command, "BINARY", "/no/such/meshfeed")
    with pytest.raises(SystemExit) as caught:
        _command.main()
    assert str(caught.value) == (
        "meshfeed: the command is not in this installation "
        "(No such file or directory: /no/such/meshfeed); "
        "reinstall the package, or in a checkout run: make lib"
    )
