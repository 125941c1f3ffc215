// Package arrowmeta reads the metadata of Arrow IPC files and streams: which
// fields there are, where every record batch begins, and at which bytes each
// column's buffers stand. It never reads a value.
//
// [Read] recognises a file (footer at its end) or a stream (messages one after
// the other), and gives a [File]: the [Schema], a [Block] per record batch and
// per dictionary batch, and a [Column] for every field that tells which of a
// batch's nodes and buffers are its own. [File.Scan] then visits the headers
// of the record batches:
//
//	f, err := arrowmeta.Read(r, size)
//	column := &f.Columns[0]
//	err = f.Scan(r, 0, len(f.Batches), func(i int, b *arrowmeta.RecordBatch) error {
//		values := b.Buffers(column)[1] // buffer 0 is the validity bitmap
//		base[i] = f.Batches[i].Body() + values.Offset
//		return nil
//	})
//
// The bytes are taken to be hostile. Every offset, length and count is checked
// before it is used, nesting is bounded, and memory grows only with what was
// really read. What this package accepts has all blocks within the file, all
// buffers within their body, and every buffer of a column long enough for the
// column's rows; the contents of buffers (offsets of lists, indices of
// dictionaries) remain to be checked by whoever reads them. Errors say at which
// message and byte the damage is; the caller, who knows the name, adds it.
//
// A stream must end with the end-of-stream marker. Without one, a stream that
// was cut between two messages could not be told from a whole one, and rows
// would be lost in silence.
//
// The metadata is in FlatBuffers; the tables and their numbers are those of
// Schema.fbs, Message.fbs and File.fbs of the Arrow format, versions 4 and 5.
package arrowmeta
