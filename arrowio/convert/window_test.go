package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

var fields = []source.Field{
	{Name: "x", Type: dtype.Int64, Shape: []int{3}},
	{Name: "b", Type: dtype.Bool, Shape: []int{}},
	{Name: "half", Type: dtype.BFloat16, Shape: []int{2}},
	{Name: "list", Type: dtype.Int16, Shape: []int{}, Ragged: 1, Nullable: true},
	{Name: "text", Type: dtype.Uint8, Shape: []int{}, Ragged: 1, Logical: "string"},
}

// decoder is a source that decodes units, and keeps one unit of each field. It counts how
// often it decodes each.
type decoder struct {
	*synthetic.Source
	unit []int // by record

	mu      sync.Mutex
	current map[int]int    // by field: the unit that is decoded
	decoded map[[2]int]int // by field and unit
}

func newDecoder(units []int64) *decoder {
	d := &decoder{current: map[int]int{}, decoded: map[[2]int]int{}}
	for i, n := range units {
		for range n {
			d.unit = append(d.unit, i)
		}
	}
	d.Source = synthetic.New(int64(len(d.unit)), fields...)
	return d
}

func (d *decoder) use(field int, record int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	unit := d.unit[record]
	if now, ok := d.current[field]; !ok || now != unit {
		d.current[field] = unit
		d.decoded[[2]int{field, unit}]++
	}
}

func (d *decoder) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := d.Source.Gatherer(parts)
	return &counting{Gatherer: g, d: d, field: parts[0].Field}, err
}

func (d *decoder) Reader(fields []int) (source.Reader, error) {
	r, err := d.Source.Reader(fields)
	return &countingReader{r, d}, err
}

type counting struct {
	source.Gatherer
	d     *decoder
	field int
}

func (c *counting) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	for _, r := range records {
		c.d.use(c.field, r)
	}
	return c.Gatherer.Gather(ctx, draw, records, jobs)
}

type countingReader struct {
	source.Reader
	d *decoder
}

func (c *countingReader) Read(ctx context.Context, draw source.Draw, spans []source.Span, use func() error) error {
	for _, s := range spans {
		c.d.use(s.Field, s.Record)
	}
	return c.Reader.Read(ctx, draw, spans, use)
}

// memory is a folder in memory.
type memory struct {
	mu    sync.Mutex
	files map[string]*bytes.Buffer
	full  int // bytes that fit; 0 for any number
}

func (m *memory) Has(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name] != nil
}

func (m *memory) Create(name string) (file, error) {
	return &memoryFile{Buffer: new(bytes.Buffer), m: m, name: name}, nil
}

type memoryFile struct {
	*bytes.Buffer
	m         *memory
	name      string
	discarded bool
}

func (f *memoryFile) Write(p []byte) (int, error) {
	if f.m.full > 0 && f.Len()+len(p) > f.m.full {
		return 0, status.Errorf(status.ResourceExhausted, "arrowio", "out: %w", syscall.ENOSPC).With("full", true)
	}
	return f.Buffer.Write(p)
}

func (f *memoryFile) Commit() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.m.files[f.name] = f.Buffer
	return nil
}

func (f *memoryFile) Discard() { f.discarded = true }

// convertTo converts a source with a plan to a folder, as Run does.
func convertTo(ctx context.Context, src source.Source, p plan, out folder, rowsPerFile int64, workers int) (Part, error) {
	w := writer{folder: out, part: &Part{}, conversion: conversion{plan: p, records: p.files(src.Len(), rowsPerFile), total: src.Len()}}
	for _, f := range fields {
		o := newField(f, arrowmeta.Field{})
		w.fields, w.schema.Fields = append(w.fields, o), append(w.schema.Fields, o.arrow)
	}
	for i := range w.records {
		w.names = append(w.names, nameOf(i, len(w.records)))
	}
	var err error
	if w.windows, err = newWindows(src, p); err != nil {
		return Part{}, err
	}
	defer w.windows.close()
	w.windows.workers = make(chan struct{}, workers)
	err = w.run(ctx, 0, len(w.records))
	return *w.part, err
}

func randomUnits(r *rand.Rand) (units []int64) {
	for range r.IntN(12) {
		units = append(units, r.Int64N([]int64{3, 40, 200}[r.IntN(3)]))
	}
	return units
}

