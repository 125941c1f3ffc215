package arrowmeta_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// cyclic returns a stream of 136 bytes with a struct. The reference to its only child
// leads back by that many bytes, modulo 2^32. If it leads to the struct itself,
// a reader without a bound on the depth, such as arrow/go v17, overflows its stack.
// The function recover cannot catch that.
func cyclic(back uint32) []byte {
	schema := schemaOf(fields{4: "a", 8: uint8(13), 10: fields{}, 14: offsets(-back)})
	return append(framed(flat(message(1, schema, 0)), 0), endOfStream...)
}

// TestCyclicSchema points the child at every position before it. One of them is
// its own parent.
func TestCyclicSchema(t *testing.T) {
	for back := range uint32(200) {
		data := cyclic(back)
		err := examine(t, data)
		if err == nil {
			t.Fatalf("a child %d bytes before itself was accepted", back)
		}
		want := fmt.Sprintf("offset %d does not lead forward into the metadata", -int32(back))
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestShared uses references to one object: 60 levels that refer twice to the next
// one would be 2^60 fields, and a thousand references to a long text a thousand
// copies of it.
func TestShared(t *testing.T) {
	level := int32Field("leaf")
	for range 60 {
		level = fields{4: "s", 8: uint8(13), 10: fields{}, 14: shared{N: 2, T: level}}
	}
	text := with(int32Field("x"), 16, shared{N: 1000, T: fields{6: strings.Repeat("t", 100_000)}})
	for _, f := range []fields{level, text} {
		err := examine(t, streamOf(schemaOf(f), 0))
		if err == nil || !strings.Contains(err.Error(), "objects overlap") {
			t.Errorf("got %v", err)
		}
	}
}

func TestDepthOfFields(t *testing.T) {
	for _, depth := range []int{arrowmeta.MaxDepth - 1, arrowmeta.MaxDepth} {
		f := int32Field("leaf")
		for range depth {
			f = field("s", 13, fields{}, f)
		}
		err := examine(t, streamOf(schemaOf(f), 0))
		if accepted := err == nil; accepted != (depth < arrowmeta.MaxDepth) {
			t.Errorf("%d structs round a field: %v", depth, err)
		}
	}
}
