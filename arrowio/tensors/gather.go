package tensors

import (
	"context"
	"hash/crc32"
	"maps"
	"slices"
	"sort"
	"sync"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
	"github.com/meshfeed/meshfeed/internal/guard"
)

const (
	// chunk is how many bytes of an array one task reads. It is a multiple of the
	// size of every element, and fits the cache of a core.
	chunk = 1 << 20

	// gap is how many unneeded bytes of a disk are read rather than skipped: a page, which the
	// system reads anyway.
	gap = 4096
)

// Gatherer implements source.Source.
func (s *Source) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := s.calls.Enter(); err != nil {
		return nil, err
	}
	defer s.calls.Leave()
	set, err := block.Compile(s.schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &gatherer{source: s, set: set, parts: make([]part, len(parts))}
	for i, p := range parts {
		g.parts[i] = newPart(s.schema.Fields[p.Field], p)
	}
	return g, nil
}

// Reader implements source.Source.
func (s *Source) Reader(fields []int) (source.Reader, error) { return cut.Reader(s, fields) }

type gatherer struct {
	source *Source
	set    *block.Set // checks parts and jobs
	parts  []part
}

// Ahead implements source.Gatherer.
func (*gatherer) Ahead(source.Draw, []int64) {}

// Close implements source.Gatherer.
func (*gatherer) Close() error { return nil }

// Gather implements source.Gatherer.
func (g *gatherer) Gather(ctx context.Context, _ source.Draw, records []int64, jobs []source.Job) error {
	if err := g.source.calls.Enter(); err != nil {
		return err
	}
	defer g.source.calls.Leave()
	ctx, stop := g.source.calls.Join(ctx)
	defer stop()
	if err := g.check(ctx, records, jobs); err != nil {
		return err
	}
	copies := g.copies(records, jobs)
	if err := g.read(ctx, copies); err != nil {
		return err
	}
	for _, c := range copies {
		for _, repeat := range c.repeats {
			copy(repeat, c.dst)
		}
	}
	for _, c := range copies {
		if err := g.source.files[g.source.locations[g.parts[c.part].field].file].Check(); err != nil {
			return err
		}
	}
	return nil
}

func (g *gatherer) check(ctx context.Context, records []int64, jobs []source.Job) error {
	if err := ctx.Err(); err != nil {
		return cancelled(err)
	}
	for _, r := range records {
		if r != 0 && r != -1 {
			return status.Errorf(status.OutOfRange, "tensors", "record %d is outside the only record", r).With("record", r)
		}
	}
	return g.set.Check(len(records), jobs)
}

func cancelled(err error) error {
	return &status.Error{Code: status.CodeOf(err), Op: "tensors", Msg: "the read was cancelled", Err: err}
}

// wanted is a part that is read to dst, and copied from there to repeats.
type wanted struct {
	part    int
	dst     []byte
	repeats [][]byte
}

