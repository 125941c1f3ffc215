package sampler

import "fmt"

// sequential is the order in which record i stands at position i; its value
// is the number of records. It is its own epoch.
type sequential int64

func (s sequential) Name() string      { return Sequential }
func (s sequential) Len() int64        { return int64(s) }
func (s sequential) Epoch(int64) Epoch { return s }

func (s sequential) At(position int64) int64 {
	s.check(position, 1)
	return position
}

func (s sequential) Fill(dst []int64, position int64) {
	s.check(position, int64(len(dst)))
	for i := range dst {
		dst[i] = position + int64(i)
	}
}

func (s sequential) check(position, count int64) {
	if position < 0 || position > int64(s)-count {
		panic(fmt.Sprintf("sampler: positions [%d, %d) are not in [0, %d)", position, position+count, int64(s)))
	}
}
