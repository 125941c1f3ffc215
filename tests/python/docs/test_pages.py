"""The pages that follow from the code are current, and the symptoms on them are real."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from collections import Counter
from types import ModuleType
from typing import Any

import pytest

import meshfeed as mf
from tests.python import ROOT
from tests.python.docs.test_readme import headings
from tests.python.programs import run

GROUPS = tomllib.loads((ROOT / "docs/troubleshooting.toml").read_text())["groups"]
ITEMS: list[dict[str, str]] = [item for group in GROUPS for item in group["items"]]
RUN = [item for item in ITEMS if "program" in item]
FOUND = [item for item in ITEMS if "file" in item]

# Runs the programs of all symptoms in one process, and prints what each raised or logged.
DRIVER = """
import inspect, json, logging, os, tempfile
import jax, numpy as np, pyarrow as pa, pyarrow.parquet
from jax.sharding import Mesh, PartitionSpec as P
import meshfeed as mf

jax.config.update("jax_num_cpu_devices", 8)
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
ds = mf.from_arrays({{"x": np.arange(100, dtype=np.int32)}})

def write(name):
    table = pa.table({{"x": pa.array(np.arange(1000, dtype=np.int32))}})
    with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)

def source(name):
    with open(os.path.join({root!r}, name)) as file:
        return file.read()

class Lines(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())

logging.getLogger("meshfeed").addHandler(Lines())
for program in {programs!r}:
    said = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            exec(program, dict(globals()))
        except Exception as error:
            said.append(f"{{type(error).__name__}}: {{error}}")
        os.chdir("/")
    print(json.dumps("\\n".join(said)))
"""


def pages() -> ModuleType:
    """Imports docs/pages.py, which imports a module beside it."""
    sys.path.insert(0, str(ROOT / "docs"))
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["pages"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES: dict[str, Any] = pages().PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_current(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name](), "make pages, and read the changes"


def test_symptoms_are_what_the_programs_show() -> None:
    code = DRIVER.format(root=str(ROOT), programs=[item["program"] for item in RUN])
    said = [json.loads(line) for line in run(code).splitlines()]
    assert len(said) == len(RUN)
    for item, text in zip(RUN, said, strict=True):
        if item["see"].startswith("("):
            assert text == "", item["see"]
        else:
            assert item["see"] in text


@pytest.mark.parametrize("item", FOUND, ids=[item["see"] for item in FOUND])
def test_other_symptoms_are_in_the_code(item: dict[str, str]) -> None:
    def letters(text: str) -> str:
        return re.sub(r'["\s\\]|^ *f(?=")', "", text)

    files = sorted(ROOT.glob(item["file"]))
    assert any(letters(item["see"]) in letters(path.read_text()) for path in files)


def test_every_symptom_is_checked() -> None:
    assert len(RUN) + len(FOUND) == len(ITEMS)
    for item in ITEMS:
        assert item["why"].endswith(".")
        assert item["do"].endswith(".")


def test_every_error_class_has_a_remedy() -> None:
    classes = {name for name in dir(mf) if name.endswith("Error") and name != "Error"}
    assert classes == set(pages().REMEDIES)


def test_the_rules_behind_the_packages() -> None:
    """Those that docs/architecture.md lists, and tests/arch does not say in these words."""
    used = sys.modules["drawings"].imported()
    plans = {"core/layout", "core/plan/strategy", "core/plan/memory", "core/plan/diagram"}
    reads = {"arrowio", "arrowio/cstream", "arrowio/tensors"}
    assert all(not p.startswith("arrowio") for package in plans for p in used[package])
    assert all("core/mesh" not in used[package] for package in reads)
    loads = used["core/loader"] | used["arrowio"]
    assert not {p for p in loads if p.endswith(("/document", "/picture")) or p.startswith("cmd/")}


def test_every_item_of_the_material_is_somewhere() -> None:
    """Four texts about sharding have 127 items. Each one is in a guide, or there is a reason."""
    items = json.loads((ROOT / "tests/python/docs/material.json").read_text())
    counts = Counter(item["from"] for item in items)
    assert counts == {"Q": 31, "G": 27, "J": 37, "S": 32}
    for item in items:
        assert set(item) <= {"from", "item", "where", "not"}
        assert item["where"] or item["not"].endswith(".")
        for page, _, anchor in (link.partition("#") for link in item["where"]):
            assert not anchor or anchor in headings(ROOT / "docs" / page), (page, anchor)
    assert len({(item["from"], item["item"]) for item in items}) == len(items)


def test_every_problem_of_a_layout_is_explained() -> None:
    """`meshfeed explain` lists the codes of layouts, and docs/pages.py splits them from rules."""
    text = (ROOT / "docs/troubleshooting.md").read_text()
    go = (ROOT / "core/layout/codes.go").read_text()
    codes = re.findall(r'problem\.Code = "([a-z-]+)"', go)
    assert len(codes) > 20
    for code in [*codes, "indivisible", "device-capacity", "nothing-fits", "input-slow"]:
        assert f"| `{code}` |" in text
    assert "`tensor-heads`" not in text


def test_the_commands_of_the_remedies_exist() -> None:
    verbs = set(re.findall(r"^  ([a-z]+) ", pages().run("--help"), re.MULTILINE))
    owners = {"loader": mf.Loader, "ds": mf.Dataset, "mf": mf}
    named = 0
    for item in ITEMS:
        words = f"{item['do']} {item['run']}"
        for verb in re.findall(r"`(?:python -m )?meshfeed ([a-z]+)", words):
            assert verb in verbs
            named += 1
        for owner, name in re.findall(r"\b(loader|ds|mf)\.(\w+)", words):
            assert hasattr(owners[owner], name), name
            named += 1
    assert named > 25
