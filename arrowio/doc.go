// Package arrowio reads Arrow data as a source of meshfeed: IPC files and
// streams, one or many ([Open]), and Go slices ([FromSlices]). Packages records
// and records18, below it, take record batches of the Arrow library for Go.
//
//	ds, err := arrowio.Open("digits/train-*.arrow")
//	if err != nil {
//		return err
//	}
//	defer ds.Close()
//
// [Open] reads metadata alone: the schema, and the header of every record
// batch. Columns whose rows all have one shape become fields. The others are
// listed in Schema().Skipped with the reason and a remedy. Rows are then copied
// straight from the files into the memory of a batch, one copy, in any order.
//
// Files are taken in the order in which they are given. Those of a glob or a
// directory are sorted by base name, then path. Those of a directory written by
// Hugging Face's save_to_disk have the order of its state.json.
//
// The bytes may be hostile. Damage is an error that names the file and the
// position, never a crash. README.md lists how a gather can end.
//
// # How to add a format
//
// A format divides the rows of a file into units, each decoded at once: the
// record batches of IPC, the row groups of Parquet. It is one file of this
// package, as ipc.go is, and a line in the list formats (format.go). The file has
// three types:
//
//   - A format recognizes a file by its first bytes, and opens it: it reads the
//     metadata, and checks every offset and count before use. The schema is
//     an Arrow schema, whatever the file holds.
//   - Its contents return that metadata, visit the headers of the units, decode
//     one column of one unit to Arrow buffers, and verify all values. The
//     digest in the metadata covers the schema and the number of rows per unit,
//     because it is the part of the fingerprint that is not sampled.
//   - A unit is such a header: its number of rows and what decoding costs. If
//     rows can be gathered from the file as they are stored, it tells where.
//     Otherwise its encoding is not empty, and the dataset keeps decoded units
//     in a bounded cache.
//
// Everything else follows: the order of records, gathers, shapes of lists,
// checks of truncated and changed files, fingerprints, hashes and progress.
// format_test.go adds a format in a hundred lines and runs the tests of all
// sources on it. A real one also needs a fuzz target, golden files of other
// writers, and its suffix in the list suffixes (paths.go).
//
// # How to add a storage
//
// The comment of package internal/blob lists what a storage implements.
package arrowio
