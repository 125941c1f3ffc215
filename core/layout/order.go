package layout

import (
	"fmt"
	"math"
	"strings"

	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// OrderLocal is the short name of the order in which every process reads its own
// parts of the dataset. In the layout's document, New replaces it with the full name
// that [Layout.DerivedOrder] returns.
const OrderLocal = "local"

// DerivedOrder returns the full name of an order that takes its parameters from this layout
// and the dataset ([sampler.IsDerived]), such as OrderLocal. Units holds the sizes of the
// dataset's units, or is nil if they are not known.
//
// The parameter of the local order is a number of parts. To find it, the rows of the
// batch are split into equal blocks. For each array, a process must hold either all
// rows of a block or none. The number of parts is the smallest number of such blocks.
// For example, if each of four processes holds its own quarter of the rows, there are
// four parts.
//
// The order follows from the specs and not from the way of loading, so all ways
// deliver the same batches. The error is InvalidArgument if the layout has errors. It
// is that for the local order if the rows lie in too many ranges, or if they need more
// than 2^20 parts.
func (l *Layout) DerivedOrder(short string, records int64, units []int64) (string, error) {
	if l.BatchSize() == 0 || !l.costs.known {
		return "", status.New(status.InvalidArgument, "layout", fmt.Sprintf("order %q needs a batch of arrays without errors", short))
	}
	r := sampler.Run{Batch: l.BatchSize(), Records: records, RowBytes: l.RecordBytes(), Units: units}
	if short == OrderLocal {
		var err error
		if r.Groups, err = l.groups(short); err != nil {
			return "", err
		}
	}
	return sampler.Derive(short, r)
}

// RecordBytes returns the bytes of a record in the fields that the batch has. If arrays
// take different columns of a field, it counts the field as often.
func (l *Layout) RecordBytes() (bytes int64) {
	seen := map[string]bool{}
	for _, a := range l.arrays {
		key := fmt.Sprint(a.Field, a.Columns)
		if a.Kind != Data || seen[key] {
			continue
		}
		seen[key] = true
		row := int64(a.Type.Size())
		for _, n := range a.RowShape() {
			row = plus(0, row, int64(n))
		}
		bytes = plus(bytes, row, 1)
	}
	return bytes
}

// groups returns the number of groups of rows for the local order.
func (l *Layout) groups(short string) (int64, error) {
	batch := l.BatchSize()
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
		return 0, status.Errorf(status.InvalidArgument, "layout", "the rows of every process lie in too many pieces for order %q", short).
			WithHint("partition the first batch dimension rather than a later one, or shuffle")
	}
	return batch / block, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// nameOrder replaces the short name of an order in the document with the full name. It
// leaves the name of an order with the units of a dataset, which only a loader knows.
func (l *Layout) nameOrder() {
	d := l.doc.Dataset
	if d == nil {
		return
	}
	d.Order = sampler.Full(d.Order)
	if sampler.IsDerived(d.Order) {
		if name, err := l.DerivedOrder(d.Order, d.Records, nil); err == nil {
			d.Order = name
		}
	}
}

// checkOrder reports an unknown order, and a derived order that this layout cannot
// have. It does not report a derived order if another error of the layout makes its
// costs unknown.
func (l *Layout) checkOrder(d *DatasetSpec) {
	err := sampler.Check(d.order(), d.Seed, d.Records)
	if sampler.IsDerived(d.Order) {
		if !l.costs.known {
			return
		}
		var units []int64
		if sampler.NeedsUnits(d.Order) {
			units = []int64{} // a loader knows them
		}
		_, err = l.DerivedOrder(d.Order, d.Records, units)
	}
	if e, ok := err.(*status.Error); ok {
		l.report(problem.Error, UnknownOrder, "/dataset/order", e.Msg, e.Hint)
	}
}

// FetchRate is the rate, in bytes per second, at which costs of files far away are stated.
const FetchRate = 16 * 50_000_000

// farSmall is a number of bytes that are fetched within a second.
const farSmall = 256 << 20

// FetchCost returns the least number of requests, of up to 8 MiB each, that fetch bytes of files far away, and the seconds
// at FetchRate.
func FetchCost(bytes int64) (requests int64, seconds float64) {
	const most = 8 << 20
	return (bytes + most - 1) / most, float64(bytes) / FetchRate
}

// reportFar reports what a process fetches of files on other machines.
func (l *Layout) reportFar(d *DatasetSpec) {
	if d.FarBytes == 0 {
		return
	}
	n, most := int64(len(l.processes)), l.farBytes(d)
	requests, exact := FetchCost(most)
	all, seconds := plus(0, most, n), int64(math.Ceil(exact))
	severity, code, what, hint := problem.Info, FarRead, "of the files far away, a host fetches up to", "a host with several processes fetches once for all of them, and keeps the files on its disk for later epochs"
	if sampler.Full(d.order()) == sampler.Shuffle && n > 1 && d.FarBytes > farSmall {
		severity, code, what = problem.Warning, FarShuffle, "the order shuffles all files far away, so each host fetches nearly all"
		hint = fmt.Sprintf(`use the order "local", in which each of %d processes fetches its own part of %s, or "blocks", which fetches a window at a time`, n, decimal(d.FarBytes/n))
	}
	l.report(severity, code, "/dataset/far_bytes", fmt.Sprintf("%s %s, up to %s on %s; requests of a host: %d or more; seconds at 16 × 50 MB/s: %d", what, decimal(most), decimal(all), wording.Count(n, "host", "hosts"), requests, seconds),
		hint, fact("bytes", most), fact("processes", n), fact("total_bytes", all), fact("requests", requests), fact("seconds", seconds))
}

// farBytes returns the most bytes of files far away that a process needs in an epoch. In the order "local" it needs the
// part of its rows. In any other order, its rows lie in all files.
func (l *Layout) farBytes(d *DatasetSpec) int64 {
	if rows := l.costs.rows; rows.known && strings.HasPrefix(d.order(), "local.1:") {
		most := 0
		for _, ranges := range rows.ranges {
			count := 0
			for _, r := range ranges {
				count += r[1] - r[0]
			}
			most = max(most, count)
		}
		return int64(math.Ceil(float64(d.FarBytes) * float64(most) / float64(l.BatchSize())))
	}
	return d.FarBytes
}

// decimal writes a number of bytes in the units of networks.
func decimal(n int64) string {
	switch bytes := float64(n); {
	case bytes >= 1e12:
		return fmt.Sprintf("%.1f TB", bytes/1e12)
	case bytes >= 1e9:
		return fmt.Sprintf("%.1f GB", bytes/1e9)
	default:
		return fmt.Sprintf("%.1f MB", bytes/1e6)
	}
}

// reportWindows reports how well an order with windows shuffles, and what it costs.
func (l *Layout) reportWindows(d *DatasetSpec) {
	order, err := sampler.New(d.order(), d.Seed, d.Records)
	if err != nil || l.BatchSize() == 0 {
		return
	}
	w, ok := sampler.WindowsOf(order)
	if !ok || w.Blocks == 0 {
		return
	}
	q := w.Quality(l.BatchSize(), l.RecordBytes())
	l.report(problem.Info, Windows, "/dataset/order", q.String(), "a larger window shuffles better, and a smaller one uses less memory",
		fact("blocks", q.Blocks), fact("windows", q.Windows), fact("window", q.Window), fact("records", q.Records), fact("bytes", q.Bytes),
		fact("variance_percent", q.Percent))
}
