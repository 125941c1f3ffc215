package chunk

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// TestSpread moves random values of several widths to random slots.
func TestSpread(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 1))
		width, slots, share := []int{1, 4, 8, 12}[rng.IntN(4)], int64(1+rng.IntN(400)), []float64{0, 0.005, 0.1, 0.5, 0.9, 1}[rng.IntN(6)]
		var c Column
		var want []byte
		c.Width, c.Values, c.Valid = width, slots, make(levels.Bitmap, (slots+7)/8)
		for slot := range slots {
			value := make([]byte, width)
			if rng.Float64() >= share {
				for i := range value {
					value[i] = byte(rng.Uint32())
				}
				c.Fixed, c.Present = append(c.Fixed, value...), c.Present+1
				c.Valid.Set(slot, true)
			}
			want = append(want, value...)
		}
		if c.spread(); !bytes.Equal(c.Fixed, want) {
			t.Fatal(fmt.Sprintf("seed %d, %d values of %d bytes in %d slots:\n", seed, c.Present, width, slots), c.Fixed, "\nwant\n", want)
		}
	}
}
