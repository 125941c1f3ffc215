package arrowio

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/zeebo/xxh3"

	"github.com/meshfeed/meshfeed/core/source"
)

// If all files together have up to wholeBytes, every byte is hashed. Otherwise
// sampleCount records are drawn, and up to sampleBytes of each one's record batch
// are hashed. As many samples are drawn from the dictionaries, if there are any.
const (
	wholeBytes  = 16 << 20
	sampleCount = 64
	sampleBytes = 4 << 10
)

// Fingerprint implements source.Source: a SHA-256, shortened to 16 bytes. It
// covers the size, the number of rows and the metadata of every file, in order. The
// metadata are the footer or all message headers: the schema, and the division
// into record batches. If all files together have up to 16 MiB, it covers every
// byte. Otherwise it covers 4 KiB from the record batch of each of 64 records, and
// from each of 64 dictionaries if there are any. A hash of the metadata determines
// which ones and where. Names and times of files are not part of it, but keys and values in
// the names of directories are. [Dataset.Hash]
// covers every byte.
func (d *Dataset) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	ctx, leave, err := enter(ctx, d.table.Calls)
	if err != nil {
		return source.Fingerprint{}, err
	}
	defer leave()
	d.fingerprint.Lock()
	defer d.fingerprint.Unlock()
	if d.fingerprint.known {
		return d.fingerprint.value, nil
	}
	h := sha256.New()
	d.hashFacts(h)
	hash := d.hashRows
	if d.bytes() <= wholeBytes {
		hash = d.hashWhole
	}
	bytes, err := hash(ctx, h)
	if err != nil {
		return source.Fingerprint{}, err
	}
	copy(d.fingerprint.value[:], h.Sum(nil))
	d.fingerprint.bytes, d.fingerprint.known = bytes, true
	return d.fingerprint.value, nil
}

// coverage implements Coverage of [source.Facts]. For files that are sampled it is an upper
// bound, because samples may overlap.
func (d *Dataset) coverage() (hashed, of int64) {
	of = d.bytes()
	if of <= wholeBytes {
		return of, of
	}
	samples := int64(sampleCount)
	if len(d.dictionaryBodies()) > 0 {
		samples *= 2
	}
	return min(samples*sampleBytes, of), of
}

// bytes returns the size of all files together.
func (d *Dataset) bytes() (total int64) {
	for _, f := range d.files {
		total += f.content.Size()
	}
	return total
}

// pieceBytes is the size of one read when every byte is hashed.
const pieceBytes = 256 << 10

// hashWhole hashes every byte of the files. It also returns a hash for each file.
func (d *Dataset) hashWhole(ctx context.Context, h hash.Hash) ([]source.Fingerprint, error) {
	var pieces []piece
	for _, f := range d.files {
		for at := int64(0); at < f.content.Size(); at += pieceBytes {
			pieces = append(pieces, piece{f, extent{at, min(pieceBytes, f.content.Size()-at)}})
		}
	}
	return d.hashPieces(ctx, h, pieces, func(data []byte) []byte {
		sum := xxh3.Hash128(data).Bytes()
		return sum[:]
	})
}

// hashFacts hashes the size, the number of rows and the metadata of every file. Each
// file has a line of its own, so that two lists of files never have the same text.
func (d *Dataset) hashFacts(h hash.Hash) {
	for _, f := range d.files {
		fmt.Fprintf(h, "file %d %d %x\n", f.content.Size(), f.records, f.digest)
		for _, k := range f.Partition {
			fmt.Fprintf(h, "partition %q %q %v\n", k.Name, k.Value, k.Null)
		}
	}
}

// hashRows hashes samples of record batches, and as many of dictionaries if there
// are any. Their positions are drawn from the hash so far. It also returns a hash of the
// samples of each file.
func (d *Dataset) hashRows(ctx context.Context, h hash.Hash) ([]source.Fingerprint, error) {
	n, dictionaries := uint64(d.Len()), d.dictionaryBodies()
	if n == 0 {
		return make([]source.Fingerprint, len(d.files)), nil
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
			samples[i] = d.bodyOf(int64(which % n)).sample(where)
		} else {
			samples[i] = dictionaries[which%uint64(len(dictionaries))].sample(where)
		}
	}
	return d.hashPieces(ctx, h, samples, func(data []byte) []byte { return data })
}

// piece is a range of a file's stored bytes.
type piece struct {
	file *file
	extent
}

// sample returns a piece of up to sampleBytes within a piece. The random number
// where selects its position.
func (p piece) sample(where uint64) piece {
	n := min(p.length, sampleBytes)
	return piece{p.file, extent{p.offset + int64(where%uint64(p.length-n+1)), n}}
}

// hashPieces reads pieces, applies digest to each, and hashes the results in order. It
// also returns a hash of the results of each file. It reads several pieces at a time,
// because each read waits for the disk.
func (d *Dataset) hashPieces(ctx context.Context, h hash.Hash, pieces []piece, digest func(data []byte) []byte) ([]source.Fingerprint, error) {
	digests := make([][]byte, len(pieces))
	err := parallel(len(pieces), func(i int) error {
		p := pieces[i]
		data := make([]byte, p.length)
		if err := p.file.readFull(ctx, data, p.offset); err != nil {
			return err
		}
		digests[i] = digest(data)
		return nil
	})
	own := map[*file]hash.Hash{}
	for i, b := range digests {
		h.Write(b)
		f := pieces[i].file
		if own[f] == nil {
			own[f] = sha256.New()
		}
		own[f].Write(b)
	}
	files := make([]source.Fingerprint, len(d.files))
	for i, f := range d.files {
		if own[f] != nil {
			copy(files[i][:], own[f].Sum(nil))
		}
	}
	return files, err
}

// bodyOf returns the stored bytes of the record batch that contains a record.
func (d *Dataset) bodyOf(record int64) piece {
	batch, _ := d.table.Index.Locate(record)
	f := (*store)(d).of(batch)
	return piece{f, f.units[int(batch)-f.first]}
}

// dictionaryBodies returns the stored bytes of all dictionaries.
func (d *Dataset) dictionaryBodies() (list []piece) {
	for _, f := range d.files {
		for _, e := range f.dictionaries {
			list = append(list, piece{f, e})
		}
	}
	return list
}
