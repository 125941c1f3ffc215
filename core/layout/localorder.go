package layout

import (
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// OrderLocal is what a document may say instead of the full name of a local
// order: the one that [Layout.LocalOrder] gives. New writes the full name into
// the layout's document.
const OrderLocal = "local"

// LocalOrder gives the name of the local order that belongs to this layout,
// with which every process reads its own parts of the dataset. They are as
// many as the batch has row groups: the fewest equal blocks of rows such that
// whoever holds one row of a block of an array holds all rows of it. Where
// every process holds one run of rows, or several hold the same, that is the
// number of different runs.
//
// It follows from the specs alone, whatever the way of loading, so that all
// ways give the same batches. The error is InvalidArgument for a layout with
// errors, and where holders change from row to row more than 2^20 times.
func (l *Layout) LocalOrder() (string, error) {
	batch := l.BatchSize()
	if batch == 0 || !l.costs.known {
		return "", status.New(status.InvalidArgument, "layout", `order "local" needs a batch of arrays without errors`)
	}
	cuts, ok := l.rowTilings(l.tilings)
	block := batch
	for i := range cuts {
		for _, ranges := range l.tableOf(cuts[i : i+1]).ranges {
			for _, r := range ranges {
				block = gcd(gcd(block, int64(r[0])), int64(r[1]))
			}
		}
	}
	if !ok || batch/block > sampler.MaxLocalParts {
		return "", status.New(status.InvalidArgument, "layout", `the rows of every process lie in too many pieces for order "local"`).
			WithHint("partition the first batch dimension rather than a later one, or shuffle")
	}
	return sampler.Local(batch/block, batch), nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// nameOrder writes the full name of the document's order into it.
func (l *Layout) nameOrder() {
	if d := l.doc.Dataset; d != nil && d.Order == OrderLocal {
		if name, err := l.LocalOrder(); err == nil {
			d.Order = name
		}
	}
}

// checkOrder looks for names that no order has. A local one that could not be
// named is the fault of what else is wrong, unless nothing is.
func (l *Layout) checkOrder(d *DatasetSpec) {
	_, err := sampler.New(d.order(), d.Seed, d.Records)
	if d.Order == OrderLocal {
		if !l.costs.known {
			return
		}
		_, err = l.LocalOrder()
	}
	if e, ok := err.(*status.Error); ok {
		l.report(Error, UnknownOrder, "/dataset/order", e.Msg, e.Hint)
	}
}
