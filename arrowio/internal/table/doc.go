// Package table gathers rows from record batches that lie in memory or in
// files: it is what every Arrow source is made of.
//
// [Fields] says how the rows of Arrow columns are stored: a chain of [Node]s
// from the column down to its values, such as list → fixed-size list →
// float32, and the shape and type that a row of an array has. A [Column] holds
// where the buffers of these nodes are in every record batch, an [Index] which
// batch holds a record. A [Table] joins them, and its [Gatherer] copies rows.
//
// A step runs in phases over all its records at once. Records become batches
// and rows, then each node turns a row's place in its parent into the place in
// its child: a fixed-size list by multiplication, a list by reading and
// checking its offsets, a dictionary by reading the index. At the end stand
// the addresses of the rows, and package gather copies them. A row with a null
// in it takes a side road: it is written out with the fill value in scratch
// memory, and its address is that of the copy.
//
// No Go object is kept per row, and none per record batch; a step allocates
// nothing that grows with the batch once its scratch memory has its size.
//
// What is known from verified metadata is trusted: the buffers lie in their
// files and are long enough for the batch's rows. What is read from buffers is
// not: offsets and indices are checked before use.
package table
