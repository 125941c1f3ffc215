package gather

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/tests/random"
)

func words[T int64 | uint64 | float64](values ...T) []byte {
	var b []byte
	for _, v := range values {
		bits := uint64(v)
		if f, ok := any(v).(float64); ok {
			bits = math.Float64bits(f)
		}
		b = binary.LittleEndian.AppendUint64(b, bits)
	}
	return b
}

// take runs one job over rows of data, shape elements of unit bytes each.
func take(data []byte, unit int, shape []int, boxes [][][2]int, conv Conversion) ([]byte, error) {
	n := len(data) / (product(shape) * unit)
	rows := make([]uintptr, n)
	for i := range rows {
		rows[i] = address(data) + uintptr(i*product(shape)*unit)
	}
	p := Compile(shape, 0, boxes, conv)
	dst := make([]byte, n*p.Bytes())
	err := Run(rows, []Job{{p, [2]int{0, n}, dst}}, Options{})
	runtime.KeepAlive(data)
	return dst, err
}

func TestNarrow(t *testing.T) {
	whole := [][][2]int{{{0, 3}}}
	out, err := take(words[int64](1, -2, math.MaxInt32, math.MinInt32, 0, 7), 8, []int{3}, whole, Int64ToInt32)
	if want := []byte{1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0x80, 0, 0, 0, 0, 7, 0, 0, 0}; err != nil || string(out) != string(want) {
		t.Errorf("got %v, %v", out, err)
	}
	out, err = take(words[uint64](1, math.MaxUint32, 5), 8, []int{3}, whole, Uint64ToUint32)
	if want := []byte{1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 5, 0, 0, 0}; err != nil || string(out) != string(want) {
		t.Errorf("got %v, %v", out, err)
	}
	out, err = take(words(1.5, math.Inf(-1), 1e300), 8, []int{3}, whole, Float64ToFloat32)
	want := []float32{1.5, float32(math.Inf(-1)), float32(math.Inf(1))}
	for i, v := range want {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])); err != nil || got != v {
			t.Errorf("value %d: got %v, want %v, %v", i, got, v, err)
		}
	}
	out, err = take(words(1.0, 2, 3, 4, 5, 6), 16, []int{3}, [][][2]int{{{1, 3}}}, Complex128ToComplex64)
	for i, v := range []float32{3, 4, 5, 6} {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])); err != nil || got != v {
			t.Errorf("part %d: got %v, want %v, %v", i, got, v, err)
		}
	}
}

