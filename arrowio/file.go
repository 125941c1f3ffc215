package arrowio

import (
	"context"
	"errors"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// file is an open file of a dataset. Each of its units (see doc.go) is one record
// batch of the dataset.
type file struct {
	*files.File
	*format.Metadata
	member   *union.Member // set by the union of all files
	content  *resident.File
	contents format.Contents
	first    int    // number of its first record batch in the dataset
	records  int64  // in all its batches
	largest  int64  // rows of the largest batch
	encoding string // of its first encoded batch, such as its compression; empty if there is none
}

// openFile opens a file and reads its metadata.
func openFile(ctx context.Context, found *files.File, o Options) (*file, error) {
	b, err := o.Opener.Open(ctx, found.Entry)
	if err != nil {
		return nil, found.Advise(err)
	}
	f := &file{File: found, content: resident.NewFile(b)}
	if f.contents, err = contentsOf(ctx, f.content); err == nil {
		f.Metadata = f.contents.Metadata()
		if !f.Schema.BigEndian {
			return f, nil
		}
		err = status.New(status.Unsupported, "arrowio", "the values are big-endian").
			WithHint("write the file on a little-endian machine")
	}
	_ = b.Close()
	return nil, found.Advise(f.named(err))
}

// columnOf returns the number of a column of the union in the file, and how the file stores its
// field. The number is -1 if all rows are null.
func (f *file) columnOf(column int, field *arrowtype.Field) (number int, as *arrowtype.Field) {
	return f.member.Column(column, field)
}

// end returns the number of the dataset's first record batch after the file.
func (f *file) end() int { return f.first + len(f.Units) }

// scan visits the headers of the first record batches. batches is their number.
func (f *file) scan(ctx context.Context, batches int, visit func(i int, u format.Unit) error) error {
	return f.named(f.contents.Scan(ctx, 0, batches, visit))
}

// readFull fills p from offset on.
func (f *file) readFull(ctx context.Context, p []byte, offset int64) error {
	return f.named(f.content.ReadFull(ctx, p, offset))
}

// named adds the file's name to an error about its content.
func (f *file) named(err error) error {
	var e *status.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), !errors.As(err, &e):
		return blob.ReadError(f.Path, err)
	case e.Attr("path") != nil:
		return err
	}
	named := *e
	named.Op, named.Msg, named.Err = "arrowio", f.Path+": "+e.Msg, err
	named.Attrs = append([]status.Attr(nil), e.Attrs...)
	return named.With("path", f.Path)
}
