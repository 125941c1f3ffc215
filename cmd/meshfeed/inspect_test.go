package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestInspectNamesLogicalTypes checks the last column of the table of fields: the
// Arrow type that integers represent, and that a nullable field needs a fill value.
func TestInspectNamesLogicalTypes(t *testing.T) {
	var i inspection
	i.addSchema(source.Schema{Fields: []source.Field{
		{Name: "when", Type: dtype.Int64, Logical: "timestamp[us]"},
		{Name: "day", Type: dtype.Int32, Logical: "date32[day]", Nullable: true},
		{Name: "text", Type: dtype.Uint8, Logical: "string", Ragged: 1, Nullable: true},
		{Name: "boxes", Type: dtype.Float32, Shape: []int{4}, Ragged: 2},
		{Name: "a.JPG", Type: dtype.Uint8, Logical: "binary_view", Ragged: 1},
		{Name: "cls", Type: dtype.Uint8, Logical: "binary", Ragged: 1},
	}})
	var out strings.Builder
	if err := i.printFields(&out); err != nil {
		t.Fatal(err)
	}
	const want = `FIELD  TYPE     ROW        BYTES PER ROW
when   int64    scalar     8              stands for timestamp[us]
day    int32    scalar     4              stands for date32[day]; may hold nulls: without a fill value, a null is an error
text   uint8    …          varies         string: rows differ in length, so a loader leaves it out
boxes  float32  … × … × 4  varies         list<list<float32[4]>>: rows differ in length, so a loader leaves it out
a.JPG  uint8    …          varies         binary_view: rows differ in length, so a loader leaves it out; ds.decode_image makes arrays of these images
cls    uint8    …          varies         binary: rows differ in length, so a loader leaves it out
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestLengths compares the summary with sorted lengths.
func TestLengths(t *testing.T) {
	r := random.New(t)
	for range 200 {
		counts, all, nulls := map[int64]int64{}, []int64(nil), int64(0)
		for range r.IntN(300) {
			length := int64(r.IntN(40)) - 1
			if counts[length]++; length < 0 {
				nulls++
			} else {
				all = append(all, length)
			}
		}
		want := lengthFacts{Nulls: nulls}
		if n := len(all); n > 0 {
			slices.Sort(all)
			want = lengthFacts{nulls, all[0], all[(n+1)/2-1], all[(99*n+99)/100-1], all[n-1]}
		}
		if got := summarize(counts); got != want {
			t.Fatalf("got %+v, want %+v of %v", got, want, all)
		}
	}
}

// TestInspectLengths runs the verb on files with text.
func TestInspectLengths(t *testing.T) {
	t.Chdir(writeDigits(t))
	var out, diagnostics bytes.Buffer
	if code := run(t.Context(), strings.Fields("inspect --lengths train-0.arrow train-1.arrow"), nil, &out, &diagnostics); code != exitSuccess {
		t.Fatalf("exit %d: %s", code, diagnostics.String())
	}
	const want = `FIELD  TYPE     ROW     BYTES PER ROW
image  float32  2 × 2   16
label  int32    scalar  4
text   uint8    …       varies         string: rows differ in length, so a loader leaves it out

LENGTHS  NULLS  MIN  MEDIAN  P99  MAX
text     0      7    7       8    8

FILE `
	if _, got, _ := strings.Cut(out.String(), "\n\n"); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
