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

// sampled is how many rows the fingerprint holds.
const sampled = 64

// Fingerprint implements source.Source: a SHA-256, cut to 16 bytes, over the
// schema; of each file its size, its rows, and the footer or all message
// headers; and 64 rows at places that follow from the sizes. Neither names nor
// times are part of it.
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

// hashFacts hashes the schema and the metadata of the files. Every text is
// quoted and every line ended, so that no two lists of facts give one text.
func (d *Dataset) hashFacts(h hash.Hash) {
	for _, f := range d.table.Schema.Fields {
		fmt.Fprintf(h, "field %q %v %v\n", f.Name, f.Type, f.Shape)
	}
	for _, s := range d.table.Schema.Skipped {
		fmt.Fprintf(h, "skipped %q %q\n", s.Name, s.Type)
	}
	for _, f := range d.files {
		fmt.Fprintf(h, "file %d %d %x\n", f.meta.Size, f.records, f.meta.Digest)
	}
	fmt.Fprintf(h, "records %d\n", d.Len())
}

// hashRows hashes the rows at places drawn from the hash so far.
func (d *Dataset) hashRows(ctx context.Context, h hash.Hash) error {
	n := d.Len()
	if n == 0 {
		return nil
	}
	seed := h.Sum(nil)
	for i := range sampled {
		place := sha256.Sum256(binary.LittleEndian.AppendUint64(seed[:len(seed):len(seed)], uint64(i)))
		record := int64(binary.LittleEndian.Uint64(place[:]) % uint64(n))
		if err := d.hashRow(ctx, h, record); err != nil {
			return err
		}
	}
	return nil
}

// hashRow hashes all fields of one record. A list of another length than the
// field's, which only its use makes an error, counts as such.
func (d *Dataset) hashRow(ctx context.Context, h hash.Hash, record int64) error {
	if batch, _ := d.table.Index.Locate(record); d.files != nil && (*store)(d).Encoded(d.file(int(batch))) {
		return d.hashStored(ctx, h, batch)
	}
	for i, f := range d.table.Schema.Fields {
		row, err := d.row(ctx, i, record)
		if code := status.CodeOf(err); err != nil && code != status.InvalidArgument {
			return err
		} else if err != nil {
			fmt.Fprintf(h, "%q has no row %d\n", f.Name, record)
			continue
		}
		h.Write(row)
	}
	return nil
}

// hashStored hashes the beginning of a batch's compressed bytes, since to
// decode it takes long.
func (d *Dataset) hashStored(ctx context.Context, h hash.Hash, batch int32) error {
	if err := ctx.Err(); err != nil {
		return status.Errorf(status.CodeOf(err), "arrowio", "the fingerprint was ended: %w", err)
	}
	f := (*store)(d).of(batch)
	block := f.meta.Batches[int(batch)-f.first]
	b := make([]byte, min(block.BodyLen, 4<<10))
	if _, err := f.content.ReadAt(b, block.Body()); err != nil {
		return f.named(err)
	}
	h.Write(b)
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
