"""The self-check: it passes on CPU devices, finds faults that are put in, and reports both."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import jax
import numpy as np
import pytest

import meshfeed as mf
from meshfeed._selfcheck import checks, command, timing
from meshfeed._selfcheck import run as running
from meshfeed._selfcheck.report import Rates, Report, Result, Steps
from meshfeed._selfcheck.timing import Times, cases, summary

SMALL = checks.Size(rows=64, batch=16, width=64, flight=20, reuse=40)
CHECKS = checks.every(SMALL)


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_passes(name: str) -> None:
    print(CHECKS[name]())


@pytest.mark.parametrize("name", [name for name in CHECKS if name != "memory returned"])
def test_a_check_finds_other_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = mf.Loader.records

    def shifted(self: mf.Loader, epoch: int, position: int) -> Any:
        return (true(self, epoch, position) + 1) % 64

    monkeypatch.setattr(mf.Loader, "records", shifted)
    with pytest.raises(checks.Mismatch):
        CHECKS[name]()


def test_a_batch_that_is_kept_is_found() -> None:
    loader = mf.Loader(mf.from_arrays({"x": np.arange(8)}), batch_size=4)
    batch = next(iter(loader))
    with pytest.raises(checks.Mismatch, match=r"^1 batches are still live$"):
        CHECKS["memory returned"]()
    del batch
    assert CHECKS["memory returned"]() == "no live batches"


def test_x64_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not jax.config.jax_enable_x64  # type: ignore[attr-defined]
    assert CHECKS["bytes of 64-bit types"]() == "4 batches of 4 types"
    assert not jax.config.jax_enable_x64  # type: ignore[attr-defined]


def test_a_type_that_the_device_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    true = checks._holds
    monkeypatch.setattr(checks, "_holds", lambda name, s: name != "complex64" and true(name, s))
    expected = "4 batches of 10 types; JAX itself does not put complex64 there"
    assert CHECKS["bytes in device memory"]() == expected


def test_a_run_reports_everything() -> None:
    said: list[str] = []
    report = running.run(0.001, size=SMALL, shrink=64, rounds=2, say=said.append)
    assert report.passed
    assert [check.name for check in report.checks] == list(CHECKS)
    assert [rates.case for rates in report.rates] == [case.name for case in cases(64)]
    assert [steps.asked for steps in report.steps] == [0.0, 0.001, 0.01]
    assert not report.untimed
    assert said[: len(CHECKS)] == list(CHECKS)
    for rates in report.rates:
        assert set(rates.closed) == {"meshfeed", "by hand", "put", "pinned"}
        assert all(rate > 0 for rate in (*rates.closed.values(), *rates.pipelined.values()))
        assert 0 < rates.next_p50 <= rates.next_p99
    assert json.loads(report.to_json())["machine"]["meshfeed"] == mf.__version__
    assert report.markdown().startswith("# meshfeed selfcheck: passed\n")


def test_a_run_survives_a_check_that_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise OSError("no such device")

    def out_of_memory(case: Any, seconds: float, rounds: int) -> Rates:
        raise RuntimeError("RESOURCE_EXHAUSTED: 7 GiB")

    monkeypatch.setattr(checks, "every", lambda size: {"one": broken, "two": lambda: "fine"})
    monkeypatch.setattr(timing, "measure", out_of_memory)
    report = running.run(0.001, size=SMALL, shrink=64)
    assert [(check.passed, check.text) for check in report.checks] == [
        (False, "could not run: OSError: no such device"),
        (True, "fine"),
    ]
    assert report.verdict() == (
        "1 of 2 checks FAILED on 8 x cpu (cpu) (one): do not train on these batches, and report "
        "this page. Nothing was measured: RuntimeError: RESOURCE_EXHAUSTED: 7 GiB."
    )


def test_the_page() -> None:
    ratio = (2.0, 1.5, 2.5)
    loops = {"meshfeed": 100.0, "by hand": 50.0, "put": 200.0, "pinned": 400.0}
    rates = Rates("tokens | odd", 4, 2**21, 0.002, 0.0035, loops, loops, ratio, ratio, 1000.0)
    times = {"device_prefetch=0": 0.0125, "device_prefetch=1": 0.01005, "by hand": 0.03}
    steps = [Steps("tokens", 0.01, 0.010, times)]
    report = Report({"devices": "1 x H"}, [Result("bytes", True, "4\nbatches", 0.25)])
    report.rates, report.steps = [rates], steps
    verdict = (
        "All 1 checks passed on 1 x H. A batch of 2.0 MiB is ready 2.00 ms after `next` is called "
        "(99th percentile 3.50 ms), 2.00 (1.50 to 2.50) times the speed of np.take with "
        "jax.device_put; that is 0.2 GB/s, where a transfer without any loading reaches 0.8 GB/s. "
        "Beside a step of 10.00 ms the input of such a batch adds nothing measurable with "
        "device_prefetch=1, and 20.00 ms by hand."
    )
    assert report.verdict() == verdict
    lines = report.markdown().splitlines()
    assert lines[:3] == ["# meshfeed selfcheck: passed", "", verdict]
    assert "| bytes | ok | 4 batches | 0.2 |" in lines
    assert (
        r"| tokens \| odd | 2.0 MiB | 2.00 ms, 3.50 ms | 400 | 2.00 (1.50 to 2.50) | 400 "
        "| 2.00 (1.50 to 2.50) |"
    ) in lines
    assert (
        r"| tokens \| odd | 0.21 | 0.10 | 0.42 | 0.84 | 0.21 | 0.10 | 0.42 | 0.84 | 2.10 |"
    ) in lines
    assert "| tokens | 10 ms | 10.00 ms | 12.50 ms | 10.05 ms | 30.00 ms |" in lines
    report.shared = True  # then "pinned" is not a transfer
    assert "reaches 0.4 GB/s" in report.verdict()


def test_rounds_are_summarized() -> None:
    def part(rate: float, *times: float) -> Times:
        return Times(list(times), rate, 2 * rate)

    loops = {"meshfeed": [part(4, 1, 2), part(6, 3, 4)], "by hand": [part(1, 9), part(3, 9)]}
    found = summary(cases(64)[1], loops, [8.0, 7.0])
    assert found.next_p50 == 2.5
    assert found.closed["meshfeed"] == 5
    assert found.pipelined["by hand"] == 4
    assert found.closed_ratio == pytest.approx((3.0, 2.2, 3.8))
    assert found.copy == 8


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report({"devices": "1 x H"}, [Result("bytes", True, "fine", 0)], untimed="asked for")
    asked: list[float] = []

    def given(minutes: float, **_: Any) -> Report:
        asked.append(minutes)
        return report

    monkeypatch.setattr(running, "run", given)
    assert command.main(["--minutes", "0.5"]) == 0
    assert capsys.readouterr().out.startswith("# meshfeed selfcheck: passed\n")
    report.checks.append(Result("replicas", False, "differ", 0))
    assert command.main(["--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False
    assert asked == [0.5, 2.0]


@pytest.mark.parametrize("minutes", ["0", "-1", "61", "nan", "soon"])
def test_the_command_refuses_minutes(minutes: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        command.main(["--minutes", minutes])
    assert f"'{minutes}'" in capsys.readouterr().err


def test_the_command_ends_with_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(minutes: float, **_: Any) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run", interrupted)
    assert command.main([]) == 130
    assert capsys.readouterr().err == "meshfeed: interrupted\n"


def test_the_command_without_jax() -> None:
    program = "import sys; sys.modules['jax'] = None; from meshfeed._command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "selfcheck"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("meshfeed: the self-check needs JAX: ")
    assert done.stderr.endswith('  pip install "jax>=0.8", or the build for your accelerator\n')


@pytest.mark.deep
def test_the_program_as_a_user_runs_it() -> None:
    line = [sys.executable, "-m", "meshfeed", "selfcheck", "--json", "--minutes", "0.2"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["passed"] is True
