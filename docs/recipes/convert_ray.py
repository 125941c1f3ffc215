"""Converts a dataset in parts, as tasks of Ray.

    python convert_ray.py 16 '/data/train-*.parquet' /data/train

All machines need the input and the folder under the same absolute paths. A task that is lost, for
example with its machine, runs again and continues.
"""

import subprocess
import sys

import ray


@ray.remote(num_cpus=2, max_retries=5, retry_exceptions=[subprocess.CalledProcessError])
def convert(part: int, parts: int, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "meshfeed", "convert", "--part", f"{part}/{parts}"]
    subprocess.run([*command, *arguments], check=True)


if __name__ == "__main__":
    parts, arguments = int(sys.argv[1]), sys.argv[2:]
    ray.get([convert.remote(part, parts, arguments) for part in range(1, parts + 1)])
