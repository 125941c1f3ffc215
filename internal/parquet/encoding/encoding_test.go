package encoding_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/tests/random"
)

// Examples of the format's documentation (Encodings.md).
func TestExamplesOfTheFormat(t *testing.T) {
	packed := make([]uint32, 8)
	encoding.Unpack(packed, []byte{0b10001000, 0b11000110, 0b11111010}, 3)
	if want := []uint32{0, 1, 2, 3, 4, 5, 6, 7}; !slices.Equal(packed, want) {
		t.Errorf("bit packing: %v, want %v", packed, want)
	}
	for _, c := range [][]int64{{1, 2, 3, 4, 5}, {7, 5, 3, 1, 2, 3, 4, 5}} {
		got := make([]byte, 8*len(c))
		if _, err := encoding.Delta(got, encodingtest.Delta(c, 128, 4), 8); err != nil || !bytes.Equal(got, integers(c, 8)) {
			t.Errorf("differences: %v, %v, want %v", got, err, c)
		}
	}
	split := make([]byte, 12)
	err := encoding.ByteStreamSplit(split, []byte{0xAA, 0x00, 0xA3, 0xBB, 0x11, 0xB4, 0xCC, 0x22, 0xC5, 0xDD, 0x33, 0xD6}, 4)
	if want := []byte{0xAA, 0xBB, 0xCC, 0xDD, 0x00, 0x11, 0x22, 0x33, 0xA3, 0xB4, 0xC5, 0xD6}; err != nil || !bytes.Equal(split, want) {
		t.Errorf("split streams: %x, %v, want %x", split, err, want)
	}
	words := encoding.Bytes{Limit: 100}
	lengths := encodingtest.Delta([]int64{5, 5, 6, 6}, 128, 4)
	if err := encoding.DeltaLengths(&words, append(lengths, "HelloWorldFoobarABCDEF"...), 4); err != nil || fmt.Sprintf("%q", words.Data) != `"HelloWorldFoobarABCDEF"` || !slices.Equal(words.Offsets, []int64{0, 5, 10, 16, 22}) {
		t.Errorf("lengths: %q %v, %v", words.Data, words.Offsets, err)
	}
	words = encoding.Bytes{Limit: 100}
	prefixes, suffixes := encodingtest.Delta([]int64{0, 2, 0, 3}, 128, 4), encodingtest.Delta([]int64{4, 2, 4, 4}, 128, 4)
	words = encoding.Bytes{Limit: 100}
	if err := encoding.DeltaBytes(&words, slices.Concat(prefixes, suffixes, []byte("axislebabyhood")), 4); err != nil || string(words.Data) != "axisaxlebabybabhood" {
		t.Errorf("prefixes: %q %v, %v", words.Data, words.Offsets, err)
	}
}

// integers returns the low bytes of numbers.
func integers(numbers []int64, width int) (out []byte) {
	for _, v := range numbers {
		out = append(out, binary.LittleEndian.AppendUint64(nil, uint64(v))[:width]...)
	}
	return out
}

