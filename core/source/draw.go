package source

// Draw is what the rows of a random view depend on beside the records below. The package comment says
// where it comes from.
type Draw struct {
	Seed  int64 // of the order of the records, also if that is sequential
	Epoch int64
}
