package resident

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
)

// TestPlan: one read takes pieces of a file that lie close together, up to a size.
func TestPlan(t *testing.T) {
	r := NewReads(blob.Hints{Gap: 10, Size: 100, AtOnce: 4})
	a, b := NewFile(blobtest.Bytes("a", bytes.NewReader(nil)), r), NewFile(blobtest.Bytes("b", bytes.NewReader(nil)), r)
	for want, pieces := range map[string][]Piece{
		"":                             nil,
		"b 0+5 [0], a 0+40 [2 1]":      {{b, Extent{0, 5}}, {a, Extent{30, 10}}, {a, Extent{0, 20}}},
		"a 0+20 [0], a 31+9 [1]":       {{a, Extent{0, 20}}, {a, Extent{31, 9}}},
		"a 0+60 [0], a 60+50 [1]":      {{a, Extent{0, 60}}, {a, Extent{60, 50}}},
		"a 0+500 [0 2], a 500+10 [1]":  {{a, Extent{0, 500}}, {a, Extent{500, 10}}, {a, Extent{20, 30}}},
		"a 0+10 [0 1]":                 {{a, Extent{0, 10}}, {a, Extent{0, 10}}},
		"a 0+100 [0 1 2], a 105+1 [3]": {{a, Extent{0, 50}}, {a, Extent{50, 25}}, {a, Extent{80, 20}}, {a, Extent{105, 1}}},
	} {
		got := ""
		for i, p := range r.plan(pieces, r.Gap) {
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprintf("%s %d+%d %v", p.file.Name(), p.Offset, p.Length, p.pieces)
		}
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// TestHold: reads take what is held from memory, and the rest from the blob.
func TestHold(t *testing.T) {
	data := []byte("0123456789abcdef")
	far := &blobtest.Far{Opener: blobtest.Memory{"x": data}, Suits: blob.Hints{Size: 1, AtOnce: 4}}
	b, err := far.Open(t.Context(), blob.Entry{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	f := NewFile(b, NewReads(far.Hints()))
	release, err := f.Hold(t.Context(), Extent{2, 4}, Extent{8, 4})
	if err != nil {
		t.Fatal(err)
	}
	read := func(from, to int, reads, bytes int64) {
		t.Helper()
		far.Take()
		p := make([]byte, to-from)
		if err := f.ReadFull(t.Context(), p, int64(from)); err != nil || string(p) != string(data[from:to]) {
			t.Errorf("%d to %d: %q, %v", from, to, p, err)
		}
		if count := far.Take(); count.Number != int(reads) || count.Bytes != bytes {
			t.Errorf("%d to %d: %+v", from, to, count)
		}
	}
	read(2, 6, 0, 0)
	read(9, 11, 0, 0)
	read(0, 4, 1, 2)
	read(6, 10, 1, 2)
	read(2, 10, 1, 6)
	read(4, 7, 1, 3)
	read(12, 16, 1, 4)
	release()
	read(2, 6, 1, 4)
}
