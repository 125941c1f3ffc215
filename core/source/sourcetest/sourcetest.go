// Package sourcetest holds the tests that every implementation of
// source.Source must pass. A test of an implementation calls [Run]:
//
//	func TestSource(t *testing.T) {
//		sourcetest.Run(t, func(t *testing.T) source.Source { return open(t) })
//	}
//
// The suite finds out about fields and records from the source itself. It
// compares parts of rows, jobs and conversions with what whole rows hold, and
// whole rows with [Suite].Row where that is given. Random choices follow from
// a seed, which every failure prints and the environment variable
// SOURCETEST_SEED sets.
package sourcetest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/guard"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Suite is what the tests run on.
type Suite struct {
	// Open gives a new source over the same data every time. Sources that
	// are still open at the end of a test are closed by the suite.
	Open func(t *testing.T) source.Source

	// Row gives the bytes of a whole row, with zeros for nulls. It may be nil.
	Row func(field int, record int64) []byte
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
		{"Parts", (*run).badParts},
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

// random gives the source of a test's choices.
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

// hang is how long the suite waits for what should end at once.
const hang = 20 * time.Second

func (r *run) schema() {
	a, b := r.src.Schema(), r.Open(r.T)
	defer b.Close()
	if !reflect.DeepEqual(a, r.src.Schema()) || !reflect.DeepEqual(a, b.Schema()) {
		r.Errorf("the schema changed: %v, then %v, in another source %v", a, r.src.Schema(), b.Schema())
	}
	if b.Len() != r.src.Len() || b.Len() < 0 {
		r.Errorf("Len() = %d, in another source %d", r.src.Len(), b.Len())
	}
	for i, f := range a.Fields {
		n, g, ok := a.Field(f.Name)
		if !ok || n > i || !f.Type.Valid() || g.RowBytes() < 0 {
			r.Errorf("field %d %+v is not found by its name, or has no type", i, f)
		}
	}
	for _, s := range a.Skipped {
		if s.Name == "" && s.Type == "" || s.Reason == "" {
			r.Errorf("a column is skipped without a reason: %+v", s)
		}
	}
}

// whole gives the part of a whole field.
func (r *run) whole(field int) source.Part {
	f := r.src.Schema().Fields[field]
	box := make([][2]int, len(f.Shape))
	for d, n := range f.Shape {
		box[d] = [2]int{0, n}
	}
	return source.Part{Field: field, Boxes: [][][2]int{box}, Fill: zero(f)}
}

// zero fills nulls, where there may be some.
func zero(f source.Field) any {
	switch {
	case !f.Nullable:
		return nil
	case f.Type == dtype.Bool:
		return false
	}
	return int64(0)
}

// gatherer makes a gatherer that must be possible.
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
	if err := g.Gather(context.Background(), records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
		r.Fatalf("Gather(%v): %v", records, err)
	}
	return dst
}

// sample draws records, -1 among them.
func (r *run) sample(n int) []int64 {
	records := make([]int64, n)
	for i := range records {
		if records[i] = -1; r.src.Len() > 0 && r.random.IntN(8) > 0 {
			records[i] = r.random.Int64N(r.src.Len())
		}
	}
	return records
}

// rows compares whole rows with the reference, one by one, and in batches with
// themselves one by one.
func (r *run) rows() {
	for i, f := range r.src.Schema().Fields {
		g, width := r.gatherer(r.whole(i)), f.RowBytes()
		records := r.sample(20)
		for k := range min(r.src.Len(), 20) {
			records = append(records, k, r.src.Len()-1-k)
		}
		all := r.read(g, width, records)
		for k, record := range records {
			got := all[k*width : (k+1)*width]
			want := make([]byte, width)
			if record >= 0 {
				want = r.read(g, width, []int64{record})
			}
			if !bytes.Equal(got, want) {
				r.Fatalf("field %q, record %d: %x in a batch, %x alone", f.Name, record, got, want)
			}
			if record >= 0 && r.Row != nil && !bytes.Equal(got, r.Row(i, record)) {
				r.Fatalf("field %q, record %d: %x instead of %x", f.Name, record, got, r.Row(i, record))
			}
		}
	}
}

func (r *run) bounds() {
	n := r.src.Len()
	for i, f := range r.src.Schema().Fields {
		g := r.gatherer(r.whole(i))
		for _, bad := range []int64{n, n + 1, -2, -1 << 62, 1 << 62} {
			dst := make([]byte, 2*f.RowBytes())
			err := g.Gather(context.Background(), []int64{-1, bad}, []source.Job{{Rows: [2]int{0, 2}, Dst: dst}})
			r.expect(err, status.OutOfRange, fmt.Sprintf("record %d of %d", bad, n))
		}
		if err := g.Gather(context.Background(), nil, []source.Job{{}}); err != nil {
			r.Errorf("a gather of no records: %v", err)
		}
	}
}

