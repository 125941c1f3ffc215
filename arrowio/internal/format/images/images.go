// Package images reads a folder with a folder of images for each class as a format of a dataset, as
// ImageFolder of torchvision does. A record is an image: its bytes ("image"), the number of its class
// ("label"), and its name below the folder ("path"). Nothing is decoded.
//
// A [Folder] is one blob: the bytes of all images, one after the other, and behind them what Arrow needs to
// find them. Only sizes and versions are read when it is opened (find.go). A read opens the images that it
// needs, and closes them. A unit is a run of images of about 8 MiB.
package images

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sort"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

const unitBytes = 8 << 20

// Folder is the images of a folder as a blob. Behind their bytes lie, as Arrow's buffers, the ends of the
// images, their classes, the ends of their names, and the names.
type Folder struct {
	opener   blob.Opener
	dir      string
	classes  []string
	versions []string // by image
	bytes    int64
	tail     []byte
	names    int64 // where the names begin in the tail
}

// Open lists a folder.
func Open(ctx context.Context, opener blob.Opener, dir string) (*Folder, error) {
	f := &Folder{opener: opener, dir: dir, tail: make([]byte, 8)}
	classes, places, err := f.find(ctx)
	if err != nil {
		return nil, err
	}
	f.classes = classes
	names, ends, labels := []byte(nil), make([]byte, 8), []byte(nil)
	for _, p := range places {
		for _, i := range p.images {
			f.bytes += i.size
			f.tail = binary.LittleEndian.AppendUint64(f.tail, uint64(f.bytes))
			labels = binary.LittleEndian.AppendUint64(labels, uint64(p.class))
			names = append(append(append(names, p.name...), '/'), i.name...)
			ends = binary.LittleEndian.AppendUint64(ends, uint64(len(names)))
			f.versions = append(f.versions, i.version)
		}
	}
	f.tail = append(append(f.tail, labels...), ends...)
	f.names = int64(len(f.tail))
	f.tail = append(f.tail, names...)
	return f, nil
}

func (f *Folder) count() int64 { return int64(len(f.versions)) }

// number returns an integer of the tail.
func (f *Folder) number(i int64) int64 { return int64(binary.LittleEndian.Uint64(f.tail[8*i:])) }

// start and end return where an image lies.
func (f *Folder) start(i int) int64 { return f.number(int64(i)) }
func (f *Folder) end(i int) int64   { return f.number(int64(i) + 1) }

// name returns the name of an image below the folder.
func (f *Folder) name(i int) string {
	at := 2*f.count() + 1 + int64(i)
	return string(f.tail[f.names+f.number(at) : f.names+f.number(at+1)])
}

// Name implements blob.Blob.
func (f *Folder) Name() string { return f.dir }

// Size implements blob.Blob.
func (f *Folder) Size() int64 { return f.bytes + int64(len(f.tail)) }

// Identity implements blob.Blob.
func (f *Folder) Identity() string { return f.opener.Full(f.dir) + "\n" + f.Version() }

