package arrowio

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/arrowmeta"
	"github.com/meshfeed/meshfeed/core/status"
)

// file is an open file and its metadata.
type file struct {
	path    string
	content *resident.File
	meta    *arrowmeta.File
	first   int                   // number of its first record batch in the dataset
	records int64                 // in all its batches
	largest int64                 // rows of the largest batch
	packing arrowmeta.Compression // of its first compressed batch
}

// openFile opens a file and reads its schema and the places of its batches.
func openFile(path string, o Options) (*file, error) {
	b, err := o.openFile(path)
	if err != nil {
		return nil, openError(path, err)
	}
	f := &file{path: path, content: b}
	if f.meta, err = arrowmeta.Read(b, b.Size()); err != nil {
		b.Close()
		return nil, f.foreign(f.named(err))
	}
	if f.meta.Schema.BigEndian {
		b.Close()
		return nil, status.Errorf(status.Unsupported, "arrowio", "%s: the values are big-endian", path).
			WithHint("write the file on a little-endian machine").With("path", path)
	}
	return f, nil
}

// foreign adds to the error for a Parquet file how to convert it.
func (f *file) foreign(err error) error {
	var e *status.Error
	if errors.As(err, &e) && e.Code == status.Unsupported && strings.HasSuffix(e.Msg, "Parquet file") {
		return e.WithHint(parquetHint)
	}
	return err
}

// batches visits the headers of the record batches.
func (f *file) batches(visit func(i int, b *arrowmeta.RecordBatch) error) error {
	return f.named(f.meta.Scan(f.content, 0, len(f.meta.Batches), visit))
}

// openError is the error for a file that cannot be opened or read.
func openError(path string, err error) error {
	var known *status.Error
	if errors.As(err, &known) {
		return err
	}
	e := status.Errorf(status.IO, "arrowio", "%s: %w", path, err).With("path", path)
	var cause *fs.PathError
	if errors.As(err, &cause) {
		e.Msg, e.Err = path+": "+cause.Err.Error(), cause.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		e.Code, e.Msg = status.NotFound, path+": there is no such file or directory"
	}
	return e
}

// named adds the file's name to an error about its content.
func (f *file) named(err error) error {
	var e *status.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return openError(f.path, err)
	case e.Attr("path") != nil:
		return err
	}
	named := *e
	named.Op, named.Msg, named.Err = "arrowio", f.path+": "+e.Msg, err
	named.Attrs = append([]status.Attr(nil), e.Attrs...)
	return named.With("path", f.path)
}
