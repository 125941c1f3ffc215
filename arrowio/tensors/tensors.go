// Package tensors makes a source of the arrays in a file of weights: safetensors (one
// file, or several with an index), .npy and .npz.
//
// The source has one record. Each array is a field, and its row is the whole array, so
// a part of a row is any box of the array. A gather reads the bytes of these parts
// only, and overlapping parts once.
//
// Files need not be trusted. Every length, offset and shape is checked when the file
// is opened. No array shares bytes with another one, and none reaches beyond the file.
// Every byte after the header of safetensors belongs to an array.
package tensors

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/npy"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

const maxArrays = 1 << 20 // in a file, or in all files of an index

// Source is the arrays of one file, or of the files of an index.
type Source struct {
	files     []blob.Blob
	schema    source.Schema
	locations []location // by field
	commits   func() map[string]string
	reads     int // at once
	gap       int // the most unneeded bytes between two reads that are made as one
	calls     *source.Calls
}

// location is where the elements of an array are, in C order and little-endian.
type location struct {
	file   int
	offset int64
	sum    checksum
}

// array is an entry of a header.
type array struct {
	name    string
	typ     dtype.Type
	logical string // the element type, if typ only has its size
	shape   []int
	offset  int64
	bytes   int64
	sum     checksum
	skipped string // why it is not a field, or ""
	stored  string // the name of its type in the file
}

// Open opens a file of arrays. The error is DataLoss for damage, and Unsupported for
// files of another format.
func Open(ctx context.Context, path string) (*Source, error) {
	return OpenFrom(ctx, local.Opener{}, path)
}

// OpenFrom opens a file of arrays of a storage, such as arrowio.OpenerOf returns. Its hints say how many
// reads are made at once, and which gaps between them are read too.
func OpenFrom(ctx context.Context, opener blob.Opener, path string) (*Source, error) {
	s := &Source{reads: 2 * runtime.GOMAXPROCS(0), gap: gap} // a read either waits for the disk or copies
	if hints := opener.Hints(); hints.Fetches() {
		s.reads, s.gap = hints.AtOnce, int(hints.Gap)
	}
	if named, ok := opener.(interface{ Commits() map[string]string }); ok {
		s.commits = named.Commits
	}
	s.calls = source.NewCalls("tensors", "file of arrays", s.closeFiles)
	if err := s.read(ctx, opener, path); err != nil {
		_ = s.closeFiles()
		return nil, err
	}
	return s, nil
}

// Commits returns the commits that names stood for when the files were opened: see arrowio.Dataset.
func (s *Source) Commits() map[string]string {
	if s.commits == nil {
		return nil
	}
	return s.commits()
}

func (s *Source) closeFiles() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// read opens the files and lists their arrays.
func (s *Source) read(ctx context.Context, opener blob.Opener, path string) error {
	f, err := s.open(ctx, opener, path)
	if err != nil {
		return err
	}
	if strings.HasSuffix(path, ".json") {
		dir, _ := opener.Split(path)
		return s.readIndex(ctx, opener, f, dir)
	}
	arrays, err := readHeader(ctx, f)
	if err != nil {
		return err
	}
	return s.add(arrays, 0)
}

// open opens one more file.
func (s *Source) open(ctx context.Context, opener blob.Opener, path string) (blob.Blob, error) {
	e, err := opener.Stat(ctx, path)
	if err != nil {
		return nil, err
	}
	if e.Dir {
		return nil, status.Errorf(status.Unsupported, "tensors", "%s: this is a directory", path).
			WithHint("give one file of it, or the index: model.safetensors.index.json").With("path", path)
	}
	f, err := opener.Open(ctx, e)
	if err == nil {
		s.files = append(s.files, f)
	}
	return f, err
}

