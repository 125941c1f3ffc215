"""The pages of the site: every one has a place, and its links lead to other pages of the site.

tests/website checks the built site.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest

import meshfeed as mf
from docs._site import headers, hooks, pages
from tests.python import ROOT
from tests.python.programs import run

pytestmark = pytest.mark.plain

START = (ROOT / "docs/index.md").read_text()
TOCTREE = re.compile(r"^```\{toctree\}\n(?::[^\n]*\n)+\n(.*?)^```", re.DOTALL | re.MULTILINE)
GENERATED = {
    "reference/go/index",
    "reference/c/index",
    "reference/command/meshfeed",
    "reference/documents",
    "reference/codes",
}


def entries(place: str, text: str) -> list[str]:
    """Returns the pages that a page lists in its table of contents."""
    found = [line for tree in TOCTREE.findall(text) for line in tree.splitlines()]
    names = [re.sub(r".*<(.*)>", r"\1", line) for line in found]
    return [os.path.normpath(os.path.join(os.path.dirname(place), name)) for name in names]


def test_every_page_is_in_one_table_of_contents() -> None:
    listed: Counter[str] = Counter()
    for name, place in pages.places().items():
        if name.endswith(".md"):
            listed.update(entries(place, (ROOT / name).read_text()))
    assert [name for name, times in listed.items() if times > 1] == []
    every = {os.path.splitext(place)[0] for place in pages.places().values()} - {"index"}
    assert every - set(listed) == set(), "name the page in the table of contents of a section"
    assert set(listed) - every - GENERATED == set(), "there is no such page"


def test_every_public_name_of_python_is_in_the_reference() -> None:
    """Each name has an entry on one page, and a line in the table of contents of the reference."""
    pages_of_names = sorted((ROOT / "docs/reference/python").glob("*.md"))
    entry = re.compile(r"^\.\. auto(?:class|function|data):: (\w+)", re.MULTILINE)
    described = [name for page in pages_of_names for name in entry.findall(page.read_text())]
    public = (ROOT / "python/meshfeed/__init__.pyi").read_text()
    names = set(re.findall(r"^from .* import .* as (\w+)$", public, re.MULTILINE))
    assert sorted(described) == sorted(names - {"strategy", "__version__"})
    contents = (ROOT / "docs/reference/python.md").read_text()
    listed = re.findall(r"^   (\w+)$", contents, re.MULTILINE)
    assert sorted(listed) == sorted(names - {"__version__"})


class Entry(NamedTuple):
    """What Sphinx knows about a name."""

    docname: str
    node_id: str


@pytest.mark.skipif(find_spec("docutils") is None, reason="MESHFEED_DEEP=1: make site builds it")
def test_a_name_of_the_package_is_a_link_to_its_entry() -> None:
    nodes = importlib.import_module("docutils.nodes")
    texts = ["mf.open(…)", "mf.open", "loader.report()", "mf.absent", "open", "step", "mf.open x"]
    codes = [nodes.literal("", text) for text in texts]
    linked = nodes.reference("", "", nodes.literal("", "mf.open"))
    title = nodes.title("", "", nodes.literal("", "mf.open"))
    sections = [
        nodes.section("", title, nodes.paragraph("", "", *codes, linked)),
        nodes.section("", nodes.paragraph("", "", nodes.literal("", "mf.open"))),
    ]
    tree = nodes.section("", *sections)
    app = SimpleNamespace(
        builder=SimpleNamespace(get_relative_uri=lambda page, to: f"{page}->{to}"),
        env=SimpleNamespace(domaindata={"py": {"objects": {}}}),
    )
    app.env.domaindata["py"]["objects"] = {
        "meshfeed.open": Entry("datasets", "meshfeed.open"),
        "meshfeed.Loader.report": Entry("loading", "meshfeed.Loader.report"),
    }
    hooks.link_names(app, tree, "guide")
    found = [
        (link.astext(), link["refuri"])
        for link in tree.findall(nodes.reference)
        if link.attributes.get("refuri")
    ]
    assert found == [
        ("mf.open(…)", "guide->datasets#meshfeed.open"),
        ("loader.report()", "guide->loading#meshfeed.Loader.report"),
        ("mf.open", "guide->datasets#meshfeed.open"),
    ]


def test_every_option_of_the_loader_is_in_a_group() -> None:
    assert mf.Loader.__doc__
    lines = mf.Loader.__doc__.splitlines()
    text = [line.removeprefix("    ") for line in lines]
    described = [m[1] for line in text if (m := re.match(r" {4}(\w+): ", line))]
    options = described[: described.index("InvalidArgumentError")]
    assert sorted(" ".join(hooks.OPTIONS.values()).split()) == sorted(options)
    hooks.group_options(None, "class", "meshfeed.Loader", mf.Loader, None, text)
    for title in hooks.OPTIONS:
        assert f"{title}:" in text
    assert "Args:" not in text


def test_signatures_show_no_private_types() -> None:
    given = "(specs: _types.Tree, remainder: _types.Remainder | None = None)"
    shown = '(specs: Tree, remainder: Literal["drop", "pad", "error"] | None = None)'
    function = (None, "function", "x", None, None)
    assert hooks.show_signature(*function, given, "_types.Tree") == (shown, "Tree")
    assert hooks.show_signature(*function, given, None) == (shown, None)
    assert hooks.show_signature(None, "class", "x", mf.Field, None, given, None) == ("", None)
    attribute = (None, "property", "x", mf.Loader.epoch, None)
    assert hooks.show_signature(*attribute, None, "") is None


def test_code_in_docstrings_is_code_on_the_site() -> None:
    lines = ["Takes `mf.Array`s, or *, ``x``.", "", ">>> a = `b`"]
    hooks.mark_code(None, "function", "x", None, None, lines)
    assert lines == [r"Takes ``mf.Array``\ s, or \*, ``x``.", "", ">>> a = `b`"]


def test_every_name_of_the_c_headers_is_on_a_page(tmp_path: Path) -> None:
    headers.build(pages.Site(tmp_path))
    written = "".join(path.read_text() for path in tmp_path.glob("reference/c/*.md"))
    names = set()
    for header in headers.HEADERS:
        text = (ROOT / "capi/include" / header).read_text()
        code = re.sub(r"/\*.*?\*/|//.*", "", text, flags=re.DOTALL)
        names |= set(re.findall(r"\b(mf_\w+)(?=\()|\b(MF_\w+)(?= =)", code))
    anchors = set(re.findall(r"^\(c-(.*)\)=$", written, re.MULTILINE))
    assert len(names) > 90
    assert {name.lower() for pair in names for name in pair if name} - anchors == set()


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](../README.md#b)", "[a](readme.md#b)"),
        ("[a](guides/layouts.py#b)", "[a](guides/layouts.ipynb#b)"),
        ("[a](../capi/README.md)", "[a](reference/c-library.md)"),
        ("[a](demo/digits.py)", "[a](source/docs/demo/digits.py.md)"),
        ("[a](../LICENSE)", "[a](source/LICENSE.md)"),
        ("[a](layouts)", "[a](source/docs/layouts.md)"),
        ("[a](guides/layout.html#v1=b)", '<a href="layout.html#v1=b">a</a>'),
        ("[a](https://b.c/d)", "[a](https://b.c/d)"),
        ("[a](#b)", "[a](#b)"),
        ("`[a](../README.md)`", "`[a](../README.md)`"),
        ("```md\n[a](../README.md)\n```\n", "```md\n[a](../README.md)\n```\n"),
        ("[a](absent.md)", "[a](absent.md)"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site(link: str, expected: str, tmp_path: Path) -> None:
    assert pages.Site(tmp_path).linked(link, "docs/x.md", "x.md") == expected


def test_pictures_have_names_of_their_own() -> None:
    svg = '<svg id="a"><use href="#a"/><g clip-path="url(#a)" grid="a"/></svg>'
    assert hooks.numbered(svg, 7) == svg.replace('id="a"', 'id="svg7-a"', 1).replace(
        "#a", "#svg7-a"
    )


def test_the_program_on_the_start_page_loads(tmp_path: Path) -> None:
    """Eight devices are asked for, and the weights are the labels of the last batch."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", START, re.DOTALL | re.MULTILINE)
    before = """
import jax, numpy as np, pyarrow as pa, meshfeed as mf
from jax.sharding import PartitionSpec as P
jax.config.update("jax_num_cpu_devices", 8)
table = pa.table({"label": np.arange(4096, dtype=np.int32)})
with pa.ipc.new_file("train-0.arrow", table.schema) as writer:
    writer.write_table(table)
weights, step = 0, lambda weights, batch: batch["label"]
"""
    after = "assert (weights.shape, dict(mesh.shape)) == ((256,), {'data': 4, 'model': 2})"
    source = f"import os\nos.chdir({str(tmp_path)!r})\n{before}{program}{after}\n"
    assert "batches the loop waited" in run(source)


