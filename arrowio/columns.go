package arrowio

import (
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// columnReader finds the positions of the buffers of some fields in the record
// batches. It handles all fields in one pass, because reading the headers of the
// batches takes longest.
type columnReader struct {
	ctx     context.Context
	d       *Dataset
	fields  []*arrowtype.Field
	numbers []int             // the column of each field in the union
	columns []*buffers.Column // the result, by field
	made    []*buffers.Column // these and their variants
	batches int               // the first batches of the dataset are read, up to this number
}

// load finds the buffers of fields in every record batch, and reads the
// dictionaries of the fields.
func (d *Dataset) load(fields []int) ([]*buffers.Column, error) {
	r := columnReader{ctx: d.life, d: d, batches: d.files[len(d.files)-1].end()}
	for _, i := range fields {
		r.add(d.table.Fields[i], d.columns[i])
	}
	dictionaries := make([][][]*arrowtype.Dictionary, len(d.files))
	err := parallel(len(d.files), func(i int) (err error) {
		if err := r.file(d.files[i]); err != nil {
			return err
		}
		dictionaries[i], err = r.dictionaries(d.files[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, ofFile := range dictionaries {
		for k, list := range ofFile {
			if f := d.files[i]; len(f.Units) > 0 && len(list) > 0 {
				_, c := r.columns[k].Stored(r.fields[k], int32(f.first))
				c.Dictionaries = append(c.Dictionaries, list...)
			}
		}
	}
	r.finish()
	return r.columns, nil
}

// find finds the buffers of one field, which is the column with this number, in the
// first record batches.
func (a *assembly) find(field *arrowtype.Field, number, batches int) (*buffers.Column, error) {
	r := columnReader{ctx: a.ctx, d: a.Dataset, batches: batches}
	r.add(field, number)
	for _, f := range a.files {
		if err := r.file(f); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r.columns[0], nil
}

// add adds a field. It allocates the lists of positions that file fills in, once for each way
// in which files store the field.
func (r *columnReader) add(field *arrowtype.Field, number int) {
	c, ways := r.positions(field, number), map[*arrowtype.Field]*buffers.Variant{}
	for _, f := range r.d.files {
		at, own := f.columnOf(number, field)
		if at >= 0 && own == field {
			continue
		}
		if c.Variants == nil {
			c.Variants = make([]*buffers.Variant, r.batches)
		}
		if at < 0 {
			own = nil
		}
		if ways[own] == nil {
			if ways[own] = (&buffers.Variant{Field: own}); own != nil {
				ways[own].Column = r.positions(own, number)
			}
		}
		for batch := f.first; batch < min(f.end(), r.batches); batch++ {
			c.Variants[batch] = ways[own]
		}
	}
	r.fields, r.numbers, r.columns = append(r.fields, field), append(r.numbers, number), append(r.columns, c)
}

// positions allocates the lists of positions for a field.
func (r *columnReader) positions(field *arrowtype.Field, number int) *buffers.Column {
	c := &buffers.Column{Planes: make([]buffers.Plane, len(field.Levels))}
	inLists := false // the level above has lists with offsets, so the number of elements varies
	for n, level := range field.Levels {
		if r.d.nulls[number].May {
			c.Planes[n].Valid = make([]int64, r.batches)
		}
		if level.Buffer().Bits > 0 {
			c.Planes[n].Data = make([]int64, r.batches)
		}
		if inLists {
			c.Planes[n].Length = make([]int64, r.batches)
		}
		inLists = !level.Direct()
	}
	if field.HasViews() {
		c.Planes[len(c.Planes)-1].Buffers = make([][]buffers.Extent, r.batches)
	}
	r.made = append(r.made, c)
	return c
}

// file finds the buffers in one file. It may be called for several files at a
// time.
func (r *columnReader) file(f *file) error {
	last := min(len(f.Units), r.batches-f.first)
	if last <= 0 {
		return nil
	}
	return f.scan(r.ctx, last, func(i int, u format.Unit) error {
		if want := r.d.table.Index.Rows(f.first + i); u.Rows() != want {
			return status.Errorf(status.DataLoss, "arrowio", "record batch %d has %d rows, but had %d when the file was opened", i, u.Rows(), want).
				WithHint("do not write to files that are open")
		}
		for k, number := range r.numbers {
			if _, c := r.columns[k].Stored(r.fields[k], int32(f.first+i)); c != nil {
				u.SetPositions(c, f.first+i, f.member.Numbers[number])
			}
		}
		return nil
	})
}

// finish drops the positions of validity bitmaps for levels where no record batch
// has nulls.
func (r *columnReader) finish() {
	for _, c := range r.made {
		for n := range c.Planes {
			if !slices.ContainsFunc(c.Planes[n].Valid, func(at int64) bool { return at >= 0 }) {
				c.Planes[n].Valid = nil
			}
		}
	}
}

// dictionaries reads the dictionaries of the fields in one file.
func (r *columnReader) dictionaries(f *file) ([][]*arrowtype.Dictionary, error) {
	all := make([][]*arrowtype.Dictionary, len(r.fields))
	var of, numbers []int
	var fields []*arrowtype.Field
	for k, column := range r.numbers {
		if number, field := f.columnOf(column, r.fields[k]); number >= 0 {
			of, numbers, fields = append(of, k), append(numbers, number), append(fields, field)
		}
	}
	found, err := f.contents.Dictionaries(r.ctx, numbers, fields)
	for i, list := range found {
		for _, d := range list {
			d.From += int32(f.first)
		}
		all[of[i]] = list
	}
	return all, f.named(err)
}
