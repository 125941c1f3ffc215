package arrowio

import (
	"bytes"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/arrowio/internal/format/formattest"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestAddAFormat: a format that is added to the list is opened, gathered, hashed
// and verified as the others are.
func TestAddAFormat(t *testing.T) {
	formats = append(slices.Clone(formats), formattest.Toy{})
	t.Cleanup(func() { formats = formats[:len(formats)-1] })
	memory := blobtest.Memory{"a.toy": []byte(formattest.Magic + "\x03\x01\x02\x03\x00\x02\x08\x09"), "b.toy": []byte(formattest.Magic + "\x01\x07"), "bad.toy": []byte(formattest.Magic + "\x01\xff")}
	open := func(names ...string) *Dataset {
		d, err := OpenFiles(t.Context(), names, Options{Opener: memory})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	sourcetest.Run(t, func(*testing.T) source.Source { return open("a.toy", "b.toy") })
	d := open("a.toy", "b.toy")
	defer d.Close()
	if want := (FileInfo{Path: "a.toy", Format: "toy", Records: 5, Batches: 3, LargestBatch: 3, Bytes: 12, Compression: "toy"}); d.Files()[0] != want {
		t.Errorf("got %+v, want %+v", d.Files()[0], want)
	}
	var rows []byte
	for i, field := range d.Schema().Fields {
		g, err := d.Gatherer([]source.Part{d.Schema().Whole(i)})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		dst := make([]byte, 3*field.RowBytes())
		if err := g.Gather(t.Context(), source.Draw{}, []int64{5, 0, 4}, []source.Job{{Rows: [2]int{0, 3}, Dst: dst}}); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, dst...)
	}
	if want := []byte{7, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 7, 8, 1, 2, 9, 10}; !bytes.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	if _, err := d.Verify(t.Context(), VerifyOptions{Hash: true}); err != nil {
		t.Error(err)
	}
	bad := open("bad.toy")
	defer bad.Close()
	if _, err := bad.Verify(t.Context(), VerifyOptions{}); status.CodeOf(err) != status.IO || err.Error() != "arrowio: bad.toy: a byte of 255" {
		t.Errorf("got %v", err)
	}
}
