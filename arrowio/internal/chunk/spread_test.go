package chunk

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestSpread moves random values of several widths, and ends, to random slots of a page.
func TestSpread(t *testing.T) {
	rng := random.New(t)
	for range 400 {
		width, share := random.One(rng, 1, 2, 4, 8, 12), random.One(rng, 0.005, 0.02, 0.1, 0.5, 0.9, 1)
		slots, valid := nullable(t, rng, share)
		var want, src []byte
		ends, wantEnds := []int64{7}, []int64{7}
		for _, present := range valid {
			value, end := make([]byte, width), wantEnds[len(wantEnds)-1]
			if present {
				for i := range value {
					value[i] = byte(rng.Uint32())
				}
				end += rng.Int64N(9)
				src, ends = append(src, value...), append(ends, end)
			}
			want, wantEnds = append(want, value...), append(wantEnds, end)
		}
		dst := bytes.Repeat([]byte{0xee}, len(want))
		if spread(dst, src, slots, width); !bytes.Equal(dst, want) {
			t.Fatalf("%d values of %d bytes in %d slots", slots.Present, width, slots.Count)
		}
		dst = append(src, bytes.Repeat([]byte{0xee}, len(want)-len(src))...)
		if spread(dst, dst, slots, width); !bytes.Equal(dst, want) {
			t.Fatalf("%d values of %d bytes in %d slots, in place", slots.Present, width, slots.Count)
		}
		ends = append(ends, make([]int64, len(wantEnds)-len(ends))...)
		if spreadEnds(ends, slots); !slices.Equal(ends, wantEnds) {
			t.Fatalf("the ends are %v, want %v", ends, wantEnds)
		}
	}
}

// nullable returns the slots of a page, which may be the second one of its column, and which of
// them have a value.
func nullable(t *testing.T, rng *rand.Rand, share float64) (slots *levels.Slots, valid []bool) {
	b := levels.NewBuilder(&parquet.Leaf{Nodes: []parquet.Node{{Repetition: parquet.Optional, Definition: 1}}})
	for range 1 + rng.IntN(2) {
		valid = make([]bool, rng.IntN(1000))
		all := make([]uint32, len(valid))
		for i := range all {
			if valid[i] = rng.Float64() >= share; valid[i] {
				all[i] = 1
			}
		}
		def, _ := encoding.NewRuns(encodingtest.Runs(rng, all, 1), 1, len(all))
		page, err := b.Page(&encoding.Runs{}, &def, len(all))
		if err != nil {
			t.Fatal(err)
		}
		slots = &page
	}
	return slots, valid
}
