"""What a release needs: one version everywhere, workflows with few rights, forms, and recipes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.python import ROOT
from tests.python.programs import HANG

pytestmark = pytest.mark.plain

VERSION = (ROOT / "VERSION").read_text().strip()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path.read_text() for path in (GITHUB / "workflows").glob("*.yml")}


def load(text: str) -> Any:
    return yaml.safe_load(text)


# The version


def run_version(folder: Path, tag: str) -> subprocess.CompletedProcess[str]:
    """Runs the script that the workflow of a release runs first."""
    command = [sys.executable, str(folder / "tools/release/version.py"), tag]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder in which all files name one version."""
    for name in ("VERSION", "CITATION.cff", "tools/release/version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    log = f"# Changelog\n\n## {VERSION} (2026-12-31)\n\n- New.\n\n### More\n\n- Two.\n\n## 0.0.1\n"
    (tmp_path / "CHANGELOG.md").write_text(log)
    return tmp_path


def test_a_tag_prints_its_changes(folder: Path) -> None:
    done = run_version(folder, f"v{VERSION}")
    assert (done.returncode, done.stdout) == (0, "- New.\n\n### More\n\n- Two.\n")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "VERSION",
            "9.9.9\n",
            f"the tag is v{VERSION}, but VERSION has 9.9.9: tag the commit as v9.9.9",
        ),
        (
            "CITATION.cff",
            "version: 9.9.9\n",
            f"CITATION.cff has the version 9.9.9: write {VERSION}",
        ),
        (
            "CHANGELOG.md",
            "## Unreleased\n\n- New.\n",
            f"CHANGELOG.md begins with the section 'Unreleased': "
            f"write '{VERSION} (year-month-day)'",
        ),
        (
            "CHANGELOG.md",
            f"## {VERSION}0 (2026-12-31)\n\n- New.\n",
            f"CHANGELOG.md begins with the section '{VERSION}0 (2026-12-31)': "
            f"write '{VERSION} (year-month-day)'",
        ),
    ],
)
def test_a_file_with_another_version(folder: Path, file: str, text: str, message: str) -> None:
    (folder / file).write_text(text)
    done = run_version(folder, f"v{VERSION}")
    assert (done.returncode, done.stderr) == (1, f"{message}\n")


def test_the_checkout_has_one_version() -> None:
    assert load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    git = ["git", "tag", "--points-at", "HEAD", "v*"]
    tags = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    failed = [done.stderr for tag in tags if (done := run_version(ROOT, tag)).returncode]
    assert failed == []


# Workflows and forms


def test_actions_are_pinned_by_digest() -> None:
    used = re.findall(r"\buses: (.*)", "".join(WORKFLOWS.values()))
    pin = re.compile(r"([\w-]+/[\w-]+)@([0-9a-f]{40}) # v\d+\.\d+\.\d+")
    assert [line for line in used if not pin.match(line)] == []
    digests = {line.partition(" ")[0] for line in used}
    assert len(digests) == len({line.partition("@")[0] for line in used}), "an action has two"


def test_jobs_have_few_rights_and_an_end() -> None:
    rights: dict[str, Any] = {}
    for name, text in WORKFLOWS.items():
        workflow = load(text)
        assert workflow["permissions"] == {"contents": "read"}, name
        assert "concurrency" in workflow, name
        for job, parts in workflow["jobs"].items():
            assert parts["timeout-minutes"] <= 90, job
            rights |= {f"{name} {job}": parts["permissions"]} if "permissions" in parts else {}
    assert rights == {
        "release pypi": {"id-token": "write", "attestations": "write"},
        "release github": {"contents": "write"},
    }
    checkouts = "".join(WORKFLOWS.values()).count("uses: actions/checkout@")
    assert "".join(WORKFLOWS.values()).count("persist-credentials: false") == checkouts


def test_workflows_run_what_the_checkout_has() -> None:
    text = "".join(WORKFLOWS.values())
    paths = set(re.findall(r"(?:tools|\.ci)/[\w./]+", text))
    assert {".ci/run", "tools/release/version.py"} < paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets


