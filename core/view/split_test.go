package view_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

var (
	id      = source.Field{Name: "id", Type: dtype.Int64} // its values differ
	patient = source.Field{Name: "patient", Type: dtype.Uint8}
	name    = source.Field{Name: "name", Type: dtype.Uint8, Ragged: 1, Logical: "string"}
)

// split returns the records of each part of a synthetic dataset.
func split(t testing.TB, records int64, d view.Division) [][]int64 {
	t.Helper()
	parts, err := view.Split(t.Context(), synthetic.New(records, id, patient, name), d)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]int64{}
	for r := range records {
		known[string(synthetic.Row(id, r))] = r
	}
	lists := make([][]int64, len(parts))
	for i, part := range parts {
		reader, err := part.Reader([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		spans := make([]source.Span, part.Len())
		for k := range spans {
			spans[k] = source.Span{Field: 0, Record: int64(k)}
		}
		err = reader.Read(t.Context(), source.Draw{}, spans, func() error {
			for _, s := range spans {
				lists[i] = append(lists[i], known[string(s.Row)])
			}
			return nil
		})
		if err := reader.Close(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return lists
}

func shares(of ...float64) []view.Share {
	list := make([]view.Share, len(of))
	for i, s := range of {
		list[i] = view.Share{Name: string(rune('a' + i)), Of: s}
	}
	return list
}

// TestSplitsAreFrozen: no release may change these parts. They are what a program calls its
// test set.
func TestSplitsAreFrozen(t *testing.T) {
	for _, c := range []struct {
		records int64
		d       view.Division
		test    []int64 // the last part
	}{
		{10, view.Division{Parts: shares(0.7, 0.3)}, []int64{1, 4, 6}},
		{10, view.Division{Parts: shares(0.7, 0.3), Seed: 1}, []int64{3, 5, 6}},
		{10, view.Division{Parts: shares(0.5, 0.3, 0.2), Seed: -1}, []int64{1, 7}},
		{40, view.Division{Parts: shares(0.8, 0.2), Within: "patient"}, []int64{0, 2, 12, 19, 28, 29, 31, 36}},
		{40, view.Division{Parts: shares(0.8, 0.2), Within: "name"}, []int64{3, 6, 8, 16, 25, 28, 31, 37}},
	} {
		parts := split(t, c.records, c.d)
		if got := parts[len(parts)-1]; !slices.Equal(got, c.test) {
			t.Errorf("%+v: the last part has %v, frozen %v", c.d, got, c.test)
		}
	}
	h := sha256.New() // more than a table of permutations has
	fmt.Fprint(h, split(t, 5000, view.Division{Parts: shares(0.9, 0.1), Seed: 42}))
	if got := hex.EncodeToString(h.Sum(nil))[:16]; got != "c7c6441d9adb3dc7" {
		t.Errorf("got %s", got)
	}
}

// TestSplits: every record is in one part, in order, values stay together, and the shares
// hold to the nearest group.
func TestSplits(t *testing.T) {
	r := random.New(t)
	for range 60 {
		records := int64(20 + r.IntN(6000))
		d := view.Division{Parts: shares(0.5, 0.25, 0.25), Seed: r.Int64N(1 << 40)}
		d.Within = []string{"", "", "patient", "name"}[r.IntN(4)]
		value := func(r int64) string { return fmt.Sprint(r) }
		if d.Within == "patient" {
			value = func(r int64) string { return string(synthetic.Row(patient, r)) }
		} else if d.Within == "name" {
			value = func(r int64) string { return string(synthetic.Row(name, r)) }
		}
		sizes, partOf, seen := map[string]int{}, map[string]int{}, 0
		parts := split(t, records, d)
		for i, part := range parts {
			seen += len(part)
			if !slices.IsSorted(part) || len(slices.Compact(slices.Clone(part))) != len(part) {
				t.Fatalf("%+v: part %d has %v", d, i, part)
			}
			for _, record := range part {
				v := value(record)
				sizes[v]++
				if before, ok := partOf[v]; ok && before != i {
					t.Fatalf("%+v: value %q is in parts %d and %d", d, v, before, i)
				}
				partOf[v] = i
			}
		}
		if int64(seen) != records || d.Within == "" && int64(len(sizes)) != records {
			t.Fatalf("%+v: %d of %d records are in a part", d, seen, records)
		}
		largest := 0
		for _, n := range sizes {
			largest = max(largest, n)
		}
		for i, part := range parts {
			if off := math.Abs(float64(len(part)) - d.Parts[i].Of*float64(records)); off > float64(largest) {
				t.Errorf("%+v: part %d has %d of %d records; the largest group has %d", d, i, len(part), records, largest)
			}
		}
	}
}

// TestSplitIsAFilter: a split returns filters, with their fingerprints and units.
func TestSplitIsAFilter(t *testing.T) {
	src := synthetic.New(100, id)
	parts, err := view.Split(t.Context(), src, view.Division{Parts: shares(0.9, 0.1), Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	list := split(t, 100, view.Division{Parts: shares(0.9, 0.1), Seed: 3})[1]
	filter := must(view.FilterFunc(src, func(k int64) bool { return slices.Contains(list, k) }))
	if fingerprint(t, parts[1]) != fingerprint(t, filter) {
		t.Error("the fingerprints differ")
	}
}

func TestSplitErrors(t *testing.T) {
	const remedy = "; give each part a share above 0, so that all of them add up to 1"
	for _, c := range []struct {
		records int64
		d       view.Division
		want    string
	}{
		{9, view.Division{}, "view: a split has no part" + remedy},
		{9, view.Division{Parts: shares(1.1, -0.1)}, `view: the share of part "a" is 1.1` + remedy},
		{9, view.Division{Parts: shares(1, math.NaN())}, `view: the share of part "b" is NaN` + remedy},
		{9, view.Division{Parts: shares(0.9, 0.05)}, "view: the shares of the parts add up to 0.95" + remedy},
		{9, view.Division{Parts: shares(0.98, 0.02)}, `view: part "b" has no record: its share is 0.02 of 9 records; give it a larger share`},
		{0, view.Division{Parts: shares(1)}, `view: part "a" has no record: its share is 1 of 0 records; give it a larger share`},
		{9, view.Division{Parts: shares(1), Seed: 1 << 60}, "sampler: seed 1152921504606846976 is not within ±2^53; use a seed that JSON carries exactly"},
		{9, view.Division{Parts: shares(1), Within: "x"}, `source: the dataset has no field "x"; the fields are "id", "flag"`},
		{1000, view.Division{Parts: shares(0.9, 0.1), Within: "flag"}, `view: part "b" has no record: its share is 0.1 of 1000 records, whose field "flag" has 2 values; give it a larger share, or split within another field`},
	} {
		src := synthetic.New(c.records, id, source.Field{Name: "flag", Type: dtype.Bool})
		parts, err := view.Split(t.Context(), src, c.d)
		if parts != nil || err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if code := status.CodeOf(err); code != status.InvalidArgument && code != status.NotFound {
			t.Errorf("%v has the code %v", err, code)
		}
	}
}
