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

// wholeBytes of files are hashed whole: a file of labels, say, which differs on
// one host. Of more, sampled is how many records are looked at, and window how
// many bytes of each one's record batch; as many places and bytes of
// dictionaries.
const (
	wholeBytes = 16 << 20
	sampled    = 64
	window     = 4 << 10
)

// Fingerprint implements source.Source: a SHA-256, cut to 16 bytes. Of files it
// covers, in their order, the size, the rows, and the footer or all message
// headers, which hold the schema, and so the cut into record batches. Of up to
// 16 MiB of files together it covers every byte; of more, 4 KiB from the record
// batches of 64 records, and from 64 dictionaries where there are any, at places
// that follow from these facts: see [Dataset.SHA256]. Neither names of files nor
// times are part of it, nor what this release makes of a column.
func (d *Dataset) Fingerprint(ctx context.Context) (source.Fingerprint, error) {
	if err := d.table.Gate.Enter(); err != nil {
		return source.Fingerprint{}, err
	}
	defer d.table.Gate.Leave()
	ctx, stop := d.table.Gate.Join(ctx)
	defer stop()
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
	if err := hash(ctx, h); err != nil {
		return source.Fingerprint{}, err
	}
	copy(d.fingerprint.value[:], h.Sum(nil))
	d.fingerprint.known = true
	return d.fingerprint.value, nil
}

// Coverage implements source.Covered. Where the files are sampled, it is an upper
// bound: samples may overlap.
func (d *Dataset) Coverage() (hashed, of int64) {
	of = d.bytes()
	if of <= wholeBytes {
		return of, of
	}
	samples := int64(sampled)
	if len(d.dictionaryBodies()) > 0 {
		samples *= 2
	}
	return min(samples*window, of), of
}

// bytes gives the size of all files together.
func (d *Dataset) bytes() (total int64) {
	for _, f := range d.files {
		total += f.content.Size()
	}
	return total
}

// pieceBytes is how much of a small file is read at once.
const pieceBytes = 256 << 10

// hashWhole hashes every byte of the files, which are small.
func (d *Dataset) hashWhole(ctx context.Context, h hash.Hash) error {
	var pieces []piece
	for _, f := range d.files {
		for at := int64(0); at < f.content.Size(); at += pieceBytes {
			pieces = append(pieces, piece{f, extent{at, min(pieceBytes, f.content.Size()-at)}})
		}
	}
	sums := make([][16]byte, len(pieces))
	err := parallel(len(pieces), func(i int) error {
		p := pieces[i]
		data := make([]byte, p.length)
		if err := p.file.readFull(ctx, data, p.offset); err != nil {
			return err
		}
		sums[i] = xxh3.Hash128(data).Bytes()
		return nil
	})
	for _, sum := range sums {
		h.Write(sum[:])
	}
	return err
}

// hashFacts hashes what metadata tell. Names are quoted and every line ended,
// so that no two lists of facts give one text.
func (d *Dataset) hashFacts(h hash.Hash) {
	for _, f := range d.files {
		fmt.Fprintf(h, "file %d %d %x\n", f.content.Size(), f.records, f.digest)
	}
}

// hashRows hashes bytes at places drawn from the hash so far: of record batches,
// and as many of dictionaries where there are any. They are read several at a
// time, since each waits for a disk that is slow, or busy with the files
// themselves.
func (d *Dataset) hashRows(ctx context.Context, h hash.Hash) error {
	n, dictionaries := uint64(d.Len()), d.dictionaryBodies()
	if n == 0 {
		return nil
	}
	seed, samples := h.Sum(nil), make([][]byte, sampled)
	if len(dictionaries) > 0 {
		samples = make([][]byte, 2*sampled)
	}
	err := parallel(len(samples), func(i int) (err error) {
		drawn := sha256.Sum256(binary.LittleEndian.AppendUint64(seed[:len(seed):len(seed)], uint64(i)))
		which, where := binary.LittleEndian.Uint64(drawn[:]), binary.LittleEndian.Uint64(drawn[8:])
		if i < sampled {
			samples[i], err = d.bodyOf(int64(which%n)).sample(ctx, where)
		} else {
			samples[i], err = dictionaries[which%uint64(len(dictionaries))].sample(ctx, where)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, b := range samples {
		h.Write(b)
	}
	return nil
}

// piece is a range of a file's stored bytes.
type piece struct {
	file *file
	extent
}

// bodyOf returns the record batch of a record.
func (d *Dataset) bodyOf(record int64) piece {
	batch, _ := d.table.Index.Locate(record)
	f := (*store)(d).of(batch)
	return piece{f, f.units[int(batch)-f.first]}
}

// dictionaryBodies returns all dictionaries.
func (d *Dataset) dictionaryBodies() (list []piece) {
	for _, f := range d.files {
		for _, e := range f.dictionaries {
			list = append(list, piece{f, e})
		}
	}
	return list
}

// sample returns up to window bytes as they are stored.
func (p piece) sample(ctx context.Context, where uint64) ([]byte, error) {
	out := make([]byte, min(p.length, window))
	off := int64(where % uint64(p.length-int64(len(out))+1))
	return out, p.file.readFull(ctx, out, p.offset+off)
}