// TestWindows converts with small sizes, and reads every record back. Each unit is decoded
// once, unless it is cut. The bytes do not depend on how many columns are read at a time.
func TestWindows(t *testing.T) {
	random.Rounds(t, 30, 1000, func(t *testing.T, r *rand.Rand) {
		units := randomUnits(r)
		src := newDecoder(units)
		p := newPlan(units, fields, src.Len(), 0)
		p.sizes = sizes{file: 1 + r.Int64N(20000), window: 1 + r.Int64N(5000), most: 1 << 30, batch: 1 + r.Int64N(2000)}
		whole := r.IntN(2) == 0
		rowsPerFile := int64(0)
		if !whole {
			rowsPerFile, p.most = 1+r.Int64N(100), 1+r.Int64N(5000)
		}
		out := &memory{files: map[string]*bytes.Buffer{}}
		report, err := convertTo(t.Context(), src, p, out, rowsPerFile, 1)
		if err != nil || report.Written != len(out.files) {
			t.Fatal(report, err)
		}
		for key, n := range src.decoded {
			if whole && n != 1 {
				t.Errorf("field %d: unit %d was decoded %d times", key[0], key[1], n)
			}
		}
		again := &memory{files: map[string]*bytes.Buffer{}}
		if _, err := convertTo(t.Context(), newDecoder(units), p, again, rowsPerFile, 3); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for name, content := range out.files {
			if !bytes.Equal(content.Bytes(), again.files[name].Bytes()) {
				t.Errorf("%s differs between two runs", name)
			}
			if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o600); err != nil { // without the sync of a folder
				t.Fatal(err)
			}
		}
		ds, err := arrowio.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		if ds.Len() != src.Len() {
			t.Fatalf("%d records, want %d", ds.Len(), src.Len())
		}
		for i, f := range fields {
			compareField(t, ds, i, f)
		}
	})
}

// compareField reads all records of a field.
func compareField(t *testing.T, ds *arrowio.Dataset, number int, f source.Field) {
	t.Helper()
	r, err := ds.Reader([]int{number})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spans := make([]source.Span, ds.Len())
	for i := range spans {
		spans[i] = source.Span{Field: number, Record: int64(i)}
	}
	err = r.Read(t.Context(), source.Draw{}, spans, func() error {
		for i := range spans {
			want := synthetic.Row(f, int64(i))
			if got := spans[i].Row; !bytes.Equal(got, want) || got == nil != (want == nil) {
				return fmt.Errorf("record %d of %s is %v, want %v", i, f.Name, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailedReads ends a conversion by an error and by a panic of the source, and by a cancel. No file
// gets its name, and no reader stays open.
func TestFailedReads(t *testing.T) {
	units := []int64{50, 50, 50, 50}
	for name, hook := range map[string]func() error{
		"error": func() error { return status.New(status.DataLoss, "test", "damage") },
		"panic": func() error { panic("damage") },
	} {
		src := newDecoder(units)
		src.Hook = func(context.Context, []int64) error { return hook() }
		p := newPlan(units, fields, src.Len(), 0)
		p.window = 1
		out := &memory{files: map[string]*bytes.Buffer{}}
		report, err := convertTo(t.Context(), src, p, out, 60, 2)
		if err == nil || report.Written != 0 || len(out.files) != 0 {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if n := src.Counts().Gatherers; n != 0 {
			t.Errorf("%s: %d readers are open", name, n)
		}
	}
	src := newDecoder(units)
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	src.Hook = func(context.Context, []int64) error { once.Do(cancel); return nil }
	out := &memory{files: map[string]*bytes.Buffer{}}
	if _, err := convertTo(ctx, src, newPlan(units, fields, src.Len(), 0), out, 60, 2); !errors.Is(err, context.Canceled) || len(out.files) != 0 {
		t.Errorf("%d files, %v", len(out.files), err)
	}
}

// TestFullDisk says how much room is needed.
func TestFullDisk(t *testing.T) {
	src := synthetic.New(100_000, source.Field{Name: "x", Type: dtype.Int64, Shape: []int{100}})
	old := fields
	defer func() { fields = old }()
	fields = src.Schema().Fields
	out := &memory{files: map[string]*bytes.Buffer{}, full: 20 << 20}
	_, err := convertTo(t.Context(), src, newPlan([]int64{100_000}, fields, src.Len(), 0), out, 0, 2)
	var e *status.Error
	if !errors.As(err, &e) || e.Hint != "what is left takes about 81 MB: make room, then run the same command, which continues" {
		t.Error(err)
	}
}

// TestNames sorts the names of files by their numbers.
func TestNames(t *testing.T) {
	for _, n := range []int{1, 2, 99_999, 100_000, 123_456} {
		if a, b := nameOf(0, n), nameOf(n-1, n); n > 1 && a >= b || len(a) != len(b) {
			t.Errorf("%s and %s", a, b)
		}
	}
	if got := nameOf(7, 100_000); got != "rows-000007-of-100000.arrow" {
		t.Error(got)
	}
}

// TestShares covers all files by any number of parts, without overlap.
func TestShares(t *testing.T) {
	for files := range 20 {
		for parts := 1; parts < 30; parts++ {
			at := 0
			for part := 1; part <= parts; part++ {
				first, last := share(files, part, parts)
				if first != at || last < first || last-first > files/parts+1 {
					t.Fatalf("part %d of %d has files %d to %d of %d, after %d", part, parts, first, last, files, at)
				}
				at = last
			}
			if at != files {
				t.Fatalf("%d parts have %d of %d files", parts, at, files)
			}
		}
	}
}
