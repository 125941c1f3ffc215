package parquet

import (
	"cmp"
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/arrowio/internal/chunk"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/parquet"
)

// unit is a row group, or rows of one: a run of its pages.
type unit struct {
	group       int
	start, stop int64 // rows of the group
}

// Rules say how row groups are divided into runs of pages.
type Rules struct {
	Least int64 // stored bytes of a unit

	// Two units may both read up to 1/Twice of the bytes of the first one: pages with rows of
	// both, and dictionaries. The offset indexes may take the same part of a file.
	Twice int64

	// Units have at least Indexes times the bytes of the offset indexes of their row group,
	// which are read again for each unit.
	Indexes int64
}

const (
	unitBytes  = 8 << 20
	mostTwice  = 64
	indexTimes = 32
)

// UsualRules are the rules for all files.
var UsualRules = Rules{unitBytes, mostTwice, indexTimes}

// divide sets the units. It depends only on the file, so that all processes have the same
// units, whatever they read. A row group stays whole if its offset index is missing or
// contradicts itself, because no other reader needs it.
func (c *file) divide(ctx context.Context, rules Rules, end int64) error {
	indexes, err := c.readIndexes(ctx, rules, end)
	if err != nil {
		return err
	}
	for i := range c.meta.Groups {
		g := &c.meta.Groups[i]
		units, bytes := []unit{{i, 0, g.Rows}}, []int64{groupBytes(g)}
		if pages := indexes.pagesOf(g, rules); pages != nil {
			units, bytes = runsOf(i, g, pages, rules)
			c.noteRanges(units, pages)
		}
		for range units {
			c.facts.Units = append(c.facts.Units, groupExtent(g))
		}
		c.units, c.facts.Bytes = append(c.units, units...), append(c.facts.Bytes, bytes...)
	}
	return nil
}

// noteRanges notes where the pages of units are, which follow the units so far.
func (c *file) noteRanges(units []unit, pages []*parquet.OffsetIndex) {
	if len(units) < 2 || !c.content.Fetches() {
		return
	}
	if c.ranges == nil {
		c.ranges = map[int][]resident.Extent{}
	}
	for i, u := range units {
		list := make([]resident.Extent, len(pages))
		for leaf, x := range pages {
			k := &c.meta.Groups[u.group].Chunks[leaf]
			start, stop := pageRange(k, &chunk.Pages{Index: x, Start: u.start, Stop: u.stop})
			list[leaf] = resident.Extent{Offset: start, Length: stop - start}
		}
		c.ranges[len(c.units)+i] = list
	}
}

// pageRange returns the position of pages of a chunk. The first page has the dictionary before it.
func pageRange(k *parquet.Chunk, pages *chunk.Pages) (start, stop int64) {
	if start, stop = pages.Range(); start == k.Data {
		start = k.Offset
	}
	return start, stop
}

// groupExtent returns the bytes from the first chunk of a row group to the last.
func groupExtent(g *parquet.Group) (e resident.Extent) {
	for i := range g.Chunks {
		c := &g.Chunks[i]
		end := max(e.Offset+e.Length, c.Offset+c.Length)
		if i == 0 || c.Offset < e.Offset {
			e.Offset = c.Offset
		}
		e.Length = end - e.Offset
	}
	return e
}

// groupBytes returns the stored bytes of a row group.
func groupBytes(g *parquet.Group) (bytes int64) {
	for i := range g.Chunks {
		bytes += g.Chunks[i].Length
	}
	return bytes
}

// leastOf returns the stored bytes that a unit of a row group has at least.
func (r Rules) leastOf(g *parquet.Group) int64 {
	bytes := int64(0)
	for i := range g.Chunks {
		bytes += int64(g.Chunks[i].IndexBytes)
	}
	return max(r.Least, r.Indexes*bytes)
}

// divisible reports whether a row group is large, and all its chunks have an offset index.
func (r Rules) divisible(g *parquet.Group) bool {
	return groupBytes(g) >= 2*r.leastOf(g) && !slices.ContainsFunc(g.Chunks, func(c parquet.Chunk) bool { return c.IndexBytes == 0 })
}

// indexBytes holds the part of a file with its offset indexes.
type indexBytes struct {
	data   []byte
	offset int64
}

