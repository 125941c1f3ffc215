package layout

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// OrderLocal is the short name of the order in which every process reads its own
// parts of the dataset. In the layout's document, New replaces it with the full name
// that [Layout.DerivedOrder] returns.
const OrderLocal = "local"

// DerivedOrder returns the full name of an order whose parameters follow from this
// layout ([sampler.IsDerived]), such as OrderLocal.
//
// The parameter of the local order is a number of parts. To find it, the rows of the
// batch are split into equal blocks. For each array, a process must hold either all
// rows of a block or none. The number of parts is the smallest number of such blocks.
// For example, if each of four processes holds its own quarter of the rows, there are
// four parts.
//
// The order follows from the specs and not from the way of loading, so all ways
// deliver the same batches. The error is InvalidArgument if the layout has errors, if
// its rows lie in too many ranges, or if they need more than 2^20 parts.
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

// nameOrder replaces the short name of a derived order in the document with the full
// name.
func (l *Layout) nameOrder() {
	if d := l.doc.Dataset; d != nil && sampler.IsDerived(d.Order) {
		if name, err := l.DerivedOrder(d.Order); err == nil {
			d.Order = name
		}
	}
}

// checkOrder reports an unknown order, and a derived order that this layout cannot
// have. It does not report a derived order if another error of the layout makes its
// costs unknown.
func (l *Layout) checkOrder(d *DatasetSpec) {
	_, err := sampler.New(d.order(), d.Seed, d.Records)
	if sampler.IsDerived(d.Order) {
		if !l.costs.known {
			return
		}
		_, err = l.DerivedOrder(d.Order)
	}
	if e, ok := err.(*status.Error); ok {
		l.report(problem.Error, UnknownOrder, "/dataset/order", e.Msg, e.Hint)
	}
}
