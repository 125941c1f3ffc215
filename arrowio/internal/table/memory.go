package table

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// Memory is a source over a table in memory. Close waits for the last gather without
// a limit, because the memory's owner may free it afterwards.
type Memory struct {
	table *Table

	mu     sync.Mutex
	hashed *source.Fingerprint
}

// NewMemory makes a source of a table without a store.
func NewMemory(t *Table) *Memory { return &Memory{table: t} }

// Schema implements source.Source.
func (m *Memory) Schema() source.Schema { return m.table.Schema }

// Len implements source.Source.
func (m *Memory) Len() int64 { return m.table.Index.Len() }

// Gatherer implements source.Source.
func (m *Memory) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return m.table.Gatherer(parts)
}

// Coverage implements source.Covered.
func (m *Memory) Coverage() (hashed, of int64) { return Coverage(m) }

// Fingerprint implements source.Source: see [Fingerprint].
func (m *Memory) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hashed == nil {
		f, err := Fingerprint(ctx, m)
		if err != nil {
			return f, err
		}
		m.hashed = &f
	}
	return *m.hashed, nil
}

// Close implements source.Source.
func (m *Memory) Close() error { return m.table.Calls.Close(0) }

// WholeRow returns the part that consists of whole rows of a field, with zeros for
// nulls.
func WholeRow(number int, f source.Field) source.Part {
	box := make([][2]int, len(f.Shape))
	for d, n := range f.Shape {
		box[d] = [2]int{0, n}
	}
	p := source.Part{Field: number, Boxes: [][][2]int{box}}
	if f.Nullable {
		p.Fill = int64(0)
		if f.Type == dtype.Bool {
			p.Fill = false
		}
	}
	return p
}
