// Package view prepares datasets without copying them. A view is a dataset over one
// or more datasets below it. Each of its records is a pure function of records below:
//
//	view     record k of the view
//	Pad      record k with the rows of a ragged field at one length
//
// Every view is a [source.Source], so a view may stand over a view, and loaders need
// not know of views. A view has no state: any process can read any of its records at
// any time. Its fingerprint follows from its parameters and the fingerprints below.
//
// Closing a view ends the gathers of that view alone. The datasets below stay open
// and have to be closed by their owner.
package view
