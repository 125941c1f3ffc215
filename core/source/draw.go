package source

// Draw is what the rows of a random view depend on beside the records below. The package comment says
// where it comes from.
type Draw struct {
	Seed  int64 // seed of the order of the records, even if the order is sequential
	Epoch int64
}
