package packing

import "sort"

// group is the plan of a group of documents. Documents are numbered from 0 in the group.
type group struct {
	ends []int64 // by document: the elements of the group up to its end

	// best_fit: the rows of full pieces, then the rows of rests.
	long  []uint32 // the documents with full pieces
	fulls []int64  // by document in long: the full pieces up to its end
	order []uint32 // the documents with rests, row by row
	first []uint32 // by row of rests: its first place in order; then the length of order
}

// plan plans the documents of these lengths, and takes over their memory.
func (o *Options) plan(lengths []int64) *group {
	g := &group{ends: lengths}
	end := int64(0)
	for i, n := range lengths {
		end += o.elements(n)
		lengths[i] = end
	}
	if o.Method == BestFit {
		g.pack(o)
	}
	return g
}

// pack divides the elements of the documents among rows.
func (g *group) pack(o *Options) {
	length, start := int64(o.Length), int64(0)
	fulls, documents, rests := int64(0), []uint32{}, []uint32{}
	for i, end := range g.ends {
		n := end - start
		start = end
		if n >= length {
			fulls += n / length
			g.long, g.fulls = append(g.long, uint32(i)), append(g.fulls, fulls)
			n %= length
		}
		if n > 0 {
			documents, rests = append(documents, uint32(i)), append(rests, uint32(n))
		}
	}
	rowOf, rows := fit(rests, o.Length, o.MaxDocuments)
	g.arrange(documents, rowOf, rows)
}

// arrange numbers the rows by their first document, and lists the documents row by row.
func (g *group) arrange(documents, rowOf []uint32, rows int) {
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
	g.order = make([]uint32, len(documents))
	for i, document := range documents {
		g.order[number[rowOf[i]]] = document
		number[rowOf[i]]++
	}
}

// elements returns the number of elements of all documents.
func (g *group) elements() int64 { return g.end(len(g.ends) - 1) }

// end returns the elements up to the end of a document; 0 for -1.
func (g *group) end(document int) int64 {
	if document < 0 {
		return 0
	}
	return g.ends[document]
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
	return 8*(cap(g.ends)+cap(g.fulls)) + 4*(cap(g.long)+cap(g.order)+cap(g.first))
}

// packed appends the pieces of a row of best_fit. The group begins with document number first.
func (g *group) packed(row, length, first int64, pieces []Piece) []Piece {
	if row < g.full() {
		i := sort.Search(len(g.fulls), func(i int) bool { return g.fulls[i] > row })
		if i > 0 {
			row -= g.fulls[i-1]
		}
		d := int(g.long[i])
		return append(pieces, Piece{first + int64(d), row * length, (row + 1) * length, g.ends[d] - g.end(d-1)})
	}
	row -= g.full()
	for _, d := range g.order[g.first[row]:g.first[row+1]] {
		n := g.ends[d] - g.end(int(d)-1)
		pieces = append(pieces, Piece{first + int64(d), n / length * length, n, n})
	}
	return pieces
}

// between appends the pieces with the elements [at, at + n) of the group, or fewer at its end.
func (g *group) between(at, n, first int64, pieces []Piece) []Piece {
	stop := min(at+n, g.elements())
	for d := sort.Search(len(g.ends), func(i int) bool { return g.ends[i] > at }); at < stop; d++ {
		start, end := g.end(d-1), g.ends[d]
		if to := min(end, stop); to > at {
			pieces = append(pieces, Piece{first + int64(d), at - start, to - start, end - start})
			at = to
		}
	}
	return pieces
}
