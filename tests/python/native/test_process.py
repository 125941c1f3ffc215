"""Threads, Ctrl-C, fork, exit and crashes, each in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.python import ROOT

# A hang is caught after 20 times the promised time, plus a slow start.
START, HANG = 60, 20

HEAD = """
import os, sys, threading, time
import numpy as np
import meshfeed as mf
def loader(**kwargs):
    ds = mf.from_arrays({"x": np.arange(1000, dtype=np.int32)})
    return mf.Loader(ds, batch_size=10, epochs=-1, **kwargs)
"""


def started(body: str, *flags: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *flags, "-W", "error", "-c", HEAD + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | env,
    )


def run(body: str, *flags: str, **env: str) -> str:
    """Runs a program that must succeed and print nothing on stderr. Returns its output."""
    process = started(body, *flags, **env)
    out, err = process.communicate(timeout=START + HANG)
    assert (process.returncode, err) == (0, ""), out
    return out


# ---- threads ----


@pytest.mark.parametrize("prefetch", [0, 2])
def test_threads_share_a_loader_and_lose_nothing(prefetch: int) -> None:
    out = run(f"""
        ds = mf.from_arrays({{"x": np.arange(4000, dtype=np.int32)}})
        it = mf.Loader(ds, batch_size=4, shuffle=True, prefetch={prefetch})
        loop, seen = iter(it), []
        def take():
            for batch in loop:
                seen.extend(batch["x"].tolist())
        threads = [threading.Thread(target=take) for _ in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert sorted(seen) == list(range(4000))
        assert it.epoch == 1
        print("ok")
    """)
    assert out == "ok\n"


def test_closing_ends_a_take_on_another_thread() -> None:
    out = run("""
        it = loader()
        said = []
        def take():
            try:
                for _ in it: pass
            except mf.Error as e:
                said.append(type(e).__name__)
        thread = threading.Thread(target=take)
        thread.start()
        time.sleep(0.1)
        it.close()
        thread.join()
        print(*said)
    """)
    assert out in ("CancelledError\n", "InvalidStateError\n")


# ---- without JAX ----


BLOCKED = """
        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("jax", "jaxlib", "ml_dtypes", "pyarrow"):
                    raise ImportError(f"{name} is blocked")
        sys.meta_path.insert(0, Blocked())
"""


def test_numpy_batches_need_no_jax() -> None:
    out = run(
        BLOCKED
        + """
        it = loader(extras=["record"])
        print(next(iter(it))["x"].tolist(), it.layout.check(), it.stats()["batches"])
        lay = mf.layout({"data": 2}, mf.P("data"), {"x": ("bfloat16", ())}, batch_size=4)
        print(lay.report()["totals"]["batch_bytes"])
    """
    )
    assert out == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9] [] 1.0\n8\n"


def test_global_arrays_without_jax_are_an_error() -> None:
    out = run(
        BLOCKED
        + """
        ds = mf.from_arrays({"x": np.arange(8, dtype=np.int32)})
        for call in [lambda: mf.Loader(ds, None, mf.P("data"), batch_size=4),
                     lambda: mf.load_array(ds, "x", None)]:
            try: call()
            except mf.UnsupportedError as e: print(e)
    """
    )
    said = 'jax.Arrays need JAX 0.8 or later: jax is blocked; pip install "jax>=0.8"; '
    said += "without mesh and specs a loader gives NumPy arrays"
    assert out == f"mf.Loader: {said}\nmf.load_array: {said}\n"


def test_importing_opens_nothing() -> None:
    out = run("""
        from meshfeed._native import library
        print(library._library, threading.active_count(), "jax" in sys.modules)
    """)
    assert out == "None 1 False\n"


# ---- fork ----


FORK = """
    import warnings; warnings.simplefilter("ignore")
    def child(do):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try: do()
            except mf.ForkedError as e: print(e)
            except BaseException as e: print("wrong", type(e), e)
            sys.stdout.flush(); os._exit(0)
        os.waitpid(pid, 0)
"""


def test_a_forked_child_gets_an_error_with_advice() -> None:
    out = run(
        FORK
        + """
    it = loader()
    batch = next(iter(it))
    for do in (lambda: next(iter(it)), it.stats, lambda: loader(), lambda: it.layout):
        child(do)
    print(next(iter(it))["x"][0], batch["x"][0])
    """
    )
    *said, parent = out.splitlines()
    assert parent == "10 0"
    ops, texts = zip(*(line.split(": ", 1) for line in said), strict=True)
    assert ops == ("mf.Loader", "Loader.stats", "mf.from_arrays", "mf.Layout")
    assert len(set(texts)) == 1, said
    assert "fork" in said[0]
    assert "spawn" in said[0]


def test_a_forked_child_can_drop_inherited_objects() -> None:
    out = run(
        FORK
        + """
    held = [loader()]
    held.append(next(iter(held[0])))
    child(lambda: (held[0].close(), held.clear(), print("dropped")))
    held[0].close()
    """
    )
    assert out == "dropped\n"


def test_a_child_of_a_process_that_only_imported_can_load() -> None:
    out = run(FORK + "    child(lambda: print(next(iter(loader()))['x'][:2]))")
    assert out == "[0 1]\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_the_advice_works(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
            import multiprocessing, numpy as np, meshfeed as mf
            def first(n):
                ds = mf.from_arrays({{"x": np.arange(n)}})
                return next(iter(mf.Loader(ds, batch_size=2)))["x"].tolist()
            if __name__ == "__main__":
                first(4)
                with multiprocessing.get_context("{method}").Pool(2) as pool:
                    print(pool.map(first, [4, 6]))
        """)
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=START + HANG, check=False
    )
    assert (done.stdout, done.stderr) == ("[[0, 1], [0, 1]]\n", "")