def test_dependabot_reads_every_manifest() -> None:
    manifests = {"gomod": "go.mod", "pip": "pyproject.toml", "npm": "package-lock.json"}
    listed = {}
    for update in load((GITHUB / "dependabot.yml").read_text())["updates"]:
        folders = update.get("directories", [update.get("directory")])
        listed[update["package-ecosystem"]] = sorted(folder.strip("/") for folder in folders)
    assert set(listed) == {*manifests, "github-actions"}
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for ecosystem, manifest in manifests.items():
        found = [path for path in map(Path, files.stdout.split()) if path.name == manifest]
        folders = [str(path.parent) for path in found if "testdata" not in path.parts]
        assert sorted(folder.strip(".") for folder in folders) == listed[ecosystem]


def test_every_form_asks_for_the_doctor() -> None:
    forms = {path.stem: path.read_text() for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml")}
    assert forms.keys() == {"bug", "config", "feature", "question"}
    policy = (ROOT / "SECURITY.md").read_text()
    assert load(forms.pop("config"))["contact_links"][0]["url"] in policy.replace("\n", "")
    for text in forms.values():
        form = load(text)
        assert {"name", "description", "body"} <= form.keys()
        labels = [field["attributes"].get("label") for field in form["body"]]
        assert "What `meshfeed doctor` prints" in labels


# Metadata and recipes


def test_classifiers_name_the_pythons_that_were_run() -> None:
    support = (ROOT / "docs/support.md").read_text()
    rows = re.findall(r"^\| (Python [^|]*) \| tested", support, re.MULTILINE)
    run = {version for row in rows for version in re.findall(r"3\.\d+", row)}
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert set(named) == run


def test_the_recipe_of_conda_agrees_with_the_project() -> None:
    text = (ROOT / "recipes/conda/recipe.yaml").read_text()
    recipe = load(text)
    needs = recipe["requirements"]
    assert recipe["context"]["version"] == VERSION
    assert recipe["about"]["license"] == PROJECT["license"]
    assert sorted(recipe["about"]["license_file"]) == sorted(PROJECT["license-files"])
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    pairs = [
        (needs["host"], build),
        (needs["run"], PROJECT["dependencies"]),
        (
            needs["run_constraints"],
            [
                need
                for extra in ("jax", "arrow")
                for need in PROJECT["optional-dependencies"][extra]
            ],
        ),
    ]
    for listed, wanted in pairs:
        assert {name.replace(" ", "") for name in listed} - {"python", "pip"} == set(wanted)


LAYOUT = """{"meshfeed":1,"mesh":{"axes":[["data",4]]},
"arrays":{"x":{"shape":["B"],"dtype":"int32","spec":["data"]}},"batch":{"size":32}}"""


@pytest.mark.deep
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may change the root folder")
def test_the_command_is_all_that_a_container_needs(tmp_path: Path) -> None:
    """The root folder has what the Dockerfile copies, and a layout."""
    recipe = (ROOT / "recipes/container/Dockerfile").read_text()
    ((command, inside),) = re.findall(r"^COPY (bin/meshfeed) /(\S+)$", recipe, re.MULTILINE)
    ((work, entry),) = re.findall(r'^WORKDIR /(\w+)\nENTRYPOINT \["/(\w+)"\]$', recipe, re.M)
    assert command == "bin/meshfeed"
    static = ["go", "build", "-buildmode=exe", "-trimpath", "-tags", "page"]
    build = [*static, "-o", str(tmp_path / inside), "./cmd/meshfeed"]
    subprocess.run(build, cwd=ROOT, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
    tmp_path.chmod(0o755)  # for the user of the image
    (tmp_path / work).mkdir()
    (tmp_path / work / "layout.json").write_text(LAYOUT)
    chroot = shutil.which("chroot") or "/usr/sbin/chroot"
    started = [chroot, "--userspec=65532:65532", str(tmp_path), f"/{entry}"]

    def output(*arguments: str) -> str:
        done = subprocess.run(
            [*started, *arguments],
            capture_output=True,
            text=True,
            timeout=HANG,
            env={},
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert output("--version") == f"meshfeed {VERSION}\n"
    output("check", f"/{work}/layout.json")
    assert "data" in output("plan", f"/{work}/layout.json")
    serve = [*started, "serve", f"/{work}/layout.json"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env={}) as server:
        try:
            assert server.stdout is not None
            with urllib.request.urlopen(server.stdout.readline().strip(), timeout=HANG) as page:
                assert page.read().startswith(b"<!doctype html>")
        finally:
            server.terminate()
