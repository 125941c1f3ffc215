package arrowio

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/meshfeed/meshfeed/core/dtype"
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
// records, at places that follow from these facts. Of memory it covers the
// schema, the number of rows, and 64 rows. Neither names of files nor times are
// part of it, nor what this release makes of a column.
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
	if d.files == nil {
		for _, f := range d.table.Schema.Fields {
			fmt.Fprintf(h, "field %q %v %v\n", f.Name, f.Type, f.Shape)
		}
		fmt.Fprintf(h, "records %d\n", d.Len())
	}
}

// hashRows hashes bytes at places drawn from the hash so far.
func (d *Dataset) hashRows(ctx context.Context, h hash.Hash) error {
	n := d.Len()
	if n == 0 {
		return nil
	}
	seed := h.Sum(nil)
	for i := range sampled {
		place := sha256.Sum256(binary.LittleEndian.AppendUint64(seed[:len(seed):len(seed)], uint64(i)))
		record := int64(binary.LittleEndian.Uint64(place[:]) % uint64(n))
		var err error
		if d.files == nil {
			err = d.hashRow(ctx, h, record)
		} else {
			err = d.hashStored(ctx, h, record, binary.LittleEndian.Uint64(place[8:]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hashStored hashes bytes of the record's batch as they are stored.
func (d *Dataset) hashStored(ctx context.Context, h hash.Hash, record int64, place uint64) error {
	if err := ctx.Err(); err != nil {
		return status.Errorf(status.CodeOf(err), "arrowio", "the fingerprint was ended: %w", err)
	}
	batch, _ := d.table.Index.Locate(record)
	f := (*store)(d).of(batch)
	block := f.meta.Batches[int(batch)-f.first]
	b := make([]byte, min(block.BodyLen, window))
	off := int64(place % uint64(block.BodyLen-int64(len(b))+1))
	if _, err := f.content.ReadAt(b, block.Body()+off); err != nil {
		return f.named(err)
	}
	h.Write(b)
	return nil
}

// hashRow hashes all fields of one record in memory.
func (d *Dataset) hashRow(ctx context.Context, h hash.Hash, record int64) error {
	for i := range d.table.Schema.Fields {
		row, err := d.row(ctx, i, record)
		if err != nil {
			return err
		}
		h.Write(row)
	}
	return nil
}

// row gives a whole row of a field, with zeros for nulls.
func (d *Dataset) row(ctx context.Context, field int, record int64) ([]byte, error) {
	g, err := d.table.Gatherer([]source.Part{d.whole(field)})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	dst := make([]byte, d.table.Schema.Fields[field].RowBytes())
	return dst, g.Gather(ctx, []int64{record}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
}

// whole is the part that takes all of a field's row, with zeros for nulls.
func (d *Dataset) whole(field int) source.Part {
	f := d.table.Schema.Fields[field]
	box := make([][2]int, len(f.Shape))
	for i, n := range f.Shape {
		box[i] = [2]int{0, n}
	}
	p := source.Part{Field: field, Boxes: [][][2]int{box}}
	if f.Nullable {
		p.Fill = int64(0)
		if f.Type == dtype.Bool {
			p.Fill = false
		}
	}
	return p
}