# ---- Ctrl-C ----

# A loader without a ready batch, which prints a line when a call waits for one.
WAITING = """
    it = loader()
    loop = iter(it)
    next(loop)
    calls = it._engine.cursor
    def late():
        time.sleep(0.05)
        return 1
    def first():
        calls._wait = late
        print("waiting", flush=True)
        return late()
    calls._wait = first
"""


def interrupted(body: str) -> str:
    """Sends Ctrl-C to a waiting program, which ends it. Returns its output."""
    process = started(body)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, err
    return out


def test_ctrl_c_ends_a_wait() -> None:
    out = interrupted(
        WAITING
        + """
    try: next(loop)
    except KeyboardInterrupt: print("interrupted")
    """
    )
    assert out == "interrupted\n"


def test_ctrl_c_inside_with_closes() -> None:
    out = interrupted(
        WAITING
        + """
    try:
        with it: next(loop)
    except KeyboardInterrupt: print("interrupted")
    """
    )
    assert out == "interrupted\n"


@pytest.mark.parametrize("prefetch", [0, 4])
def test_ctrl_c_loses_no_batch(prefetch: int) -> None:
    out = run(f"""
        import random, signal
        it = loader(prefetch={prefetch}, device_prefetch=2)
        loop, taken, interrupts, armed = iter(it), 0, 0, False
        def stop(*_):
            global armed
            if armed:
                armed = False
                raise KeyboardInterrupt
        signal.signal(signal.SIGINT, stop)
        def interrupt():
            while interrupts < 150 or taken < 100:
                time.sleep(random.uniform(0, 0.004))
                signal.raise_signal(signal.SIGINT)  # handled on the main thread, at any place
        thread = threading.Thread(target=interrupt, daemon=True)
        thread.start()
        while thread.is_alive():
            place = it.state()["position"]
            try:
                armed = True
                batch = next(loop)
                armed = False
            except KeyboardInterrupt:
                interrupts += 1
                continue
            assert batch["x"][0] == place, (batch["x"][0], place)
            taken += 1
        print("ok")
    """)
    assert out == "ok\n"


