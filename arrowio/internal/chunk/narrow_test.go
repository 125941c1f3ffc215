package chunk_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestNarrow decodes random columns of integers of 8 and 16 bits, with pages in all
// encodings. A value with more bits, as a signed number and as an unsigned one, is refused.
func TestNarrow(t *testing.T) {
	rng := random.New(t)
	for round := range 300 {
		width := 1 + round%2
		lowest, highest := -1<<(8*width-1), 1<<(8*width)-1
		column := make([]*uint32, 1+rng.IntN(400))
		for i := range column {
			if rng.IntN(10) > 0 {
				v := uint32(random.One(rng, lowest, highest, lowest+rng.IntN(highest-lowest+1)))
				column[i] = &v
			}
		}
		codec := random.One(rng, parquet.Uncompressed, parquet.Snappy)
		c := parquet.Chunk{Values: int64(len(column)), Nulls: -1, Codec: codec}
		leaf := ints
		leaf.Narrow = width
		got, err := chunk.Decode(write(rng, column, codec), &c, &leaf, c.Values, limit)
		if err != nil {
			t.Fatal(err)
		}
		if got.Width != width || len(got.Fixed) != width*len(column) {
			t.Fatalf("%d bytes for %d values of %d bytes", len(got.Fixed), len(column), width)
		}
		for i, v := range column {
			want := make([]byte, 4)
			if v != nil {
				binary.LittleEndian.PutUint32(want, *v)
			}
			if part := got.Fixed[width*i : width*(i+1)]; string(part) != string(want[:width]) || got.Valid.Get(int64(i)) != (v != nil) {
				t.Fatalf("value %d differs", i)
			}
		}
		wide := random.One(rng, lowest-1, highest+1, 1<<31-1, -1<<31)
		v := uint32(wide)
		column[rng.IntN(len(column))] = &v
		_, err = chunk.Decode(write(rng, column, codec), &c, &leaf, c.Values, limit)
		if want := fmt.Sprintf("the value %d has more than %d bits", wide, 8*width); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %s", err, want)
		}
	}
}
