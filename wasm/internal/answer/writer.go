package answer

import (
	"errors"
	"strconv"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// writer is the beginning of a reply.
type writer []byte

func (b writer) add(text string) writer { return append(b, text...) }
func (b writer) str(text string) writer { return jsontext.AppendString(b, text) }
func (b writer) int(n int64) writer     { return strconv.AppendInt(b, n, 10) }
func (b writer) orNull(text string) writer {
	if text == "" {
		return b.add("null")
	}
	return b.str(text)
}

// list writes n elements.
func (b writer) list(n int, one func(b writer, i int) writer) writer {
	b = b.add("[")
	for i := range n {
		if i > 0 {
			b = b.add(",")
		}
		b = one(b, i)
	}
	return b.add("]")
}

// sizes writes integers, and null for a negative one.
func (b writer) sizes(list []int) writer {
	return b.list(len(list), func(b writer, i int) writer {
		if list[i] < 0 {
			return b.add("null")
		}
		return b.int(int64(list[i]))
	})
}

// end writes the error, which is the last member of every reply.
func (b writer) end(err error) writer {
	b = b.add(`,"error":`)
	if err == nil {
		return b.add("null}")
	}
	e := &status.Error{Code: status.CodeOf(err), Msg: err.Error()}
	errors.As(err, &e)
	path, _ := e.Attr("path").(string)
	return b.add(`{"code":`).str(e.Code.String()).add(`,"op":`).str(e.Op).add(`,"message":`).str(e.Msg).
		add(`,"hint":`).str(e.Hint).add(`,"path":`).str(path).add(`}}`)
}

// arrays writes the arrays of a layout.
func (b writer) arrays(l *layout.Layout) writer {
	all := l.Arrays()
	return b.add(`,"arrays":`).list(len(all), func(b writer, i int) writer { return b.array(&all[i]) })
}

func (b writer) array(a *layout.Array) writer {
	b = b.add(`{"name":`).str(a.Name).add(`,"field":`).orNull(a.Field).add(`,"kind":`).str(kind(a.Kind)).
		add(`,"dtype":`).str(a.Type.String()).add(`,"shape":`).sizes(a.Shape).add(`,"batch_dims":`).int(int64(a.BatchDims))
	if a.Sharding == nil {
		return b.add(`,"spec":null,"tiles":null}`)
	}
	spec := a.Sharding.Spec()
	b = b.add(`,"spec":`).list(len(spec), func(b writer, i int) writer { return b.entry(spec[i]) })
	t, _ := a.Sharding.Tiling(a.Shape) // which layout has checked
	return b.add(`,"tiles":`).sizes(t.Tiles()).add(`}`)
}

// entry writes an entry of a spec as the layout document does.
func (b writer) entry(axes []string) writer {
	switch len(axes) {
	case 0:
		return b.add("null")
	case 1:
		return b.str(axes[0])
	}
	return b.list(len(axes), func(b writer, i int) writer { return b.str(axes[i]) })
}

func kind(k layout.Kind) string {
	switch k {
	case layout.Mask:
		return "mask"
	case layout.Key:
		return "key"
	case layout.Record:
		return "record"
	case layout.Static:
		return "static"
	}
	return "data"
}
