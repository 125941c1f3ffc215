"""A process without JAX that misbehaves as its environment says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.distributed.job import ENV
from tests.distributed.process import die_with


def main() -> None:
    arguments = json.loads(os.environ[ENV])
    die_with(arguments["parent"])
    folder = Path(arguments["folder"])
    (folder / f"pid-{arguments['rank']}").write_text(str(os.getpid()))
    (folder / "joined").touch()
    print("this is process", arguments["rank"], flush=True)
    how = os.environ["MESHFEED_MISBEHAVE"]
    if how == "orphan":
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        (folder / "orphan").write_text(str(child.pid))
    elif how == "hang" or arguments["rank"] == 1:
        signal.pause()
    else:
        raise RuntimeError("as asked")


if __name__ == "__main__":
    main()