func TestNarrowOutOfRange(t *testing.T) {
	for _, c := range []struct {
		data []byte
		conv Conversion
		want string
	}{
		{words[int64](1, 2, 3, 1<<31, 5, 6), Int64ToInt32, "gather: row 1 holds 2147483648, which int32 cannot"},
		{words[int64](1, -1<<31-1, 3, 1<<40, 5, 6), Int64ToInt32, "gather: row 0 holds -2147483649, which int32 cannot"},
		{words[uint64](1, 2, 3, 4, 5, 1<<32), Uint64ToUint32, "gather: row 1 holds 4294967296, which uint32 cannot"},
		{words[uint64](1, 2, 3, 4, 5, math.MaxUint64), Uint64ToUint32, "gather: row 1 holds 18446744073709551615, which uint32 cannot"},
	} {
		_, err := take(c.data, 8, []int{3}, [][][2]int{{{0, 3}}}, c.conv)
		var bad *RangeError
		if !errors.As(err, &bad) || err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	// Elements that no block takes may have any value.
	if _, err := take(words[int64](1<<40, 2, 1<<41), 8, []int{3}, [][][2]int{{{1, 2}}}, Int64ToInt32); err != nil {
		t.Error(err)
	}
}

// TestNarrowLengths tries every length, with a value that does not fit at every
// position.
func TestNarrowLengths(t *testing.T) {
	for n := 1; n <= 40; n++ {
		for bad := -1; bad < n; bad++ {
			values := make([]int64, n)
			for i := range values {
				values[i] = int64(i*i) - 300
			}
			if bad >= 0 {
				values[bad] = math.MinInt64 + int64(bad)
			}
			out, err := take(words(values...), 8, []int{n}, [][][2]int{{{0, n}}}, Int64ToInt32)
			if bad >= 0 {
				if want := fmt.Sprintf("gather: row 0 holds %d, which int32 cannot", values[bad]); err == nil || err.Error() != want {
					t.Fatalf("got %v, want %s", err, want)
				}
				continue
			}
			for i, v := range values {
				if got := int32(binary.LittleEndian.Uint32(out[4*i:])); err != nil || got != int32(v) {
					t.Fatalf("length %d, value %d: got %d, want %d, %v", n, i, got, v, err)
				}
			}
		}
	}
}

func TestBits(t *testing.T) {
	r := random.New(t)
	for range 500 {
		n, shape := 1+r.IntN(20), []int{1 + r.IntN(5), 1 + r.IntN(70)}
		size, offset := product(shape), r.IntN(30)
		data := make([]byte, (offset+n*size+7)/8)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		var rows []uintptr
		var want []byte
		boxes := randomBoxes(r, shape)
		for i := range n {
			row := make([]byte, size)
			for k := range row {
				bit := offset + i*size + k
				row[k] = data[bit/8] >> (bit % 8) & 1
			}
			rows = append(rows, BitAddress(address(data), int64(offset+i*size)))
			want = append(want, reference(row, shape, 1, boxes)...)
		}
		p := Compile(shape, 0, boxes, Bits)
		dst := make([]byte, n*p.Bytes())
		if err := Run(rows, []Job{{p, [2]int{0, n}, dst}}, Options{}); err != nil {
			t.Fatal(err)
		}
		if string(dst) != string(want) {
			t.Fatalf("%d rows of shape %v, boxes %v, from bit %d: wrong", n, shape, boxes, offset)
		}
		runtime.KeepAlive(data)
	}
}

// TestNarrowWide has one value that does not fit: only its high bits differ from a value
// that fits.
func TestNarrowWide(t *testing.T) {
	values := []uint64{1, 2, 3, 4, 5, 6, 7, 1<<32 - 1, 9}
	whole := [][][2]int{{{0, 9}}}
	if _, err := take(words(values...), 8, []int{9}, whole, Uint64ToUint32); err != nil {
		t.Error(err)
	}
	values[4], values[7] = math.MaxUint64-4, 8
	_, err := take(words(values...), 8, []int{9}, whole, Uint64ToUint32)
	if want := "gather: row 0 holds 18446744073709551611, which uint32 cannot"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	values[4] = math.MaxUint32 - 4
	_, err = take(words(values...), 8, []int{9}, whole, Int64ToInt32)
	if want := "gather: row 0 holds 4294967291, which int32 cannot"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestNarrowBoxes takes random boxes of rows, and compares each number with its
// conversion alone.
func TestNarrowBoxes(t *testing.T) {
	r := random.New(t)
	for range 500 {
		n, shape := 1+r.IntN(5), []int{1 + r.IntN(5), 1 + r.IntN(9)}
		conv := []Conversion{Int64ToInt32, Uint64ToUint32, Float64ToFloat32, Complex128ToComplex64}[r.IntN(4)]
		unit, _ := conv.units()
		data := make([]byte, n*product(shape)*unit)
		for i := 0; i < len(data); i += 8 {
			binary.LittleEndian.PutUint64(data[i:], uint64(r.Uint32()>>1))
		}
		boxes := randomBoxes(r, shape)
		var want []byte
		for row := range slices.Chunk(data, product(shape)*unit) {
			for number := range slices.Chunk(reference(row, shape, unit, boxes), 8) {
				bits := binary.LittleEndian.Uint64(number)
				if conv == Float64ToFloat32 || conv == Complex128ToComplex64 {
					bits = uint64(math.Float32bits(float32(math.Float64frombits(bits))))
				}
				want = binary.LittleEndian.AppendUint32(want, uint32(bits))
			}
		}
		if got, err := take(data, unit, shape, boxes, conv); err != nil || string(got) != string(want) {
			t.Fatalf("conversion %d, %d rows of shape %v, boxes %v: wrong, %v", conv, n, shape, boxes, err)
		}
	}
}

// BenchmarkNarrow converts 64 rows of 2,048 int64 per iteration.
func BenchmarkNarrow(b *testing.B) {
	data := make([]byte, 64*2048*8)
	for name, conv := range map[string]Conversion{"int64": Int64ToInt32, "uint64": Uint64ToUint32, "float64": Float64ToFloat32} {
		b.Run(name, func(b *testing.B) {
			rows := make([]uintptr, 64)
			for i := range rows {
				rows[i] = address(data) + uintptr(i*2048*8)
			}
			jobs := []Job{{Compile([]int{2048}, 8, [][][2]int{{{0, 2048}}}, conv), [2]int{0, 64}, make([]byte, len(data)/2)}}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := Run(rows, jobs, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBits expands 64 rows of 2,048 bits per iteration.
func BenchmarkBits(b *testing.B) {
	data := make([]byte, 64*2048/8)
	rows := make([]uintptr, 64)
	for i := range rows {
		rows[i] = BitAddress(address(data), int64(i*2048))
	}
	jobs := []Job{{Compile([]int{2048}, 0, [][][2]int{{{0, 2048}}}, Bits), [2]int{0, 64}, make([]byte, 64*2048)}}
	b.SetBytes(64 * 2048)
	for b.Loop() {
		if err := Run(rows, jobs, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
