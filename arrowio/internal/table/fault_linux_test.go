package table

import (
	"cmp"
	"context"
	"encoding/binary"
	"os"
	"regexp"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// shrunkStore is a store with one file of two pages. The second page cannot be
// read, as if the file had shrunk after its size was checked.
type shrunkStore struct {
	memory []byte
	column *buffers.Column
}

// Positions in the file: kept on the first page, lost on the second.
const kept = 64

var lost = int64(os.Getpagesize())

// newShrunkStore makes such a file. Its pages hold zeros, and the offsets 0, 2,
// 4, 6 at kept and lost.
func newShrunkStore(t *testing.T) *shrunkStore {
	t.Helper()
	memory, err := unix.Mmap(-1, 0, int(2*lost), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	for i := range 4 {
		binary.LittleEndian.PutUint32(memory[kept+4*i:], uint32(2*i))
	}
	copy(memory[lost:], memory[kept:kept+16])
	return &shrunkStore{memory: memory}
}

// setReadable makes the second page readable, or not.
func (s *shrunkStore) setReadable(t *testing.T, readable bool) {
	t.Helper()
	protection := unix.PROT_NONE
	if readable {
		protection = unix.PROT_READ
	}
	if err := unix.Mprotect(s.memory[lost:], protection); err != nil {
		t.Fatal(err)
	}
}

func (s *shrunkStore) Base(int32) (uintptr, bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(s.memory))), true
}
func (s *shrunkStore) Columns([]int) ([]*buffers.Column, error) {
	return []*buffers.Column{s.column}, nil
}
func (s *shrunkStore) Acquire(context.Context, []resident.Span, []uintptr) (*resident.Lease, error) {
	panic("all is in memory")
}
func (s *shrunkStore) Ahead([]resident.Span)          { panic("all is in memory") }
func (s *shrunkStore) Arm()                           {}
func (s *shrunkStore) Check([]int32) error            { return nil }
func (s *shrunkStore) Named(_ int32, err error) error { return err }

// TestFaults lets the memory of every kind of field vanish under a gather, at
// every level. It has to be an error. The same gatherer works again once the
// memory is back.
func TestFaults(t *testing.T) {
	at := func(positions ...int64) (planes []buffers.Plane) { // two for each level: validity, data
		for i := 0; i < len(positions); i += 2 {
			p := buffers.Plane{Data: []int64{positions[i+1]}, Length: []int64{6}}
			if positions[i] > 0 {
				p.Valid = []int64{positions[i]}
			}
			planes = append(planes, p)
		}
		return planes
	}
	wide := arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 64, Signed: true}
	column := func(typ arrowmeta.Type) arrowmeta.Field { return arrowmeta.Field{Name: "x", Type: typ} }
	indices := &arrowmeta.Dictionary{Index: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 8}}
	coded := arrowmeta.Field{Name: "x", Type: number, Dictionary: indices}
	for _, c := range []struct {
		name   string
		column arrowmeta.Field
		planes []buffers.Plane
		to     dtype.Type
	}{
		{"numbers", column(number), at(0, lost), 0},
		{"narrowed numbers", column(wide), at(0, lost+64), dtype.Int32},
		{"bits", column(arrowmeta.Type{Kind: arrowmeta.Bool, BitWidth: 1}), at(0, lost), 0},
		{"rows", column(listOf(48, number)), at(0, 0, 0, lost), 0},
		{"nulls", column(number), at(lost, kept), 0},
		{"numbers with nulls", column(number), at(kept+4, lost), 0},
		{"nulls in rows", column(listOf(2, number)), at(0, 0, lost, kept), 0},
		{"rows with nulls", column(listOf(2, number)), at(0, 0, kept+4, lost), 0},
		{"offsets", column(listOf(-1, number)), at(0, lost, 0, kept), 0},
		{"lists", column(listOf(-1, number)), at(0, kept, 0, lost), 0},
		{"indices", coded, at(0, lost), 0},
		{"lists of indices", column(arrowmeta.Type{Kind: arrowmeta.List, Children: []arrowmeta.Field{coded}}), at(0, kept, 0, lost), 0},
	} {
		t.Run(c.name, func(t *testing.T) { testFault(t, describe(t, c.column), c.planes, c.to) })
	}
}

// testFault gathers while the memory is lost, after it is back, and after it is
// lost again.
func testFault(t *testing.T, field *arrowtype.Field, planes []buffers.Plane, to dtype.Type) {
	store := newShrunkStore(t)
	store.column = &buffers.Column{Planes: planes, Dictionaries: []*arrowtype.Dictionary{{Len: 8, Values: make([]byte, 32)}}}
	x := &Table{Index: index.New([]int64{3}), Store: store, Calls: source.NewCalls("arrowio", "dataset", nil)}
	x.Add(field, store.column.Nulls())
	part := x.Schema.Whole(0)
	part.To = to
	g, err := x.Gatherer([]source.Part{part})
	if err != nil {
		t.Fatal(err)
	}
	for _, back := range []bool{false, true, false} {
		store.setReadable(t, back)
		dst := make([]byte, 3*part.Bytes(cmp.Or(to, field.Type)))
		err := g.Gather(context.Background(), source.Draw{}, []int64{2, 0, 1}, []source.Job{{Rows: [2]int{0, 3}, Dst: dst}})
		want := "arrowio: the data could not be read from their mapping: ADDRESS; the disk failed, or a file was made shorter while it was open"
		switch {
		case back && err != nil:
			t.Errorf("the memory is back: %v", err)
		case !back && err == nil:
			t.Error("memory that cannot be read was gathered")
		case !back && (status.CodeOf(err) != status.DataLoss || faultText.ReplaceAllString(err.Error(), "ADDRESS") != want):
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if err := x.Calls.Close(0); err != nil { // would wait for a gather that never left
		t.Error(err)
	}
}

var faultText = regexp.MustCompile(`runtime error: [^;]*`)
