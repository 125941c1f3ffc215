// Package arrowio makes sources of records for a loader: from one or many files of
// Arrow IPC, Parquet, JSON Lines, WebDataset, TFRecord or tokens ([Open]), and from Go slices ([FromSlices]). Its
// subpackages records and records18 make sources from record batches of the Arrow
// library for Go, v17 and v18.
//
//	ds, err := arrowio.Open("digits/train-*.arrow")
//	if err != nil {
//		return err
//	}
//	defer ds.Close()
//
// [Open] reads only metadata: the schema, and the header of every record batch. A
// column becomes a field if all its rows have one shape. So do text, bytes and
// lists of different lengths, as ragged fields. The others are listed in
// Schema().Skipped with the reason and a remedy. Gather, which a loader calls for
// each batch, copies rows of fixed fields in any order to the memory of the batch.
// If a file is not compressed, its rows are copied once, straight from the file. A
// Reader returns whole rows, also ragged ones.
//
// The records of the files follow each other in the given order of the files. The files of a
// glob or a directory are sorted by base name, then path. If Hugging Face's save_to_disk wrote
// the directory, they have the order of its state.json, and if package convert wrote it, the
// order of its manifest. Directories in the layout of Hive, such as year=2024, become fields.
// Their files are sorted by path.
//
// Files need not be trusted. Damage in a file causes an error that names the file
// and the position, never a crash. arrowio/README.md lists every way in which Gather can
// end.
//
// # Where to find what
//
// This package opens datasets, keeps the rows of views ([Cached]), and assembles both from other packages. A package imports only
// packages of its own line and of the lines above it:
//
//   - Bytes: blob has the interfaces of a storage, internal/local finds and reads local files,
//     internal/remote reads web servers, internal/hub the Hugging Face hub, and
//     internal/resident makes mapped pages resident, or reads and fetches bytes.
//   - Files: internal/files finds the files of a dataset, and internal/manifest describes the
//     files of a conversion.
//   - Record batches: internal/index finds the record batch of a record, and internal/buffers
//     describes the Arrow buffers of a column.
//   - Formats: internal/format defines what a format does. internal/format/ipc,
//     internal/format/parquet, internal/format/flat, internal/format/jsonl,
//     internal/format/tfrecord, internal/format/tar and internal/format/images are the formats. internal/npy reads the header of .npy files, and internal/format/computed presents the rows
//     of any source as units of a file. internal/codec decompresses, internal/chunk and
//     spare decode Parquet, internal/audit checks IPC, and internal/ipcfile writes it.
//   - Schema: internal/union makes one schema for all files.
//   - Units: internal/units numbers the units of all files and finds the buffers in them.
//     internal/decoded decodes units and keeps them in memory.
//   - Parts, and bytes that are made of a whole file when it is opened: internal/part reads and writes files of decoded fields, and internal/diskcache is
//     their folder.
//   - Rows: internal/table finds and copies rows by their numbers. internal/lists compares the
//     lengths of lists. internal/parts keeps fields of a table on disk.
//   - internal/fingerprint hashes samples of a dataset, and internal/verify reads all of it to
//     find damage.
//
// # How to add a format
//
// A format divides the rows of a file into units: the record batches of IPC, the
// row groups of Parquet or runs of their pages. A column of a unit is decoded in one call. To
// add a format, add a package beside internal/format/ipc, and an entry to the list formats
// (formats.go). The package implements three interfaces of internal/format:
//
//   - A Format recognizes a file by its last or first bytes, and opens it: it reads the
//     metadata, and checks every offset and count before use. It expresses the
//     schema as an Arrow schema.
//   - The Contents of a file return that metadata, visit the headers of the
//     units, decode one column of one unit to Arrow buffers, and verify all
//     values. The digest in the metadata covers the schema and the number of rows
//     per record batch or row group. A fingerprint contains this digest and samples of the
//     values, or all bytes of small files.
//   - A Unit is the header of a unit: its number of rows, and which columns may
//     have nulls. If rows can be gathered from the file as they are stored, the
//     unit returns their positions. Otherwise its encoding is not empty, and the
//     dataset keeps decoded units in a bounded cache.
//
// The rest works for every format: the order of records, gathers, shapes of lists, checks of
// truncated and changed files, fingerprints, hashes, progress, and the bound on the memory of
// decodings. internal/format/formattest is a format of a hundred lines, and format_test.go runs
// the tests of all sources on it. A format for users also needs a fuzz target, golden files of
// other writers, and its suffix in internal/files/suffix.go.
//
// # How to add a kind of storage
//
// Write an opener (the comment of package blob says how). Pass it as Options.Opener, or call Register with the
// scheme of its names.
package arrowio
