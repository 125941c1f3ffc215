"""All code of the README and the pages beside it runs as it is printed.

Every block of these pages is a whole program.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest

import meshfeed as mf
from tests.python import ROOT
from tests.python.programs import HANG

pytestmark = pytest.mark.plain

README = (ROOT / "README.md").read_text()
INSTALL = (ROOT / "docs/install.md").read_text()
LANGUAGES = (ROOT / "docs/languages.md").read_text()
PUBLISHED = {  # lines that need a release
    "go install github.com/meshfeed/meshfeed/cmd/meshfeed@latest",
    "go get github.com/meshfeed/meshfeed@latest",
}
RECORDS = [300, 41, 256]  # of the files


def blocks(language: str, page: str = README) -> list[str]:
    """Returns the blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def write_digits(folder: Path) -> None:
    """Writes the files that the README names: uneven ones, of images of 8 by 8."""
    folder.mkdir(parents=True)
    for i, n in enumerate(RECORDS):
        pixels = pa.array(np.random.default_rng(i).random(n * 64, np.float32))
        rows = pa.FixedSizeListArray.from_arrays(pixels, 8)
        table = pa.table(
            {
                "image": pa.FixedSizeListArray.from_arrays(rows, 8),
                "label": pa.array(np.arange(n, dtype=np.int32) % 10),
            }
        )
        with pyarrow.ipc.new_file(folder / f"train-{i}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=100)


def run(folder: Path, *command: str | Path, **env: str) -> str:
    """Returns what a command prints, without the devices that the tests ask JAX for."""
    inherited = {k: v for k, v in os.environ.items() if k != "JAX_NUM_CPU_DEVICES"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(ROOT / "python")} | env,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(folder: Path, program: str, **env: str) -> str:
    """Returns what a Python program prints."""
    return run(folder, sys.executable, "-c", program, **env)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 100


def test_the_quickstart_needs_one_device_and_no_file(tmp_path: Path) -> None:
    """On eight devices, as its comments say how, it computes the same."""
    check = """
import json
print()
print(json.dumps([len(batch["x"].sharding.device_set), loader.state(), weights.tolist()]))
loader.close()
"""
    example = blocks("python")[0]
    report, result = python(tmp_path, example + check).rsplit("\n\n", 1)
    assert report.startswith("In 43 batches the loop waited for data for ")
    devices, state, weights = json.loads(result)
    assert devices == 1
    assert (state["epoch"], state["position"], state["records"]) == (3, 0, 1000)
    (variable,) = re.findall(r"# (JAX_NUM_CPU_DEVICES)=8: eight devices", example)
    printed = python(tmp_path, example + check, **{variable: "8"})
    again = json.loads(printed.splitlines()[-1])
    assert again[:2] == [8, state]
    np.testing.assert_allclose(again[2], weights, atol=1e-5)
    np.testing.assert_allclose(weights, 1, atol=0.1)  # y is the sum of x: it learns


def test_the_program_of_many_processes_is_run_by_a_job() -> None:
    """By tests/distributed/test_readme.py."""
    assert blocks("python")[1].count("jax.distributed.initialize()") == 1


def test_the_table_of_the_bug() -> None:
    """The rows by mesh follow from the layouts.

    tests/python/docs/test_guides.py finds the sums by rank in the output of the guide.
    """
    table = [line.split("|")[2:-1] for line in README.splitlines() if line.startswith("| process")]
    *_, sums = [line.split("|")[2:-1] for line in README.splitlines() if line.startswith("| sum")]
    ds = mf.from_arrays({"x": np.arange(16)})
    assert len(table) == 4
    for column, axes in ((1, {"data": 4, "model": 2}), (3, {"model": 2, "data": 4})):
        layout = mf.layout(axes, mf.P("data"), ds, batch_size=16, processes=4)
        rows = [report["rows"] for report in layout.report()["processes"]]
        assert [row[column].strip() for row in table] == [
            f"rows {first} to {end - 1}" for ((first, end),) in rows
        ]
        by_rank = [row[column - 1].strip() for row in table]
        assert by_rank == [f"rows {first} to {first + 3}" for first in range(0, 16, 4)]
        span = 4 // rows.count(rows[0])  # of one copy of the model, in processes
        copies = [sum(range(4 * p, 4 * (p + span))) for p in range(0, 4, span)]
        assert sums[column - 1].strip(" *") == " or ".join(map(str, copies))
        assert sums[column].strip() == str(sum(range(16)))


def section_of(page: str, title: str) -> str:
    """Returns a section of a page, without its heading."""
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_speed_is_that_of_the_benchmarks() -> None:
    """README.md and docs/choose.md have the numbers of docs/benchmarks.md, rounded."""
    benchmarks = (ROOT / "docs/benchmarks.md").read_text()
    choose = " ".join((ROOT / "docs/choose.md").read_text().split())
    readme, text = (" ".join(page.split()) for page in (README, benchmarks))
    summary = r"In (\d+) warm cells, closed, meshfeed was ([\d.]+) to ([\d.]+) times as fast"
    cells, least, most = re.findall(summary, text)[0]
    stated = f"is {float(least):.1f} to {float(most):.1f} times as fast"
    assert stated in readme
    assert stated in choose
    assert f"in {cells} warm cells" in choose
    job = section_of(benchmarks, "Many processes")
    times = [float(x) for x in re.findall(r"^\| (?:[^|]+ \| ){4}\**([\d.]+)", job, re.MULTILINE)]
    assert len(times) == 6
    assert f"takes {1 / max(times):.2f} to {1 / min(times):.2f} times as long as by hand" in readme
    slower = sum(value < 1 for value in times)
    assert f"slower than a loop by hand in {slower} of {len(times)} cells" in choose


def test_the_speed_of_parquet_is_that_of_the_benchmarks() -> None:
    """The README has the smallest and the largest ratio of two loops, in both epochs."""
    benchmarks = (ROOT / "docs/benchmarks.md").read_text()
    section = section_of(benchmarks, "Parquet files, shuffled")
    ours, by_hand = (
        [int(cell.split()[0].replace(",", "")) for cell in line.split(" | ")[1:7]]
        for loop in ("meshfeed, disk", "pyarrow, window")
        for line in re.findall(rf"^\| {loop} \| .*", section, re.MULTILINE)
    )
    faster = [mine / other for mine, other in zip(ours, by_hand, strict=True)]
    first, later = ((min(epoch), max(epoch)) for epoch in (faster[::2], faster[1::2]))
    stated = (
        f"is {first[0]:.2f} to {first[1]:.2f} times as fast as a shuffle by hand over pyarrow, "
    )
    stated += f"and each later one {later[0]:.1f} to {later[1]:.1f} times"
    assert stated in " ".join(README.split())


def test_no_block_is_left_out() -> None:
    assert len(blocks("python")) == 2
    assert re.findall(r"^```(\w+)", README, re.M) == ["python"] * 2
    assert set(re.findall(r"^```(\w+)", INSTALL, re.M)) == {"sh"}
    assert re.findall(r"^```(\w+)", LANGUAGES, re.M) == ["go", "go", "go", "python", "go"]


def test_the_example_without_jax(tmp_path: Path) -> None:
    check = "import sys\nassert 'jax' not in sys.modules\n"
    printed = python(tmp_path, blocks("python", LANGUAGES)[0] + check)
    assert printed.count("array(") == 8 * 4
    assert printed.startswith("[array([0., 1.], dtype=float32), array([2., 3.], dtype=float32)")


def overlay(folder: Path, n: int) -> list[str]:
    """Puts a Go block into a package of the module, and returns the flags that show it there."""
    source = folder / f"readme{n}.go"
    source.write_text(blocks("go", LANGUAGES)[n])
    assert run(folder, "gofmt", "-l", source) == ""
    replace = {f"{ROOT}/readme{n}/main.go": f"{source}"}
    (folder / "overlay.json").write_text(json.dumps({"Replace": replace}))
    return ["-overlay", f"{folder}/overlay.json"]


def test_the_first_go_program(tmp_path: Path) -> None:
    write_digits(tmp_path / "data")
    program = tmp_path / "program"
    code = blocks("go", LANGUAGES)[0]
    assert code.count("github.com/meshfeed") == 2
    assert len(code.partition("func main")[2].splitlines()) == 20
    run(ROOT, "go", "build", *overlay(tmp_path, 0), "-o", program, "./readme0")
    lines = run(tmp_path, program).splitlines()
    assert len(lines) == sum(RECORDS) // 64
    assert all(re.fullmatch(r"\[(\d ){63}\d\] <nil>", line) for line in lines)


def test_the_go_program_of_a_mesh(tmp_path: Path) -> None:
    write_digits(tmp_path / "data")
    program = tmp_path / "program"
    run(ROOT, "go", "build", *overlay(tmp_path, 1), "-o", program, "./readme1")
    lines = run(tmp_path, program).splitlines()
    assert len(lines) == 4 * (sum(RECORDS) // 64)
    line = r"label of devices \[[0-3]\] begins with \[\d \d \d \d\]"
    assert all(re.fullmatch(line, text) for text in lines)


def test_the_program_from_records_to_gomlx(tmp_path: Path) -> None:
    program = tmp_path / "program"
    run(ROOT, "go", "build", *overlay(tmp_path, 2), "-o", program, "./readme2")
    step = "step {} (Float32)[8, 6] in shards of (Float32)[2, 3]\n"
    assert run(tmp_path, program) == step.format(0) + step.format(1)


def test_the_planner_in_go(tmp_path: Path) -> None:
    program = tmp_path / "program"
    run(ROOT, "go", "build", *overlay(tmp_path, 3), "-o", program, "./readme3")
    parts: list[Any] = [{"batch": 128}, {"devices": 8, "device": "h100-80"}]
    assert run(tmp_path, program) == mf.advise("llama3-8b", *parts).table()


def test_the_readme_names_the_plan_of_a_model(tmp_path: Path) -> None:
    (line,) = re.findall(r"`meshfeed (advise [^`]+)`", README)
    command = ROOT / "python/meshfeed/_bin/meshfeed"
    assert run(tmp_path, command, *line.split()).startswith("llama3-8b: 8,030,261,248 parameters")


def commands(readme: str = README, install: str = INSTALL) -> list[str]:
    """Returns the shell's lines without their comments, and the commands of the README's table."""
    lines = "".join(blocks("sh", install)).splitlines()
    table = re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE)
    assert len(table) == 3
    return [line.partition(" #")[0].strip() for line in lines] + table


def untried(lines: list[str]) -> set[str]:
    """Tries the lines for make, checks the words of those for pip, and returns the others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) | {""}
    others = set()
    for line in lines:
        variables = re.findall(r"(MESHFEED_\w+)=", line)
        assert all(name in (ROOT / "hatch_build.py").read_text() for name in variables)
        command = re.sub(r"^(?:\w+=\S+ )+", "", line)
        word, _, rest = command.partition(" ")
        if word == "make":
            run(ROOT, "make", "--dry-run", rest)
        elif command.startswith("pip install"):
            named = re.findall(r"\[(.*)\]", command)
            assert set(",".join(named).split(",")) <= extras
        else:
            others.add(command)
    return others


def test_every_shell_line_is_tried() -> None:
    """Or its like is: an installation by tests/python/package/test_wheel.py."""
    checkout = "github.com/meshfeed/meshfeed=/path/to/the/checkout"
    assert untried(commands()) - PUBLISHED == {
        "go install ./cmd/meshfeed",
        f"go mod edit -require github.com/meshfeed/meshfeed@v0.0.0 -replace {checkout}",
        "go mod tidy",
    }


def test_the_command_is_installed_by_go(tmp_path: Path) -> None:
    run(ROOT, "go", "install", "./cmd/meshfeed", GOBIN=str(tmp_path))
    assert run(tmp_path, tmp_path / "meshfeed", "--version").startswith("meshfeed ")


def test_a_go_module_names_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(blocks("go", LANGUAGES)[0])
    run(tmp_path, "go", "mod", "init", "example.com/stranger")
    edit = next(line for line in commands() if line.startswith("go mod edit"))
    run(tmp_path, *edit.replace("/path/to/the/checkout", str(ROOT)).split())
    (tmp_path / "go.sum").write_text((ROOT / "go.sum").read_text())
    run(tmp_path, "go", "build", "-mod=mod", "-o", tmp_path / "program", ".")


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "RATIONALE.md",
        "CHANGELOG.md",
        "CODE_OF_CONDUCT.md",
        "SECURITY.md",
        *sorted(ROOT.glob("docs/**/*.md")),
        "capi/README.md",
    ],
    ids=lambda page: Path(page).stem,
)
def test_links_lead_somewhere(page: str | Path) -> None:
    """To a file, and to a heading of it; layout.html is made by `make page`."""
    path = ROOT / page
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" in link or "layout.html" in link:
            continue
        name, _, heading = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        if heading:
            assert heading in headings(target), link


def test_every_decision_has_its_cost() -> None:
    """A decision of RATIONALE.md has a context, a decision and a cost, and is in a theme."""
    text = (ROOT / "RATIONALE.md").read_text()
    _, *decisions = re.split(r"^### ", text, flags=re.MULTILINE)
    assert len(decisions) > 50
    for decision in decisions:
        parts = re.findall(r"^- \*(\w+)\.\*", decision, re.MULTILINE)
        assert parts == ["Context", "Decision", "Cost"], decision.splitlines()[0]
    themes = re.findall(r"^## (.*)$", text, re.MULTILINE)
    linked = re.findall(r"\[(.*?)\]\(#", text[: text.index("\n## ")])
    assert [name[0].upper() + name[1:] for name in linked] == themes


PATHS = re.compile(r"`((?:[\w.*-]+/)+[\w.*-]*|[\w-]+\.(?:md|toml|py))`")


def test_the_paths_that_contributors_need() -> None:
    """All files and folders that CONTRIBUTING.md names exist, and so do its make targets."""
    text = prose(ROOT / "CONTRIBUTING.md")
    named = set(PATHS.findall(text))
    assert len(named) > 60
    assert [path for path in sorted(named) if not any(ROOT.glob(path.rstrip("/")))] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"`(?:REWRITE=1 )?make ([a-z-]+)`", text)) <= set(targets)


def prose(page: Path) -> str:
    """Returns a page without its code."""
    return re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page's headings."""
    text = prose(page)
    if page.suffix == ".py":  # the text of a guide is in comments
        text = re.sub("^# ", "", text, flags=re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_versions() -> None:
    assert "of JAX from 0.8 on" in README
    assert "asks for JAX from 0.8 on" in INSTALL
    project = (ROOT / "pyproject.toml").read_text()
    assert 'jax = ["jax>=0.8"]' in project
    assert 'requires-python = ">=3.11"' in project
    assert "every Python from 3.11" in INSTALL
    (go,) = re.findall(r"^go (\S+)$", (ROOT / "go.mod").read_text(), re.MULTILINE)
    assert f"Go {go} or later" in README
    assert f"Go {go} or later" in INSTALL
    assert mf.__version__
