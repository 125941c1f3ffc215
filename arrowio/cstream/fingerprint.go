package cstream

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
)

// sampled is how many rows a fingerprint covers.
const sampled = 64

// fingerprint hashes the schema, the number of records and the bytes of some
// rows, which are chosen by the number of records. Nulls count as zeros.
func fingerprint(ctx context.Context, s source.Source) (source.Fingerprint, error) {
	h := sha256.New()
	fields := s.Schema().Fields
	parts := make([]source.Part, len(fields))
	for i, f := range fields {
		text, _ := json.Marshal([]any{f.Name, f.Type, append([]int{}, f.Shape...)}) // names and numbers never fail
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		h.Write(text)
		parts[i] = wholeRow(i, f)
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.Len())))
	rows, err := sample(ctx, s, parts)
	h.Write(rows)
	var out source.Fingerprint
	copy(out[:], h.Sum(nil))
	return out, err
}

// wholeRow is the part that takes all of a field's row.
func wholeRow(number int, f source.Field) source.Part {
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
