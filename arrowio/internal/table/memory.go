package table

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
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

// Reader implements source.Source.
func (m *Memory) Reader(fields []int) (source.Reader, error) {
	for _, i := range fields {
		if i >= 0 && i < len(m.table.Strides) && m.table.Strides[i] != nil {
			return cut.Reader(m, fields)
		}
	}
	return m.table.Reader(fields)
}

// Facts implements source.Source. The units are the record batches.
func (m *Memory) Facts() source.Facts {
	coverage := func() (hashed, of int64) { return coverage(m) }
	return source.Facts{Units: m.table.Index.Units, Coverage: coverage, Components: m.components, Adjacent: m.table.Adjacent}
}

// Fingerprint implements source.Source: see [fingerprint].
func (m *Memory) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hashed == nil {
		f, err := fingerprint(ctx, m, wholeBytes)
		if err != nil {
			return f, err
		}
		m.hashed = &f
	}
	return *m.hashed, nil
}

// components returns the values over the schema.
func (m *Memory) components(ctx context.Context) (source.Component, error) {
	f, err := m.Fingerprint(ctx)
	return source.Component{Label: "values", Hash: f, Below: []source.Component{source.SchemaComponent(m.table.Schema)}}, err
}

// Close implements source.Source.
func (m *Memory) Close() error { return m.table.Calls.Close(0) }
