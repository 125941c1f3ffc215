"""Writes Parquet with DataFusion, which uses arrow-rs (Rust); see the package."""

from __future__ import annotations

import datafusion

from tests.writers import FILES, ROWS
from tests.writers.columns import TABLES

PAGES = {"data_pagesize_limit": "300", "data_page_row_count_limit": "25", "write_batch_size": "20"}
PLAIN = {"dictionary_enabled": "false"}
VARIANTS: dict[str, dict[str, str]] = {
    "default": {},
    "v2-pages": {"compression": "uncompressed", "writer_version": "2.0", **PAGES},
    "groups": {"compression": "snappy", "max_row_group_size": "35"},
    "plain-gzip": {"compression": "gzip(6)", **PLAIN, **PAGES},
    "v2-delta": {
        "compression": "brotli(5)",
        "writer_version": "2.0",
        **PLAIN,
        "encoding::int64": "delta_binary_packed",
        "encoding::int32": "delta_binary_packed",
        "encoding::text": "delta_byte_array",
        "encoding::raw": "delta_length_byte_array",
        "encoding::float32": "byte_stream_split",
        "encoding::fixed": "byte_stream_split",
    },
    "lz4": {"compression": "lz4_raw", **PLAIN, "max_row_group_size": "35"},
}


def main() -> None:
    context = datafusion.SessionContext()
    for nulls, table in TABLES.items():
        part = table.drop_columns(["nothing"]).slice(0, ROWS)
        context.register_record_batches("part", [part.combine_chunks().to_batches()])
        for name, options in VARIANTS.items():
            path = FILES / f"arrow-rs-{name}{'-nulls' * bool(nulls)}.parquet"
            listed = ", ".join(f"'format.{key}' '{value}'" for key, value in options.items())
            how = f"OPTIONS ({listed})" if listed else ""
            context.sql(f"COPY part TO '{path}' STORED AS PARQUET {how}").collect()
        context.deregister_table("part")


if __name__ == "__main__":
    main()
