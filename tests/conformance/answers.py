"""Tables of random questions to JAX: written once, or compared with what JAX says now."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

Case = dict[str, Any]


def main(
    table: Path,
    seed: int,
    ask: Callable[[random.Random], Case],
    count: int,
    about: str,
    remark: Callable[[list[Case]], str] = lambda cases: "",
) -> int:
    """Writes the table of `count` cases, or with --check compares the existing one.

    The comparison asks JAX again, with the seed of the table.

    Args:
        table: the JSON file.
        seed: of the random cases of a new table.
        ask: makes a random case, with JAX's answer.
        count: of the cases.
        about: describes the program in its help.
        remark: returns what to print about the cases, beside their number.

    Returns:
        the exit status: 1 if JAX's answers differ from the table.
    """
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="compare with the existing table")
    options = parser.parse_args()
    old = json.loads(table.read_text()) if options.check else {"seed": seed}
    rng = random.Random(old["seed"])
    cases = json.loads(json.dumps([ask(rng) for _ in range(count)]))
    print(f"JAX {jax.__version__}: {len(cases)} cases{remark(cases)}")
    if not options.check:
        rows = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        head = f'{{"jax":{json.dumps(jax.__version__)},\n"seed":{seed},\n"cases":[\n'
        table.write_text(head + rows + "\n]}\n")
    elif old["cases"] != cases:
        print(f"they differ from the table of JAX {old['jax']}")
        return 1
    return 0
