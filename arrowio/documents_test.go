package arrowio_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/arrowio/blob/blobtest"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
)

// megatron returns an index of Megatron for documents of sequences with these lengths. Code is the type
// of elements of size bytes.
func megatron(code byte, size int, documents ...[]int) []byte {
	var lengths, starts, ends []byte
	sequences, at := 0, 0
	ends = binary.LittleEndian.AppendUint64(ends, 0)
	for _, d := range documents {
		for _, n := range d {
			lengths = binary.LittleEndian.AppendUint32(lengths, uint32(n))
			starts = binary.LittleEndian.AppendUint64(starts, uint64(at))
			sequences, at = sequences+1, at+n*size
		}
		ends = binary.LittleEndian.AppendUint64(ends, uint64(sequences))
	}
	out := append(binary.LittleEndian.AppendUint64([]byte("MMIDIDX\x00\x00"), 1), code)
	out = binary.LittleEndian.AppendUint64(out, uint64(sequences))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(documents)+1))
	return slices.Concat(out, lengths, starts, ends)
}

// TestDocuments runs the tests of sources on pairs of files of Megatron. A record is a document of any
// number of sequences.
func TestDocuments(t *testing.T) {
	data := countedBytes(2 * 40)
	first, second := [][]int{{3}, {}, {1, 0, 7}, {0}, {2, 2}}, [][]int{{20}, {5}}
	memory := blobtest.Memory{
		"a.idx": megatron(8, 2, first...), "a.bin": data[:30],
		"b.idx": append(megatron(8, 2, second...), 0, 1), "b.bin": data[30:], // with the modes of two sequences
	}
	lengths := []int{3, 0, 8, 0, 4, 20, 5}
	open := func(t *testing.T) source.Source {
		ds, err := arrowio.OpenFiles(t.Context(), []string{"*.idx"}, arrowio.Options{Opener: memory})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	sourcetest.Suite{Open: open, Ragged: func(s *source.Span) {
		from := 0
		for _, n := range lengths[:s.Record] {
			from += 2 * n
		}
		s.Row = data[from:][:2*lengths[s.Record]]
	}}.Run(t)
	ds := open(t).(*arrowio.Dataset)
	defer ds.Close()
	if f := ds.Schema().Fields; len(f) != 1 || f[0].Name != "tokens" || f[0].Type != dtype.Uint16 || f[0].Ragged != 1 || f[0].Nullable || ds.Len() != 7 {
		t.Errorf("%d records of %+v", ds.Len(), f)
	}
	if _, err := ds.Verify(t.Context(), arrowio.VerifyOptions{Hash: true}); err != nil {
		t.Error(err)
	}
}

// TestDamagedDocuments: any change of the numbers of an index is an error that names it.
func TestDamagedDocuments(t *testing.T) {
	good, data := megatron(4, 4, []int{2, 1}, []int{3}), countedBytes(24)
	for at := 9; at < len(good); at++ {
		for _, change := range []byte{1, 0x80} {
			bad := bytes.Clone(good)
			bad[at] ^= change
			ds, err := arrowio.OpenFiles(t.Context(), []string{"a.idx"}, arrowio.Options{Opener: blobtest.Memory{"a.idx": bad, "a.bin": data}})
			sameBytes := at == 17 || at == len(good)-16 && change == 1 // another type of these bytes, another division into documents
			if err == nil {
				_ = ds.Close()
			}
			if err == nil && !sameBytes {
				t.Errorf("byte %d ^ %d was not found", at, change)
			}
			if err != nil {
				named(t, "a.idx", err)
			}
		}
	}
	const again = "; write or copy the .idx and the .bin again"
	for _, c := range []struct {
		idx, bin []byte
		code     status.Code
		want     string
	}{
		{good, data[:20], status.DataLoss, "sequence 2 has 3 elements from byte 12 of 20 on, and the one before it ends at byte 12" + again},
		{good, countedBytes(28), status.DataLoss, "the documents have 3 of 3 sequences, and 24 of the 28 bytes of a.bin" + again},
		{good[:40], data, status.DataLoss, "3 sequences and 3 ends of documents do not fit the 40 bytes of the index" + again},
		{good[:20], data, status.DataLoss, "the index has 20 bytes, fewer than its header" + again},
		{countedBytes(99), data, status.Unsupported, "it does not begin as an index of Megatron does; name a file of data"},
		{megatron(7, 4, []int{6}), data, status.Unsupported, "the type of its elements has the code 7, which stands for no integers; store tokens as integers"},
		{good, nil, status.NotFound, "there is no a.bin, which should have the tokens of this index; copy both files"},
	} {
		memory := blobtest.Memory{"a.idx": c.idx}
		if c.bin != nil {
			memory["a.bin"] = c.bin
		}
		_, err := arrowio.OpenFiles(t.Context(), []string{"a.idx"}, arrowio.Options{Opener: memory})
		if err == nil || err.Error() != "arrowio: a.idx: "+c.want || status.CodeOf(err) != c.code {
			t.Errorf("got %v: %v\nwant %v: %s", status.CodeOf(err), err, c.code, c.want)
		}
	}
}

// FuzzDocuments: no index stops the program, and what opens can be read.
func FuzzDocuments(f *testing.F) {
	f.Add(megatron(8, 2, []int{3}, nil, []int{1, 0, 7}), countedBytes(22))
	f.Fuzz(func(t *testing.T, idx, bin []byte) {
		ds, err := arrowio.OpenFiles(t.Context(), []string{"a.idx"}, arrowio.Options{Opener: blobtest.Memory{"a.idx": bytes.Clone(idx), "a.bin": bytes.Clone(bin)}})
		if err != nil {
			return
		}
		defer ds.Close()
		r, err := ds.Reader([]int{0})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for k := range min(ds.Len(), 100) {
			if err := r.Read(t.Context(), source.Draw{}, []source.Span{{Record: k}}, func() error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	})
}
