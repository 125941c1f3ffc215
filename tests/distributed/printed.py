"""A process that runs the README's program for several processes as it is printed."""

from __future__ import annotations

import os
from typing import Any

from tests.distributed.process import joined
from tests.python.docs.test_readme import blocks


def main() -> None:
    with joined() as place:
        import jax

        setattr(jax.distributed, "initialize", lambda: None)  # noqa: B010 - the process has joined
        os.chdir(place.folder)
        names: dict[str, Any] = {}
        exec(compile(blocks("python")[1], "README.md", "exec"), names)
        with names["loader"] as loader:
            (place.folder / f"state-{place.rank}").write_text(str(loader.state()))


if __name__ == "__main__":
    main()
