package table

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// numbers is a source of numbers. Some are null or not readable.
type numbers struct {
	source.Source
	values  []int64
	nulls   []int64 // sorted
	ragged  []int64 // sorted
	touched []int64 // records that were gathered
}

func (s *numbers) Schema() source.Schema {
	return source.Schema{Fields: []source.Field{{Name: "x", Type: dtype.Int64, Nullable: len(s.nulls) > 0}}}
}

func (s *numbers) Len() int64 { return int64(len(s.values)) }

func (s *numbers) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return &numbersGatherer{s: s, parts: parts}, nil
}

type numbersGatherer struct {
	source.Gatherer
	s     *numbers
	parts []source.Part
}

func (g *numbersGatherer) Gather(_ context.Context, _ source.Draw, records []int64, jobs []source.Job) error {
	for _, job := range jobs {
		for i, r := range records[job.Rows[0]:job.Rows[1]] {
			if _, bad := slices.BinarySearch(g.s.ragged, r); bad {
				return status.Errorf(status.InvalidArgument, "test", "record %d", r)
			}
			v := g.s.values[r]
			if _, null := slices.BinarySearch(g.s.nulls, r); null {
				v = g.parts[job.Part].Fill.(int64)
			}
			binary.LittleEndian.PutUint64(job.Dst[8*i:], uint64(v))
		}
	}
	g.s.touched = append(g.s.touched, records...)
	return nil
}

func (g *numbersGatherer) Close() error { return nil }

func hashNumbers(t *testing.T, s *numbers, most int64) source.Fingerprint {
	t.Helper()
	f, err := fingerprint(t.Context(), s, most)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFingerprintOfPart: of more data than the bound, evenly spread blocks from the
// first to the last are hashed, as many bytes as Coverage returns.
func TestFingerprintOfPart(t *testing.T) {
	const rows = blockBytes / 8 // rows of a block
	for _, c := range []struct {
		records, most int64
		want          []int64 // blocks
	}{
		{0, 1, nil},
		{5, 1, []int64{0}},
		{10 * rows, 10 * blockBytes, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		{10*rows + 3, 10 * blockBytes, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 10}},
		{9 * rows, 3 * blockBytes, []int64{0, 4, 8}},
		{9 * rows, 1, []int64{0, 8}},
	} {
		s := &numbers{values: make([]int64, c.records)}
		p, err := newBlocks(t.Context(), s, c.most)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for _, block := range c.want {
			for r := block * rows; r < min((block+1)*rows, c.records); r++ {
				want = append(want, r)
			}
		}
		hashNumbers(t, s, c.most)
		if !slices.Equal(s.touched, want) {
			t.Errorf("%d records, %d bytes: %d records were hashed, want %d", c.records, c.most, len(s.touched), len(want))
		}
		if p.records() != int64(len(want)) {
			t.Errorf("%d records, %d bytes: covers %d records, want %d", c.records, c.most, p.records(), len(want))
		}
	}
}

// TestFingerprintTellsNullsFromZeros: a null counts neither as 0 nor as 1.
func TestFingerprintTellsNullsFromZeros(t *testing.T) {
	seen := map[source.Fingerprint]int{}
	for i, s := range []*numbers{
		{values: []int64{5, 0, 9}, nulls: []int64{2}},
		{values: []int64{5, 1, 9}, nulls: []int64{2}},
		{values: []int64{5, 0, 9}, nulls: []int64{1, 2}},
		{values: []int64{5, 0, 0}, nulls: []int64{1}},
	} {
		f := hashNumbers(t, s, wholeBytes)
		if other, known := seen[f]; known {
			t.Errorf("sources %d and %d have one fingerprint", other, i)
		}
		seen[f] = i
	}
	if hashNumbers(t, &numbers{values: []int64{5, 7}, nulls: []int64{1}}, wholeBytes) != hashNumbers(t, &numbers{values: []int64{5, 8}, nulls: []int64{1}}, wholeBytes) {
		t.Error("the bytes of a null change the fingerprint")
	}
}

// TestFingerprintOfUnreadable: a row that cannot be gathered changes the
// fingerprint without an error, since a loader may need only other fields.
func TestFingerprintOfUnreadable(t *testing.T) {
	good, bad := &numbers{values: []int64{0, 0}}, &numbers{values: []int64{0, 0}, ragged: []int64{1}}
	if hashNumbers(t, good, wholeBytes) == hashNumbers(t, bad, wholeBytes) {
		t.Error("a row that cannot be read changes nothing")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fingerprint(ctx, good, wholeBytes); status.CodeOf(err) != status.Cancelled {
		t.Errorf("a fingerprint that was cancelled: %v", err)
	}
}
