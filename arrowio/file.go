package arrowio

import (
	"context"
	"errors"

	"github.com/meshfeed/meshfeed/arrowio/internal/manifest"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/status"
)

// file is an open file of a dataset. Each of its units (see doc.go) is one record
// batch of the dataset.
type file struct {
	*metadata
	member    *member // set by the union of all files
	path      string
	partition partition
	content   *resident.File
	contents  contents
	listed    *manifest.File // in the manifest of a conversion; nil if there is none
	first     int            // number of its first record batch in the dataset
	records   int64          // in all its batches
	expected  int64          // records by the list of files of the directory; 0 if it does not say
	largest   int64          // rows of the largest batch
	encoding  string         // of its first encoded batch, such as its compression; empty if there is none
}

// openFile opens a file and reads its metadata.
func openFile(ctx context.Context, c choice, o Options) (*file, error) {
	b, err := o.opener.Open(ctx, c.path)
	if err != nil {
		return nil, c.advise(err)
	}
	f := &file{path: c.path, partition: c.partition, expected: c.records, content: resident.NewFile(b), listed: c.listed}
	if f.contents, err = contentsOf(ctx, f.content); err == nil {
		f.metadata = f.contents.metadata()
		if !f.schema.BigEndian {
			return f, nil
		}
		err = status.New(status.Unsupported, "arrowio", "the values are big-endian").
			WithHint("write the file on a little-endian machine")
	}
	_ = b.Close()
	return nil, c.advise(f.named(err))
}

// advise replaces the hint of an error if the file is missing or has another format.
func (c choice) advise(err error) error {
	var e *status.Error
	if !errors.As(err, &e) {
		return err
	}
	_, foreign := e.Attr("format").(string)
	switch {
	case c.foreign != "" && foreign:
		return e.WithHint("%s", c.foreign)
	case c.missing != "" && e.Code == status.NotFound:
		return e.WithHint("%s", c.missing)
	}
	return err
}

// end returns the number of the dataset's first record batch after the file.
func (f *file) end() int { return f.first + len(f.units) }

// scan visits the headers of the first record batches. batches is their number.
func (f *file) scan(ctx context.Context, batches int, visit func(i int, u unit) error) error {
	return f.named(f.contents.scan(ctx, 0, batches, visit))
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
		return readError(f.path, err)
	case e.Attr("path") != nil:
		return err
	}
	named := *e
	named.Op, named.Msg, named.Err = "arrowio", f.path+": "+e.Msg, err
	named.Attrs = append([]status.Attr(nil), e.Attrs...)
	return named.With("path", f.path)
}

// readError returns the error for a file that cannot be read.
func readError(path string, err error) error {
	for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, ended) {
			e := &status.Error{Code: status.CodeOf(ended), Op: "arrowio", Msg: path + ": the read was cancelled", Err: err}
			return e.With("path", path)
		}
	}
	return status.Errorf(status.IO, "arrowio", "%s: %w", path, err).With("path", path)
}
