package answer

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
)

// Schema says what is in an Arrow or Parquet file of size bytes, from the last
// of them:
//
//	{"format":"arrow","fields":[{"name","type","shape","dtype","loadable","why"}],"rows":null,"need":0,"error":null}
//
// A shape is that of one row, with null for a list whose length only the data
// tell. A field that cannot be loaded has neither shape nor dtype, and why says
// why. Where need is not 0, nothing could be told yet, and so many of the last
// bytes are needed.
func Schema(tail []byte, size float64) []byte {
	t, err := &arrowmeta.Tail{Rows: -1}, error(nil)
	if size >= 0 && size <= layout.MaxInteger && size == float64(int64(size)) {
		t, err = arrowmeta.ReadTail(tail, int64(size))
	} else {
		err = status.New(status.InvalidArgument, "schema", "the size of the file is not an integer from 0 to 2^53")
	}
	if err != nil {
		t = &arrowmeta.Tail{Rows: -1}
	}
	b := writer(`{"format":`).orNull(t.Format).add(`,"fields":`).fields(&t.Schema).add(`,"rows":`)
	if t.Rows < 0 {
		b = b.add("null")
	} else {
		b = b.int(t.Rows)
	}
	return b.add(`,"need":`).int(t.Need).end(err)
}

func (b writer) fields(s *arrowmeta.Schema) writer {
	declared, seen := s.RowShapes(), make(map[string]bool, len(s.Fields))
	return b.list(len(s.Fields), func(b writer, i int) writer {
		f := &s.Fields[i]
		rows, why := f.Rows()
		if seen[f.Name] {
			why = "a column before it has the same name"
		}
		seen[f.Name] = true
		b = b.add(`{"name":`).str(f.Name).add(`,"type":`).str(f.TypeString())
		if why != "" {
			return b.add(`,"shape":null,"dtype":null,"loadable":false,"why":`).str(why).add(`}`)
		}
		b = b.add(`,"shape":`).sizes(fill(rows.Shape, declared[i]))
		return b.add(`,"dtype":`).str(rows.Type.String()).add(`,"loadable":true,"why":""}`)
	})
}

// fill puts declared sizes where the type leaves them open.
func fill(shape, declared []int) []int {
	if len(declared) != len(shape) {
		return shape
	}
	shape = slices.Clone(shape)
	for i, n := range declared {
		if shape[i] < 0 {
			shape[i] = n
		}
	}
	return shape
}
