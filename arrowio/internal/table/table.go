package table

import (
	"context"
	"sync"
	"unsafe"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
)

// Column says where the buffers of a field's nodes are: one Plane per node.
type Column struct {
	Planes       []Plane
	Dictionaries []*Dictionary    // where the last node is one, in the order of From
	Memory       []unsafe.Pointer // Go memory that positions are addresses in, kept alive
}

// Plane holds the positions of one node's buffers, with an entry per record
// batch. A position is an offset in the batch's file, or an address where the
// table lies in memory.
type Plane struct {
	Valid  []int64 // validity bitmap, -1 where the batch has no nulls here; nil if no batch has
	Data   []int64 // offsets, indices or values; nil for fixed-size lists
	Length []int64 // elements of the node; nil where metadata make sure that there are enough
	Shift  []int64 // elements to skip at the front of the buffers; nil for none
}

// Dictionary holds the rows of a dictionary, each as long as a row of the
// field, one after the other.
type Dictionary struct {
	From   int32 // first record batch that uses it
	Len    int64
	Values []byte
}

// Store is where the record batches lie. A nil Store is memory: positions are
// addresses.
type Store interface {
	// Base gives the address at which a file begins in memory, once all of
	// it is there to stay.
	Base(file int32) (address uintptr, ok bool)

	// Acquire gives the address of every span. They stay valid until the
	// lease is released.
	Acquire(ctx context.Context, spans []resident.Span, to []uintptr) (Lease, error)

	// Ahead says which spans come next.
	Ahead(spans []resident.Span)

	// Encoded says whether the buffers of a file have to be decoded.
	Encoded(file int32) bool

	// Decode gives the buffers of one field in a record batch of such a file.
	Decode(ctx context.Context, batch int32, field int) (*Decoded, error)

	// Check fails if a file of a list is no longer what it was.
	Check(files []int32) error

	// Named adds the name of the record batch's file to an error.
	Named(batch int32, err error) error
}

// Decoded holds the buffers of a field in one record batch, by node.
type Decoded struct {
	Nodes []DecodedNode
	Bytes int64
}

// DecodedNode holds the buffers of a node.
type DecodedNode struct {
	Valid  []byte // nil if there are no nulls
	Data   []byte // nil for fixed-size lists
	Length int64
}

// Lease keeps addresses valid.
type Lease interface{ Release() }

// Table is a list of fields over record batches.
type Table struct {
	Fields []*Field
	Schema source.Schema
	Index  *Index
	Files  []int32 // file of each record batch; nil where there is one file or none
	Store  Store

	// Load finds the buffers of fields. It is called once for each.
	Load func(fields []int) ([]*Column, error)

	// Arm, if set, is called before bytes of the store are touched, so that
	// its Check finds out afterwards if some were not there.
	Arm func()

	// Gate counts the gathers, for Close.
	Gate *source.Gate

	mu      sync.Mutex
	columns map[int]*Column
}

// load gives the columns of fields. Those that nobody has asked for yet are
// found at once.
func (t *Table) load(fields []int) ([]*Column, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.columns == nil {
		t.columns = map[int]*Column{}
	}
	var missing []int
	for _, field := range fields {
		if t.columns[field] == nil {
			missing = append(missing, field)
		}
	}
	if len(missing) > 0 {
		found, err := t.Load(missing)
		if err != nil {
			return nil, err
		}
		for i, field := range missing {
			t.columns[field] = found[i]
		}
	}
	columns := make([]*Column, len(fields))
	for i, field := range fields {
		columns[i] = t.columns[field]
	}
	return columns, nil
}

// Column gives the column of a field.
func (t *Table) Column(field int) (*Column, error) {
	columns, err := t.load([]int{field})
	if err != nil {
		return nil, err
	}
	return columns[0], nil
}

// Found makes a Load of the columns of all fields.
func Found(columns []*Column) func(fields []int) ([]*Column, error) {
	return func(fields []int) ([]*Column, error) {
		list := make([]*Column, len(fields))
		for i, field := range fields {
			list[i] = columns[field]
		}
		return list, nil
	}
}

// File gives the number of the file that holds a record batch.
func (t *Table) File(batch int32) int32 {
	if t.Files == nil {
		return 0
	}
	return t.Files[batch]
}
