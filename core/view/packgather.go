package view

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/internal/block"
	"github.com/meshfeed/meshfeed/internal/gather"
)

// Gatherer implements source.Source. It copies the elements of documents from the rows below to the
// blocks, without a copy between.
func (v *pack) Gatherer(parts []source.Part) (source.Gatherer, error) {
	if err := v.calls.Enter(); err != nil {
		return nil, err
	}
	defer v.calls.Leave()
	set, err := block.Compile(v.schema, parts, nil)
	if err != nil {
		return nil, err
	}
	g := &packGatherer{view: v, set: set}
	g.pool.New = func() any { return new(packGather) }
	for _, p := range parts {
		made, err := v.part(p)
		if err != nil {
			return nil, err
		}
		if made.kind <= labels {
			field := v.fields[made.slot]
			if made.slot = slices.Index(g.fields, field); made.slot < 0 {
				made.slot, g.fields = len(g.fields), append(g.fields, field)
			}
		}
		g.parts = append(g.parts, made)
	}
	g.reader, err = v.below[0].Reader(g.fields)
	return g, err
}

// packGatherer writes blocks of packed rows.
type packGatherer struct {
	view   *pack
	set    *block.Set
	parts  []packPart
	fields []int // below, each once
	reader source.Reader
	pool   sync.Pool // holds *packGather
}

// packPart is a part, and what an element of its rows becomes.
type packPart struct {
	content    // slot is an index in packGatherer.fields
	boxes      [][][2]int
	width      int               // bytes of an element in the block
	conversion gather.Conversion // unless widened
	widened    bool              // labels of unsigned integers
	inner      *gather.Program   // copies a part of an element; nil if all of it is copied
	separator  []byte            // one number
	ignored    []byte            // one number
}

// part prepares a part, which was compiled before.
func (v *pack) part(p source.Part) (made packPart, err error) {
	f := v.schema.Fields[p.Field]
	to := cmp.Or(p.To, f.Type)
	made = packPart{content: v.contents[p.Field], boxes: p.Boxes, width: to.Size()}
	inner, whole := f.Shape[1:], to.Size()
	for d, r := range p.Boxes[0][1:] {
		made.width *= r[1] - r[0]
		whole *= inner[d]
	}
	if made.kind > labels {
		return made, nil
	}
	made.separator, made.ignored = make([]byte, to.Size()), make([]byte, to.Size())
	if made.slot == 0 && v.options.Separator != nil {
		if made.separator, err = v.encode("the separator", made.element, to, v.options.Separator); err != nil {
			return made, err
		}
	}
	if made.kind == labels {
		made.widened = made.element.Type != f.Type
		if made.ignored, err = v.encode("the ignored label", made.element, to, v.options.Ignored); err != nil {
			return made, err
		}
	}
	made.conversion, _ = gather.Conversions(f.Type, to)
	if made.width < whole {
		made.inner = gather.Compile(inner, f.Type.Size(), [][][2]int{p.Boxes[0][1:]}, made.conversion)
	}
	return made, nil
}

// packGather is the working memory of one gather.
type packGather struct {
	pieces []packing.Piece
	starts []int         // by record: its first piece; then the number of pieces
	spans  []source.Span // by field below: the rows of all pieces
	copies []gather.Span // that a job makes at its end
	from   []int64       // by copy: the record below
}

