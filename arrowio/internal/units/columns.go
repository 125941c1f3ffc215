package units

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
	files   *Files
	fields  []Field
	columns []*buffers.Column // the result, by field
	all     []*buffers.Column // these and their variants
	batches int               // the first batches of the dataset are read, up to this number
}

// Columns implements table.Store: it finds the buffers of fields in every record batch, and reads
// the dictionaries of the fields.
func (s *Files) Columns(numbers []int) ([]*buffers.Column, error) {
	r := s.newReader(numbers)
	r.ctx = s.life
	dictionaries := make([][][]*arrowtype.Dictionary, len(s.List))
	err := s.Reads.Each(len(s.List), func(i int) (err error) {
		if err := r.file(s.List[i]); err != nil {
			return err
		}
		dictionaries[i], err = r.dictionaries(s.List[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, ofFile := range dictionaries {
		for k, list := range ofFile {
			if f := s.List[i]; len(f.Units) > 0 && len(list) > 0 {
				_, c := r.columns[k].Stored(r.fields[k].Field, int32(f.First))
				c.Dictionaries = append(c.Dictionaries, list...)
			}
		}
	}
	r.finish()
	return r.columns, nil
}

// EmptyColumns returns columns of fields with room for the positions in every record batch, and
// without dictionaries.
func (s *Files) EmptyColumns(numbers []int) []*buffers.Column { return s.newReader(numbers).columns }

// newReader returns a reader of fields in all record batches.
func (s *Files) newReader(numbers []int) *columnReader {
	r := &columnReader{files: s, batches: s.Batches()}
	for _, i := range numbers {
		r.add(s.Fields[i])
	}
	return r
}

// FirstColumn finds the buffers of a field in the first record batches.
func (s *Files) FirstColumn(ctx context.Context, field Field, batches int) (*buffers.Column, error) {
	r := &columnReader{ctx: ctx, files: s, batches: batches}
	r.add(field)
	for _, f := range s.List {
		if err := r.file(f); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r.columns[0], nil
}

// add adds a field. It allocates the lists of positions that file fills in, once for each way
// in which files store the field.
func (r *columnReader) add(field Field) {
	c, ways := r.positions(field), map[*arrowtype.Field]*buffers.Variant{}
	for _, f := range r.files.List {
		at, own := f.Column(field)
		if at >= 0 && own == field {
			continue
		}
		if c.Variants == nil {
			c.Variants = make([]*buffers.Variant, r.batches)
		}
		if at < 0 {
			own.Field = nil
		}
		if ways[own.Field] == nil {
			if ways[own.Field] = (&buffers.Variant{Field: own.Field}); own.Field != nil {
				ways[own.Field].Column = r.positions(own)
			}
		}
		for batch := f.First; batch < min(f.End(), r.batches); batch++ {
			c.Variants[batch] = ways[own.Field]
		}
	}
	r.fields, r.columns = append(r.fields, field), append(r.columns, c)
}

// positions allocates the lists of positions for a field.
func (r *columnReader) positions(field Field) *buffers.Column {
	c := &buffers.Column{Planes: make([]buffers.Plane, len(field.Levels))}
	inLists := false // the level above has lists with offsets, so the number of elements varies
	for n, level := range field.Levels {
		if r.files.Nulls[field.Column].May {
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
	r.all = append(r.all, c)
	return c
}

// file finds the buffers in one file. It may be called for several files at a
// time.
func (r *columnReader) file(f *File) error {
	last := min(len(f.Units), r.batches-f.First)
	if last <= 0 {
		return nil
	}
	return f.Scan(r.ctx, last, func(i int, u format.Unit) error {
		if want := r.files.Index.Rows(f.First + i); u.Rows() != want {
			return status.Errorf(status.DataLoss, "arrowio", "record batch %d has %d rows, but had %d when the file was opened", i, u.Rows(), want).
				WithHint("do not write to files that are open")
		}
		for k, field := range r.fields {
			if _, c := r.columns[k].Stored(field.Field, int32(f.First+i)); c != nil {
				u.SetPositions(c, f.First+i, f.Member.Numbers[field.Column])
			}
		}
		return nil
	})
}

// finish drops the positions of validity bitmaps for levels where no record batch
// has nulls.
func (r *columnReader) finish() {
	for _, c := range r.all {
		for n := range c.Planes {
			if !slices.ContainsFunc(c.Planes[n].Valid, func(at int64) bool { return at >= 0 }) {
				c.Planes[n].Valid = nil
			}
		}
	}
}

// dictionaries reads the dictionaries of the fields in one file.
func (r *columnReader) dictionaries(f *File) ([][]*arrowtype.Dictionary, error) {
	all := make([][]*arrowtype.Dictionary, len(r.fields))
	var of, numbers []int
	var fields []*arrowtype.Field
	for k, field := range r.fields {
		if number, as := f.Column(field); number >= 0 {
			of, numbers, fields = append(of, k), append(numbers, number), append(fields, as.Field)
		}
	}
	found, err := f.Contents.Dictionaries(r.ctx, numbers, fields)
	for i, list := range found {
		for _, d := range list {
			d.From += int32(f.First)
		}
		all[of[i]] = list
	}
	return all, f.Named(err)
}
