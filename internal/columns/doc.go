// Package columns reads rows of a source into the buffers of Arrow arrays.
//
// A [Reader] is made for some fields. Each Read returns a [Batch] of records: a [Column]
// for each field, with rows in the order of the records. A column is a list of levels, from
// its rows to its values, and each [Level] is one Arrow array: a validity bitmap, offsets
// and data. So lists of text of a field have two levels.
//
//	level   of list<list<int32>>       of float32[2, 3]        of list<string>
//	0       List                       FixedList of 2          List
//	1       List                       FixedList of 3          Text
//	2       Values of int32            Values of float32
//
// Nulls come from the source: rows, lists, text and single values. A row of a fixed shape,
// or such an element of a list, is null if all its values are.
//
// Arrow has no type for some elements. Booleans become bits. bfloat16 becomes float32. A
// complex number becomes a FixedList of its two parts.
package columns