// readHeader lists the arrays of a file. The first bytes of the file determine its format.
func readHeader(ctx context.Context, f blob.Blob) ([]array, error) {
	head := make([]byte, min(f.Size(), 16))
	if err := read(ctx, f, head, 0); err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(string(head), npy.Magic):
		a, err := readNPY(ctx, f, 0, f.Size(), stem(f.Name()))
		return []array{a}, err
	case strings.HasPrefix(string(head), "PK\x03\x04"), strings.HasPrefix(string(head), "PK\x05\x06"):
		return readNPZ(ctx, f)
	case strings.HasPrefix(string(head), "version https:"):
		return nil, unsupported(f, "this is a pointer of Git LFS, not the file").WithHint("fetch the file: git lfs pull")
	}
	return readSafetensors(ctx, f, head)
}

// stem returns the name of a file without its directory and its suffix.
func stem(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}

// add adds arrays of a file to the schema.
func (s *Source) add(arrays []array, file int) error {
	for _, a := range arrays {
		if a.name == "" {
			a.skipped = "it has no name"
		}
		if a.skipped != "" {
			s.schema.Skipped = append(s.schema.Skipped, source.Skipped{Name: a.name, Type: a.stored, Reason: a.skipped})
			continue
		}
		s.schema.Fields = append(s.schema.Fields, source.Field{Name: a.name, Type: a.typ, Shape: a.shape, Logical: a.logical})
		s.locations = append(s.locations, location{file, a.offset, a.sum})
	}
	if n := len(s.schema.Fields); n > maxArrays {
		return status.Errorf(status.ResourceExhausted, "tensors", "%s: there are more than %d arrays", s.files[0].Name(), maxArrays)
	}
	return nil
}

// read fills p from an offset on.
func read(ctx context.Context, f blob.Blob, p []byte, offset int64) error {
	if err := blob.ReadFull(ctx, f, p, offset); err != nil {
		return unread(f, err, int64(len(p)), offset)
	}
	return nil
}

// unread returns the error of a read of n bytes.
func unread(f blob.Blob, err error, n, offset int64) error {
	if _, known := errors.AsType[*status.Error](err); known {
		return err
	}
	if err := f.Check(); err != nil {
		return err
	}
	return status.Errorf(status.IO, "tensors", "%s: %d bytes at byte %d cannot be read: %w", f.Name(), n, offset, err).With("path", f.Name())
}

func damaged(f blob.Blob, format string, args ...any) *status.Error {
	return fault(status.DataLoss, f, format, args...).WithHint("write or fetch the file again")
}

// smaller is what to do about a file of too many arrays.
const smaller = "write the arrays to several files"

func unsupported(f blob.Blob, format string, args ...any) *status.Error {
	return fault(status.Unsupported, f, format, args...)
}

func fault(code status.Code, f blob.Blob, format string, args ...any) *status.Error {
	return status.Errorf(code, "tensors", "%s: %s", f.Name(), fmt.Sprintf(format, args...)).With("path", f.Name())
}

// Schema implements source.Source.
func (s *Source) Schema() source.Schema { return s.schema }

// Len implements source.Source.
func (*Source) Len() int64 { return 1 }

// Fingerprint hashes names, types and shapes. It reads no element, because a file may
// hold far more arrays than a process loads.
func (s *Source) Fingerprint(context.Context) (out source.Fingerprint, err error) {
	if err := s.calls.Enter(); err != nil {
		return out, err
	}
	defer s.calls.Leave()
	hash := sha256.New()
	for _, field := range s.schema.Fields {
		fmt.Fprintf(hash, "%q %v %q %v\n", field.Name, field.Type, field.Logical, field.Shape)
	}
	copy(out[:], hash.Sum(nil))
	return out, nil
}

// Facts implements source.Source.
func (s *Source) Facts() source.Facts { return source.Facts{Coverage: s.coverage} }

func (s *Source) coverage() (hashed, of int64) {
	for _, field := range s.schema.Fields {
		of += int64(field.RowBytes())
	}
	return 0, of
}

// Close implements source.Source.
func (s *Source) Close() error { return s.calls.Close(source.Patience) }
