package chunk_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestScratch: decoders use the same memory for pages and indices, one after the other, so
// that each allocates little more than its values.
func TestScratch(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would free what is kept
	const n, times = 80_000, 20
	rng := random.New(t)
	body := binary.AppendUvarint([]byte{8}, n/8<<1|1)
	for range n {
		body = append(body, byte(rng.Uint32()))
	}
	dictionary := page{kind: parquet.DictionaryPage, n: 256, body: make([]byte, 4*256)}
	indices := page{n: n, how: parquet.RLEDictionary, body: body}
	data := append(dictionary.bytes(parquet.Snappy), indices.bytes(parquet.Snappy)...)
	stored := parquet.Chunk{Values: n, Codec: parquet.Snappy}
	least := uint64(1 << 30) // the least of several runs, because a sync.Pool forgets some of its content under the race detector
	for range times {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := chunk.Decode(data, &stored, &parquet.Leaf{Physical: parquet.Int32, Nodes: required}, n, 1<<20); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > 4*n*5/4 {
		t.Errorf("%d bytes were allocated for %d bytes of values", least, 4*n)
	}
}

// TestUsedMemory decodes into memory that has the values of another column. Slots of nulls hold
// zeros all the same.
func TestUsedMemory(t *testing.T) {
	rng := random.New(t)
	const n = 50_000
	column, nulls := make([]*uint32, n), 0
	for i := range column {
		if rng.IntN(10) < 3 {
			nulls++
			continue
		}
		v := rng.Uint32N(100)
		column[i] = &v
	}
	data := write(rng, column, parquet.Snappy)
	c := parquet.Chunk{Length: int64(len(data)), Values: n, Nulls: int64(nulls), Codec: parquet.Snappy}
	for range 10 { // a sync.Pool forgets some of its content under the race detector
		spare.Give(bytes.Repeat([]byte{0xff}, 4*n))
		got, err := chunk.Decode(data, &c, &ints, n, 1<<24)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range column {
			want := uint32(0)
			if v != nil {
				want = *v
			}
			if found := binary.LittleEndian.Uint32(got.Fixed[4*i:]); found != want {
				t.Fatalf("value %d is %d instead of %d", i, found, want)
			}
		}
	}
}
