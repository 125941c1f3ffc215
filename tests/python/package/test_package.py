"""The package itself: its names, its version, and what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import NoReturn

import pytest

import meshfeed as mf
from meshfeed import _command, _version
from tests.python.programs import run

pytestmark = pytest.mark.plain


def imported_by(statement: str) -> list[str]:
    """Returns the modules that a statement imports."""
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


def test_type_checkers_and_python_read_one_list() -> None:
    stub = ast.parse(Path(mf.__file__).with_suffix(".pyi").read_text())
    imported = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname for node in imported for alias in node.names]
    assert len(imported) == len(stub.body)
    assert len(set(names)) == len(names)
    assert set(names) == set(dir(mf))


def test_a_star_import_takes_the_public_names() -> None:
    taken = run("from meshfeed import *; print(*[name for name in dir() if name[:2] != '__'])")
    assert set(taken.split()) == set(dir(mf)) - {"__version__"}


def test_every_public_name_is_listed_and_documented() -> None:
    names = set(dir(mf))
    assert {"Loader", "layout", "open", "__version__"} < names
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
    (tmp_path / "VERSION").write_text("9.9.9\n")
    monkeypatch.setattr(_version, "version", {"meshfeed": "1.2.3"}.__getitem__)
    assert _version.version_at(tmp_path / "site-packages" / "meshfeed") == "1.2.3"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_the_command_says_that_a_limit_is_too_low() -> None:
    def limited(mib: int) -> subprocess.CompletedProcess[str]:
        words = f"ulimit -v {mib << 10}; exec '{sys.executable}' -m meshfeed --version"
        return subprocess.run(["sh", "-c", words], capture_output=True, text=True)

    assert limited(_command.ADDRESSES >> 20).returncode == 0
    refused = limited((_command.ADDRESSES >> 20) - 1)
    assert refused.returncode == 2  # it could not do its work
    assert refused.stderr == (
        "meshfeed: the command needs 1024 MiB of addresses, but RLIMIT_AS is 1023 MiB; raise the "
        "limit (ulimit -v 1048576), or limit memory by a cgroup, which counts what is used and not "
        "what is reserved\n"
    )


def test_an_installation_without_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_command, "BINARY", "/no/such/meshfeed")
    with pytest.raises(SystemExit) as caught:
        _command.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "meshfeed: the command is not in this installation "
        "(No such file or directory: /no/such/meshfeed); "
        "reinstall the package, or in a checkout run: make lib\n"
    )
