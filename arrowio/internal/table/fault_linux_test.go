package table

import (
	"context"
	"encoding/binary"
	"os"
	"regexp"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// torn is a store with one file, of which the second page cannot be read: as
// if it had shrunk after it was looked at.
type torn struct{ memory []byte }

// Positions in a torn file: sound on the first page, gone on the second.
const sound = 64

var gone = int64(os.Getpagesize())

// newTorn makes a file of two pages. Both hold zeros, and the offsets 0, 2, 4, 6
// at sound and gone.
func newTorn(t *testing.T) *torn {
	t.Helper()
	memory, err := unix.Mmap(-1, 0, int(2*gone), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	for i := range 4 {
		binary.LittleEndian.PutUint32(memory[sound+4*i:], uint32(2*i))
	}
	copy(memory[gone:], memory[sound:sound+16])
	return &torn{memory}
}

// mend makes the second page readable, or not.
func (s *torn) mend(t *testing.T, readable bool) {
	t.Helper()
	protection := unix.PROT_NONE
	if readable {
		protection = unix.PROT_READ
	}
	if err := unix.Mprotect(s.memory[gone:], protection); err != nil {
		t.Fatal(err)
	}
}

func (s *torn) Base(int32) (uintptr, bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(s.memory))), true
}
func (s *torn) Acquire(context.Context, []resident.Span, []uintptr) (Lease, error) {
	panic("all is in memory")
}
func (s *torn) Ahead([]resident.Span)                                { panic("all is in memory") }
func (s *torn) Encoded(int32) bool                                   { return false }
func (s *torn) Decode(context.Context, int32, int) (*Decoded, error) { panic("nothing is encoded") }
func (s *torn) Check([]int32) error                                  { return nil }
func (s *torn) Named(_ int32, err error) error                       { return err }

// TestFaults lets the memory of every kind of field vanish under a gather, at
// every node. It has to be an error, after which the same gatherer works again
// once the memory is back.
func TestFaults(t *testing.T) {
	at := func(positions ...int64) (planes []Plane) { // of each node: validity, data
		for i := 0; i < len(positions); i += 2 {
			p := Plane{Data: []int64{positions[i+1]}, Length: []int64{6}}
			if positions[i] > 0 {
				p.Valid = []int64{positions[i]}
			}
			planes = append(planes, p)
		}
		return planes
	}
	number, pair := []Node{{Kind: Values, Size: 4}}, Node{Kind: List, Size: 2, Width: 4}
	coded := &Field{Type: dtype.Int32, Nodes: number}
	for _, c := range []struct {
		name   string
		field  Field
		planes []Plane
		to     dtype.Type
	}{
		{"numbers", Field{Type: dtype.Int32, Nodes: number}, at(0, gone), 0},
		{"narrowed numbers", Field{Type: dtype.Int64, Nodes: []Node{{Kind: Values, Size: 8}}}, at(0, gone+64), dtype.Int32},
		{"bits", Field{Type: dtype.Bool, Nodes: []Node{{Kind: Values}}}, at(0, gone), 0},
		{"rows", Field{Type: dtype.Int32, Shape: []int{48}, Nodes: []Node{{Kind: Fixed, Size: 48}, number[0]}}, at(0, 0, 0, gone), 0},
		{"nulls", Field{Type: dtype.Int32, Nodes: number}, at(gone, sound), 0},
		{"numbers with nulls", Field{Type: dtype.Int32, Nodes: number}, at(sound+4, gone), 0},
		{"nulls in rows", Field{Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{{Kind: Fixed, Size: 2}, number[0]}}, at(0, 0, gone, sound), 0},
		{"rows with nulls", Field{Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{{Kind: Fixed, Size: 2}, number[0]}}, at(0, 0, sound+4, gone), 0},
		{"offsets", Field{Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{pair, number[0]}}, at(0, gone, 0, sound), 0},
		{"lists", Field{Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{pair, number[0]}}, at(0, sound, 0, gone), 0},
		{"codes", Field{Type: dtype.Int32, Nodes: []Node{{Kind: Coded, Width: 1}}, Values: coded}, at(0, gone), 0},
		{"lists of codes", Field{Type: dtype.Int32, Shape: []int{2}, Nodes: []Node{pair, {Kind: Coded, Width: 1}}, Values: coded}, at(0, sound, 0, gone), 0},
	} {
		t.Run(c.name, func(t *testing.T) { testFault(t, &c.field, c.planes, c.to) })
	}
}

// testFault gathers when the memory has vanished, when it is back, and again
// when it has vanished.
func testFault(t *testing.T, field *Field, planes []Plane, to dtype.Type) {
	field.Name = "x"
	store := newTorn(t)
	nullable := false
	for i := range planes {
		nullable = nullable || planes[i].Valid != nil
	}
	column := &Column{Planes: planes, Dictionaries: []*Dictionary{{Len: 8, Values: make([]byte, 32)}}}
	x := &Table{Fields: []*Field{field}, Index: NewIndex([]int64{3}), Store: store, Load: Found([]*Column{column}), Gate: source.NewGate("arrowio", "dataset", nil)}
	x.Schema.Fields = []source.Field{field.Source(nullable)}
	part := WholeRow(0, x.Schema.Fields[0])
	part.To = to
	g, err := x.Gatherer([]source.Part{part})
	if err != nil {
		t.Fatal(err)
	}
	for _, back := range []bool{false, true, false} {
		store.mend(t, back)
		dst := make([]byte, 3*g.programs[0].Bytes())
		err := g.Gather(context.Background(), []int64{2, 0, 1}, []source.Job{{Rows: [2]int{0, 3}, Dst: dst}})
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
	if err := x.Gate.Close(0); err != nil { // would wait for a gather that never left
		t.Error(err)
	}
}

var faultText = regexp.MustCompile(`runtime error: [^;]*`)
