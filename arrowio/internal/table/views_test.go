package table

import (
	"context"
	"encoding/binary"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
)

// TestViewsInMemory takes arrays of lists of two views with buffers that may not fit.
func TestViewsInMemory(t *testing.T) {
	const large = 1<<31 - 1
	memory := []byte("a text of more than 12 bytes")
	data := Buffer{unsafe.Pointer(unsafe.SliceData(memory)), int64(len(memory))}
	unreadable, err := syscall.Mmap(-1, 0, large, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(unreadable)
	endless := Buffer{unsafe.Pointer(unsafe.SliceData(unreadable)), large}
	for name, c := range map[string]struct {
		length  int32 // bytes of both views
		buffers []Buffer
		want    string
	}{
		"fine":        {14, []Buffer{data}, "a text of morea text of more"},
		"no buffers":  {4, nil, "\x00\x00\x00\x00\x00\x00\x00\x00"},
		"no views":    {14, []Buffer{}, `record batch 0 of the test: column "x": level 1 has 1 buffers instead of 2`},
		"negative":    {14, []Buffer{{data.At, -1}}, `record batch 0 of the test: column "x": level 1 has a data buffer of -1 bytes without memory`},
		"no memory":   {14, []Buffer{{nil, 14}}, `record batch 0 of the test: column "x": level 1 has a data buffer of 14 bytes without memory`},
		"outside":     {29, []Buffer{data}, `field "x": record 0: its view is of 29 bytes from byte 0 on in a data buffer of 28`},
		"much memory": {large, []Buffer{endless}, `field "x": record 0: its texts have 4294967294 bytes, more than 2147483648`},
	} {
		views := make([]byte, 32)
		binary.NativeEndian.PutUint32(views, uint32(c.length))
		binary.NativeEndian.PutUint32(views[16:], uint32(c.length))
		offsets := []int32{0, 2}
		child := &Array{Length: 2, Buffers: append([]Buffer{{}, {unsafe.Pointer(&views[0]), 32}}, c.buffers...)}
		if name == "no views" {
			child.Buffers = child.Buffers[:1]
		}
		b := Batches{Origin: "test", Rows: []int64{1}, Schema: &arrowmeta.Schema{Fields: []arrowmeta.Field{{Name: "x", Type: listOf(-1, arrowmeta.Type{Kind: arrowmeta.StringView})}}}}
		b.Array = func(int, int) *Array {
			return &Array{Length: 1, Buffers: []Buffer{{}, {unsafe.Pointer(&offsets[0]), 8}}, Child: func(int) *Array { return child }}
		}
		if got := textOf(t, &b); got != c.want && !strings.HasPrefix(got, "arrowio: "+c.want+"; ") {
			t.Errorf("%s: got  %s\nwant %s", name, got, c.want)
		}
	}
}

// textOf returns the bytes of the first row of the batches, or the error.
func textOf(t *testing.T, b *Batches) (text string) {
	table, err := b.Table(nil)
	if err != nil {
		return err.Error()
	}
	r, err := NewMemory(table).Reader([]int{0})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spans := []source.Span{{Field: 0, Record: 0}}
	err = r.Read(context.Background(), source.Draw{}, spans, func() error {
		text = string(spans[0].Row)
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return text
}