// Gather implements source.Gatherer.
func (g *packGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	return g.view.gather(ctx, g.set, records, jobs, func(ctx context.Context) error {
		s := g.pool.Get().(*packGather)
		defer g.pool.Put(s)
		defer s.reset()
		if err := s.plan(ctx, g.view.plan, records, jobs); err != nil {
			return err
		}
		for _, field := range g.fields {
			for _, piece := range s.pieces {
				s.spans = append(s.spans, source.Span{Field: field, Record: piece.Document})
			}
		}
		return g.reader.Read(ctx, draw, s.spans, func() error {
			for _, j := range jobs {
				if err := g.job(s, records, j); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// reset drops references to memory of the reader.
func (s *packGather) reset() {
	clear(s.spans)
	clear(s.copies)
	s.pieces, s.starts, s.spans, s.copies, s.from = s.pieces[:0], s.starts[:0], s.spans[:0], s.copies[:0], s.from[:0]
}

// plan finds the pieces of the records between the first and the last row of all jobs.
func (s *packGather) plan(ctx context.Context, plan *packing.Plan, records []int64, jobs []source.Job) (err error) {
	from, to := len(records), 0
	for _, j := range jobs {
		from, to = min(from, j.Rows[0]), max(to, j.Rows[1])
	}
	for i, r := range records {
		s.starts = append(s.starts, len(s.pieces))
		if r < 0 || i < from || i >= to {
			continue
		}
		var known bool
		if s.pieces, known = plan.Known(r, s.pieces); known {
			continue
		}
		if err := plan.Prepare(ctx, records[i:to]); err != nil {
			return err
		}
		if s.pieces, err = plan.Row(ctx, r, s.pieces[:s.starts[i]]); err != nil {
			return err
		}
	}
	s.starts = append(s.starts, len(s.pieces))
	return nil
}

// job writes the rows of a job.
func (g *packGatherer) job(s *packGather, records []int64, j source.Job) error {
	p, n := &g.parts[j.Part], j.Rows[1]-j.Rows[0]
	if n == 0 {
		return nil
	}
	width := len(j.Dst) / n
	for i := j.Rows[0]; i < j.Rows[1]; i++ {
		dst := j.Dst[(i-j.Rows[0])*width:][:width]
		if records[i] < 0 {
			clear(dst)
			continue
		}
		from, to := s.starts[i], s.starts[i+1]
		var rows []source.Span
		if p.kind <= labels {
			rows = s.spans[p.slot*len(s.pieces):][from:to]
		}
		for _, box := range p.boxes {
			part := dst[:(box[0][1]-box[0][0])*p.width]
			if err := g.write(s, part, p, s.pieces[from:to], rows, int64(box[0][0])); err != nil {
				return err
			}
			dst = dst[len(part):]
		}
	}
	return s.copyAll(p)
}

// write writes elements of a row, from element first on.
func (g *packGatherer) write(s *packGather, dst []byte, p *packPart, pieces []packing.Piece, rows []source.Span, first int64) error {
	width := int64(p.width)
	if width == 0 {
		return nil
	}
	at, stop := int64(0), first+int64(len(dst))/width // the element of the row where the piece begins
	var segment [4]byte
	for i := 0; i < len(pieces) && at < stop; i++ {
		n := pieces[i].Stop - pieces[i].Start
		from, to := max(first-at, 0), min(stop-at, n)
		if from < to {
			part := dst[(at+from-first)*width : (at+to-first)*width]
			switch p.kind {
			case segments:
				binary.LittleEndian.PutUint32(segment[:], uint32(i+1))
				repeat(part, segment[:])
			case positions:
				copy(part, g.view.numbers[4*from:])
			default:
				if err := g.elements(s, part, p, &rows[i], pieces[i], from, to); err != nil {
					return err
				}
			}
		}
		at += n
	}
	if padding := dst[min(max(at-first, 0)*width, int64(len(dst))):]; p.kind == labels {
		repeat(padding, p.ignored)
	} else {
		clear(padding)
	}
	return nil
}

// elements writes the elements [from, to) of a piece, or the labels of these.
func (g *packGatherer) elements(s *packGather, dst []byte, p *packPart, row *source.Span, piece packing.Piece, from, to int64) error {
	n := int64(len(row.Row) / p.element.RowBytes())
	if got := g.view.plan.Elements(n); got != piece.Total {
		return g.view.changed(p.element.Name, row.Record)
	}
	from, to = piece.Start+from, piece.Start+to
	if p.kind == labels {
		from, to = from+1, min(to+1, piece.Total)
		labeled := int(to-from) * p.width
		repeat(dst[labeled:], p.ignored)
		dst = dst[:labeled]
	}
	from, to = min(from, n), min(to, n)
	stored := int(to-from) * p.width
	repeat(dst[stored:], p.separator)
	each := int64(p.element.RowBytes())
	if nulls := each / int64(p.element.Type.Size()); row.Nulls != nil && slices.Contains(row.Nulls[from*nulls:to*nulls], true) {
		return status.Errorf(status.InvalidArgument, "view", "field %q: record %d holds a null among its elements, and a packed row cannot", p.element.Name, row.Record).
			WithHint("leave out this record (Go: view.FilterFunc; Python: ds.filter)").With("field", p.element.Name).With("record", row.Record)
	}
	return g.copy(s, p, dst[:stored], row.Row[from*each:to*each], row.Record)
}

// changed returns the error for a row that does not have the length that Pack has read.
func (v *pack) changed(field string, record int64) error {
	return status.Errorf(status.InvalidArgument, "view", "field %q: record %d has another length than when its dataset was packed", field, record).
		WithHint("lengths that depend on the draw cannot be packed: keep the rows first (Python: ds.cache)").With("field", field).With("record", record)
}

// copy copies elements of a record to a block. Whole elements are copied at the end of the job, so that
// later ones are prefetched.
func (g *packGatherer) copy(s *packGather, p *packPart, dst, src []byte, record int64) error {
	switch {
	case p.widened:
		return p.widen(dst, src, record)
	case p.inner == nil:
		s.copies, s.from = append(s.copies, gather.Span{Dst: dst, Src: src}), append(s.from, record)
		return nil
	}
	each := p.element.RowBytes()
	rows := make([]uintptr, len(src)/each)
	for i := range rows {
		rows[i] = block.Address(src[i*each:])
	}
	err := gather.Run(rows, []gather.Job{{Program: p.inner, Rows: [2]int{0, len(rows)}, Dst: dst}}, gather.Options{})
	if e, ok := errors.AsType[*gather.RangeError](err); ok {
		return block.OutOfRange(&p.element, record, e)
	}
	return err
}

// copyAll makes the copies of a job.
func (s *packGather) copyAll(p *packPart) error {
	err := p.conversion.Copy(s.copies)
	if e, ok := errors.AsType[*gather.RangeError](err); ok {
		err = block.OutOfRange(&p.element, s.from[e.Row], e)
	}
	clear(s.copies)
	s.copies, s.from = s.copies[:0], s.from[:0]
	return err
}

// widen makes int32 of unsigned integers.
func (p *packPart) widen(dst, src []byte, record int64) error {
	size := p.element.Type.Size()
	var bits [8]byte
	for i := 0; i*size < len(src); i++ {
		copy(bits[:size], src[i*size:])
		n := binary.LittleEndian.Uint64(bits[:])
		if n > math.MaxInt32 {
			return status.Errorf(status.OutOfRange, "view", "field %q: record %d holds %d, but labels of unsigned elements are int32", p.element.Name, record, n).
				WithHint("leave out the labels, or store smaller elements").With("field", p.element.Name).With("record", record)
		}
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(n))
	}
	return nil
}

// Ahead implements source.Gatherer. It plans no group, because that takes long.
func (g *packGatherer) Ahead(draw source.Draw, records []int64) {
	v := g.view
	if v.calls.Enter() != nil {
		return
	}
	defer v.calls.Leave()
	var pieces []packing.Piece
	var documents []int64
	for _, r := range records {
		if v.checkExists(r) == nil {
			pieces, _ = v.plan.Known(r, pieces[:0])
			for _, piece := range pieces {
				documents = append(documents, piece.Document)
			}
		}
	}
	g.reader.Ahead(draw, documents)
}

// Close implements source.Gatherer.
func (g *packGatherer) Close() error { return g.reader.Close() }
