package arrowio

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// sampled is how many records the fingerprint looks at, and window how many
// bytes of each one's record batch.
const (
	sampled = 64
	window  = 4 << 10
)

// Fingerprint implements source.Source: a SHA-256, cut to 16 bytes. Of files it
// covers, in their order, the size, the rows, and the footer or all message
// headers, which hold the schema; and 4 KiB from the record batches of 64
// records, at places that follow from these facts. Neither names of files nor
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
	if err := d.hashRows(ctx, h); err != nil {
		return source.Fingerprint{}, err
	}
	copy(d.fingerprint.value[:], h.Sum(nil))
	d.fingerprint.known = true
	return d.fingerprint.value, nil
}

// hashFacts hashes what metadata tell. Names are quoted and every line ended,
// so that no two lists of facts give one text.
func (d *Dataset) hashFacts(h hash.Hash) {
	for _, f := range d.files {
		fmt.Fprintf(h, "file %d %d %x\n", f.meta.Size, f.records, f.meta.Digest)
	}
}

// hashRows hashes bytes at places drawn from the hash so far. They are read
// several at a time, since each waits for a disk that is slow, or busy with the
// files themselves.
func (d *Dataset) hashRows(ctx context.Context, h hash.Hash) error {
	n := d.Len()
	if n == 0 {
		return nil
	}
	seed := h.Sum(nil)
	var samples [sampled][]byte
	err := parallel(sampled, func(i int) (err error) {
		place := sha256.Sum256(binary.LittleEndian.AppendUint64(seed[:len(seed):len(seed)], uint64(i)))
		record := int64(binary.LittleEndian.Uint64(place[:]) % uint64(n))
		samples[i], err = d.stored(ctx, record, binary.LittleEndian.Uint64(place[8:]))
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

// stored gives bytes of the record's batch as they are stored.
func (d *Dataset) stored(ctx context.Context, record int64, place uint64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, status.Errorf(status.CodeOf(err), "arrowio", "the fingerprint was ended: %w", err)
	}
	batch, _ := d.table.Index.Locate(record)
	f := (*store)(d).of(batch)
	block := f.meta.Batches[int(batch)-f.first]
	b := make([]byte, min(block.BodyLen, window))
	off := int64(place % uint64(block.BodyLen-int64(len(b))+1))
	if _, err := f.content.ReadAt(b, block.Body()+off); err != nil {
		return nil, f.named(err)
	}
	return b, nil
}
