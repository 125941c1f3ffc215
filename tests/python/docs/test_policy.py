"""What the pages on monitoring, versions and security say is so in the code."""

from __future__ import annotations

import contextlib
import inspect
import re

import numpy as np
import pytest

import meshfeed as mf
from meshfeed._io import arguments
from meshfeed._jobs import peers, stalls
from tests.python import ROOT
from tests.python.programs import run

PAGES = {path.stem: path.read_text() for path in (ROOT / "docs").glob("*.md")}
MONITORING = PAGES["monitoring"]


def section(page: str, title: str) -> str:
    """Returns the text below a heading."""
    return PAGES[page].split(f"\n## {title}\n")[1].split("\n## ")[0]


def quoted(text: str) -> list[str]:
    """Returns the first quoted words of each row of a table."""
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def test_every_number_of_stats_is_explained() -> None:
    with mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=2) as loader:
        assert sorted(loader.stats()) == sorted(quoted(section("monitoring", "Numbers")))


def test_every_option_of_a_loader_is_explained() -> None:
    page = (ROOT / "docs/reference/options.md").read_text()
    listed: dict[str, str] = {}
    for names, defaults in re.findall(r"^\| (`.*?`) \| (`.*?`) \|", page, re.MULTILINE):
        pair = (re.findall(r"`([^`]+)`", cell) for cell in (names, defaults))
        listed |= dict(zip(*pair, strict=True))
    (order,) = re.findall(r"^\| `shuffle`, `order` \| .*", page, re.MULTILINE)
    assert set(re.findall(r'`"(\w+)"`', order)) == set(arguments.ORDERS)
    parameters = inspect.signature(mf.Loader.__init__).parameters
    assert listed == {
        name: repr(parameter.default)
        for name, parameter in parameters.items()
        if name not in ("self", "source")
    }


def test_the_report_of_the_page() -> None:
    """The step may last less than the work of a busy machine, so one run of ten has to pass."""
    (program,) = re.findall(r"^```python\n(.*?)^```", MONITORING, re.DOTALL | re.MULTILINE)
    for _ in range(9):
        with contextlib.suppress(AssertionError):
            run(program)
            return
    run(program)


def test_every_span_of_a_trace_is_explained() -> None:
    source = "".join(path.read_text() for path in (ROOT / "python/meshfeed").rglob("*.py"))
    spans = set(
        re.findall(r'marke?[ds]\([^()]*?"(meshfeed\.\w+)"(?: if \w+ else "(\S+)")?', source)
    )
    assert {span for pair in spans for span in pair} - {""} == set(
        quoted(section("monitoring", "Trace"))
    )


def test_log_lines_are_in_the_code() -> None:
    rows = re.findall(r"^\| .* \| (.*`) \|$", section("monitoring", "Log lines"), re.MULTILINE)
    assert len(rows) == 12
    source = "".join(path.read_text() for path in (ROOT / "python/meshfeed").rglob("*.py"))
    source = re.sub(r"\{\w+(?:\['\w+'\])?\}|%s", "X", source)
    for row in rows:
        for words in re.findall(r"`([^`]+)`", row):
            words = re.sub(r"^loader NAME: (?:mf\.Loader: )?|\b[PE]\b.*", "", words).strip()
            assert words in source, words


def test_exit_codes() -> None:
    main = (ROOT / "cmd/meshfeed/main.go").read_text()
    codes = re.findall(r"^\| (\d+) \|", section("monitoring", "Exit codes"), re.MULTILINE)
    assert int(codes[0]) == mf.EXIT_PEER_ERROR
    assert codes[1:] == re.findall(r"^\texit\w+ += (\d+)$", main, re.MULTILINE)


def test_time_outs() -> None:
    text = section("monitoring", "Time-outs")
    defaults = inspect.signature(mf.Loader.__init__).parameters
    for name in ("agree_timeout", "late_after"):
        assert f"`{name}={defaults[name].default:g}` s" in text
    end, abort = (f"{seconds:g} s" for seconds in peers.PATIENCE.values())
    assert f'{end}; with `on_peer_error="abort"` {abort}' in text
    assert stalls.LATE_FACTOR == 5
    assert "or five usual steps" in MONITORING


@pytest.mark.parametrize("page", ["versioning", "security", "monitoring", "architecture"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    paths = re.findall(r"`((?:[\w.-]+/)+[\w.-]+)`", PAGES[page])
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_what_is_frozen_is_in_the_golden_files() -> None:
    abi = (ROOT / "capi/abi.txt").read_text()
    for code in mf.Code:
        assert re.search(rf"^MF_\w+ = {code.value}$", abi, re.MULTILINE)
    orders = (ROOT / "core/sampler/testdata/orders.json").read_text()
    for name in ("sequential.1", "shuffle.1", "local.1:", "blocks.1:"):
        assert name in orders


def test_the_oldest_supported_releases_are_in_the_manifests() -> None:
    rows = re.findall(
        r"^\| (\w+) \| [^|]+ \| from ([\d.]+) on", section("versioning", "Supported releases"), re.M
    )
    project = (ROOT / "pyproject.toml").read_text()
    (go,) = re.findall(r"^go (\d+\.\d+)", (ROOT / "go.mod").read_text(), re.MULTILINE)
    (python,) = re.findall(r'^requires-python = ">=(.*)"', project, re.MULTILINE)
    (jax,) = re.findall(r'^jax = \["jax>=(.*)"\]', project, re.MULTILINE)
    (numpy,) = re.findall(r'^dependencies = \["numpy>=(.*)"\]', project, re.MULTILINE)
    assert dict(rows) == {"Python": python, "JAX": jax, "NumPy": numpy, "Go": go}


def test_every_kind_of_input_has_a_fuzz_target() -> None:
    tests = [path for path in ROOT.glob("*/**/*_test.go") if "node_modules" not in path.parts]
    fuzzed = {
        (str(path.parent.relative_to(ROOT)), name)
        for path in tests
        for name in re.findall(r"^func (Fuzz\w+)\(", path.read_text(), re.MULTILINE)
    }
    folders = {folder for folder, _ in fuzzed}
    assert {"internal/arrowmeta", "core/layout/document", "core/certificate"} <= folders
    assert {f"core/plan/{kind}/document" for kind in ("strategy", "memory", "diagram")} <= folders
    assert {("core/loader", "FuzzParseState"), ("arrowio/tensors", "FuzzOpen")} <= fuzzed


def test_serve_is_for_this_machine() -> None:
    serve = (ROOT / "cmd/meshfeed/serve.go").read_text()
    assert 'net.JoinHostPort("127.0.0.1",' in serve
    assert 'if host != "127.0.0.1" && host != "localhost"' in serve


def test_the_glossary_is_sorted() -> None:
    terms = re.findall(r"^- \*\*(.*?)\*\*: ", PAGES["architecture"], re.MULTILINE)
    assert len(terms) > 20
    assert terms == sorted(terms)
