package reply

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/tail"
	"github.com/meshfeed/meshfeed/wasm/internal/envelope"
)

// Schema describes an Arrow or Parquet file of size bytes, from its last bytes, data:
//
//	{"format":"arrow","fields":[{"name","type","shape","dtype","loadable","why"}],"rows":null,"need":0,"error":null}
//
// A shape describes one row. It has null for a list if only the data show its length. If a
// field cannot be loaded, why is the reason, and shape and dtype are null. Text, bytes and
// lists of different lengths cannot be loaded as they are, but a view can pad them: their
// shape begins with null. If need is not 0, the tail was too short and the reply has no
// fields: call Schema again with the last need bytes.
func Schema(data []byte, size float64) []byte {
	t, err := &tail.File{Rows: -1}, error(nil)
	if size >= 0 && size <= layout.MaxInteger && size == float64(int64(size)) {
		t, err = tail.Read(data, int64(size))
	} else {
		err = status.New(status.InvalidArgument, "schema", "the size of the file is not an integer from 0 to 2^53")
	}
	if err != nil {
		t = &tail.File{Rows: -1}
	}
	w := envelope.Begin()
	orNull(w.Key("format"), t.Format)
	writeFields(w.Key("fields"), &t.Schema)
	if w.Key("rows"); t.Rows < 0 {
		w.Null()
	} else {
		w.Int(t.Rows)
	}
	w.Key("need").Int(t.Need)
	return envelope.End(w, err)
}

func writeFields(w *jsontext.Writer, s *arrowmeta.Schema) {
	fields, why := arrowtype.Describe(s)
	w.Open('[')
	for i := range s.Fields {
		f := fields[i]
		if why[i] == "" {
			why[i] = f.Why()
		}
		w.Open('{')
		w.Key("name").String(s.Fields[i].Name)
		w.Key("type").String(s.Fields[i].TypeString())
		switch {
		case why[i] == "":
			writeShape(w.Key("shape"), f.Declared)
			w.Key("dtype").String(f.Type.String())
		case f != nil && f.Ragged == 1:
			writeShape(w.Key("shape"), append([]int{-1}, f.Shape...))
			w.Key("dtype").String(f.Type.String())
		default:
			w.Key("shape").Null()
			w.Key("dtype").Null()
		}
		w.Key("loadable").Bool(why[i] == "")
		w.Key("why").String(why[i])
		w.Close('}')
	}
	w.Close(']')
}

// writeShape writes a shape, with null for a size that is not known.
func writeShape(w *jsontext.Writer, shape []int) {
	w.Open('[')
	for _, n := range shape {
		if n < 0 {
			w.Null()
		} else {
			w.Int(int64(n))
		}
	}
	w.Close(']')
}