// Version implements blob.Versioned.
func (f *Folder) Version() string {
	h := sha256.New()
	_, _ = h.Write(f.tail) // never fails
	for _, v := range f.versions {
		fmt.Fprintf(h, "%q\n", v)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ReadAt implements blob.Blob.
func (f *Folder) ReadAt(ctx context.Context, p []byte, offset int64) (n int, err error) {
	for n < len(p) && offset+int64(n) < f.bytes {
		at := offset + int64(n)
		i := sort.Search(len(f.versions), func(i int) bool { return f.end(i) > at })
		piece := p[n:min(int64(len(p)), int64(n)+f.end(i)-at)]
		if err := f.read(ctx, i, piece, at-f.start(i)); err != nil {
			return n, err
		}
		n += len(piece)
	}
	if n < len(p) {
		n += copy(p[n:], f.tail[min(offset+int64(n)-f.bytes, int64(len(f.tail))):])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read reads bytes of an image, which it opens and closes.
func (f *Folder) read(ctx context.Context, i int, p []byte, offset int64) error {
	b, err := f.open(ctx, i)
	if err != nil {
		return err
	}
	defer b.Close()
	if n, err := b.ReadAt(ctx, p, offset); n < len(p) {
		return cmp.Or(b.Check(), blob.ReadError(b.Name(), cmp.Or(err, io.ErrUnexpectedEOF)))
	}
	return b.Check()
}

// Check implements blob.Blob. A read checks the images that it opens.
func (*Folder) Check() error { return nil }

// Close implements blob.Blob.
func (*Folder) Close() error { return nil }

// FolderOf returns the folder that a file reads from, or nil.
func FolderOf(content *resident.File) *Folder {
	f, _ := content.Blob.(*Folder)
	return f
}

// Open returns the contents of a file with the folder.
func (f *Folder) Open(content *resident.File) (format.Contents, error) {
	c := &file{content: content, of: f}
	type feature struct {
		Kind  string   `json:"_type"`
		Names []string `json:"names"`
	}
	features, err := json.Marshal(map[string]any{"info": map[string]any{"features": map[string]any{"label": feature{"ClassLabel", f.classes}}}})
	if err != nil {
		return nil, err
	}
	c.Facts = format.Metadata{Format: "images", Located: []bool{true, true, true}, Schema: &arrowmeta.Schema{
		Fields: []arrowmeta.Field{
			{Name: "image", Type: arrowmeta.Type{Kind: arrowmeta.LargeBinary}},
			{Name: "label", Type: arrowmeta.Type{Kind: arrowmeta.Int, BitWidth: 64, Signed: true}},
			{Name: "path", Type: arrowmeta.Type{Kind: arrowmeta.LargeString}},
		},
		Metadata: arrowmeta.Metadata{{Key: "huggingface", Value: string(features)}},
	}}
	for first := 0; first < len(f.versions); {
		last := first + 1
		for last < len(f.versions) && f.end(last)-f.start(first) <= unitBytes {
			last++
		}
		c.units = append(c.units, unit{of: f, first: int64(first), rows: int64(last - first)})
		c.Facts.Units = append(c.Facts.Units, resident.Extent{Offset: f.start(first), Length: f.start(last) - f.start(first)})
		first = last
	}
	c.Facts.Digest = sha256.Sum256(fmt.Appendf(nil, "images 1 %q %x", f.classes, sha256.Sum256(f.tail)))
	return c, nil
}

// file is the contents of a folder.
type file struct {
	format.Plain
	content *resident.File
	of      *Folder
	units   []unit
}

// Scan implements format.Contents. It reads nothing.
func (c *file) Scan(_ context.Context, first, last int, visit func(i int, u format.Unit) error) error {
	return format.Visit(first, last, func(i int) format.Unit { return &c.units[i] }, visit)
}

// Verify implements format.Contents. It reads all images, which may have any bytes.
func (c *file) Verify(ctx context.Context, _ []int, progress func(bytes int64)) error {
	return format.ReadAll(ctx, c.content, progress)
}

// unit is a run of images. It implements format.Unit.
type unit struct {
	of          *Folder
	first, rows int64
}

func (u *unit) Rows() int64 { return u.rows }

func (*unit) Nulls(int) buffers.Nulls { return buffers.Nulls{} }

func (*unit) Encoding() string { return "" }

// SetPositions implements format.Unit. Ends count from the first image, and from the first name.
func (u *unit) SetPositions(to *buffers.Column, batch, column int) {
	n, f := u.of.count(), u.of
	start := map[int]int64{0: 0, 1: n + 1, 2: 2*n + 1}[column]
	to.Planes[0].Data[batch] = f.bytes + 8*(start+u.first)
	if column == 1 {
		return
	}
	values := &to.Planes[1]
	if values.Length[batch] = f.bytes; column == 2 {
		values.Data[batch], values.Length[batch] = f.bytes+f.names, int64(len(f.tail))-f.names
	}
}

func (*unit) Uneven(int, *arrowtype.Field) (string, error) { return "", nil }
