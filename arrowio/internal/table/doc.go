// Package table gathers rows from Arrow record batches that lie in memory or in
// files. Every Arrow source is a [Table].
//
// Package buffers describes where the buffers of a column are in every record batch,
// and package index finds the batch that holds a record.
//
// A row is found in one of two ways:
//
//   - Some rows have an address that follows from their number: all files stay in
//     memory, nothing is compressed, and the column has neither offsets, indices
//     nor nulls. A [Gatherer] computes these addresses, and package gather copies
//     blocks from them.
//   - For all other rows, [rowReader] implements source.Reader. It resolves one
//     level of all rows of a gather at a time. So all offsets, and then all values,
//     are read from a disk together. A row with values that are contiguous in
//     memory is used in place. A row with nulls inside, of booleans, of several
//     dictionary values or of a compressed batch is assembled in scratch memory.
//     Package cut then copies blocks from the rows.
//
// Rows and record batches have no Go objects of their own, except for the data buffers of views.
// Once the scratch memory is large enough, a gather allocates nothing that grows with the
// batch.
//
// The metadata have been verified: buffers lie in their files and are long enough
// for the rows of the batch. The content of buffers is not trusted: offsets and indices
// are checked before they are used.
package table
