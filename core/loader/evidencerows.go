package loader

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
)

// certifiedRows is a range of rows whose records are evidence in the certificates
// of this process.
type certifiedRows struct {
	row    int    // of the global batch
	list   [2]int // of the record list
	weight certificate.Weight
}

// addCertified finds the rows that this process certifies: those of every block
// whose lowest holder it is, once per block. Rows of data are counted from the
// list that is gathered. Rows that only the mask or an extra has are counted from
// the list of the computed blocks.
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

// edge is a row at which a weight begins or ends.
type edge struct {
	row        int
	begin, end certificate.Weight
}

// weighted returns the ranges of rows within which the sum of weights is constant
// and not zero.
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

// evidence counts the records of a batch at the positions of their rows. Gathered
// is the record list of the data, and computed that of the mask and the extras.
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
