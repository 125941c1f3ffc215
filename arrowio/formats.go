package arrowio

// parquetHint says how to make an IPC file of a Parquet file.
const parquetHint = `write an Arrow IPC file from it, with pyarrow: import pyarrow.feather, pyarrow.parquet; ` +
	`pyarrow.feather.write_feather(pyarrow.parquet.read_table("in.parquet"), "out.arrow", compression="uncompressed")`
