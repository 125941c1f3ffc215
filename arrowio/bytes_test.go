package arrowio

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// meteredOpener is an opener. Its blobs count the bytes that are read.
type meteredOpener struct {
	local.Opener
	bytes *atomic.Int64
}

func (c meteredOpener) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	b, err := c.Opener.Open(ctx, e)
	return meteredBlob{b, c.bytes}, err
}

type meteredBlob struct {
	blob.Blob
	bytes *atomic.Int64
}

func (c meteredBlob) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	n, err := c.Blob.ReadAt(ctx, p, offset)
	c.bytes.Add(int64(n))
	return n, err
}

// TestBytesOfAnEpoch: the check of lists and an epoch read each column that was asked for
// once, and no other column, in sequential order and in blocks.
func TestBytesOfAnEpoch(t *testing.T) {
	paths, err := filepath.Glob("testdata/parquet/*.parquet")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	several := 0
	for _, path := range paths {
		for asked := 1; asked <= 3; asked++ {
			if epochBytes(t, path, false, asked) > 1 && epochBytes(t, path, true, asked) > 1 {
				several++
			}
		}
	}
	if several == 0 {
		t.Error("no file has several row groups")
	}
}

// readFooter reads the metadata of a Parquet file.
func readFooter(t *testing.T, path string) *parquet.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	offset, n, err := parquet.FooterOf(data[len(data)-parquet.Trailer:], int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := parquet.ReadFile(data[offset:offset+int64(n)], offset)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

// epochBytes gathers an epoch of some fields, and returns the number of row groups.
func epochBytes(t *testing.T, path string, blocks bool, asked int) int {
	t.Helper()
	read := new(atomic.Int64)
	d, err := OpenFiles(t.Context(), []string{path}, Options{IO: "read", Opener: meteredOpener{bytes: read}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	order := "sequential.1"
	if blocks {
		order = sampler.Units(2, d.Facts().Units())
	}
	o, err := sampler.NewOf(order, 5, d.Facts().Units())
	if err != nil {
		t.Fatal(err)
	}
	records := make([]int64, d.Len())
	o.Epoch(0).Fill(records, 0)

	fields := d.Schema().Fixed()
	asked = min(asked, len(fields))
	meta := readFooter(t, path)
	var parts []source.Part
	want := int64(0)
	for _, field := range fields[:asked] {
		parts = append(parts, d.Schema().Whole(field))
		for _, g := range meta.Groups {
			want += g.Chunks[meta.Firsts[d.files.Fields[field].Column]].Length
		}
	}
	g, err := d.Gatherer(parts)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	before := read.Load()
	if err := d.Facts().Check(t.Context(), fields[:asked], 0, d.Len()); err != nil {
		t.Fatal(err)
	}
	for len(records) > 0 {
		n, jobs := min(7, len(records)), make([]source.Job, asked)
		for i := range jobs {
			size := d.Schema().Fields[parts[i].Field].RowBytes()
			jobs[i] = source.Job{Part: i, Rows: [2]int{0, n}, Dst: make([]byte, n*size)}
		}
		if err := g.Gather(t.Context(), source.Draw{}, records[:n], jobs); err != nil {
			t.Fatal(err)
		}
		records = records[n:]
	}
	if got := read.Load() - before; got != want {
		t.Errorf("%s, %s, %d columns: an epoch read %d bytes of %d", path, order, asked, got, want)
	}
	return len(meta.Groups)
}