// expect checks the code of an error.
func (r *run) expect(err error, code status.Code, what string) {
	r.Helper()
	if err == nil || status.CodeOf(err) != code {
		r.Errorf("%s: got %v (%v), want %v", what, err, status.CodeOf(err), code)
	}
}

func (r *run) cancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for i, f := range r.src.Schema().Fields {
		g := r.gatherer(r.whole(i))
		err := g.Gather(ctx, []int64{-1}, []source.Job{{Rows: [2]int{0, 1}, Dst: make([]byte, f.RowBytes())}})
		r.expect(err, status.Cancelled, "a cancelled gather")
	}
}

// concurrency gathers with one gatherer on several goroutines.
func (r *run) concurrency() {
	for i, f := range r.src.Schema().Fields {
		g, width := r.gatherer(r.whole(i)), f.RowBytes()
		records := r.sample(40)
		want := r.read(g, width, records)
		results := make(chan error, 6)
		for range cap(results) {
			guard.Go("sourcetest", func() error {
				for range 4 {
					g.Ahead(records)
					dst := make([]byte, len(want))
					if err := g.Gather(context.Background(), records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
						return err
					}
					if !bytes.Equal(dst, want) {
						return fmt.Errorf("field %q: rows of concurrent gathers are mixed up", f.Name)
					}
				}
				results <- nil
				return nil
			}, func(err error) { results <- err })
		}
		for range cap(results) {
			if err := <-results; err != nil {
				r.Error(err)
			}
		}
	}
}

// closeWhileGathering closes the source under gathers, which may end well or
// say why not.
func (r *run) closeWhileGathering() {
	if len(r.src.Schema().Fields) == 0 {
		r.Skip("no fields")
	}
	g, f := r.gatherer(r.whole(0)), r.src.Schema().Fields[0]
	records := r.sample(64)
	running, ended := make(chan struct{}, 4), make(chan error, 4)
	for range cap(running) {
		guard.Go("sourcetest", func() error {
			dst := make([]byte, len(records)*f.RowBytes())
			job := []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}
			for first := true; ; first = false {
				if err := g.Gather(context.Background(), records, job); err != nil {
					return err
				}
				if first {
					running <- struct{}{}
				}
			}
		}, func(err error) { ended <- err })
	}
	for range cap(running) {
		select {
		case <-running:
		case err := <-ended:
			r.Fatalf("a gather before Close: %v", err)
		}
	}
	if err := r.src.Close(); err != nil {
		r.Errorf("Close: %v", err)
	}
	for range cap(ended) {
		select {
		case err := <-ended:
			if code := status.CodeOf(err); code != status.InvalidState && code != status.Cancelled {
				r.Errorf("a gather under Close: %v", err)
			}
		case <-time.After(hang):
			r.Fatal("a gather goes on after Close")
		}
	}
}

func (r *run) closed() {
	var g source.Gatherer
	if len(r.src.Schema().Fields) > 0 {
		g = r.gatherer(r.whole(0))
	}
	for range 2 {
		if err := r.src.Close(); err != nil {
			r.Errorf("Close: %v", err)
		}
	}
	if g != nil {
		g.Ahead([]int64{-1})
		r.expect(g.Gather(context.Background(), nil, nil), status.InvalidState, "a gather after Close")
	}
	_, err := r.src.Gatherer(nil)
	r.expect(err, status.InvalidState, "Gatherer after Close")
	_, err = r.src.Fingerprint(context.Background())
	r.expect(err, status.InvalidState, "Fingerprint after Close")
}

func (r *run) fingerprint() {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if r.src.Len() > 0 && len(r.src.Schema().Fields) > 0 {
		if _, err := r.src.Fingerprint(cancelled); err != nil {
			r.expect(err, status.Cancelled, "a cancelled fingerprint")
		}
	}
	first, err := r.src.Fingerprint(context.Background())
	if err != nil {
		r.Fatal(err)
	}
	other := r.Open(r.T)
	defer other.Close()
	for name, s := range map[string]source.Source{"the same source": r.src, "another source": other} {
		again, err := s.Fingerprint(context.Background())
		if err != nil || again != first {
			r.Errorf("the fingerprint of %s is %v, %v instead of %v", name, again, err, first)
		}
	}
	if first == (source.Fingerprint{}) {
		r.Error("the fingerprint is empty")
	}
}
