package units

import (
	"context"
	"math"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
)

// fetching has the stored bytes that are fetched before their decoding.
type fetching struct {
	from *resident.Fetcher // nil if the storage needs none

	mu     sync.Mutex
	pieces map[place][]resident.Fetched
	last   int32 // record batch of the last call
}

// place is a column of the union in a record batch.
type place struct {
	batch  int32
	column int
}

// Fetches reports whether stored bytes should be fetched before their decoding, because reads take
// long.
func (s *Files) Fetches() bool { return s.fetching.from != nil }

// Wanted lists stored bytes that will be decoded soon.
type Wanted struct {
	Batches []int32 // in ascending order
	Fields  []int

	// Decoded, if set, reports that a field of a record batch is decoded already.
	Decoded func(batch int32, field int) bool

	// Whole leaves all out if together they have more bytes than may be held. It is for
	// decoders that need one field of all batches before the next field.
	Whole bool

	// Next adds the next batches of the file to the last read, if these batches follow
	// the batches of the last call. Then the order of records is sequential.
	Next bool
}

// Fetch begins to read stored bytes, and returns at once. It reads nothing twice that waits for its
// decoding.
func (s *Files) Fetch(w Wanted) {
	if !s.Fetches() || len(w.Batches) == 0 {
		return
	}
	p := &s.fetching
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := fetchPlan{Files: s, Wanted: w}
	for _, batch := range w.Batches {
		plan.add(batch)
	}
	if w.Next {
		first, last := w.Batches[0], w.Batches[len(w.Batches)-1]
		if int(last-first) == len(w.Batches)-1 && (first == p.last || first == p.last+1) {
			plan.extend(last)
		}
		p.last = last
	}
	if w.Whole && plan.bytes > s.Reads.Ahead {
		return
	}
	for i, piece := range p.from.Fetch(plan.pieces) {
		at := plan.places[i]
		p.pieces[at] = append(p.pieces[at], piece)
	}
}

// fetchPlan collects what a call of Fetch reads.
type fetchPlan struct {
	*Files
	Wanted
	pieces []resident.Piece
	places []place // one for each piece
	bytes  int64
}

// add adds the fields of a record batch that are not fetched already.
func (p *fetchPlan) add(batch int32) {
	f := p.File(batch)
	for _, i := range p.Wanted.Fields {
		field := p.Files.Fields[i]
		at := place{batch, field.Column}
		number, _ := f.Column(field)
		if number < 0 || p.fetching.pieces[at] != nil || p.Decoded != nil && p.Decoded(batch, i) {
			continue
		}
		for _, e := range f.Contents.Stored(int(batch)-f.First, number) {
			p.pieces, p.places = append(p.pieces, resident.Piece{File: f.Content, Extent: e}), append(p.places, at)
			p.bytes += e.Length
		}
	}
}

// extend adds batches that follow one in its file, as long as one read serves all.
func (p *fetchPlan) extend(batch int32) {
	end := int32(p.File(batch).End())
	for batch++; batch < end; batch++ {
		before := *p
		if p.add(batch); len(p.pieces) == len(before.pieces) {
			return // it is fetched or decoded already
		}
		if p.span(p.File(batch).Content) > p.Reads.Size {
			*p = before
			return
		}
	}
}

// span returns how many bytes of a file are between the first piece and the end of the last.
func (p *fetchPlan) span(f *resident.File) int64 {
	from, to := int64(math.MaxInt64), int64(0)
	for _, piece := range p.pieces {
		if piece.File == f {
			from, to = min(from, piece.Offset), max(to, piece.Offset+piece.Length)
		}
	}
	return to - from
}

// Release ends the use of what was fetched of fields of record batches from first to last-1.
func (s *Files) Release(first, last int, fields []int) {
	if !s.Fetches() {
		return
	}
	for batch := first; batch < last; batch++ {
		for _, i := range fields {
			s.release(place{int32(batch), s.Fields[i].Column})
		}
	}
}

func (s *Files) release(at place) {
	s.fetching.mu.Lock()
	pieces := s.fetching.pieces[at]
	delete(s.fetching.pieces, at)
	s.fetching.mu.Unlock()
	for _, p := range pieces {
		s.fetching.from.Release(p)
	}
}

// Decoding returns the decoding of a field of a record batch, as its file stores the field. Its end
// releases what was fetched for it.
func (s *Files) Decoding(ctx context.Context, batch int32, field Field) (format.Decoding, error) {
	d, err := s.File(batch).decoding(ctx, batch, field)
	if run := d.Run; s.Fetches() {
		d.Run = func(ctx context.Context, lists bool) (*buffers.Decoded, error) {
			out, err := run(ctx, lists)
			if err == nil && !lists {
				s.release(place{batch, field.Column})
			}
			return out, err
		}
	}
	return d, err
}
