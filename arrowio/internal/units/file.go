package units

import (
	"context"
	"errors"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/core/status"
)

// File is an open file of a dataset. Each of its units is one record batch of the dataset.
type File struct {
	*files.File
	*format.Metadata
	Member   *union.Member // set by the union of all files
	Content  *resident.File
	Contents format.Contents
	Stamp    string // changes with the content, by the word of the storage; empty if samples tell

	// Number sets these.
	First    int    // number of its first record batch in the dataset
	Records  int64  // in all its batches
	Largest  int64  // rows of the largest batch
	Encoding string // such as the compression of its first encoded batch; empty if all are stored plainly
}

// Column returns the number of a field's column in the file, and how the file stores the field.
// The number is -1 if all rows are null.
func (f *File) Column(field Field) (number int, as Field) {
	number, as.Field = f.Member.Column(field.Column, field.Field)
	as.Column = field.Column
	return number, as
}

// End returns the number of the dataset's first record batch after the file.
func (f *File) End() int { return f.First + len(f.Units) }

// Scan visits the headers of the first record batches. batches is their number.
func (f *File) Scan(ctx context.Context, batches int, visit func(i int, u format.Unit) error) error {
	return f.Named(f.Contents.Scan(ctx, 0, batches, visit))
}

// ReadFull fills p from offset on.
func (f *File) ReadFull(ctx context.Context, p []byte, offset int64) error {
	return f.Named(f.Content.ReadFull(ctx, p, offset))
}

// decoding returns the decoding of a field of a record batch of the dataset, as the file stores
// the field.
func (f *File) decoding(ctx context.Context, batch int32, field Field) (format.Decoding, error) {
	number, as := f.Column(field)
	d, err := f.Contents.Decoding(ctx, int(batch)-f.First, number, as.Field)
	return d, f.Named(err)
}

// Size returns about how many bytes a field of a record batch of the dataset has decoded, or -1 if only a decoding
// tells.
func (f *File) Size(ctx context.Context, batch int, field Field) (int64, error) {
	number, as := f.Column(field)
	if number < 0 {
		return 0, nil
	}
	bytes, err := f.Contents.Size(ctx, batch-f.First, number, as.Field)
	return bytes, f.Named(err)
}

// note adds one record batch to the counts of the file, and to what is known of nulls.
func (f *File) note(u format.Unit, nulls []buffers.Nulls) {
	f.Records += u.Rows()
	f.Largest = max(f.Largest, u.Rows())
	if f.Encoding == "" {
		f.Encoding = u.Encoding()
	}
	for c, number := range f.Member.Numbers {
		if number >= 0 {
			nulls[c] = nulls[c].Or(u.Nulls(number))
		} else if u.Rows() > 0 {
			nulls[c] = buffers.Nulls{May: true, Has: true}
		}
	}
}

// Named adds the file's name to an error about its content.
func (f *File) Named(err error) error {
	e, ok := errors.AsType[*status.Error](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), !ok:
		return blob.ReadError(f.Path, err)
	case e.Attr("path") != nil:
		return err
	}
	named := *e
	named.Op, named.Msg, named.Err = "arrowio", f.Path+": "+e.Msg, err
	named.Attrs = append([]status.Attr(nil), e.Attrs...)
	return named.With("path", f.Path)
}
