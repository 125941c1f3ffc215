"""Closes a dataset and its loader while a read of a file does not end."""

from __future__ import annotations

import threading

import meshfeed as mf


def close_while_reading(ds: mf.Dataset, asked: threading.Event, hang: float) -> None:
    """Closes a dataset and a loader over it as soon as a read has begun: the batch is an error.

    Args:
        ds: the dataset.
        asked: set when the read, which does not end by itself, has begun.
        hang: the most seconds to wait for the beginning and for the end.
    """
    loader = mf.Loader(ds, batch_size=100)
    failed: list[BaseException] = []

    def read() -> None:
        try:
            next(iter(loader))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    assert asked.wait(hang)
    loader.close()
    ds.close()
    thread.join(hang)
    assert not thread.is_alive()
    assert len(failed) == 1
