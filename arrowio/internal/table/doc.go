// Package table gathers rows from Arrow record batches that lie in memory or in
// files. Every Arrow source is a [Table].
//
// Package arrowtype describes how the rows of a column are stored: a chain of levels
// from the column down to its values, such as list → fixed-size list → float32.
// A [Column] holds the positions of these levels' buffers in every record batch,
// and an [Index] finds the batch that holds a record.
//
// There are two ways to a row:
//
//   - The address of a row follows from its number if all files are in memory to
//     stay, the column has neither offsets, indices nor nulls, and nothing is
//     compressed. A [Gatherer] then computes addresses and lets package gather
//     copy blocks straight from there.
//   - For all other rows, [rowReader] implements source.Reader. It takes all rows
//     of a gather from level to level at once, so that all offsets, and then all
//     values, are read from a disk together. A row whose values are contiguous in
//     memory is used in place. A row with nulls inside, of booleans, of several
//     dictionary values or of a compressed batch is assembled in scratch memory.
//     Package cut then makes blocks of the rows.
//
// There is no Go object per row or record batch, and a gather allocates nothing
// that grows with the batch once its scratch memory has its size.
//
// Verified metadata are trusted: buffers lie in their files and are long enough
// for the rows of the batch. Content of buffers is not: offsets and indices are
// checked before they are used.
package table