// copies returns the parts to read, and clears the rows of padding.
func (g *gatherer) copies(records []int64, jobs []source.Job) []wanted {
	var out []wanted
	for _, j := range jobs {
		width := g.parts[j.Part].bytes
		w := wanted{part: j.Part}
		for i, r := range records[j.Rows[0]:j.Rows[1]] {
			row := j.Dst[i*width : (i+1)*width]
			switch {
			case r == -1:
				clear(row)
			case w.dst == nil:
				w.dst = row
			default:
				w.repeats = append(w.repeats, row)
			}
		}
		if len(w.dst) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// task is a chunk of an array that some parts need.
type task struct {
	field    int
	from, to int // bytes of the array
	wanted   []wanted

	whole bool   // all bytes were read
	sum   uint32 // the checksum of them
}

// read reads all parts, several chunks at a time. It returns after all chunks, so that
// none is written later; after ctx ended, their reads return at once.
func (g *gatherer) read(ctx context.Context, list []wanted) error {
	byField := map[int][]wanted{}
	for _, w := range list {
		field := g.parts[w.part].field
		byField[field] = append(byField[field], w)
	}
	var tasks []task
	for _, field := range slices.Sorted(maps.Keys(byField)) {
		n := g.source.schema.Fields[field].RowBytes()
		for from := 0; from < n; from += chunk {
			tasks = append(tasks, task{field: field, from: from, to: min(from+chunk, n), wanted: byField[field]})
		}
	}
	err := guard.Parallel(context.WithoutCancel(ctx), "tensors", len(tasks), g.source.reads, func(i int) error { return g.readChunk(ctx, &tasks[i]) })
	if err != nil {
		return err
	}
	return g.compare(tasks)
}

// compare compares the checksums of the arrays that were read completely.
func (g *gatherer) compare(tasks []task) error {
	for len(tasks) > 0 {
		field, sums, whole := tasks[0].field, []uint32(nil), true
		for ; len(tasks) > 0 && tasks[0].field == field; tasks = tasks[1:] {
			sums, whole = append(sums, tasks[0].sum), whole && tasks[0].whole
		}
		at, f := g.source.locations[field], &g.source.schema.Fields[field]
		if at.sum.has && whole && !at.sum.matches(sums, f.RowBytes()) {
			return damaged(g.source.files[at.file], "array %q differs from its checksum in the zip file", f.Name).With("field", f.Name)
		}
	}
	return nil
}

// readChunk reads a chunk and copies the bytes that parts need.
func (g *gatherer) readChunk(ctx context.Context, t *task) error {
	var needed [][2]int
	for _, w := range t.wanted {
		for _, b := range g.parts[w.part].boxes {
			needed = b.spans(needed, t.from, t.to, g.source.gap)
		}
	}
	needed = merged(needed, g.source.gap)
	if len(needed) == 0 {
		return nil
	}
	at := g.source.locations[t.field]
	f, pooled := g.source.files[at.file], buffers.Get().(*[chunk]byte)
	buffer := pooled[:t.to-t.from]
	// A disk may hang, so the reads are on a goroutine that a cancelled call leaves behind.
	// One goroutine reads all spans, since some are short.
	err := guard.Parallel(ctx, "tensors", 1, 1, func(int) error {
		for _, span := range needed {
			if err := ctx.Err(); err != nil {
				return err
			}
			p := buffer[span[0]-t.from : span[1]-t.from]
			if err := read(context.WithoutCancel(ctx), f, p, at.offset+int64(span[0])); err != nil {
				return err
			}
		}
		return nil
	})
	if ended := ctx.Err(); err != nil && ended != nil {
		return cancelled(ended)
	}
	if err != nil {
		return err
	}
	if t.whole = needed[0] == [2]int{t.from, t.to}; t.whole && at.sum.has {
		t.sum = crc32.ChecksumIEEE(buffer)
	}
	for _, w := range t.wanted {
		if err := g.cut(w, t, buffer); err != nil {
			return err
		}
	}
	buffers.Put(pooled) // after an error, a read may still write to it
	return nil
}

var buffers = sync.Pool{New: func() any { return new([chunk]byte) }}

// merged joins spans with gaps below a size.
func merged(spans [][2]int, gap int) [][2]int {
	slices.SortFunc(spans, func(a, b [2]int) int { return a[0] - b[0] })
	out := spans[:0]
	for _, span := range spans {
		if n := len(out); n > 0 && span[0]-out[n-1][1] < gap {
			out[n-1][1] = max(out[n-1][1], span[1])
		} else {
			out = append(out, span)
		}
	}
	return out
}

// cut copies the bytes of a chunk to one part, and converts them.
func (g *gatherer) cut(w wanted, t *task, buffer []byte) error {
	p := &g.parts[w.part]
	for _, b := range p.boxes {
		err := b.runs(t.from, t.to, func(at, from, n int) error {
			src := buffer[from-t.from : from-t.from+n]
			dst := w.dst[(b.start+at)/p.size*p.to.Size():]
			if narrow := narrowings[p.to]; narrow != nil && p.to != p.typ {
				return narrow(g.source.schema.Fields[p.field].Name, dst, src)
			}
			copy(dst, src)
			if p.typ == dtype.Bool {
				normalize(dst[:n])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// part is a part of a field, as boxes in bytes.
type part struct {
	field   int
	typ, to dtype.Type
	size    int // bytes of an element of typ
	bytes   int // bytes of the part, as elements of type to
	boxes   []box
}

// box is a part of an array as runs: bytes that lie together in the file and in the
// block. The dimensions before the last one count the runs.
type box struct {
	counts  []int // how many indexes the box has in each outer dimension
	strides []int // bytes between neighbors in these dimensions
	first   int   // the offset of the first run
	length  int   // the bytes of a run
	total   int   // the number of runs
	start   int   // the offset in the block, in bytes of the stored type
}

func newPart(f source.Field, p source.Part) part {
	to := p.To
	if to == dtype.Invalid {
		to = f.Type
	}
	out := part{field: p.Field, typ: f.Type, to: to, size: f.Type.Size(), bytes: p.Bytes(to)}
	start := 0
	for _, ranges := range p.Boxes {
		b := newBox(f.Shape, out.size, ranges)
		b.start = start
		start += b.total * b.length
		if b.total*b.length > 0 {
			out.boxes = append(out.boxes, b)
		}
	}
	return out
}

func newBox(shape []int, size int, ranges [][2]int) box {
	b := box{length: size, total: 1}
	whole := true // all inner dimensions are whole, so the run continues
	stride := size
	for d := len(shape) - 1; d >= 0; d-- {
		n := ranges[d][1] - ranges[d][0]
		b.first += ranges[d][0] * stride
		if whole {
			b.length *= n
		} else {
			b.counts = append(b.counts, n)
			b.strides = append(b.strides, stride)
			b.total *= n
		}
		whole = whole && n == shape[d]
		stride *= shape[d]
	}
	slices.Reverse(b.counts)
	slices.Reverse(b.strides)
	return b
}

// offset returns the offset of a run in the array.
func (b *box) offset(run int) int {
	at := b.first
	for d := len(b.counts) - 1; d >= 0; d-- {
		at += run % b.counts[d] * b.strides[d]
		run /= b.counts[d]
	}
	return at
}

// runs calls use for every run, or part of one, in the bytes [from, to) of the array:
// its offset in the box, its offset in the array, and its length.
func (b *box) runs(from, to int, use func(at, from, n int) error) error {
	first := sort.Search(b.total, func(run int) bool { return b.offset(run)+b.length > from })
	for run := first; run < b.total; run++ {
		start := b.offset(run)
		if start >= to {
			break
		}
		low, high := max(start, from), min(start+b.length, to)
		if err := use(run*b.length+low-start, low, high-low); err != nil {
			return err
		}
	}
	return nil
}

// spans appends the bytes [from, to) that the box needs, joined over gaps below a size.
func (b *box) spans(out [][2]int, from, to, gap int) [][2]int {
	own := len(out)
	_ = b.runs(from, to, func(_, start, n int) error {
		if last := len(out) - 1; last >= own && start-out[last][1] < gap {
			out[last][1] = start + n
		} else {
			out = append(out, [2]int{start, start + n})
		}
		return nil
	})
	return out
}
