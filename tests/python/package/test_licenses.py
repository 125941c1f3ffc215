"""THIRD_PARTY_LICENSES has the license of every part of library, command and page, and no other."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from meshfeed._native import library
from tests.python import ROOT
from tools import sbom

pytestmark = pytest.mark.plain

BINARIES = [ROOT / "python/meshfeed" / name for name in ("_lib/libmeshfeed.so.1", "_bin/meshfeed")]

# Parts of other builds: with the tag xla, and for Windows.
ELSEWHERE = {
    "github.com/gofrs/flock",
    "github.com/gomlx/go-xla",
    "github.com/inconshreveable/mousetrap",
    "google.golang.org/protobuf",
}


def linked(binary: Path) -> set[str]:
    """Returns the modules that Go lists for a binary."""
    printed = subprocess.run(["go", "version", "-m", binary], capture_output=True, text=True)
    lines = [line.split() for line in printed.stdout.splitlines()]
    return {line[1] for line in lines if line[0] == "dep"}


def test_the_file_is_current() -> None:
    check = [sys.executable, str(ROOT / "tools/licenses.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_go_links_is_listed() -> None:
    library, command = map(linked, BINARIES)
    assert len(library) > 10
    listed = set(sbom.licenses())
    modules = {name for name in listed if "." in name.partition("/")[0]}
    assert modules - ELSEWHERE == (library | command) - ELSEWHERE
    assert listed - modules == {
        "Go",
        "libjpeg-turbo",
        "@lit/reactive-element",
        "lit",
        "lit-element",
        "lit-html",
    }


def test_what_the_licenses_ask_documentation_to_say() -> None:
    said = "This software is based in part on the work of the Independent JPEG Group."
    assert said in " ".join((ROOT / "docs/install.md").read_text().split())


def test_every_part_has_a_text() -> None:
    text = sbom.LICENSES.read_text()
    owners = {
        line.rpartition(": ")[0]
        for block in text.split(f"\n{'=' * 80}\n")[1::2]
        for line in block.splitlines()
    }
    assert owners == set(sbom.licenses())
    assert "github.com/tetratelabs/wazero: NOTICE" in text


def test_the_metadata_name_every_license() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    kinds = {kind for parts in sbom.licenses().values() for kind in parts.split(" AND ")}
    assert project["license"] == " AND ".join(sorted(kinds))


def test_the_sbom_lists_what_go_links() -> None:
    bill = sbom.sbom(BINARIES)
    names = {part["bom-ref"]: part["name"] for part in bill["components"]}
    for binary, edges in zip(BINARIES, bill["dependencies"][1:], strict=True):
        assert edges["ref"] == binary.name
        found = {names[on] for on in edges["dependsOn"]}
        assert {name for name in found if "." in name.partition("/")[0]} == linked(binary)
        assert {"Go", "lit"} <= found
    urls = {part["purl"] for part in bill["components"] if "purl" in part}
    assert any(url.startswith("pkg:npm/%40lit/reactive-element@") for url in urls)
    turbo = library.library().mf_jpeg_decoder().startswith(b"libjpeg-turbo")
    assert ("pkg:github/libjpeg-turbo/libjpeg-turbo@3.1.2" in urls) == turbo
    assert any(url.startswith("pkg:golang/stdlib@1.") for url in urls)


def test_a_page_of_unknown_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An old page has no list of its packages."""
    monkeypatch.setattr(sbom, "PACKAGES", tmp_path / "packages.json")
    with pytest.raises(SystemExit) as caught:
        sbom.sbom(BINARIES)
    problem = f"holds a page without {sbom.PACKAGES}; run: make page lib"
    assert str(caught.value) == f"sbom: {BINARIES[0]} {problem}"


def test_an_sbom_of_another_program(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"\x7fELF")
    with pytest.raises(SystemExit) as caught:
        sbom.parts(other)
    assert str(caught.value) == f"sbom: {other} has no build information of Go"