def test_a_guide_in_go_becomes_a_program(tmp_path: Path) -> None:
    """tests/python/docs/test_guide_gomlx.py compiles and runs these blocks."""
    source = ROOT / "docs/guides/gomlx.md"
    page = pages.Site(tmp_path)._with_program(source.read_text(), source)
    assert "| 50 MB |\n\n{download}`Program <../downloads/gomlx.go>`\n\nThe Go blocks" in page
    program = (tmp_path / "downloads/gomlx.go").read_text()
    assert program.startswith("package main\n")
    assert program.count("package main") == program.count("func main()") == 1


@pytest.mark.skipif(find_spec("jupytext") is None, reason="MESHFEED_DEEP=1: make site builds it")
def test_a_guide_becomes_a_notebook(tmp_path: Path) -> None:
    site = pages.Site(tmp_path)
    site.build()
    shown = json.loads((tmp_path / "guides/layouts.ipynb").read_text())
    assert "{download}`" in "".join(shown["cells"][0]["source"])
    assert "ruff" not in json.dumps(shown["cells"][0])
    given = json.loads((tmp_path / "downloads/layouts.ipynb").read_text())
    assert [len(c["source"]) > 0 for c in given["cells"]] == [True] * len(shown["cells"])


# A stand-in for Python: it says where a build keeps temporary files, and leaves one there.
PROGRAM = """#!/bin/sh
echo "$TMPDIR"
touch "$TMPDIR/train.arrow"
mkdir -p .build/site/html
exit $EXIT
"""


@pytest.mark.parametrize("code", [0, 1])
def test_a_build_has_a_temporary_folder_of_its_own(code: int, tmp_path: Path) -> None:
    """A clean-up of the system's temporary folder once removed the data of a running guide."""
    script = tmp_path / "docs/build.sh"
    script.parent.mkdir()
    shutil.copy(ROOT / "docs/build.sh", script)
    program = tmp_path / "python"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    env = {**os.environ, "EXIT": str(code)}
    builds = [
        subprocess.run([script, program], env=env, stdout=subprocess.PIPE, text=True, check=False)
        for _ in range(2)
    ]
    folders = [Path(build.stdout.strip()) for build in builds]
    assert [build.returncode for build in builds] == [code, code]
    assert [folder.parent for folder in folders] == [tmp_path / ".build/site"] * 2
    assert folders[0] != folders[1]
    assert not any(folder.exists() for folder in folders)
