"""Parquet files that Spark and arrow-rs wrote, for tests without these programs.

`files` holds the columns of `columns.TABLES` that each writer knows, with its codecs, encodings,
page versions and page sizes. These commands write the files again. They need Java, and an
environment with `pyspark==4.3.0 datafusion==55.0.0 pyarrow==26.0.1 numpy==2.4.6`:

    python -m tests.writers.spark
    python -m tests.writers.arrow_rs
"""

from __future__ import annotations

from pathlib import Path

FILES = Path(__file__).parent / "files"
ROWS = 80  # of a file, to keep it small
