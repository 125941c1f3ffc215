// Package view prepares datasets without copying them. A view is a dataset over one
// or more datasets below it. Each of its records is a pure function of records below:
//
//	view       record k of the view
//	Select     record k with some of the fields
//	Rename     record k with other names of fields
//	Slice      record start + k
//	Take       record indices[k]
//	Filter     the k-th record that a list or a function accepts
//	Split      the k-th record of a part, such as of a test set: several filters
//	Concat     record k of several datasets, one after the other
//	Mix        draw k from several datasets with weights
//	Window     some consecutive records as one, for time series
//	Stack      record k with several fields joined into one
//	Pad        record k with the rows of a ragged field at one length
//	Pack       pieces of several records as one, for documents of tokens
//	Reshape    record k with the rows of a field in a shape, such as images from bytes
//	DecodeImage record k with images of one size from the bytes of JPEG, PNG and WebP files
//	Map        record k with fields that a function computes from others, and from a key of the record
//	Constants  record k with more fields, which are constant over runs of records
//
// Every view is a [source.Source], so a view may stand over a view, and loaders need
// not know of views. A view has no state: any process can read any of its records at
// any time. Its fingerprint follows from its parameters and the fingerprints below.
//
// # Rows
//
// A view numbers the records of the datasets below, one dataset after the other. For each field it
// says which fields below its rows come from: one field, several that are joined, or several that a
// function computes the row from. One gatherer and one reader do the rest for all views. They pass on
// the draw of each call, which is the seed and the epoch of the loader: see package source.
//
// # Cost
//
// Select, Rename, Slice, Take and Filter only renumber records and fields. The
// gatherer below writes the blocks, so these views cost nothing per byte. A chain of
// them is one view: a gather renumbers its list once for each view that does not fold
// into another, then enters one gatherer. That takes about a nanosecond for each record,
// and for each filter 25, because it counts bits; Take over filters keeps the numbers that
// they find. Window and Concat also let the gatherers
// below write the blocks in place. A window is one copy if its rows lie one after the other, as in
// files of tokens. Stack gathers columns into memory of its own,
// then interleaves them. Map reads the rows that its function gets, and copies what it returns to the
// blocks.
//
// # Closing
//
// Closing a view ends the gathers of that view alone. The datasets below stay open
// and have to be closed by their owner. If a dataset below is closed, its views fail
// with InvalidState. A chain of Select, Rename, Slice, Take and Filter needs only the
// dataset below all of them.
package view
