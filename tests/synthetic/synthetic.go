// Package synthetic is a dataset for tests whose every element is a formula of
// the field, the record and the place in the row. A test knows what a batch
// must hold without keeping any data, and may have as many records as it likes.
//
// The source counts what is asked of it, and a hook may delay, fail or panic in
// place of a disk.
package synthetic

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"math"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Source is a dataset of synthetic records. Set the hook before use.
type Source struct {
	// Hook, if set, runs at the start of every Gather with its records.
	Hook func(ctx context.Context, records []int64) error

	records int64
	fields  []source.Field

	mu     sync.Mutex
	counts Counts
	closed bool
}

// Counts says what was asked of a source.
type Counts struct {
	Gathers   int             // calls of Gather
	Rows      map[int64]int   // times each record was asked for, with -1 for padding
	Ahead     map[int64]int   // times each record was announced
	Gatherers int             // opened and not closed
	Parts     [][]source.Part // of every gatherer
}

// New gives a dataset of some records with these fields.
func New(records int64, fields ...source.Field) *Source {
	return &Source{records: records, fields: fields, counts: newCounts()}
}

func newCounts() Counts { return Counts{Rows: map[int64]int{}, Ahead: map[int64]int{}} }

// Value gives the number behind an element: the flat index counts the row's
// elements in C order.
func Value(field string, record int64, element int) uint32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(field))
	x := h.Sum64() ^ uint64(record)*0x9e3779b97f4a7c15 ^ uint64(element)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	return uint32(x >> 33) // 31 bits: every 64-bit integer can be narrowed
}

// Put writes a number as an element of a type.
func Put(dst []byte, t dtype.Type, v uint32) {
	switch t {
	case dtype.Bool:
		dst[0] = byte(v & 1)
	case dtype.Int64, dtype.Uint64:
		binary.LittleEndian.PutUint64(dst, uint64(v))
	case dtype.Float32, dtype.Complex64:
		clear(dst[:t.Size()])
		binary.LittleEndian.PutUint32(dst, math.Float32bits(float32(v>>8)))
	case dtype.Float64, dtype.Complex128:
		clear(dst[:t.Size()])
		binary.LittleEndian.PutUint64(dst, math.Float64bits(float64(v>>8)))
	default:
		for i := range t.Size() {
			dst[i] = byte(v >> (8 * i))
		}
	}
}

// Schema lists the fields.
func (s *Source) Schema() source.Schema { return source.Schema{Fields: s.fields} }

// Len gives the number of records.
func (s *Source) Len() int64 { return s.records }

// Fingerprint depends on the fields and the number of records.
func (s *Source) Fingerprint(context.Context) (source.Fingerprint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return source.Fingerprint{}, status.New(status.InvalidState, "synthetic", "the dataset is closed")
	}
	h := fnv.New128a()
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.records)))
	for _, f := range s.fields {
		_, _ = h.Write([]byte(f.Name))
	}
	return source.Fingerprint(h.Sum(nil)), nil
}

// Counts gives what was asked so far, and starts counting afresh, but for the
// gatherers that are open.
func (s *Source) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	s.counts = newCounts()
	s.counts.Gatherers = c.Gatherers
	return c
}

// Close refuses later gathers.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Gatherer opens a gatherer.
func (s *Source) Gatherer(parts []source.Part) (source.Gatherer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, status.New(status.InvalidState, "synthetic", "the dataset is closed")
	}
	for _, p := range parts {
		if err := s.checkPart(p); err != nil {
			return nil, err
		}
	}
	s.counts.Gatherers++
	s.counts.Parts = append(s.counts.Parts, parts)
	return &gatherer{s: s, parts: parts}, nil
}

type gatherer struct {
	s     *Source
	parts []source.Part
}

func (g *gatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	if err := g.count(records); err != nil {
		return err
	}
	if g.s.Hook != nil {
		if err := g.s.Hook(ctx, records); err != nil {
			return err
		}
	}
	for _, j := range jobs {
		if err := g.checkJob(j, len(records)); err != nil {
			return err
		}
		dst := j.Dst
		for _, r := range records[j.Rows[0]:j.Rows[1]] {
			dst = g.row(dst, g.parts[j.Part], r)
		}
	}
	return ctx.Err()
}

func (g *gatherer) count(records []int64) error {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if g.s.closed {
		return status.New(status.InvalidState, "synthetic", "the dataset is closed")
	}
	g.s.counts.Gathers++
	for _, r := range records {
		if r < -1 || r >= g.s.records {
			return status.Errorf(status.OutOfRange, "synthetic", "there is no record %d", r)
		}
		g.s.counts.Rows[r]++
	}
	return nil
}

// row writes one row's part, and gives what is left of dst.
func (g *gatherer) row(dst []byte, p source.Part, record int64) []byte {
	for _, box := range p.Boxes {
		dst = g.box(dst, g.s.fields[p.Field], g.to(p), box, 0, record)
	}
	return dst
}

// box writes the dimensions from len(f.Shape)-len(box) on; at is the flat index
// of what lies before them.
func (g *gatherer) box(dst []byte, f source.Field, to dtype.Type, box [][2]int, at int, record int64) []byte {
	if len(box) == 0 {
		clear(dst[:to.Size()])
		if record >= 0 {
			Put(dst, to, Value(f.Name, record, at))
		}
		return dst[to.Size():]
	}
	size := f.Shape[len(f.Shape)-len(box)]
	for i := box[0][0]; i < box[0][1]; i++ {
		dst = g.box(dst, f, to, box[1:], at*size+i, record)
	}
	return dst
}

func (g *gatherer) Ahead(records []int64) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	for _, r := range records {
		g.s.counts.Ahead[r]++
	}
}

func (g *gatherer) Close() error {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	g.s.counts.Gatherers--
	return nil
}
