package sampler

var sequentialKind = kind{name: Sequential, form: Sequential, make: func(_ name, _, records int64, _ []int64) (Order, error) {
	return sequential(records), nil
}}

// sequential is the order with record i at position i. Its value is the number
// of records. It is its own epoch.
type sequential int64

func (s sequential) Name() string      { return Sequential }
func (s sequential) Len() int64        { return int64(s) }
func (s sequential) Epoch(int64) Epoch { return s }

func (s sequential) At(position int64) int64 {
	check(position, 1, int64(s))
	return position
}

func (s sequential) Fill(dst []int64, position int64) {
	check(position, int64(len(dst)), int64(s))
	for i := range dst {
		dst[i] = position + int64(i)
	}
}
