package table

import (
	"context"
	"sort"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// rowState says how far a row can be followed.
type rowState uint8

const (
	following rowState = iota
	null               // the whole row is null: zeros, then the fill value
	copied             // the row is put together in scratch memory
	done               // the address is known, or the record is -1
)

// walk follows the rows of one field from node to node.
type walk struct {
	s     *step
	r     *reader
	start []int64 // place in the current node, in elements
	state []rowState

	pick   []int32 // records that the next fetch is for
	spans  []resident.Span
	to     []uintptr
	leases []Lease
	stop   func()          // of ctx
	ctx    context.Context // ends with the gather's and with the table's

	copies copies
}

// release gives the leases back.
func (w *walk) release() {
	for _, l := range w.leases {
		l.Release()
	}
	clear(w.leases)
	w.leases = w.leases[:0]
	if w.stop != nil {
		w.stop()
	}
	w.stop, w.ctx = nil, nil
	w.copies.reset()
}

// addresses finds the address of every record's row.
func (w *walk) addresses(r *reader) error {
	w.begin(r)
	count := int64(1)
	for n := range r.field.Nodes {
		node, plane := &r.field.Nodes[n], &r.column.Planes[n]
		w.shift(plane)
		if err := w.validity(plane, count); err != nil {
			return err
		}
		var err error
		switch node.Kind {
		case Fixed:
			for i := range w.start {
				w.start[i] *= int64(node.Size)
			}
			count *= int64(node.Size)
		case List:
			err = w.lists(n, count)
			count *= int64(node.Size)
		case Coded:
			err = w.codes(node, plane, count)
		case Values:
			err = w.values(node, plane, count)
		}
		if err != nil {
			return err
		}
	}
	return w.copies.make(w)
}

// begin sets the places of the records in the column.
func (w *walk) begin(r *reader) {
	s, t := w.s, w.s.g.table
	w.r = r
	if cap(w.start) < len(s.row) {
		w.start, w.state = make([]int64, len(s.row)), make([]rowState, len(s.row))
	}
	w.start, w.state = w.start[:len(s.row)], w.state[:len(s.row)]
	copy(w.start, s.row)
	for i, b := range s.batch {
		w.state[i] = following
		switch {
		case b < 0:
			w.state[i], s.address[i] = done, 0
		case s.encoded && t.Store.Encoded(t.File(b)):
			w.state[i] = copied
		}
	}
}

// shift skips the elements at the front of a node's buffers.
func (w *walk) shift(p *Plane) {
	if p.Shift == nil {
		return
	}
	for i, b := range w.s.batch {
		if b >= 0 {
			w.start[i] += p.Shift[b]
		}
	}
}

// choose picks the records that can still be followed.
func (w *walk) choose() {
	w.pick = w.pick[:0]
	for i, st := range w.state {
		if st == following {
			w.pick = append(w.pick, int32(i))
		}
	}
}

// fetch gives the picked records the addresses of their count + extra elements
// of so many bits: of the byte in which the first one begins.
func (w *walk) fetch(position []int64, bits, count, extra int64) error {
	s, t := w.s, w.s.g.table
	w.spans = w.spans[:0]
	waiting := w.pick[:0]
	for _, i := range w.pick {
		b := s.batch[i]
		from := w.start[i] * bits
		at := position[b] + from>>3
		if s.base[i] != 0 || t.Store == nil {
			s.address[i] = s.base[i] + uintptr(at)
			continue
		}
		length := (from+(count+extra)*bits+7)>>3 - from>>3
		w.spans = append(w.spans, resident.Span{File: int(t.File(b)), Offset: at, Length: int(length)})
		waiting = append(waiting, i)
	}
	if len(w.spans) == 0 {
		return nil
	}
	if err := w.acquire(); err != nil {
		return err
	}
	for k, i := range waiting {
		s.address[i] = w.to[k]
	}
	return nil
}

// acquire gets the addresses of w.spans into w.to.
func (w *walk) acquire() error {
	if w.ctx == nil {
		w.ctx, w.stop = w.s.g.table.Gate.Join(w.s.ctx)
	}
	if cap(w.to) < len(w.spans) {
		w.to = make([]uintptr, len(w.spans))
	}
	w.to = w.to[:len(w.spans)]
	lease, err := w.s.g.table.Store.Acquire(w.ctx, w.spans, w.to)
	if err != nil {
		return err
	}
	w.leases = append(w.leases, lease)
	return nil
}

// validity sorts out rows with nulls in count elements of a node.
func (w *walk) validity(p *Plane, count int64) error {
	if p.Valid == nil {
		return nil
	}
	w.choose()
	with := w.pick[:0]
	for _, i := range w.pick {
		if p.Valid[w.s.batch[i]] >= 0 {
			with = append(with, i)
		}
	}
	w.pick = with
	if err := w.fetch(p.Valid, 1, count, 0); err != nil {
		return err
	}
	w.choose()
	for _, i := range w.pick {
		if p.Valid[w.s.batch[i]] < 0 {
			continue
		}
		first := w.start[i] & 7
		if allSet(view(w.s.address[i], (first+count+7)>>3), first, count) {
			continue
		}
		w.state[i] = copied
		if count == 1 {
			w.state[i], w.s.address[i] = null, 0
		}
	}
	return nil
}

// lists follows the picked records into their lists, which must all have the
// node's size and lie one after the other.
func (w *walk) lists(n int, count int64) error {
	node, child := &w.r.field.Nodes[n], &w.r.column.Planes[n+1]
	w.choose()
	if err := w.fetch(w.r.column.Planes[n].Data, int64(8*node.Width), count, 1); err != nil {
		return err
	}
	w.choose()
	for _, i := range w.pick {
		b := w.s.batch[i]
		offsets := view(w.s.address[i], (count+1)*int64(node.Width))
		first := Integer(offsets, node.Width)
		for at := first; len(offsets) > node.Width; {
			offsets = offsets[node.Width:]
			next := Integer(offsets, node.Width)
			if length := next - at; length != int64(node.Size) {
				return w.ragged(int(i), n, length)
			}
			at = next
		}
		if first < 0 || first > child.Length[b]-count*int64(node.Size) {
			return w.damaged(int(i), "its list begins at element %d of %d", first, child.Length[b])
		}
		w.start[i] = first
	}
	return nil
}

// codes looks the rows up in the dictionary.
func (w *walk) codes(node *Node, p *Plane, count int64) error {
	w.choose()
	if count > 1 {
		for _, i := range w.pick {
			w.state[i] = copied
		}
		return nil
	}
	if err := w.fetch(p.Data, int64(8*node.Width), 1, 0); err != nil {
		return err
	}
	w.choose()
	for _, i := range w.pick {
		row, err := w.lookUp(int(i), node, view(w.s.address[i], int64(node.Width)))
		if err != nil {
			return err
		}
		w.state[i], w.s.address[i] = done, address(row)
	}
	return nil
}

// lookUp gives the row of the dictionary that an index stands for.
func (w *walk) lookUp(i int, node *Node, index []byte) ([]byte, error) {
	d := w.r.column.dictionary(w.s.batch[i])
	code := Integer(index, node.Width)
	if !node.Signed && node.Width < 8 {
		code &= 1<<(8*node.Width) - 1
	}
	if code < 0 || code >= d.Len {
		return nil, w.damaged(i, "its index %d lies outside the dictionary of %d values", code, d.Len)
	}
	size := int64(w.r.field.Values.RowBytes())
	return d.Values[code*size : (code+1)*size], nil
}

// values gives the addresses of the rows' values.
func (w *walk) values(node *Node, p *Plane, count int64) error {
	w.choose()
	if node.Size > 0 {
		return w.fetch(p.Data, int64(8*node.Size), count, 0)
	}
	if err := w.fetch(p.Data, 1, count, 0); err != nil {
		return err
	}
	w.choose()
	for _, i := range w.pick {
		w.s.address[i] = gather.BitAddress(w.s.address[i], w.start[i]&7)
	}
	return nil
}

// dictionary gives the dictionary that a record batch uses: the last that
// begins at or before it.
func (c *Column) dictionary(batch int32) *Dictionary {
	i := sort.Search(len(c.Dictionaries), func(i int) bool { return c.Dictionaries[i].From > batch })
	if i == 0 {
		return &Dictionary{}
	}
	return c.Dictionaries[i-1]
}
