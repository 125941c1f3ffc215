package table

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"

	"github.com/zeebo/xxh3"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// wholeBytes bounds the bytes that a fingerprint hashes. A slow CPU core hashes this
// many in about 0.2 s. The bound is in bytes, not in seconds, so that every host
// hashes the same rows.
const wholeBytes = 256 << 20

// blockBytes is the approximate number of bytes that are gathered and hashed at once.
const blockBytes = 256 << 10

// fingerprint hashes a source in memory: the schema, the number of records, and
// the values of all rows. If these values are larger than limit, it hashes only
// blocks of rows that are evenly spread. The size of ragged rows is estimated from rows
// that are evenly spread, too. The result does not depend on the division
// into record batches, on strides, or on the bytes of null values.
func fingerprint(ctx context.Context, s source.Source, limit int64) (out source.Fingerprint, err error) {
	h := sha256.New()
	for _, f := range s.Schema().Fields {
		facts := []any{f.Name, f.Type, append([]int{}, f.Shape...)}
		if f.Ragged > 0 {
			facts = append(facts, f.Ragged)
		}
		text, _ := json.Marshal(facts) // cannot fail for strings and numbers
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		h.Write(text)
	}
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.Len())))
	blocks, err := newBlocks(ctx, s, limit)
	if err == nil {
		err = blocks.hash(ctx, h)
	}
	if err != nil {
		return out, err
	}
	copy(out[:], h.Sum(nil))
	return out, nil
}

// coverage returns how many bytes of rows a fingerprint hashes, and how many there
// are. A field with nulls counts twice, because it is hashed twice.
func coverage(s source.Source) (hashed, of int64) {
	p, err := newBlocks(context.Background(), s, wholeBytes)
	if err != nil {
		return 0, 0
	}
	return p.records() * p.rowBytes, s.Len() * p.rowBytes
}

// blocks are the rows that a fingerprint covers.
type blocks struct {
	source   source.Source
	parts    []source.Part
	ragged   []int // ragged fields
	fixed    int64 // bytes of a row of all parts
	rowBytes int64 // fixed, and the estimate for ragged fields
	rows     int64 // in every block but the last
	all      int64 // number of blocks
	chosen   int64 // number of blocks that are hashed
}

// newBlocks chooses the blocks to hash: up to limit bytes in total, but at least two
// blocks if there are two.
func newBlocks(ctx context.Context, s source.Source, limit int64) (*blocks, error) {
	p := &blocks{source: s}
	for i, f := range s.Schema().Fields {
		if f.Ragged > 0 {
			p.ragged = append(p.ragged, i)
			continue
		}
		part := s.Schema().Whole(i)
		p.parts, p.fixed = append(p.parts, part), p.fixed+int64(f.RowBytes())
		if f.Nullable { // hashed again with 1 in place of nulls, so that nulls differ from zeros
			part.Fill = int64(1)
			if f.Type == dtype.Bool {
				part.Fill = true
			}
			p.parts, p.fixed = append(p.parts, part), p.fixed+int64(f.RowBytes())
		}
	}
	ragged, err := p.raggedBytes(ctx)
	if err != nil {
		return nil, err
	}
	p.rowBytes = p.fixed + ragged
	p.rows = max(1, blockBytes/max(p.rowBytes, 1))
	p.all = (s.Len() + p.rows - 1) / p.rows
	p.chosen = min(p.all, max(2, limit/max(1, p.rows*p.rowBytes)))
	return p, nil
}

// block returns the records of the k-th block that is hashed. The first and the
// last block of the source are always hashed.
func (p *blocks) block(k int64) (from, to int64) {
	if p.chosen < p.all {
		k = k * (p.all - 1) / (p.chosen - 1)
	}
	return k * p.rows, min((k+1)*p.rows, p.source.Len())
}

// records returns the number of records in the chosen blocks.
func (p *blocks) records() int64 {
	if p.chosen == 0 {
		return 0
	}
	from, to := p.block(p.chosen - 1)
	return (p.chosen-1)*p.rows + to - from
}

// hash adds the values of the chosen blocks to a hash.
func (p *blocks) hash(ctx context.Context, h hash.Hash) error {
	g, err := p.source.Gatherer(p.parts)
	if err != nil {
		return err
	}
	defer g.Close()
	fields := p.source.Schema().Fields
	rows, err := source.Reader(nil), error(nil)
	if len(p.ragged) > 0 {
		if rows, err = p.source.Reader(p.ragged); err != nil {
			return err
		}
		defer rows.Close()
	}
	buffer, jobs := make([]byte, min(p.rows, p.source.Len())*p.fixed), make([]source.Job, len(p.parts))
	records := make([]int64, min(p.rows, p.source.Len()))
	for k := range p.chosen {
		if err := status.Ended("arrowio", "the fingerprint", ctx.Err()); err != nil {
			return err
		}
		from, to := p.block(k)
		n := int(to - from)
		for i := range n {
			records[i] = from + int64(i)
		}
		used := 0
		for i, part := range p.parts {
			size := n * fields[part.Field].RowBytes()
			jobs[i] = source.Job{Part: i, Rows: [2]int{0, n}, Dst: buffer[used : used+size]}
			used += size
		}
		if err := gatherReadable(ctx, g, records[:n], jobs, h); err != nil {
			return err
		}
		sum := xxh3.Hash128(buffer[:used]).Bytes()
		h.Write(sum[:])
		if err := hashRagged(ctx, rows, p.ragged, records[:n], h); err != nil {
			return err
		}
	}
	return nil
}

// gatherReadable gathers the parts that can be gathered, and adds a text about each
// other part to the hash. A column with lists of different lengths, or a damaged
// one, must not prevent a loader from using other columns.
func gatherReadable(ctx context.Context, g source.Gatherer, records []int64, jobs []source.Job, h hash.Hash) error {
	if g.Gather(ctx, source.Draw{}, records, jobs) == nil {
		return nil
	}
	for i := range jobs {
		err := g.Gather(ctx, source.Draw{}, records, jobs[i:i+1])
		switch status.CodeOf(err) {
		case status.OK:
		case status.InvalidArgument, status.OutOfRange, status.DataLoss:
			clear(jobs[i].Dst)
			fmt.Fprintf(h, "part %d is not readable\n", i)
		default:
			return err
		}
	}
	return nil
}
