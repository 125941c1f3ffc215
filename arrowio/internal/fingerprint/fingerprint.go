// Package fingerprint hashes a dataset of files without reading all of large files. The
// fingerprint is a SHA-256, shortened to 16 bytes. It covers the facts of every file: size,
// number of records, digest of the metadata, and keys in the names of directories. It also
// covers stored bytes: all of them up to 16 MiB, otherwise samples at positions that the facts
// determine. For files far away it covers the versions that their storage gives them instead, such as ETags,
// so that nothing is read.
//
// Loaders store fingerprints in states, so no release may change one.
package fingerprint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
)

// If all files together have up to wholeBytes, every byte is hashed. Otherwise
// sampleCount records are drawn, and up to sampleBytes of each one's unit are hashed.
// As many samples are drawn from the dictionaries, if there are any.
const (
	wholeBytes  = 16 << 20
	sampleCount = 64
	sampleBytes = 4 << 10
)

// Dataset is the files of a dataset.
type Dataset struct{ *units.Files }

// Sum returns the fingerprint, and for each file a hash of the bytes that it covers.
func (d Dataset) Sum(ctx context.Context) (sum source.Fingerprint, byFile []source.Fingerprint, err error) {
	h := sha256.New()
	d.WriteFacts(h)
	switch {
	case d.stamped():
		byFile = d.hashStamps(h)
	case d.Bytes() <= wholeBytes:
		byFile, err = d.hashWhole(ctx, h)
	default:
		byFile, err = d.Sample(ctx, h)
	}
	if err == nil {
		copy(sum[:], h.Sum(nil))
	}
	return sum, byFile, err
}

// Coverage returns how many bytes the fingerprint covers, and of how many. For files that are
// sampled, the first is an upper bound, because samples may overlap.
func (d Dataset) Coverage() (covered, of int64) {
	of = d.Bytes()
	switch {
	case d.stamped():
		return 0, of
	case of <= wholeBytes:
		return of, of
	}
	samples := int64(sampleCount)
	if len(d.dictionaries()) > 0 {
		samples *= 2
	}
	return min(samples*sampleBytes, of), of
}

// stamped reports whether the storage says of every file when its content changes.
func (d Dataset) stamped() bool {
	return !slices.ContainsFunc(d.List, func(f *units.File) bool { return f.Stamp == "" })
}

// hashStamps hashes the stamp of every file, and reads nothing. It also returns a hash for each file.
func (d Dataset) hashStamps(h hash.Hash) []source.Fingerprint {
	byFile := make([]source.Fingerprint, len(d.List))
	for i, f := range d.List {
		fmt.Fprintf(h, "stamp %q\n", f.Stamp)
		sum := sha256.Sum256([]byte(f.Stamp))
		copy(byFile[i][:], sum[:])
	}
	return byFile
}

// WriteFacts hashes the size, the number of rows and the metadata of every file. Each
// file has a line of its own, so that two lists of files never have the same text.
func (d Dataset) WriteFacts(h hash.Hash) {
	for _, f := range d.List {
		fmt.Fprintf(h, "file %d %d %x\n", f.Content.Size(), f.Records, f.Digest)
		for _, k := range f.Partition {
			fmt.Fprintf(h, "partition %q %q %v\n", k.Name, k.Value, k.Null)
		}
	}
}

// pieceBytes is the size of one read when every byte is hashed.
const pieceBytes = 256 << 10

// hashWhole hashes every byte of the files. It also returns a hash for each file.
func (d Dataset) hashWhole(ctx context.Context, h hash.Hash) ([]source.Fingerprint, error) {
	var pieces []piece
	for _, f := range d.List {
		size := f.Content.Size()
		for at := int64(0); at < size; at += pieceBytes {
			pieces = append(pieces, piece{f, resident.Extent{Offset: at, Length: min(pieceBytes, size-at)}})
		}
	}
	return d.hashPieces(ctx, h, pieces, func(data []byte) []byte {
		sum := xxh3.Hash128(data).Bytes()
		return sum[:]
	})
}

// Sample hashes samples of units, and as many of dictionaries if there are any. Their
// positions are drawn from the hash so far. It also returns a hash of the samples of each
// file.
func (d Dataset) Sample(ctx context.Context, h hash.Hash) ([]source.Fingerprint, error) {
	n, dictionaries := uint64(d.Index.Len()), d.dictionaries()
	if n == 0 {
		return make([]source.Fingerprint, len(d.List)), nil
	}
	samples := make([]piece, sampleCount)
	if len(dictionaries) > 0 {
		samples = make([]piece, 2*sampleCount)
	}
	seed := h.Sum(nil)
	for i := range samples {
		drawn := sha256.Sum256(binary.LittleEndian.AppendUint64(seed[:len(seed):len(seed)], uint64(i)))
		which, where := binary.LittleEndian.Uint64(drawn[:]), binary.LittleEndian.Uint64(drawn[8:])
		if i < sampleCount {
			batch, _ := d.Index.Locate(int64(which % n))
			f := d.File(batch)
			samples[i] = piece{f, f.Units[int(batch)-f.First]}.sample(where)
		} else {
			samples[i] = dictionaries[which%uint64(len(dictionaries))].sample(where)
		}
	}
	return d.hashPieces(ctx, h, samples, bytes.Clone)
}

// piece is a range of a file's stored bytes.
type piece struct {
	file *units.File
	resident.Extent
}

// sample returns a piece of up to sampleBytes within a piece. The random number
// where selects its position.
func (p piece) sample(where uint64) piece {
	n := min(p.Length, sampleBytes)
	return piece{p.file, resident.Extent{Offset: p.Offset + int64(where%uint64(p.Length-n+1)), Length: n}}
}

// hashPieces reads pieces, applies digest to each, and hashes the results in order. It
// also returns a hash of the results of each file.
func (d Dataset) hashPieces(ctx context.Context, h hash.Hash, pieces []piece, digest func(data []byte) []byte) ([]source.Fingerprint, error) {
	digests, reads := make([][]byte, len(pieces)), make([]resident.Piece, len(pieces))
	for i, p := range pieces {
		reads[i] = resident.Piece{File: p.file.Content, Extent: p.Extent}
	}
	err := d.Reads.Read(ctx, reads, func(i int, data []byte) { digests[i] = digest(data) })
	own := map[*units.File]hash.Hash{}
	for i, b := range digests {
		h.Write(b)
		file := pieces[i].file
		if own[file] == nil {
			own[file] = sha256.New()
		}
		own[file].Write(b)
	}
	byFile := make([]source.Fingerprint, len(d.List))
	for i, f := range d.List {
		if h := own[f]; h != nil {
			copy(byFile[i][:], h.Sum(nil))
		}
	}
	return byFile, err
}

// dictionaries returns the stored bytes of all dictionaries.
func (d Dataset) dictionaries() (list []piece) {
	for _, f := range d.List {
		for _, e := range f.Dictionaries {
			list = append(list, piece{f, e})
		}
	}
	return list
}
