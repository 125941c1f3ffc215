// Package envelope writes the frame of a reply of a WebAssembly module: a JSON object with
// the error as its last member, or null. An error is {"code","op","message","hint","path"},
// with the name of the code as package status spells it.
package envelope

import (
	"errors"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Begin starts a reply.
func Begin() *jsontext.Writer {
	w := &jsontext.Writer{}
	w.Open('{')
	return w
}

// End writes the error and returns the reply.
func End(w *jsontext.Writer, err error) []byte {
	w.Key("error")
	if err == nil {
		w.Null()
	} else {
		e, ok := errors.AsType[*status.Error](err)
		if !ok {
			e = &status.Error{Code: status.CodeOf(err), Msg: err.Error()}
		}
		path, _ := e.Attr("path").(string)
		w.Open('{')
		w.Key("code").String(e.Code.String())
		w.Key("op").String(e.Op)
		w.Key("message").String(e.Msg)
		w.Key("hint").String(e.Hint)
		w.Key("path").String(path)
		w.Close('}')
	}
	w.Close('}')
	return w.Text
}
