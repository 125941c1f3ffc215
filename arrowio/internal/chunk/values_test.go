package chunk_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/spare"
	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestMemoryWithContent decodes random columns into memory that other values have left behind.
func TestMemoryWithContent(t *testing.T) {
	rng := random.New(t)
	noise := make([]byte, 1<<16)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for round := range 40 {
		text, codec, nulls := round%2 == 0, random.One(rng, parquet.Uncompressed, parquet.Snappy), random.One(rng, 0, 0.2)
		leaf := parquet.Leaf{Physical: parquet.Fixed, Length: 50, Nodes: optional}
		if text {
			leaf = parquet.Leaf{Physical: parquet.ByteArray, Nodes: optional}
		}
		column := make([][]byte, 2000+rng.IntN(2000)) // nil for nulls
		var want []byte
		ends := []int64{0}
		for i := range column {
			size := 50
			if text {
				size = rng.IntN(80)
			}
			if rng.Float64() >= nulls {
				column[i] = noise[rng.IntN(1<<15):][:size]
				want = append(want, column[i]...)
			} else if !text {
				want = append(want, make([]byte, size)...)
			}
			ends = append(ends, int64(len(want)))
		}
		data := writeBytes(rng, column, text, codec)
		spare.Give(bytes.Repeat([]byte{0xff}, len(want)))
		c := parquet.Chunk{Values: int64(len(column)), Nulls: -1, Unpacked: int64(len(want)), Codec: codec}
		got, err := chunk.Decode(data, &c, &leaf, c.Values, limit)
		if err != nil {
			t.Fatal(err)
		}
		if clear(data); text && (!bytes.Equal(got.Bytes.Data, want) || !slices.Equal(got.Bytes.Offsets, ends)) || !text && !bytes.Equal(got.Fixed, want) {
			t.Fatalf("other values (text %v, codec %v, nulls %v)", text, codec, nulls)
		}
	}
}

// writeBytes writes an optional column of text, or of values of a fixed size, in pages of random
// sizes and encodings.
func writeBytes(rng *rand.Rand, column [][]byte, text bool, codec parquet.Codec) (data []byte) {
	for len(column) > 0 {
		p := page{n: min(len(column), 1+rng.IntN(1000))}
		var levels []uint32
		var lengths []int64
		var plain, values []byte
		for _, v := range column[:p.n] {
			if v == nil {
				levels = append(levels, 0)
				continue
			}
			levels, lengths = append(levels, 1), append(lengths, int64(len(v)))
			plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(v))), v...)
			values = append(values, v...)
		}
		p.levels, p.body = sized(encodingtest.Runs(rng, levels, 1)), values
		if text && rng.IntN(2) == 0 {
			p.body = plain
		} else if text {
			p.how, p.body = parquet.DeltaLengthByteArray, append(encodingtest.Delta(lengths, 128, 4), values...)
		}
		data, column = append(data, p.bytes(codec)...), column[p.n:]
	}
	return data
}