# Rows with a read that never returns, because it waits for a lock of C, which no signal ends.
STUCK = """
    import ctypes, tempfile, pyarrow as pa, pyarrow.parquet
    from meshfeed._data import rows
    def stuck(*_):
        print("waiting", flush=True)
        mutex, lock = ctypes.create_string_buffer(64), ctypes.CDLL(None).pthread_mutex_lock
        lock(mutex)
        lock(mutex)
    many = mf.from_arrays({"x": np.arange(2000)})
    path = os.path.join(tempfile.mkdtemp(), "x.parquet")
    pa.parquet.write_table(pa.table({"x": np.arange(1000)}), path)
    encoded = mf.open(path)
    rows.read = stuck
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the lock exists on Linux only")
@pytest.mark.parametrize("read", ["many[:]", "encoded[7]", "list(encoded)"])
def test_ctrl_c_ends_a_read(read: str) -> None:
    out = interrupted(
        STUCK
        + f"""
    try: {read}
    except KeyboardInterrupt: print("interrupted")
    """
    )
    assert out == "interrupted\n"


def test_ctrl_c_cancels_a_read() -> None:
    out = interrupted("""
        from meshfeed._data import rows
        real, ended = rows.read, threading.Event()
        def endless(dataset, numbers, kinds):
            print("waiting", flush=True)
            try:
                while True: real(dataset, 7, kinds)
            except mf.Error as e:
                print(type(e).__name__, flush=True)
            ended.set()
        rows.read = endless
        ds = mf.from_arrays({"x": np.arange(2000)})
        try: ds[:]
        except KeyboardInterrupt: print("interrupted", ended.wait(30))
        rows.read = real
        print(ds[-1]["x"], len(ds[:]["x"]))
    """)
    assert sorted(out.split()) in (
        ["1999", "2000", "CancelledError", "True", "interrupted"],
        ["1999", "2000", "InvalidStateError", "True", "interrupted"],
    )


def test_a_read_in_a_forked_child_is_refused() -> None:
    out = run("""
        ds = mf.from_arrays({"x": np.arange(2000)})
        ds[:]  # on a thread, as all reads of many rows
        if (child := os.fork()) == 0:
            try: ds[:]
            except mf.Error as e: print(type(e).__name__, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """)
    assert out == "ForkedError\n"


# ---- exit ----


@pytest.mark.parametrize(
    "body",
    [
        "it = loader(); next(iter(it))",
        "it = loader(); batches = [b for b, _ in zip(it, range(20))]",
        "it = loader(); threading.Thread(target=lambda: list(it), daemon=True).start()",
        "it = loader(); sys.exit(0)",
        "ds = mf.from_arrays({'x': np.arange(8)}); keep = mf.Loader(ds, batch_size=2).one_epoch()",
    ],
)
def test_exit_is_clean(body: str) -> None:
    run("    " + body)


def test_exit_during_a_generator_that_holds_a_loader() -> None:
    run("""
        import jax  # with JAX, generators end after the module names are gone
        def batches():
            with loader() as it:
                yield from it
        keep = batches()
        next(keep)
    """)


def test_exit_wakes_a_thread_that_waits() -> None:
    process = started("""
        it = loader()
        def take():
            try:
                for _ in it: pass
            except mf.CancelledError: pass
        threading.Thread(target=take).start()
        time.sleep(0.2)
    """)
    _, err = process.communicate(timeout=START + HANG)
    assert (process.returncode, err) == (0, "")


def test_exit_with_global_arrays_alive() -> None:
    out = run(
        """
        import jax
        from jax.sharding import PartitionSpec as P
        ds = mf.from_arrays({"x": np.arange(1024, dtype=np.int32)})
        it = mf.Loader(ds, jax.make_mesh((8,), ("d",)), P("d"), batch_size=64)
        keep = list(it)
        print(len(keep))
        """,
        JAX_NUM_CPU_DEVICES="8",
        JAX_PLATFORMS="cpu",
    )
    assert out == "16\n"


# ---- faulthandler ----


@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_faulthandler_before_or_after_the_library_is_opened(when: str) -> None:
    flags = ["-X", "faulthandler"] if when == "before" else []
    out = run(
        f"""
        it = loader()
        if {when!r} == "after":
            import faulthandler; faulthandler.enable()
        for step, batch in zip(range(50), it): pass
        print(step)
        """,
        *flags,
    )
    assert out == "49\n"


@pytest.mark.parametrize("io", ["auto", "map", "read"])
@pytest.mark.parametrize("when", ["before", "after", "never"])
def test_a_file_that_shrinks_is_an_error(io: str, when: str, tmp_path: Path) -> None:
    out = run(
        f"""
        import pyarrow as pa, pyarrow.ipc
        path = {str(tmp_path / "x.arrow")!r}
        values = pa.array(np.arange(5000 * 256, dtype=np.int32))
        table = pa.table({{"x": pa.FixedSizeListArray.from_arrays(values, 256)}})
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=500)
        it = mf.Loader(mf.open(path, io={io!r}), batch_size=100, epochs=-1, shuffle=True)
        if {when!r} == "after":
            import faulthandler; faulthandler.enable()
        loop = iter(it)
        next(loop)
        while it.stats()["queued"] < 2: time.sleep(0.001)  # no gather is under way
        os.truncate(path, os.path.getsize(path) // 3)
        try:
            for _ in range(1000): next(loop)
        except mf.DataLossError as e:
            print(e.path == path, "ends before" in str(e))
        """,
        *(["-X", "faulthandler"] if when == "before" else []),
    )
    assert out == "True True\n"


def test_a_broken_stdout_is_the_error_of_python() -> None:
    process = started("""
        it = loader()
        try:
            for batch in it: os.write(1, b"x" * 4096)
        except BrokenPipeError:
            it.close()
            os._exit(7)
    """)
    assert process.stdout is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(timeout=START + HANG) == 7
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()
