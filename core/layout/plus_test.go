package layout

import "testing"

// A sum beyond MaxInteger is MaxInteger + 1.
func TestPlus(t *testing.T) {
	const most = MaxInteger
	for _, c := range []struct{ sum, size, times, want int64 }{
		{1, 2, 3, 7}, {0, most, 1, most}, {most - 6, 2, 3, most}, {most, 0, 9, most},
		{most - 5, 2, 3, most + 1}, {0, most, 2, most + 1}, {most + 1, 1, 0, most + 1},
		{1, most, most, most + 1},                 // beyond 64 bits
		{1 << 30, 1<<32 + 1, 1<<32 - 1, most + 1}, // 2^64 - 1: beyond 64 bits with the sum
	} {
		if got := plus(c.sum, c.size, c.times); got != c.want {
			t.Errorf("%d + %d × %d = %d, want %d", c.sum, c.size, c.times, got, c.want)
		}
	}
}
