package packing

import "sort"

// group is the plan of a group of documents. Documents are numbered from 0 in the group.
type group struct {
	elements int64 // of all documents

	// split: by document, the elements of the group up to its end.
	ends []int64

	// best_fit: the rows of full pieces, then the rows of rests.
	long  []part   // the documents with full pieces
	fulls []int64  // by document in long: the full pieces up to its end
	rests []part   // the documents with rests, row by row
	first []uint32 // by row of rests: its first place in rests; then the length of rests
}

// part is a document with the number of its elements.
type part struct{ document, elements uint32 }

// plan plans the documents of these lengths, and takes over their memory.
func (o *Options) plan(lengths []int64) *group {
	g := &group{}
	for i, n := range lengths {
		lengths[i] = o.elements(n)
		g.elements += lengths[i]
	}
	if o.Method == BestFit {
		g.pack(o, lengths)
		return g
	}
	g.ends = lengths
	end := int64(0)
	for i, n := range lengths {
		end += n
		g.ends[i] = end
	}
	return g
}

// pack divides the elements of the documents among rows.
func (g *group) pack(o *Options, lengths []int64) {
	length, fulls := int64(o.Length), int64(0)
	parts, rests := make([]part, 0, len(lengths)), make([]uint32, 0, len(lengths))
	for i, n := range lengths {
		p := part{uint32(i), uint32(n)}
		if n >= length {
			fulls += n / length
			g.long, g.fulls = append(g.long, p), append(g.fulls, fulls)
		}
		if rest := n % length; rest > 0 {
			parts, rests = append(parts, p), append(rests, uint32(rest))
		}
	}
	rowOf, rows := fit(rests, o.Length, o.MaxDocuments)
	g.arrange(parts, rowOf, rows)
}

// arrange numbers the rows by their first document, and lists the documents row by row.
func (g *group) arrange(parts []part, rowOf []uint32, rows int) {
	number, next := make([]uint32, rows), uint32(0) // by row: its new number, counted from 1
	g.first = make([]uint32, rows+1)
	for i, row := range rowOf {
		if number[row] == 0 {
			next++
			number[row] = next
		}
		rowOf[i] = number[row] - 1
		g.first[rowOf[i]+1]++
	}
	for row := range rows {
		g.first[row+1] += g.first[row]
		number[row] = g.first[row] // where the next document of the row goes
	}
	g.rests = make([]part, len(parts))
	for i, p := range parts {
		g.rests[number[rowOf[i]]] = p
		number[rowOf[i]]++
	}
}

// full returns the number of full pieces.
func (g *group) full() int64 {
	if len(g.fulls) == 0 {
		return 0
	}
	return g.fulls[len(g.fulls)-1]
}

// rows returns the number of rows of best_fit.
func (g *group) rows() int64 { return g.full() + int64(len(g.first)-1) }

// most returns the most rests in a row.
func (g *group) most() (n int) {
	for row := range len(g.first) - 1 {
		n = max(n, int(g.first[row+1]-g.first[row]))
	}
	return n
}

// bytes returns the memory of the plan.
func (g *group) bytes() int {
	return 8*(cap(g.ends)+cap(g.fulls)+cap(g.long)+cap(g.rests)) + 4*cap(g.first)
}

// packed appends the pieces of a row of best_fit. The group begins with document number first.
func (g *group) packed(row, length, first int64, pieces []Piece) []Piece {
	if row < g.full() {
		i := sort.Search(len(g.fulls), func(i int) bool { return g.fulls[i] > row })
		if i > 0 {
			row -= g.fulls[i-1]
		}
		p := g.long[i]
		return append(pieces, Piece{first + int64(p.document), row * length, (row + 1) * length, int64(p.elements)})
	}
	row -= g.full()
	for _, p := range g.rests[g.first[row]:g.first[row+1]] {
		n := int64(p.elements)
		pieces = append(pieces, Piece{first + int64(p.document), n / length * length, n, n})
	}
	return pieces
}

// between appends the pieces with the elements [at, at + n) of the group, or fewer at its end.
func (g *group) between(at, n, first int64, pieces []Piece) []Piece {
	stop, start := min(at+n, g.elements), int64(0)
	d := sort.Search(len(g.ends), func(i int) bool { return g.ends[i] > at })
	if d > 0 {
		start = g.ends[d-1]
	}
	for ; at < stop; d++ {
		end := g.ends[d]
		if to := min(end, stop); to > at {
			pieces = append(pieces, Piece{first + int64(d), at - start, to - start, end - start})
			at = to
		}
		start = end
	}
	return pieces
}
