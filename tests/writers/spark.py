"""Writes Parquet with Spark, which uses parquet-mr (Java); see the package."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.writers import FILES, ROWS
from tests.writers.columns import TABLES

# Spark has no unsigned integers of 64 bits, no half floats, no times, no nanoseconds, and no
# column of nulls alone in a file.
UNKNOWN = ["uint64", "float16", "clock_ms", "clock_ns", "at_ns", "nothing"]

SMALL_PAGES = {
    "parquet.page.size": "300",
    "parquet.page.size.row.check.min": "10",
    "parquet.page.row.count.limit": "25",
}
VARIANTS: dict[str, dict[str, str]] = {
    "default": {},
    "v2-zstd": {"compression": "zstd", "parquet.writer.version": "v2"},
    "v2-plain-pages": {
        "compression": "uncompressed",
        "parquet.writer.version": "v2",
        "parquet.enable.dictionary": "false",
        **SMALL_PAGES,
    },
    "gzip-pages": {"compression": "gzip", **SMALL_PAGES},
    "legacy-lz4": {"compression": "lz4"},  # Hadoop's form of LZ4
    "lz4-raw": {"compression": "lz4_raw", "parquet.enable.dictionary": "false"},
}


def main() -> None:
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as folder:
        for nulls, table in TABLES.items():
            source = Path(folder) / f"{nulls}.parquet"
            pq.write_table(table.drop_columns(UNKNOWN).slice(0, ROWS), source)
            frame = session.read.parquet(str(source)).coalesce(1)
            for name, options in VARIANTS.items():
                legacy = name.startswith("legacy")  # old lists, timestamps of 96 bits
                session.conf.set("spark.sql.parquet.writeLegacyFormat", str(legacy).lower())
                form = "INT96" if legacy else "TIMESTAMP_MICROS"
                session.conf.set("spark.sql.parquet.outputTimestampType", form)
                out = Path(folder) / "out"
                frame.write.mode("overwrite").options(**options).parquet(str(out))
                (part,) = out.glob("*.parquet")
                shutil.copy(part, FILES / f"spark-{name}{'-nulls' * bool(nulls)}.parquet")


if __name__ == "__main__":
    main()
