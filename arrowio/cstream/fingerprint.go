package cstream

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/meshfeed/meshfeed/core/source"
)

// sampled is how many rows a fingerprint covers.
const sampled = 64

// fingerprint hashes the schema, the number of records and the bytes of some
// rows, which are chosen by the number of records.
func fingerprint(fields []source.Field, columns []column, records int64) source.Fingerprint {
	h := sha256.New()
	for _, f := range fields {
		text, _ := json.Marshal([]any{f.Name, f.Type, append([]int{}, f.Shape...)}) // names and numbers never fail
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		h.Write(text)
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(records)))
	for i := range columns {
		c := &columns[i]
		row := make([]byte, c.bytes)
		for k := range min(records, sampled) {
			at := c.row(place(k, records))
			if c.packed {
				c.pack(row, at)
			} else {
				copy(row, memory(at, c.bytes))
			}
			h.Write(row)
		}
	}
	var out source.Fingerprint
	copy(out[:], h.Sum(nil))
	return out
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
