package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"

	"github.com/meshfeed/meshfeed/core/status"
)

// Lists checks the lengths of a field's lists in one record batch, from their
// offsets alone. Read gives the bytes of a node's offsets, or of its validity
// bitmap, from a byte of the buffer on; no bitmap means that nothing is null.
// They stay as they are until the next Read of the same buffer.
type Lists struct {
	Field  *Field
	Column *Column
	Batch  int32
	Read   func(node int, validity bool, at, bytes int64) ([]byte, error)
}

// Uneven is the error of a list whose length is not that of its field's rows.
type Uneven struct {
	Field  *Field
	Record int64
	Node   int // the dimension of the row
	Length int64
}

func (e *Uneven) Error() string { return e.Status().Error() }

// Status gives the error of a record that was asked for.
func (e *Uneven) Status() *status.Error {
	return status.Errorf(status.InvalidArgument, "arrowio", "field %q: record %d has a list of %d values in dimension %d, where the shape %v of the rows needs %d",
		e.Field.Name, e.Record, e.Length, e.Node, e.Field.Shape, e.Field.Nodes[e.Node].Size).
		WithHint("pad or cut the lists to one length, or give the right shape").
		With("field", e.Field.Name).With("record", e.Record)
}

// Reason says why the column is no field.
func (e *Uneven) Reason() string {
	return fmt.Sprintf("its lists differ in length: record %d has %d values in dimension %d, where the shape %v of the rows needs %d; pad or cut them to one length",
		e.Record, e.Length, e.Node, e.Field.Shape, e.Field.Nodes[e.Node].Size)
}

// InMemory is the Read of a batch whose positions are addresses.
func (l *Lists) InMemory(node int, validity bool, at, bytes int64) ([]byte, error) {
	p := &l.Column.Planes[node]
	if !validity {
		return view(uintptr(p.Data[l.Batch]+at), bytes), nil
	}
	if p.Valid == nil || p.Valid[l.Batch] < 0 {
		return nil, nil
	}
	return view(uintptr(p.Valid[l.Batch]+at), bytes), nil
}

// HasLists says whether there are lists with offsets in the field.
func (f *Field) HasLists() bool { return f.lastList() >= 0 }

// lastList gives the innermost node that is a list with offsets, -1 for none.
func (f *Field) lastList() int {
	last := -1
	for n := range f.Nodes {
		if f.Nodes[n].Kind == List {
			last = n
		}
	}
	return last
}

// Check checks the rows [from, to) of the batch. The first is record number
// first of the dataset. It is an *Uneven for the first record that has a list
// of another length, and another error for offsets that cannot be.
func (l *Lists) Check(from, to, first int64) error {
	err := l.node(0, from, to-from)
	var unread *status.Error
	if err == nil || errors.As(err, &unread) {
		return err
	}
	// The rows before a wrong one are right, and all up to it are not.
	row := int64(sort.Search(int(to-from), func(k int) bool { return l.node(0, from, int64(k)+1) != nil }))
	err = l.node(0, from+row, 1)
	var wrong *Uneven
	if errors.As(err, &wrong) {
		wrong.Record = first + row
	}
	return err
}

// listsAtOnce bounds the offsets that are looked at together.
const listsAtOnce = 64 << 10

// node checks count elements of a node, from start on.
func (l *Lists) node(n int, start, count int64) error {
	if n > l.Field.lastList() || count == 0 {
		return nil
	}
	start += shiftOf(&l.Column.Planes[n], int(l.Batch))
	for count > 0 {
		m := min(count, listsAtOnce)
		step := l.lists
		if l.Field.Nodes[n].Kind == Fixed {
			step = l.fixed
		}
		if err := step(n, start, m); err != nil {
			return err
		}
		start, count = start+m, count-m
	}
	return nil
}

// fixed goes on with the elements of fixed-size lists that are not null.
func (l *Lists) fixed(n int, start, count int64) error {
	size := int64(l.Field.Nodes[n].Size)
	valid, err := l.Read(n, true, start>>3, (start+count+7)>>3-start>>3)
	if err != nil {
		return err
	}
	return runs(valid, start&7, count, func(k, m int64) error {
		return l.node(n+1, (start+k)*size, m*size)
	})
}

// lists checks lists that are not null, and goes on with their elements.
func (l *Lists) lists(n int, start, count int64) error {
	node := &l.Field.Nodes[n]
	valid, err := l.Read(n, true, start>>3, (start+count+7)>>3-start>>3)
	if err != nil {
		return err
	}
	offsets, err := l.Read(n, false, start*int64(node.Width), (count+1)*int64(node.Width))
	if err != nil {
		return err
	}
	// Null lists have no elements, as a rule: what is to the left and to the right
	// of one is then checked as one piece.
	var from, to int64
	err = runs(valid, start&7, count, func(k, m int64) error {
		part := offsets[k*int64(node.Width) : (k+m+1)*int64(node.Width)]
		if i := uneven(part, node.Width, node.Size); i >= 0 {
			b, e := Integer(part[i*node.Width:], node.Width), Integer(part[(i+1)*node.Width:], node.Width)
			return &Uneven{Field: l.Field, Node: n, Length: e - b}
		}
		begin := Integer(part, node.Width)
		if length := l.Column.Planes[n+1].Length[l.Batch]; begin < 0 || begin > length-m*int64(node.Size) {
			return fmt.Errorf("its lists go from element %d to %d of %d", begin, begin+m*int64(node.Size), length)
		}
		if begin != to {
			if err := l.node(n+1, from, to-from); err != nil {
				return err
			}
			from = begin
		}
		to = begin + m*int64(node.Size)
		return nil
	})
	if err != nil {
		return err
	}
	return l.node(n+1, from, to-from)
}

// runs calls do for every run of the count bits from bit first on that are 1:
// all of them where there is no bitmap.
func runs(bitmap []byte, first, count int64, do func(from, n int64) error) error {
	if bitmap == nil {
		return do(0, count)
	}
	set := func(k int64) bool { return bitmap[(first+k)>>3]>>((first+k)&7)&1 == 1 }
	for k := int64(0); k < count; k++ {
		from := k
		for k < count && set(k) {
			k++
		}
		if k > from {
			if err := do(from, k-from); err != nil {
				return err
			}
		}
	}
	return nil
}

// uneven gives the first of the lists between neighbouring offsets that has
// another length, and -1 if there is none.
func uneven(offsets []byte, width, length int) int {
	b := offsets
	if width == 4 {
		for ; len(b) >= 20; b = b[16:] {
			a0, a1, a2, a3, a4 := word(b), word(b[4:]), word(b[8:]), word(b[12:]), word(b[16:])
			n := uint32(length)
			if ((a1-a0)^n)|((a2-a1)^n)|((a3-a2)^n)|((a4-a3)^n) != 0 {
				break
			}
		}
	}
	for ; len(b) >= 2*width; b = b[width:] {
		if Integer(b[width:], width)-Integer(b, width) != int64(length) {
			return (len(offsets) - len(b)) / width
		}
	}
	return -1
}

func word(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
