package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/status"
)

// counted is a run of rows that this process counts for its certificates.
type counted struct {
	row  int    // of the global batch
	list [2]int // of the record list
}

// addCounted finds the rows that are this process's to count. They are among
// those that it gathers.
func (p *planner) addCounted(process int) {
	for _, r := range p.lay.FirstRows(process) {
		p.counted = append(p.counted, counted{row: r[0], list: p.rows.locate([][2]int{r})[0]})
	}
}

// count makes the evidence of a batch of the records that were gathered, at
// the positions of the rows that they became.
func (p *plan) count(records []int64, place batch.Place) (t certificate.Tally) {
	if len(p.counted) == 0 {
		return t
	}
	epoch := certificate.EpochOf(place.Epoch)
	for _, c := range p.counted {
		epoch.Count(&t, place.Position+int64(c.row), records[c.list[0]:c.list[1]])
	}
	return t
}

// Certificate says what this loader has delivered since it was made, or since
// the last Restore or Seek, and what this process counted of it. Package
// certificate tells how the certificates of all processes become a proof.
func (l *Loader) Certificate() certificate.Certificate {
	l.line.hold()
	defer l.line.leave()
	return l.line.ledger.sum(l.line.ledger.count)
}

// CertificateAt gives what Certificate gave when the cursor stood at c: where
// one of the last 64 batches ended. It is for callers who hold batches that
// they have not handed on. The error is OutOfRange for any other place.
func (l *Loader) CertificateAt(c batch.Cursor) (certificate.Certificate, error) {
	l.line.hold()
	defer l.line.leave()
	n, ok := l.line.ledger.behind(c)
	if !ok {
		return certificate.Certificate{}, fail(status.OutOfRange, "none of the last %d batches ended at position %d of epoch %d", recentBatches, c.Position, c.Epoch).
			WithHint("ask at the place of a state that is at most %d batches old", recentBatches)
	}
	return l.line.ledger.sum(n), nil
}

// Rewind goes back to where one of the last 64 batches ended, and takes those
// behind it back: the certificate is as if they had not been delivered. It is
// for callers who got batches and have not handed them on. At any other place
// it is Seek.
func (l *Loader) Rewind(c batch.Cursor) error {
	if err := l.grid.check(c); err != nil {
		return err
	}
	return l.line.jump(l.grid.settle(c), (*ledger).rewind)
}

// recentBatches is how many batches a ledger keeps apart.
const recentBatches = 64

// ledger keeps account of what was delivered in one run: from where the loader
// began, or was set, without a gap.
type ledger struct {
	total  certificate.Certificate // of all batches but the recent ones
	start  batch.Cursor            // behind them
	now    batch.Cursor            // behind the recent ones
	recent [recentBatches]entry    // a ring
	first  int
	count  int
}

// entry is one batch.
type entry struct {
	place batch.Place
	tally certificate.Tally
}

// begin begins a run.
func (g *ledger) begin(c batch.Cursor) {
	*g = ledger{total: certificate.Certificate{Sequence: g.total.Sequence}, start: c, now: c}
}

// deliver adds the next batch.
func (g *ledger) deliver(place batch.Place, t certificate.Tally) {
	if g.count == len(g.recent) {
		e := g.at(0)
		e.addTo(&g.total)
		g.start = e.place.After
		g.first = (g.first + 1) % len(g.recent)
		g.count--
	}
	g.count++
	*g.at(g.count - 1) = entry{place, t}
	g.now = place.After
}

// at gives the i-th of the recent batches.
func (g *ledger) at(i int) *entry { return &g.recent[(g.first+i)%len(g.recent)] }

func (e *entry) addTo(c *certificate.Certificate) {
	c.Delivered(e.place.Epoch, e.place.Position, e.place.Position+e.place.Valid, e.tally)
}

// behind gives how many of the recent batches end at a place or before it.
func (g *ledger) behind(c batch.Cursor) (n int, ok bool) {
	switch c {
	case g.now:
		return g.count, true
	case g.start:
		return 0, true
	}
	for i := range g.count {
		if g.at(i).place.After == c {
			return i + 1, true
		}
	}
	return 0, false
}

// sum gives the certificate of all but the last of the recent batches.
func (g *ledger) sum(recent int) certificate.Certificate {
	c := g.total.Clone()
	for i := range recent {
		g.at(i).addTo(&c)
	}
	return c
}

// rewind takes back what lies behind a place, or begins a run there.
func (g *ledger) rewind(c batch.Cursor) {
	n, ok := g.behind(c)
	if !ok {
		g.begin(c)
		return
	}
	g.count, g.now = n, c
}
