// Package arrowio reads Arrow data as a source of meshfeed: IPC files and
// streams, one or many ([Open]), and Go slices ([FromSlices]). Package records,
// below it, takes record batches of the Arrow library for Go.
//
//	ds, err := arrowio.Open("digits/train-*.arrow")
//	if err != nil {
//		return err
//	}
//	defer ds.Close()
//
// [Open] reads metadata alone: the schema, and the header of every record
// batch. Columns whose rows all have one shape become fields; the others are
// listed in Schema().Skipped with the reason and a remedy. Rows are then copied
// straight from the files into the memory of a batch, one copy, in any order.
//
// Files are taken in the order in which they are given; those of a glob or a
// directory by base name, then path; those of a directory written by Hugging
// Face's save_to_disk in the order of its state.json.
//
// The bytes are taken to be hostile: damage gives an error that names the
// file and the place, never a crash.
package arrowio
