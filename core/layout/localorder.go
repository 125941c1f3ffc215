package layout

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// OrderLocal is the name by which a document asks for the local order of its
// layout. New replaces it by the full name, which [Layout.DerivedOrder] returns.
const OrderLocal = "local"

// DerivedOrder returns the full name of an order whose parameters follow from this
// layout ([sampler.IsDerived]). OrderLocal is such an order: with it, every process
// reads its own parts of the dataset. The number of parts is the smallest number of
// equal blocks of rows such that every process that holds one row of a block holds
// all its rows, for each array. If every process holds one range of rows, it is the
// number of different ranges.
//
// The order follows from the specs and not from the way of loading, so all ways
// deliver the same batches. The error is InvalidArgument for a layout with
// errors, and if there would be more than 2^20 parts.
func (l *Layout) DerivedOrder(short string) (string, error) {
	batch := l.BatchSize()
	if batch == 0 || !l.costs.known {
		return "", status.New(status.InvalidArgument, "layout", fmt.Sprintf("order %q needs a batch of arrays without errors", short))
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
		return "", status.Errorf(status.InvalidArgument, "layout", "the rows of every process lie in too many pieces for order %q", short).
			WithHint("partition the first batch dimension rather than a later one, or shuffle")
	}
	return sampler.Derive(short, sampler.Grouping{Groups: batch / block, Batch: batch}), nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// nameOrder replaces a derived order in the document by its full name.
func (l *Layout) nameOrder() {
	if d := l.doc.Dataset; d != nil && sampler.IsDerived(d.Order) {
		if name, err := l.DerivedOrder(d.Order); err == nil {
			d.Order = name
		}
	}
}

// checkOrder reports names that no order has. It does not report a derived order
// that has no full name because of another error of the layout.
func (l *Layout) checkOrder(d *DatasetSpec) {
	_, err := sampler.New(d.order(), d.Seed, d.Records)
	if sampler.IsDerived(d.Order) {
		if !l.costs.known {
			return
		}
		_, err = l.DerivedOrder(d.Order)
	}
	if e, ok := err.(*status.Error); ok {
		l.report(Error, UnknownOrder, "/dataset/order", e.Msg, e.Hint)
	}
}
