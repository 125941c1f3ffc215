// Package sourcetest is the conformance suite of source.Source. A test of an
// implementation calls [Run]:
//
//	func TestSource(t *testing.T) {
//		sourcetest.Run(t, func(t *testing.T) source.Source { return open(t) })
//	}
//
// The suite asks the source for its fields and records. It compares parts of rows,
// jobs and conversions with whole rows, gathered rows with rows of a reader, and whole
// rows with [Suite].Row and [Suite].Ragged if these are set. Random choices follow from a seed,
// which every failure prints and the environment variable SOURCETEST_SEED sets.
package sourcetest

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Suite is the source to test.
type Suite struct {
	// Open opens a new source over the same data. The suite closes it at the end
	// of the test.
	Open func(t *testing.T) source.Source

	// Draw is the draw of all calls. Row and Ragged have the rows of this draw.
	Draw source.Draw

	// Row returns the bytes of a whole row of a fixed field, with zeros for nulls. It
	// may be nil.
	Row func(field int, record int64) []byte

	// Ragged reads a row of a ragged field, as a [source.Reader] does. It may be nil.
	Ragged func(span *source.Span)
}

// Run tests a source without a reference for its rows.
func Run(t *testing.T, open func(t *testing.T) source.Source) { Suite{Open: open}.Run(t) }

// Run runs all tests.
func (s Suite) Run(t *testing.T) {
	for _, c := range []struct {
		name string
		test func(*run)
	}{
		{"Schema", (*run).schema},
		{"Rows", (*run).rows},
		{"Bounds", (*run).bounds},
		{"Boxes", (*run).boxes},
		{"Jobs", (*run).jobs},
		{"Conversions", (*run).conversions},
		{"Nulls", (*run).unfilled},
		{"Parts", (*run).badParts},
		{"Readers", (*run).readers},
		{"BadReads", (*run).badReads},
		{"ConcurrentReads", (*run).concurrentReads},
		{"RaggedGathers", (*run).raggedGathers},
		{"Concurrency", (*run).concurrency},
		{"Cancelled", (*run).cancelled},
		{"CloseWhileGathering", (*run).closeWhileGathering},
		{"Closed", (*run).closed},
		{"Fingerprint", (*run).fingerprint},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := s.Open(t)
			t.Cleanup(func() { _ = src.Close() })
			c.test(&run{T: t, Suite: s, src: src, random: random(t)})
		})
	}
}

// random returns the generator of a test's choices.
func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SOURCETEST_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SOURCETEST_SEED: %v", err)
		}
		seed = given
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("SOURCETEST_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 1))
}

// run is one test.
type run struct {
	*testing.T
	Suite
	src    source.Source
	random *rand.Rand
}

// whole returns the part of a whole field.
func (r *run) whole(field int) source.Part { return r.src.Schema().Whole(field) }

// gatherer creates a gatherer, or fails the test if the source rejects the parts.
func (r *run) gatherer(parts ...source.Part) source.Gatherer {
	r.Helper()
	g, err := r.src.Gatherer(parts)
	if err != nil {
		r.Fatalf("Gatherer(%v): %v", parts, err)
	}
	r.Cleanup(func() { _ = g.Close() })
	return g
}

// read gathers one part of records.
func (r *run) read(g source.Gatherer, width int, records []int64) []byte {
	r.Helper()
	dst := bytes.Repeat([]byte{0xEE}, width*len(records))
	if err := g.Gather(context.Background(), r.Draw, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
		r.Fatalf("Gather(%v): %v", records, err)
	}
	return dst
}

// sample returns n random records. About one in eight is padding.
func (r *run) sample(n int) []int64 {
	records := make([]int64, n)
	for i := range records {
		if records[i] = -1; r.src.Len() > 0 && r.random.IntN(8) > 0 {
			records[i] = r.random.Int64N(r.src.Len())
		}
	}
	return records
}

// expect checks the code of an error.
func (r *run) expect(err error, code status.Code, what string) {
	r.Helper()
	if err == nil || status.CodeOf(err) != code {
		r.Errorf("%s: got %v (%v), want %v", what, err, status.CodeOf(err), code)
	}
}
