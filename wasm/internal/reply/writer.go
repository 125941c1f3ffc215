package reply

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// orNull writes a string, or null for an empty one.
func orNull(w *jsontext.Writer, text string) {
	if text == "" {
		w.Null()
	} else {
		w.String(text)
	}
}

// writeArrays writes the arrays of a layout.
func writeArrays(w *jsontext.Writer, l *layout.Layout) {
	w.Open('[')
	for i, a := range l.Arrays() {
		w.Open('{')
		w.Key("name").String(a.Name)
		orNull(w.Key("field"), a.Field)
		w.Key("kind").String(a.Kind.String())
		w.Key("dtype").String(a.Type.String())
		w.Key("shape").Ints(a.Shape...)
		w.Key("batch_dims").Int(int64(a.BatchDims))
		if a.Sharding == nil {
			w.Key("spec").Null()
			w.Key("tiles").Null()
		} else {
			document.WriteSpec(w.Key("spec"), a.Sharding.Spec())
			w.Key("tiles").Ints(l.Tiling(i).Tiles()...)
		}
		w.Close('}')
	}
	w.Close(']')
}