// rounds calls check with random numbers.
func rounds(t *testing.T, check func(t *testing.T, rng *rand.Rand)) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { check(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func TestRuns(t *testing.T) {
	rounds(t, func(t *testing.T, rng *rand.Rand) {
		width, n := rng.IntN(33), rng.IntN(300)
		numbers := make([]uint32, n)
		for i := range numbers {
			if i == 0 || rng.IntN(3) == 0 {
				numbers[i] = uint32(rng.Uint64() & (1<<width - 1))
			} else {
				numbers[i] = numbers[i-1]
			}
		}
		src := append([]byte{byte(width)}, encodingtest.Runs(rng, numbers, width)...)
		got := make([]uint32, n)
		if err := encoding.Indices(got, src); err != nil || !slices.Equal(got, numbers) {
			t.Fatalf("width %d: %v, %v, want %v", width, got, err, numbers)
		}
		short := src[:rng.IntN(len(src))]
		if err := encoding.Indices(got, short); err == nil && !slices.Equal(got, numbers) {
			t.Errorf("%d of %d bytes were read as other numbers", len(short), len(src))
		}
	})
}

// add adds a value.
func add(b *encoding.Bytes, value []byte) error {
	return encoding.PlainBytes(b, append(binary.LittleEndian.AppendUint32(nil, uint32(len(value))), value...), 1)
}

// TestGather looks indices up in dictionaries of values of all widths.
func TestGather(t *testing.T) {
	rounds(t, func(t *testing.T, rng *rand.Rand) {
		width, size, n := rng.IntN(10), 1+rng.IntN(50), rng.IntN(50)
		dictionary, words := make([]byte, width*size), encoding.Bytes{Limit: 1 << 20}
		for i := range dictionary {
			dictionary[i] = byte(rng.Uint32())
		}
		for i := range size {
			if err := add(&words, dictionary[width*i:width*(i+1)]); err != nil {
				t.Fatal(err)
			}
		}
		indices, want := make([]uint32, n), []byte{}
		for i := range indices {
			indices[i] = rng.Uint32N(uint32(size))
			want = append(want, words.Value(int(indices[i]))...)
		}
		got, texts := make([]byte, width*n), encoding.Bytes{Limit: 1 << 20}
		if err := encoding.GatherFixed(got, dictionary, size, indices); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
		if err := texts.Gather(&words, indices); err != nil || !bytes.Equal(texts.Data, want) || texts.Len() != n {
			t.Fatalf("%v, %v, want %v", texts.Data, err, want)
		}
		if n == 0 {
			return
		}
		outside := random.One(rng, uint32(size), 1<<29-1, 1<<31, math.MaxUint32)
		indices[rng.IntN(n)] = outside
		text := fmt.Sprintf("index %d into a dictionary of %d values", outside, size)
		if err := encoding.GatherFixed(got, dictionary, size, indices); err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
		if err := texts.Gather(&words, indices); err == nil || err.Error() != text {
			t.Errorf("%v, want %s", err, text)
		}
		if err := encoding.GatherFixed(got, nil, 0, indices); err == nil {
			t.Error("an index into no values was accepted")
		}
	})
}

func TestBooleans(t *testing.T) {
	rounds(t, func(t *testing.T, rng *rand.Rand) {
		n := rng.IntN(200)
		numbers, want := make([]uint32, n), make([]byte, n)
		for i := range numbers {
			numbers[i] = uint32(rng.IntN(2))
			if i > 0 && rng.IntN(4) > 0 {
				numbers[i] = numbers[i-1]
			}
			want[i] = byte(numbers[i])
		}
		wide := make([]uint64, n)
		for i, v := range numbers {
			wide[i] = uint64(v)
		}
		got := make([]byte, n)
		if err := encoding.PlainBooleans(got, encodingtest.PackBits(wide, 1)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("plain: %v, %v, want %v", got, err, want)
		}
		runs := encodingtest.Runs(rng, numbers, 1)
		src := append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs...)
		clear(got)
		if err := encoding.RunBooleans(got, src); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("runs: %v, %v, want %v", got, err, want)
		}
	})
}

func TestByteStreamSplit(t *testing.T) {
	rounds(t, func(t *testing.T, rng *rand.Rand) {
		width, n := 1+rng.IntN(9), rng.IntN(50)
		want, src := make([]byte, width*n), make([]byte, width*n)
		for i := range want {
			want[i] = byte(rng.Uint32())
			src[i%width*n+i/width] = want[i]
		}
		got := make([]byte, width*n)
		if err := encoding.ByteStreamSplit(got, src, width); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("width %d: %v, %v, want %v", width, got, err, want)
		}
		if n > 0 {
			if err := encoding.ByteStreamSplit(got, src[1:], width); err == nil {
				t.Error("a page without its last byte was read")
			}
		}
	})
}

func TestDelta(t *testing.T) {
	rounds(t, func(t *testing.T, rng *rand.Rand) {
		numbers := make([]int64, rng.IntN(600))
		spread := rng.IntN(65)
		for i := range numbers {
			numbers[i] = int64(rng.Uint64() >> min(spread, 63))
			if rng.IntN(50) == 0 {
				numbers[i] = []int64{math.MinInt64, math.MaxInt64, 0, -1}[rng.IntN(4)]
			}
		}
		parts := 1 + rng.IntN(4)
		block := parts * 32 * (1 + rng.IntN(3))
		src := encodingtest.Delta(numbers, block, parts)
		width := random.One(rng, 4, 8)
		got, want := make([]byte, width*len(numbers)), integers(numbers, width)
		rest, err := encoding.Delta(got, append(src, "rest"...), width)
		if err != nil || !bytes.Equal(got, want) || string(rest) != "rest" {
			t.Fatalf("%v, %q, %v, want %v", got, rest, err, numbers)
		}
		if short := rng.IntN(len(src)); len(numbers) > 0 {
			if _, err := encoding.Delta(got, src[:short], width); err == nil && !bytes.Equal(got, want) {
				t.Errorf("%d of %d bytes were read", short, len(src))
			}
		}
	})
}

