// Package arrowtype describes the rows of Arrow columns as rows of arrays, and
// finds their values in the buffers of a column.
//
// [Describe] turns each column of a schema into a [Field], or returns the reason
// why its rows cannot be rows of an array. A Field has one [Level] per Arrow
// array of the column, from the column itself down to its values: list →
// fixed-size list → float32 has three levels.
//
// Each kind of Arrow type has a file of its own, which holds all that the kind
// needs: how metadata describe it, the size of its buffer, and how elements are
// found there. To add a kind, write such a file and add a line to kinds.
//
// Metadata are verified by package arrowmeta. Offsets and indices come from
// buffers, so they are checked here before they are used.
package arrowtype
