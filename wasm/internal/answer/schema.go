package answer

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
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
	rows, why := s.Rows()
	return b.list(len(s.Fields), func(b writer, i int) writer {
		b = b.add(`{"name":`).str(s.Fields[i].Name).add(`,"type":`).str(s.Fields[i].TypeString())
		if why[i] != "" {
			return b.add(`,"shape":null,"dtype":null,"loadable":false,"why":`).str(why[i]).add(`}`)
		}
		b = b.add(`,"shape":`).sizes(rows[i].Declared)
		return b.add(`,"dtype":`).str(rows[i].Type.String()).add(`,"loadable":true,"why":""}`)
	})
}
