"""The demo's data: text that every Python has, as tokens in Parquet files, packed and mixed.

The code is half of the modules of Python's library, a document each. The prose is Python's manual
for `help()`, the license, and the docstrings of the other modules, so no text is in both.
"""

from __future__ import annotations

import ast
from itertools import chain
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

import meshfeed as mf

LENGTH, BATCH, STEPS, VOCABULARY = 512, 8, 160, 1024
PAD, END = 0, 1  # tokens
FIRST, LATER = {"code": 0.8, "prose": 0.2}, {"code": 0.5, "prose": 0.5}
CHANGE = 80  # steps with the weights FIRST
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def texts() -> dict[str, list[str]]:
    """Returns the documents of each source."""
    library = Path(ast.__file__).parent
    modules = [path.read_text(errors="replace") for path in sorted(library.glob("*.py"))]
    nodes = chain.from_iterable(ast.walk(ast.parse(text)) for text in modules[1::2])
    docstrings = [ast.get_docstring(node) for node in nodes if isinstance(node, DOCUMENTED)]
    licenses = [path.read_text() for path in library.glob("LICENSE*")]
    return {"code": modules[::2], "prose": [*topics.values(), *licenses, *filter(None, docstrings)]}


def write(folder: Path) -> None:
    """Writes code.parquet and prose.parquet, which have a list of tokens for each document."""
    documents = texts()
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        chain.from_iterable(documents.values()),
        BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=["<pad>", "<end>"],  # PAD and END
            initial_alphabet=ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    for name, each in documents.items():
        lists = [encoding.ids for encoding in tokenizer.encode_batch(each)]
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.int32)
        tokens = pa.array(np.concatenate(lists), pa.int32())
        table = pa.table({"tokens": pa.ListArray.from_arrays(offsets, tokens)})
        pq.write_table(table, folder / f"{name}.parquet")


def packed(folder: Path) -> dict[str, mf.Dataset]:
    """Opens each source, with its documents packed into rows."""
    return {
        name: mf.open(folder / f"{name}.parquet", cache="memory").pack(
            "tokens", length=LENGTH, separator=END, labels="labels"
        )
        for name in FIRST
    }


def mixture(sources: dict[str, mf.Dataset]) -> mf.Dataset:
    """Draws rows from the sources, with other weights from step CHANGE on."""
    schedule = [(CHANGE * BATCH, LATER)]
    return mf.mix(sources, FIRST, seed=0, schedule=schedule, source="source")