func TestBytes(t *testing.T) {
	rounds(t, func(t *testing.T, rng *rand.Rand) {
		n := rng.IntN(100)
		var want, plain []byte
		offsets, lengths, prefixes, suffixes := []int64{0}, []int64{}, []int64{}, []int64{}
		var tails, before []byte
		for range n {
			shared := rng.IntN(len(before) + 1)
			tail := make([]byte, rng.IntN(20))
			for i := range tail {
				tail[i] = byte(rng.Uint32())
			}
			value := slices.Concat(before[:shared], tail)
			want = append(want, value...)
			plain = append(binary.LittleEndian.AppendUint32(plain, uint32(len(value))), value...)
			offsets, lengths = append(offsets, int64(len(want))), append(lengths, int64(len(value)))
			prefixes, suffixes, tails = append(prefixes, int64(shared)), append(suffixes, int64(len(tail))), append(tails, tail...)
			before = value
		}
		forms := map[string]func(to *encoding.Bytes) error{
			"plain": func(to *encoding.Bytes) error { return encoding.PlainBytes(to, plain, n) },
			"lengths": func(to *encoding.Bytes) error {
				return encoding.DeltaLengths(to, append(encodingtest.Delta(lengths, 128, 4), want...), n)
			},
			"prefixes": func(to *encoding.Bytes) error {
				return encoding.DeltaBytes(to, slices.Concat(encodingtest.Delta(prefixes, 128, 4), encodingtest.Delta(suffixes, 128, 4), tails), n)
			},
		}
		for name, decode := range forms {
			got := encoding.Bytes{Limit: int64(len(want)), Offsets: []int64{0}}
			if err := decode(&got); err != nil || !bytes.Equal(got.Data, want) || !slices.Equal(got.Offsets, offsets) {
				t.Fatalf("%s: %q %v, %v, want %q %v", name, got.Data, got.Offsets, err, want, offsets)
			}
			if err := decode(&got); len(want) > 0 && err == nil {
				t.Errorf("%s: the limit of %d bytes was exceeded", name, got.Limit)
			}
		}
	})
}

// Limits hold even if few bytes stand for very many.
func TestLimit(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 1000)
	const n = 10_000
	prefixes, suffixes := make([]int64, n), make([]int64, n)
	for i := range prefixes {
		prefixes[i] = 1000
	}
	prefixes[0], suffixes[0] = 0, 1000
	words := encoding.Bytes{Limit: 1 << 20}
	err := encoding.DeltaBytes(&words, slices.Concat(encodingtest.Delta(prefixes, 128, 4), encodingtest.Delta(suffixes, 128, 4), long), n)
	if err == nil || err.Error() != "the values have more than 1048576 bytes" || cap(words.Data) > 2<<20 {
		t.Errorf("%v, with %d bytes", err, cap(words.Data))
	}
	dictionary := encoding.Bytes{Limit: 1000}
	if err := add(&dictionary, long); err != nil {
		t.Fatal(err)
	}
	if err := words.Gather(&dictionary, make([]uint32, n)); err == nil || cap(words.Data) > 2<<20 {
		t.Errorf("%v, with %d bytes", err, cap(words.Data))
	}
}

// No decoder panics, reads past its input, or writes past its output.
func FuzzDecoders(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	f.Add([]byte{3, 2, 5}, uint16(8), byte(3))
	f.Add(encodingtest.Delta([]int64{1, 2, 3, 500, -7}, 128, 4), uint16(5), byte(8))
	f.Add(append([]byte{5}, encodingtest.Runs(rng, []uint32{1, 1, 1, 7, 31}, 5)...), uint16(5), byte(4))
	f.Fuzz(func(t *testing.T, src []byte, count uint16, width byte) {
		n := int(count)
		src = src[:len(src):len(src)]
		_, _ = encoding.Delta(make([]byte, 4*n), src, 4)
		_, _ = encoding.Delta(make([]byte, 8*n), src, 8)
		indices := make([]uint32, n)
		if encoding.Indices(indices, src) == nil {
			_ = encoding.GatherFixed(make([]byte, n*int(width)), make([]byte, 1000*int(width)), 1000, indices)
		}
		_ = encoding.PlainBooleans(make([]byte, n), src)
		_ = encoding.RunBooleans(make([]byte, n), src)
		_ = encoding.PlainFixed(make([]byte, n), src)
		_ = encoding.ByteStreamSplit(make([]byte, n*int(width)), src, int(width))
		for _, decode := range []func(*encoding.Bytes, []byte, int) error{encoding.PlainBytes, encoding.DeltaLengths, encoding.DeltaBytes} {
			b := encoding.Bytes{Limit: 1 << 16}
			if err := decode(&b, src, n); err == nil && n > 0 && (b.Len() != n || int64(len(b.Data)) != b.Offsets[n]) {
				t.Fatalf("%d values instead of %d", b.Len(), n)
			}
			if int64(len(b.Data)) > b.Limit {
				t.Fatalf("%d bytes, more than the limit", len(b.Data))
			}
		}
	})
}
