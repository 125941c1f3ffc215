"""Ctrl-C and `sys.exit` inside `with`: nobody waits for the release, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.python.test_process import HANG, START, run, started

# A release that waits until it is let go, as it would for a file that does not answer.
HELD = """
    from meshfeed import _library
    lib = _library.library()
    release, events, go = lib.mf_release, [], threading.Event()
    def held(handle, error):
        go.wait(20)
        events.append("released on " + threading.current_thread().name)
        return release(handle, error)
    def live():
        return lib.mf_live_handles()
    before = live()
    ds = mf.from_arrays({"x": np.arange(1000, dtype=np.int32)})
    it = mf.Loader(ds, batch_size=10)
    ds._handle._release = it._engine.cursor.handle._release = lib.mf_release = held
"""


@pytest.mark.parametrize("what", ["it", "ds"])
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_an_interrupt_does_not_wait_for_the_release(what: str, error: str) -> None:
    out = run(
        HELD
        + f"""
    batch = next(iter(it))
    try:
        with {what}: raise {error}
    except {error}: events.append("left")
    try: {what}.close(); next(iter({what})) if {what} is it else ds.fingerprint()
    except mf.InvalidStateError: events.append("closed")
    go.set()
    for thread in threading.enumerate():
        if thread.name == "meshfeed.release": thread.join()
    print(*events)
    it.close(); ds.close()
    print(live() - before, batch["x"][:3], _library._releasing)
    """
    )
    events, after = out.splitlines()
    assert events == "left closed released on meshfeed.release"
    assert after == "0 [0 1 2] set()"


def test_another_error_waits_for_the_release() -> None:
    out = run(
        HELD
        + """
    go.set()
    try:
        with it: raise ValueError
    except ValueError: events.append("left")
    print(*events)
    """
    )
    assert out == "released on MainThread left\n"


def test_leaving_during_a_release_that_does_not_end() -> None:
    process = started(
        HELD
        + """
    go.wait = lambda seconds: time.sleep(600)
    with it: sys.exit(3)
    """
    )
    out, err = process.communicate(timeout=START + HANG)
    assert (process.returncode, out, err) == (3, "", "")
