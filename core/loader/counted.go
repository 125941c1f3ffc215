package loader

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
)

// counted is a range of rows that this process counts for its certificates.
type counted struct {
	row    int    // of the global batch
	list   [2]int // of the record list
	weight certificate.Weight
}

// addCounted finds the rows that this process counts: those of every block of
// which it is the lowest holder, once for each of them. Rows of data are
// counted from the list that is gathered; those that only mask and extras have
// are counted from the list by which these are filled.
func (p *planner) addCounted(mine layout.Process) {
	var data, made []edge
	for _, h := range p.lay.FirstHeld(mine.Process) {
		b := mine.Blocks[h.Block]
		a, w := p.lay.Arrays()[b.Array], certificate.WeightOf(h.Part)
		to := &made
		if a.Kind == layout.Data {
			to = &data
		}
		for _, r := range runsOf(a.Shape[:a.BatchDims], b.Index) {
			*to = append(*to, edge{row: r[0], begin: w}, edge{row: r[1], end: w})
		}
	}
	p.counted, p.countedMade = weighed(data, p.rows), weighed(made, p.all)
}

// edge is where some rows begin or end to have a weight.
type edge struct {
	row        int
	begin, end certificate.Weight
}

// weighed gives the ranges of rows in which the sum of weights is the same.
func weighed(edges []edge, in rows) (list []counted) {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.row, b.row) })
	var w certificate.Weight
	for i, e := range edges {
		if from := edges[max(i-1, 0)].row; w.Parts > 0 && from < e.row {
			list = appendCounted(list, counted{row: from, list: in.locate([][2]int{{from, e.row}})[0], weight: w})
		}
		w = w.Plus(e.begin).Minus(e.end)
	}
	return list
}

// appendCounted adds a range, or makes the last one longer where it goes on.
func appendCounted(list []counted, c counted) []counted {
	if n := len(list) - 1; n >= 0 && list[n].weight == c.weight && list[n].row+list[n].list[1]-list[n].list[0] == c.row {
		list[n].list[1] = c.list[1]
		return list
	}
	return append(list, c)
}

// count makes the evidence of a batch of the records that were gathered, and
// of those by which mask and extras were filled, at the positions of the rows
// that they became.
func (p *plan) count(gathered, made []int64, place batch.Place) (t certificate.Tally) {
	if len(p.counted)+len(p.countedMade) == 0 {
		return t
	}
	epoch := certificate.EpochOf(place.Epoch)
	add := func(list []counted, records []int64) {
		for _, c := range list {
			var rows certificate.Tally
			epoch.Count(&rows, place.Position+int64(c.row), records[c.list[0]:c.list[1]])
			t = t.Plus(rows.Times(c.weight))
		}
	}
	add(p.counted, gathered)
	add(p.countedMade, made)
	return t
}
