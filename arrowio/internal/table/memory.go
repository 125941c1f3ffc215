package table

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// Memory is a source over a table in memory that is lent: Close waits for the
// last gather, for as long as it takes.
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
	g, err := m.table.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	return g, nil
}

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
func (m *Memory) Close() error { return m.table.Gate.Close(0) }

// sampled is how many rows a fingerprint covers.
const sampled = 64

// Fingerprint hashes what a source in memory holds: the schema, the number of
// records and the bytes of some rows, which are chosen by the number of
// records. Nulls count as zeros.
func Fingerprint(ctx context.Context, s source.Source) (source.Fingerprint, error) {
	h := sha256.New()
	fields := s.Schema().Fields
	parts := make([]source.Part, len(fields))
	for i, f := range fields {
		text, _ := json.Marshal([]any{f.Name, f.Type, append([]int{}, f.Shape...)}) // names and numbers never fail
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		h.Write(text)
		parts[i] = WholeRow(i, f)
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.Len())))
	rows, err := sample(ctx, s, parts)
	h.Write(rows)
	var out source.Fingerprint
	copy(out[:], h.Sum(nil))
	return out, err
}

// WholeRow is the part that takes all of a field's row, with zeros for nulls.
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

// sample gathers the rows that are looked at, field by field.
func sample(ctx context.Context, s source.Source, parts []source.Part) ([]byte, error) {
	g, err := s.Gatherer(parts)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var records []int64
	for k := range min(s.Len(), sampled) {
		records = append(records, place(k, s.Len()))
	}
	sizes, total := make([]int, len(parts)), 0
	for i, p := range parts {
		sizes[i] = len(records) * p.Bytes(s.Schema().Fields[p.Field].Type)
		total += sizes[i]
	}
	out, jobs := make([]byte, total), make([]source.Job, len(parts))
	rest := out
	for i := range jobs {
		jobs[i] = source.Job{Part: i, Rows: [2]int{0, len(records)}, Dst: rest[:sizes[i]]}
		rest = rest[sizes[i]:]
	}
	return out, g.Gather(ctx, records, jobs)
}

// place gives the k-th row that is looked at: all rows of few, else hashed
// places.
func place(k, records int64) int64 {
	if records <= sampled {
		return k
	}
	var word [16]byte
	binary.LittleEndian.PutUint64(word[:], uint64(records))
	binary.LittleEndian.PutUint64(word[8:], uint64(k))
	sum := sha256.Sum256(word[:])
	return int64(binary.LittleEndian.Uint64(sum[:]) % uint64(records))
}
