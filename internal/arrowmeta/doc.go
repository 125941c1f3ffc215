// Package arrowmeta reads the metadata of Arrow IPC files and streams: the
// fields, the position of every record batch, and the position of each column's
// buffers. It never reads a value.
//
// [Read] recognizes a file, which has a footer at its end, or a stream of messages. It
// returns a [File]: the [Schema], a [Block] per record batch and per dictionary batch, and
// a [Column] for every field. A column selects the field's nodes and buffers among the
// nodes and buffers of a batch. [File.Scan] then visits the headers of the record batches:
//
//	f, err := arrowmeta.Read(r, size)
//	column := &f.Columns[0]
//	err = f.Scan(r, 0, len(f.Batches), func(i int, b *arrowmeta.RecordBatch) error {
//		values := b.Buffers(column)[1] // buffer 0 is the validity bitmap
//		base[i] = f.Batches[i].Body() + values.Offset
//		return nil
//	})
//
// The bytes may be hostile. Every offset, length and count is checked before it
// is used, nesting is bounded, and memory grows only with the bytes that were
// read. In metadata that this package accepts, all blocks lie within the file, all
// buffers within their body, and every uncompressed buffer is long enough for the
// rows of its column. The reader of the buffers has to check their contents: the
// offsets of lists, the indices of dictionaries. Errors name the message and the
// byte that are damaged; the caller adds the name of the file.
//
// A stream must end with the end-of-stream marker. Without it, a stream that was
// cut between two messages would look complete, and rows would be lost
// silently.
//
// The metadata is in FlatBuffers; the tables and their numbers are defined in Schema.fbs,
// Message.fbs and File.fbs of the Arrow format, versions 4 and 5.
package arrowmeta
