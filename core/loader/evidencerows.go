package loader

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
)

// certifiedRows is a range of consecutive rows that this process counts in its
// certificates.
type certifiedRows struct {
	row    int    // the first row, counted in the global batch
	list   [2]int // the same rows as a range of a record list
	weight certificate.Weight
}

// addCertified finds the rows that this process counts in its certificates. If several
// processes hold a block, the one with the lowest number counts its rows. Rows of data
// blocks are located in the record list of the gathered rows. Rows of computed blocks (mask
// and extras) are located in the list of all rows.
func (p *planner) addCertified(mine layout.Process) {
	var data, computed []edge
	for _, h := range p.lay.FirstHeld(mine.Process) {
		b := mine.Blocks[h.Block]
		a, w := p.lay.Arrays()[b.Array], certificate.WeightOf(h.Part)
		to := &computed
		if a.Kind == layout.Data {
			to = &data
		}
		for _, r := range runsOf(a.Shape[:a.BatchDims], b.Index) {
			*to = append(*to, edge{row: r[0], begin: w}, edge{row: r[1], end: w})
		}
	}
	p.certified, p.certifiedComputed = weighted(data, p.rows), weighted(computed, p.all)
}

// edge is a row at which ranges of rows begin or end, with the weights of these
// ranges.
type edge struct {
	row        int
	begin, end certificate.Weight
}

// weighted sums the weights of overlapping ranges. It returns the ranges of rows
// within which the sum is constant and not zero.
func weighted(edges []edge, in rows) (list []certifiedRows) {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.row, b.row) })
	var w certificate.Weight
	for i, e := range edges {
		if from := edges[max(i-1, 0)].row; w.Parts > 0 && from < e.row {
			list = appendCertified(list, certifiedRows{row: from, list: in.locate([][2]int{{from, e.row}})[0], weight: w})
		}
		w = w.Plus(e.begin).Minus(e.end)
	}
	return list
}

// appendCertified appends a range, or extends the last one if the range continues it.
func appendCertified(list []certifiedRows, v certifiedRows) []certifiedRows {
	if n := len(list) - 1; n >= 0 && list[n].weight == v.weight && list[n].row+list[n].list[1]-list[n].list[0] == v.row {
		list[n].list[1] = v.list[1]
		return list
	}
	return append(list, v)
}

// evidence returns the number of certified rows of one batch and the sum of their hashes.
// Gathered is the record list of the gathered rows, and computed is the record list of all
// rows.
func (p *plan) evidence(gathered, computed []int64, step batch.Step) (t certificate.Evidence) {
	if len(p.certified)+len(p.certifiedComputed) == 0 {
		return t
	}
	epoch := certificate.EpochOf(step.Epoch)
	add := func(list []certifiedRows, records []int64) {
		for _, v := range list {
			rows := epoch.Count(step.Position+int64(v.row), records[v.list[0]:v.list[1]])
			t = t.Plus(rows.Times(v.weight))
		}
	}
	add(p.certified, gathered)
	add(p.certifiedComputed, computed)
	return t
}
