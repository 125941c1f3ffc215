package table

import (
	"slices"
)

// copies holds rows that cannot be copied from where they lie: with nulls in
// them, or from a record batch that has to be decoded. Null elements are zero
// until the fill value is written over them in the destination.
type copies struct {
	list  []copiedRow
	bytes []byte
	nulls []bool // by value

	isNull  func(element int) bool
	current []bool
	each    int // elements per value
}

// copiedRow is a record with its row in copies.bytes.
type copiedRow struct {
	record int32 // index into the step's records
	batch  int32
	nulls  []bool // nil if there are none
}

func (c *copies) reset() { c.list = c.list[:0] }

// null says whether an element of the current row is null.
func (c *copies) null(element int) bool { return c.current == nil || c.current[element/c.each] }

// make copies the rows of all records that need it, batch after batch, and
// sets their addresses.
func (c *copies) make(w *walk) error {
	for i, st := range w.state {
		if st == copied {
			c.list = append(c.list, copiedRow{record: int32(i), batch: w.s.batch[i]})
		}
	}
	if len(c.list) == 0 {
		return nil
	}
	if w.s.encoded {
		slices.SortStableFunc(c.list, func(a, b copiedRow) int { return int(a.batch) - int(b.batch) })
	}
	f := w.r.field
	size, values := f.RowBytes(), f.values()
	c.bytes = slices.Grow(c.bytes[:0], size*len(c.list))[:size*len(c.list)]
	c.nulls = slices.Grow(c.nulls[:0], values*len(c.list))[:values*len(c.list)]
	clear(c.bytes)
	clear(c.nulls)
	rc := rowCopier{w: w, field: f, size: f.valueBytes()}
	for k := range c.list {
		row := &c.list[k]
		if err := rc.open(row); err != nil {
			return err
		}
		rc.dst = c.bytes[k*size : (k+1)*size]
		rc.nulls, rc.any = c.nulls[k*values:(k+1)*values], false
		if err := rc.node(0, w.s.row[row.record], 1, 0); err != nil {
			return err
		}
		if rc.any {
			row.nulls = rc.nulls
		}
		w.s.address[row.record] = rc.address()
	}
	return nil
}

// fill writes the fill value over the nulls of all jobs.
func (w *walk) fill() {
	c := &w.copies
	c.each = w.r.field.elementsPerValue()
	for i, st := range w.state {
		if st == null {
			c.current = nil
			w.fillRow(i)
		}
	}
	for k := range c.list {
		if c.list[k].nulls != nil {
			c.current = c.list[k].nulls
			w.fillRow(int(c.list[k].record))
		}
	}
}

// fillRow fills the nulls of one record in all jobs.
func (w *walk) fillRow(i int) {
	for k, j := range w.s.jobs {
		if i < j.Rows[0] || i >= j.Rows[1] {
			continue
		}
		p := w.s.g.programs[w.s.part[k]]
		at := (i - j.Rows[0]) * p.Bytes()
		p.FillNulls(j.Dst[at:at+p.Bytes()], w.copies.isNull)
	}
}

// values gives the number of values of a row; valueBytes their size, 0 for
// bits; elementsPerValue how many elements of the array a value is.
func (f *Field) values() int {
	n := 1
	for _, node := range f.Nodes[:len(f.Nodes)-1] {
		n *= node.Size
	}
	return n
}

func (f *Field) valueBytes() int {
	if last := f.Nodes[len(f.Nodes)-1]; last.Kind == Values {
		return last.Size
	}
	return f.Values.RowBytes()
}

func (f *Field) elementsPerValue() int {
	return max(1, f.valueBytes()/f.Type.Size())
}
