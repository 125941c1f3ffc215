"""Train a language model on packed rows of two sources, kill it, and resume elsewhere.

    make demo-lm          (or: python docs/demo-lm/lm.py --out demo-lm-out)

It shows, in order:

- text that every Python has, as documents of tokens, packed into rows of 512;
- two processes that train a small transformer together on a 4 by 2 mesh, with the batch split over
  "data" and each row over "seq"; 80 % of the rows are code, and 50 % from step 81 on;
- a process that is killed by SIGKILL, and one process that resumes on a 2 by 4 mesh;
- a check that each byte of each global batch is the byte of an undisturbed run;
- a report with the loss of each source, padding, throughput and the time spent waiting for data.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "drill"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "demo"))

import blocks
import corpus
import numpy as np
import report
from corpus import BATCH, LENGTH, STEPS
from processes import Run, complete, say, start, wait

import meshfeed as mf

HERE = Path(__file__).resolve().parent
KILLED, AT = 1, 110  # the process, and a step after which it is killed
BOUND = 1.68  # rows: how far mf.mix may be off a share after every 64 rows

Batch = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("demo-lm-out"), help="folder for files")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("*.jsonl"), *out.glob("weights-*.npz"), *out.glob("state.json")):
        old.unlink()
    corpus.write(out)
    sources = corpus.packed(out)
    for name, ds in sources.items():
        found = ds.packing()
        say(
            f"{name}: {found['documents']:,} documents of {found['tokens']:,} tokens in "
            f"{found['rows']:,} rows of {LENGTH}, {found['real']:.2%} full"
        )
    before = disturbed(out)
    state = (out / "state.json").read_bytes()
    after = resumed(out)
    results = report.Results(
        before=before.together(),
        after=after.together(),
        batches=undisturbed(corpus.mixture(sources)),
        packing={name: ds.packing() for name, ds in sources.items()},
        state=len(state),
    )
    check(results)
    check_shares(results.batches)
    for name, value in report.facts(results).items():
        print(f"{name:<26}{value}")
    report.write(out / "report.html", results)
    print(f"\nReport: {out / 'report.html'}")
    check_losses(results)


def disturbed(out: Path) -> Run:
    """Runs two processes, and kills one of them."""
    run = start("before", out, HERE / "train.py", [4, 4], "--seq", 2)
    try:
        say("2 processes of 4 devices train together, on a 4 by 2 mesh")
        wait(run, lambda: run.steps(KILLED) >= AT)
        run.processes[KILLED].send_signal(signal.SIGKILL)
        say(f"process {KILLED} is killed by SIGKILL after step {run.steps(KILLED)}")
    finally:
        run.end()
    return run


def resumed(out: Path) -> Run:
    """Continues with one process."""
    say("1 process of 8 devices continues from the last save, on a 2 by 4 mesh")
    run = start("after", out, HERE / "train.py", [8], "--seq", 4)
    complete(run)
    return run


def undisturbed(mixture: mf.Dataset) -> list[Batch]:
    """Returns all global batches of a run that nothing disturbs, without a mesh or JAX."""
    with mf.Loader(mixture, batch_size=BATCH, epochs=-1) as loader:
        batches = iter(loader)
        return [next(batches) for _ in range(STEPS)]


def check(results: report.Results) -> None:
    """Compares each batch of both runs with the undisturbed run."""
    compared = blocks.compare_all([*results.before, *results.after], results.batches)
    before, after = ([step[0]["step"] for step in run] for run in (results.before, results.after))
    if before != list(range(1, len(before) + 1)) or after != list(range(after[0], STEPS + 1)):
        sys.exit(f"the steps are {before}, and after the resume {after}")
    if not 1 < after[0] <= before[-1]:
        sys.exit(f"{before[-1]} steps came before the kill, and the resume began at {after[0]}")
    say(f"steps 1 to {STEPS}: {compared:,} blocks on devices have the bytes of an undisturbed run")
    say(f"steps {after[0]} to {before[-1]} came twice, with the same bytes")


def check_shares(batches: list[Batch]) -> None:
    worst = report.deviation(batches)
    if worst > BOUND:
        sys.exit(f"a source is {worst:.2f} rows off its share; the bound is {BOUND}")


def check_losses(results: report.Results) -> None:
    for source, losses in results.losses().items():
        if not losses[-1] < 0.85 * losses[0]:
            sys.exit(f"the loss of {source} went from {losses[0]:.2f} to {losses[-1]:.2f} only")


if __name__ == "__main__":
    main()
