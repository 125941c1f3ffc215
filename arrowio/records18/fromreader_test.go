package records18_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio/records18"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/stream"
	"github.com/meshfeed/meshfeed/tests/random"
)

var fill = map[string]any{"weight": 0.25}

var live = arrow.NewSchema([]arrow.Field{
	{Name: "tokens", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "weight", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
}, nil)

// arriving makes n records from a number on. Record k has the tokens k, k+1, … and the
// weight k/2, which is null in every seventh record.
func arriving(pool memory.Allocator, from, n, width int) arrow.RecordBatch {
	b := array.NewRecordBuilder(pool, live)
	defer b.Release()
	lists, weights := b.Field(0).(*array.ListBuilder), b.Field(1).(*array.Float64Builder)
	values := lists.ValueBuilder().(*array.Int32Builder)
	for k := from; k < from+n; k++ {
		lists.Append(true)
		for i := range width {
			values.Append(int32(k + i))
		}
		if k%7 == 3 {
			weights.AppendNull()
		} else {
			weights.Append(float64(k) / 2)
		}
	}
	return b.NewRecordBatch()
}

// planOf makes a layout of four devices in two processes.
func planOf(t *testing.T, size int, remainder, more string) *layout.Layout {
	t.Helper()
	text := fmt.Sprintf(`{"meshfeed": 1, "mesh": {"axes": [["a", 2], ["b", 2]], "devices": [[0, 0], [0, 1], [1, 2], [1, 3]]},
		"batch": {"size": %d, "remainder": %q%s}, "arrays": {
		"tokens": {"shape": ["B", 4], "dtype": "int32", "spec": ["a", "b"]},
		"weight": {"shape": ["B"], "dtype": "float64", "spec": [["a", "b"]]}}}`, size, remainder, more)
	doc, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.Draft(doc)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// shifted makes a layout of tokens, and of the tokens after them, with more arrays.
func shifted(t *testing.T, more string) *layout.Layout {
	t.Helper()
	doc, err := document.Parse([]byte(`{"meshfeed": 1, "mesh": {"axes": []}, "batch": {"size": 2}, "arrays": {
		"now": {"field": "tokens", "columns": [[0, 3]], "shape": ["B", 3], "dtype": "int32"},
		"next": {"field": "tokens", "columns": [[1, 4]], "shape": ["B", 3], "dtype": "int32"}` + more + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.New(doc)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestShiftedTokens: an array of whole rows sets the length of the lists, and other arrays
// take parts of them.
func TestShiftedTokens(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	reader := readerOf(t, []arrow.RecordBatch{arriving(pool, 0, 2, 4)})
	s, err := records18.FromReader(reader, stream.Options{Layout: shifted(t, `, "tokens": {"shape": ["B", 4], "dtype": "int32"}`)})
	reader.Release()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	const want = "{0 0} 0 2 000000000100000002000000010000000200000003000000 010000000200000003000000020000000300000004000000"
	if got := text(b); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// text describes a batch with all its bytes.
func text(b *batch.Batch) string {
	var out bytes.Buffer
	fmt.Fprint(&out, b.Step().Cursor, b.Step().Index, b.Step().Valid)
	for i := range b.Blocks() {
		fmt.Fprintf(&out, " %x", b.Memory().Dst(i))
	}
	return out.String()
}

// loaded returns the batches that a loader delivers of the records.
func loaded(t *testing.T, list []arrow.RecordBatch, o loader.Options) (out []string, failed error) {
	t.Helper()
	src, err := records18.New(live, list, records18.Options{Shapes: map[string][]int{"tokens": {4}}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	l, err := loader.New(src, o)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for b, err := range l.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text(b))
		b.Release()
	}
	return out, nil
}

// readerOf returns a reader that owns the records.
func readerOf(t *testing.T, list []arrow.RecordBatch) array.RecordReader {
	t.Helper()
	r, err := array.NewRecordReader(live, list)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range list {
		record.Release()
	}
	return r
}

// TestFromReader compares a stream with a loader over the same records, in record batches
// of any size, with every remainder.
func TestFromReader(t *testing.T) {
	random.Rounds(t, 60, 2000, func(t *testing.T, r *rand.Rand) {
		pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
		defer pool.AssertSize(t, 0)
		heap := batch.NewHeap(0)
		extras := random.One(r, "", `, "extras": ["record", "key"]`)
		plan := planOf(t, 4*(1+r.IntN(4)), random.One(r, "drop", "pad", "error"), extras)
		var list []arrow.RecordBatch
		n := 0
		for range r.IntN(8) {
			rows := random.One(r, 0, 1, 2, 5, 16, r.IntN(60))
			list = append(list, arriving(pool, n, rows, 4))
			n += rows
		}
		process := r.IntN(2)
		want, failed := loaded(t, list, loader.Options{Layout: plan, Process: process, Order: sampler.Sequential, Epochs: 1, Fill: fill})
		reader := readerOf(t, list)
		s, err := records18.FromReader(reader, stream.Options{Layout: plan, Process: process, Allocator: heap, Prefetch: r.IntN(4), Fill: fill})
		reader.Release()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		var ended error
		for b, err := range s.All(context.Background()) {
			if ended = err; err == nil {
				got = append(got, text(b))
				if step := b.Step(); step.Valid == plan.BatchSize() && step.After != (batch.Cursor{Position: step.Position + step.Valid}) {
					t.Errorf("step %+v, as if it were the last", step)
				}
				b.Release()
			}
		}
		// Without a batch there is nothing to be loaded, so a loader of it is an error.
		if n > 0 && plan.Remainder() == "error" && n%int(plan.BatchSize()) != 0 {
			if ended == nil || failed == nil {
				t.Errorf("%d records, batches of %d: the stream ended with %v, the loader with %v", n, plan.BatchSize(), ended, failed)
			}
		} else if ended != nil || !slices.Equal(got, want) {
			t.Errorf("%d records: %v\ngot  %q\nwant %q", n, ended, got, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n, _ := heap.Live(); n != 0 {
			t.Errorf("%d batches live", n)
		}
	})
}

// faulty is a reader with a function as its Next.
type faulty struct {
	array.RecordReader
	next     func() bool
	err      error
	released chan struct{}
}

func (f *faulty) Next() bool { return f.next() }
func (f *faulty) Err() error { return f.err }
func (f *faulty) Release() {
	f.RecordReader.Release()
	if f.released != nil {
		close(f.released)
	}
}

// TestReaderFails: the error of a reader comes after the batches before it, and stays.
func TestReaderFails(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	broken := errors.New("the connection was reset")
	inner := readerOf(t, []arrow.RecordBatch{arriving(pool, 0, 6, 4), arriving(pool, 6, 4, 4)})
	r := &faulty{RecordReader: inner, err: broken}
	r.next = inner.Next
	s, err := records18.FromReader(r, stream.Options{Fill: fill, Layout: planOf(t, 4, "pad", "")})
	inner.Release()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		b, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	for range 2 {
		_, err := s.Next(context.Background())
		const want = "arrowio: the reader failed after 10 records: the connection was reset"
		if !errors.Is(err, broken) || status.CodeOf(err) != status.IO || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestReaderPanics: a panic of a reader is an error of its stream.
func TestReaderPanics(t *testing.T) {
	inner := readerOf(t, nil)
	s, err := records18.FromReader(&faulty{RecordReader: inner, next: func() bool { panic("lost") }}, stream.Options{Fill: fill, Layout: planOf(t, 4, "drop", "")})
	inner.Release()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(context.Background()); status.CodeOf(err) != status.Internal {
		t.Error(err)
	}
}

// TestReaderWaits: calls end with their context and with Close while a reader waits. The
// reader is released after it.
func TestReaderWaits(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	inner := readerOf(t, []arrow.RecordBatch{arriving(pool, 0, 7, 4)})
	proceed, waits, released := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := &faulty{RecordReader: inner, released: released}
	calls := 0
	r.next = func() bool {
		if calls++; calls == 2 {
			close(waits)
			<-proceed
		}
		return inner.Next()
	}
	heap := batch.NewHeap(0)
	s, err := records18.FromReader(r, stream.Options{Fill: fill, Layout: planOf(t, 4, "pad", ""), Allocator: heap})
	inner.Release()
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	<-waits
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Next(ctx); status.CodeOf(err) != status.Cancelled || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	under := make(chan error)
	go func() {
		_, err := s.Next(context.Background())
		under <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-under; status.CodeOf(err) != status.Cancelled && status.CodeOf(err) != status.InvalidState {
		t.Error(err)
	}
	select {
	case <-released:
		t.Error("the reader was released during its Next")
	default:
	}
	close(proceed)
	<-released
	if _, err := s.Next(context.Background()); status.CodeOf(err) != status.InvalidState {
		t.Error(err)
	}
	first.Release()
	if n, _ := heap.Live(); n != 0 {
		t.Errorf("%d batches live", n)
	}
	_ = s.Close() // waits until the chunk is closed, too
}

// TestStreamHoldsLittle: record batches are released when their records are copied, and
// batches ahead are few.
func TestStreamHoldsLittle(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	one := arriving(pool, 0, 64, 4)
	size := pool.CurrentAlloc()
	inner := readerOf(t, []arrow.RecordBatch{one})
	var now arrow.RecordBatch
	n, most := 0, 0
	r := &making{RecordReader: inner, next: func() arrow.RecordBatch {
		if now != nil {
			now.Release()
		}
		if now = nil; n < 200 {
			most = max(most, pool.CurrentAlloc())
			now = arriving(pool, 64*n, 64, 4)
			n++
		}
		return now
	}}
	heap := batch.NewHeap(0)
	s, err := records18.FromReader(r, stream.Options{Fill: fill, Layout: planOf(t, 48, "drop", ""), Allocator: heap, Prefetch: 3})
	inner.Release()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	batches := 0
	for b, err := range s.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if live, _ := heap.Live(); live > 5 { // three in the queue or in the hand, this one, and one on its way
			t.Fatalf("%d batches live", live)
		}
		b.Release()
		batches++
	}
	if batches != 200*64/48 || most > 4*size {
		t.Errorf("%d batches; %d bytes of record batches were held, one has %d", batches, most, size)
	}
}

// making is a reader that makes its records.
type making struct {
	array.RecordReader
	next func() arrow.RecordBatch
	now  arrow.RecordBatch
}

func (m *making) Next() bool                     { m.now = m.next(); return m.now != nil }
func (m *making) RecordBatch() arrow.RecordBatch { return m.now }

// TestBreakLeaksNothing: after a break the next loop continues, and Close frees the rest.
func TestBreakLeaksNothing(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	reader := readerOf(t, []arrow.RecordBatch{arriving(pool, 0, 100, 4), arriving(pool, 100, 100, 4)})
	heap := batch.NewHeap(0)
	s, err := records18.FromReader(reader, stream.Options{Fill: fill, Layout: planOf(t, 4, "drop", ""), Allocator: heap})
	reader.Release()
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		for b, err := range s.All(context.Background()) {
			if err != nil || b.Step().Index != i {
				t.Fatal(err, b.Step())
			}
			b.Release()
			break
		}
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n, _ := heap.Live(); n != 0 {
		t.Errorf("%d batches live", n)
	}
	unused := readerOf(t, []arrow.RecordBatch{arriving(pool, 0, 4, 4)})
	if s, err = records18.FromReader(unused, stream.Options{Fill: fill, Layout: planOf(t, 4, "drop", "")}); err != nil {
		t.Fatal(err)
	}
	unused.Release()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadersRefused: what the schema and the layout show is refused before the first
// record, the rest at its record batch. The messages are compared whole.
func TestReadersRefused(t *testing.T) {
	pool := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer pool.AssertSize(t, 0)
	nulls := func() arrow.RecordBatch {
		b := array.NewRecordBuilder(pool, live)
		defer b.Release()
		for range 4 {
			b.Field(0).AppendNull()
			b.Field(1).AppendNull()
		}
		return b.NewRecordBatch()
	}
	number := arrow.NewSchema([]arrow.Field{{Name: "weight", Type: arrow.PrimitiveTypes.Int32}}, nil)
	other := array.NewRecordBuilder(pool, number)
	defer other.Release()
	words := arrow.NewSchema([]arrow.Field{{Name: "tokens", Type: arrow.BinaryTypes.String}, live.Field(1)}, nil)
	dataset := `}, "dataset": {"records": 100, "fields": {}`
	for _, c := range []struct {
		name   string
		schema *arrow.Schema
		first  func() arrow.RecordBatch
		layout *layout.Layout
		fill   map[string]any
		want   string
	}{
		{"other fields", number, nil, planOf(t, 4, "drop", ""), nil, `loader: array "tokens" takes field "tokens", which the dataset does not have; the fields are "weight"
loader: array "weight" is float64, but field "weight" is int32; write "int32"`},
		{"no layout", live, nil, nil, nil, "stream: there is no layout; set Options.Layout"},
		{"a dataset", live, nil, planOf(t, 4, "drop", dataset), nil, "stream: the layout is for a dataset of 100 records, but the number of a stream's records is unknown; leave /dataset out of the layout document"},
		{"fill", live, nil, planOf(t, 4, "drop", ""), map[string]any{"color": 1}, `loader: there is a fill value for field "color", but the dataset does not have it`},
		{"lengths", live, func() arrow.RecordBatch { return arriving(pool, 0, 4, 5) }, planOf(t, 4, "drop", ""), nil, `arrowio: the record batch after 0 records cannot be used: arrowio: field "tokens": record 0 has a list of 5 values in dimension 0, where the shape [4] of the rows needs 4; pad or cut the lists to one length, or give the right shape`},
		{"nulls", live, nulls, planOf(t, 4, "drop", ""), fill, `stream: the chunk after 0 records: field "tokens" holds nulls, and arrays cannot; give the field a fill value (Go: Fill, C: fill; Python: fill={"tokens": -1}), or leave out the records that have nulls (Go: view.FilterFunc; Python: ds.filter)`},
		{"a fill value", live, nil, planOf(t, 4, "drop", ""), map[string]any{"weight": "a"}, `source: field "weight" cannot have a string in the place of nulls; give a boolean or a number`},
		{"text", words, nil, planOf(t, 4, "drop", ""), nil, `loader: array "tokens" takes column "tokens" of type string, which cannot be an array: its rows are text of different lengths; store token ids, or give the bytes one length: ds.pad("tokens", length=…) in Python, view.Pad in Go, mf_dataset_pad in C`},
		{"columns", live, nil, shifted(t, ""), nil, `arrowio: array "next" takes columns of field "tokens", whose lists have no length in the schema; send fixed-size lists, or add an array of the whole rows, whose shape has the length`},
		{"other schema", live, other.NewRecordBatch, planOf(t, 4, "drop", ""), nil, "arrowio: the record batch after 0 records cannot be used: arrowio: record batch 0 of the records has 1 columns, but the schema has 2; give records of one schema, such as the records of one reader or builder"},
	} {
		inner, err := array.NewRecordReader(c.schema, nil)
		if err != nil {
			t.Fatal(err)
		}
		var now arrow.RecordBatch
		r := &making{RecordReader: inner, next: func() arrow.RecordBatch {
			if now == nil && c.first != nil {
				now = c.first()
				return now
			}
			return nil
		}}
		s, err := records18.FromReader(r, stream.Options{Layout: c.layout, Fill: c.fill})
		if err == nil && c.first != nil {
			_, err = s.Next(context.Background())
			_ = s.Close()
		}
		if now != nil {
			now.Release()
		}
		inner.Release()
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", c.name, err, c.want)
		}
	}
	var none *array.JSONReader // a nil reader: its methods panic
	if _, err := records18.FromReader(none, stream.Options{Layout: planOf(t, 4, "drop", "")}); status.CodeOf(err) != status.Internal {
		t.Error(err)
	}
	if _, err := records18.FromReader(nil, stream.Options{}); err == nil || err.Error() != "arrowio: the reader is nil" {
		t.Error(err)
	}
}
