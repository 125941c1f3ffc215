package arrowio_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/loader"
)

// A loader without a layout delivers batches of all fields, here in the order of the file.
func ExampleOpen() {
	ds, err := arrowio.Open("testdata/parquet/delta.parquet")
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	l, err := loader.New(ds, loader.Options{BatchSize: 8})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	for b, err := range l.All(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		labels, err := loader.Values[int32](b, "j")
		fmt.Println(labels, err)
		b.Release()
	}
	// Output:
	// [0 1 2 3 4 5 6 7] <nil>
	// [8 9 10 11 12 13 14 15] <nil>
}

// store is an opener over a map of bytes. The catalog finds its blobs. A store that is far away
// has the same methods.
type store struct {
	blob.Catalog
	objects map[string][]byte
}

func (s *store) put(name string, data []byte) {
	s.Blobs = append(s.Blobs, blob.Entry{Name: name, Size: int64(len(data)), Version: "1"})
	s.objects[name] = data
}

func (s *store) Open(ctx context.Context, e blob.Entry) (blob.Blob, error) {
	_, err := s.Stat(ctx, e.Name)
	return object{bytes.NewReader(s.objects[e.Name]), e}, err
}

func (s *store) Hints() blob.Hints {
	return blob.Hints{Gap: 1 << 20, Size: 8 << 20, AtOnce: 16, Ahead: 128 << 20}
}

// object is a blob. Size is a method of its reader.
type object struct {
	*bytes.Reader
	entry blob.Entry
}

func (o object) Name() string     { return o.entry.Name }
func (o object) Identity() string { return o.entry.Name }
func (o object) Version() string  { return o.entry.Name + " " + o.entry.Version }
func (o object) Check() error     { return nil }
func (o object) Close() error     { return nil }

func (o object) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return o.Reader.ReadAt(p, offset)
}

func TestStoreIsAnOpener(t *testing.T) {
	s := &store{objects: map[string][]byte{}}
	blobtest.Run(t, s, "s3://bucket/dir", func(name string, data []byte) { s.put("s3://bucket/dir/"+name, data) })
}

// An opener replaces the files of this machine by blobs of another storage.
func ExampleOptions() {
	data, err := os.ReadFile("testdata/parquet/delta.parquet")
	if err != nil {
		log.Fatal(err)
	}
	s := &store{objects: map[string][]byte{}}
	s.put("s3://bucket/train/0.parquet", data)
	s.put("s3://bucket/train/1.parquet", data)
	s.put("s3://bucket/readme.txt", nil)
	ds, err := arrowio.OpenFiles(context.Background(), []string{"s3://bucket/train/*.parquet"}, arrowio.Options{Opener: s})
	if err != nil {
		log.Fatal(err)
	}
	defer ds.Close()
	for _, f := range ds.Files() {
		fmt.Println(f.Path, f.Records)
	}
	// Output:
	// s3://bucket/train/0.parquet 23
	// s3://bucket/train/1.parquet 23
}
