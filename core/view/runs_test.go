package view_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// TestEqualFloats: 0.0 and -0.0 are one value of split(within=) and window(within=), and so
// are all NaNs. No other two floats of a type are. Integers with the same bits are not either.
func TestEqualFloats(t *testing.T) {
	for typ, inf := range map[dtype.Type]uint64{
		dtype.Float16: 0x7c00, dtype.BFloat16: 0x7f80, dtype.Float32: 0x7f80_0000, dtype.Float64: 0x7ff0 << 48,
		dtype.Complex64: 0x7f80_0000, dtype.Complex128: 0x7ff0 << 48, dtype.Int64: 0x7ff0 << 48,
	} {
		size := typ.Size()
		if typ == dtype.Complex64 || typ == dtype.Complex128 {
			size /= 2
		}
		sign := uint64(1) << (8*size - 1)
		var rows [][]byte
		for _, bits := range []uint64{0, sign, inf, inf + 1, inf + 2, sign | inf + 3, sign | inf, 1, sign | 1} {
			value := binary.LittleEndian.AppendUint64(nil, bits)[:size]
			rows = append(rows, slices.Repeat(value, typ.Size()/size))
		}
		want := [3]int64{6, 2, 1}
		if typ == dtype.Int64 {
			want = [3]int64{9, 0, 0}
		}
		runs := slices.Repeat([]int64{1}, len(rows))
		for _, ragged := range []int{0, 1} {
			f := source.Field{Name: "x", Type: typ, Ragged: ragged}
			src := must(view.Constants(synthetic.New(int64(len(rows)), source.Field{Name: "n", Type: dtype.Int8}), runs, view.Constant{Field: f, Rows: rows}))
			if got := groupsOf(t, src, f.Name); got != want {
				t.Errorf("%v, ragged %d: the dataset has %v runs of at least 1, 2 and 3 records, want %v", typ, ragged, got, want)
			}
			var row []byte // reading the groups has not changed the values
			reader, err := src.Reader([]int{1})
			if err != nil {
				t.Fatal(err)
			}
			spans := []source.Span{{Field: 1, Record: 1}}
			err = reader.Read(t.Context(), source.Draw{}, spans, func() error { row = slices.Clone(spans[0].Row); return nil })
			if err != nil || row[len(row)-1] != 0x80 {
				t.Errorf("%v, ragged %d: the row of -0.0 is %v, %v", typ, ragged, row, err)
			}
			reader.Close()
		}
	}
}

// groupsOf counts the runs of equal values that have at least one, two and three records.
func groupsOf(t *testing.T, src source.Source, field string) (counts [3]int64) {
	t.Helper()
	for i := range counts {
		w, err := view.Window(t.Context(), src, view.Windows{Length: int64(i + 1), Stride: src.Len(), Within: field})
		if err == nil {
			counts[i] = w.Len()
		}
	}
	return counts
}