// readIndexes reads the offset indexes of all divisible row groups at once. Writers store
// them together, before the footer. If they are far apart, it reads none.
func (c *file) readIndexes(ctx context.Context, rules Rules, end int64) (x indexBytes, err error) {
	stop, total, stored := int64(0), int64(0), int64(0)
	for i := range c.meta.Groups {
		g := &c.meta.Groups[i]
		if !rules.divisible(g) {
			continue
		}
		if stored += groupBytes(g); stop == 0 {
			x.offset = end
		}
		for k := range g.Chunks {
			at, n := g.Chunks[k].Index, int64(g.Chunks[k].IndexBytes)
			x.offset, stop, total = min(x.offset, at), max(stop, at+n), total+n
		}
	}
	if size := max(stop-x.offset, total); size == 0 || size > min(arrowmeta.MaxFooter, stored/rules.Twice) {
		return x, nil
	}
	x.data = make([]byte, stop-x.offset)
	return x, c.content.ReadFull(ctx, x.data, x.offset)
}

// pagesOf returns the offset indexes of all chunks of a row group, or nil if it is not divided.
func (x *indexBytes) pagesOf(g *parquet.Group, rules Rules) []*parquet.OffsetIndex {
	if x.data == nil || !rules.divisible(g) {
		return nil
	}
	list := make([]*parquet.OffsetIndex, len(g.Chunks))
	for i := range g.Chunks {
		c := &g.Chunks[i]
		var err error
		if list[i], err = parquet.ReadOffsetIndex(x.data[c.Index-x.offset:][:c.IndexBytes], c, g.Rows); err != nil {
			return nil
		}
	}
	return list
}

// pageStart is the start of a page.
type pageStart struct {
	row  int64
	leaf int
	page int
}

// runsOf divides a row group where pages of its largest chunk begin, and returns the stored
// bytes of each unit. A unit ends as soon as it and the rest have enough bytes, unless the
// units before and after the cut would read too many bytes both.
func runsOf(number int, g *parquet.Group, pages []*parquet.OffsetIndex, rules Rules) (units []unit, bytes []int64) {
	largest := 0
	for i := range g.Chunks {
		if g.Chunks[i].Length > g.Chunks[largest].Length {
			largest = i
		}
	}
	s, least := sweep{group: g, pages: pages}, rules.leastOf(g)
	starts := s.starts()
	start, base := int64(0), int64(0)
	for len(starts) > 0 {
		n := 1
		for n < len(starts) && starts[n].row == starts[0].row {
			n++
		}
		row, candidate := starts[0].row, false
		s.fresh = 0
		for _, p := range starts[:n] {
			s.begin(p)
			candidate = candidate || p.leaf == largest
		}
		starts = starts[n:]
		if row == 0 {
			base = s.before - s.heads
			continue
		}
		divided := s.current - s.fresh
		size := s.before + divided - base
		if rest := s.end - s.before; candidate && size >= least && rest >= least && divided+s.heads <= size/rules.Twice {
			units, bytes = append(units, unit{number, start, row}), append(bytes, size)
			start, base = row, s.before-s.heads
		}
	}
	return append(units, unit{number, start, g.Rows}), append(bytes, s.end-base)
}

// sweep goes through the rows of a row group. Its numbers are sums over all chunks.
type sweep struct {
	group *parquet.Group
	pages []*parquet.OffsetIndex

	before  int64 // offsets of the current pages, which hold the row
	current int64 // bytes of the current pages
	fresh   int64 // bytes of the pages that begin with the row
	heads   int64 // bytes of the dictionaries that the current pages need
	end     int64 // offsets of the ends of the chunks
}

// starts returns the starts of all pages in the order of their rows.
func (s *sweep) starts() (list []pageStart) {
	for leaf, x := range s.pages {
		for page := range x.Len() {
			list = append(list, pageStart{x.Rows[page], leaf, page})
		}
		s.end += x.Offsets[x.Len()]
	}
	slices.SortStableFunc(list, func(a, b pageStart) int { return cmp.Compare(a.row, b.row) })
	return list
}

// begin makes a page the current one of its chunk.
func (s *sweep) begin(p pageStart) {
	x, c := s.pages[p.leaf], &s.group.Chunks[p.leaf]
	head := c.Data - c.Offset
	if p.page > 0 {
		size := x.Offsets[p.page] - x.Offsets[p.page-1]
		s.before -= x.Offsets[p.page-1]
		s.current -= size
		if x.Rows[p.page-1] == p.row { // a page without rows
			s.fresh -= size
		}
		if int64(p.page-1) < c.Lookups {
			s.heads -= head
		}
	}
	size := x.Offsets[p.page+1] - x.Offsets[p.page]
	s.before += x.Offsets[p.page]
	s.current += size
	s.fresh += size
	if int64(p.page) < c.Lookups {
		s.heads += head
	}
}
