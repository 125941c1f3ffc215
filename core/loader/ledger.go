package loader

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Certificate returns what this loader has delivered since it was made, with the
// evidence of this process. Restore, Seek and Remesh begin another run in the same
// certificate. A Restore of another local order begins a new certificate, because
// positions of two orders cannot be added. Package certificate describes how the
// certificates of all processes become a proof.
//
// The error is ResourceExhausted if the loader was moved, or skipped steps,
// thousands of times.
func (l *Loader) Certificate() (c certificate.Certificate, err error) {
	p := l.prefetcher
	p.inspect(func() { c, err = p.ledger.sum(p.ledger.count) })
	if err != nil {
		return c, err
	}
	return l.withUnits(c)
}

// withUnits adds the commits of the dataset to a certificate, and its units if the order needs them.
// Checking them makes the order, which takes time for each unit, so it is done once.
func (l *Loader) withUnits(c certificate.Certificate) (certificate.Certificate, error) {
	c.Commits = source.CommitsOf(l.src)
	if !sampler.NeedsUnits(c.Order) {
		return c, nil
	}
	if known := l.certified.Load(); known != nil {
		if same, ok := c.OfSame(*known); ok {
			return same, nil
		}
	}
	units, err := source.UnitsOf(l.src)
	if err != nil {
		return c, err
	}
	known, err := certificate.Certificate{Sequence: c.Sequence}.Of(units)
	if err != nil {
		return c, err
	}
	l.certified.Store(&known)
	c, _ = c.OfSame(known)
	return c, nil
}

// CertificateAt returns what Certificate returned when the cursor was at c, which
// must be the end of one of the last 64 batches. It is for callers that hold
// batches which they have not passed on. The error is OutOfRange for any other
// cursor.
func (l *Loader) CertificateAt(c batch.Cursor) (cert certificate.Certificate, err error) {
	p := l.prefetcher
	p.inspect(func() {
		n, ok := p.ledger.upTo(c)
		if !ok {
			err = fail(status.OutOfRange, "none of the last %d batches ended at position %d of epoch %d", recentBatches, c.Position, c.Epoch).
				WithHint("ask at the position of a state that is at most %d batches old", recentBatches)
			return
		}
		cert, err = p.ledger.sum(n)
	})
	if err != nil {
		return cert, err
	}
	return l.withUnits(cert)
}

// Rewind moves back to the end of one of the last 64 batches and removes the later
// ones from the certificate. It is for callers that hold batches which they have
// not passed on. At any other cursor, or one before the last Restore, Seek, Skip or
// Remesh, it is Seek.
func (l *Loader) Rewind(c batch.Cursor) error { return l.moveTo(c, (*ledger).rewind) }

// recentBatches is the number of last batches that a ledger keeps apart from the
// run, so that CertificateAt and Rewind can leave them out.
const recentBatches = 64

// ledger records what was delivered: completed runs, the current run, and its last
// batches. Restore, Seek and Remesh end a run.
type ledger struct {
	sequence certificate.Sequence
	done     []certificate.Run
	overflow bool            // more than maxDone runs ended
	run      certificate.Run // current, without the recent batches
	start    batch.Cursor    // start of the recent batches
	now      batch.Cursor    // after them
	recent   [recentBatches]entry
	first    int // index in recent, which is a ring
	count    int
}

// maxDone bounds the runs that a ledger keeps. A certificate of more is an error.
const maxDone = 4096

// entry is one batch.
type entry struct {
	step     batch.Step
	evidence certificate.Evidence
}

// begin begins a run at a cursor. Requested is the cursor that the caller asked for.
// If no step begins there, at is the start of the next epoch, and the records between
// the two are dropped.
func (g *ledger) begin(requested, at batch.Cursor) {
	g.end()
	if requested != at {
		g.run.Drop(certificate.Span{Epoch: requested.Epoch, Epochs: 1, First: requested.Position, Last: g.sequence.Records})
	}
	g.start, g.now = at, at
}

// end ends the current run.
func (g *ledger) end() {
	g.addRecent()
	switch {
	case g.run.Empty():
	case len(g.done) == maxDone:
		g.overflow = true
	default:
		g.done = append(g.done, g.run)
	}
	g.run = g.run.Afresh()
}

// remeshed returns a ledger that continues on another mesh, with run as its current
// run. Cursor and at are the arguments of begin.
func (g ledger) remeshed(run certificate.Run, cursor, at batch.Cursor) ledger {
	g.run, g.done = g.run.Clone(), slices.Clip(g.done) // g itself must not change
	g.end()
	g.run = run
	g.begin(cursor, at)
	return g
}

// setSequence sets the dataset and its order. If they change, the ledger is emptied.
func (g *ledger) setSequence(s certificate.Sequence) {
	if s != g.sequence {
		*g = ledger{sequence: s, run: g.run.Afresh()}
	}
}

// addRecent adds the recent batches to the run.
func (g *ledger) addRecent() {
	for i := range g.count {
		g.at(i).addTo(&g.run, g.sequence.Records)
	}
	g.first, g.count, g.start = 0, 0, g.now
}

// skip records that steps were left out.
func (g *ledger) skip(s skip) {
	g.addRecent()
	for _, span := range s.skipped {
		g.run.Skip(span)
	}
	for _, span := range s.dropped {
		g.run.Drop(span)
	}
	g.start, g.now = s.to, s.to
	if len(g.run.Skipped) > maxDone {
		g.overflow = true
		g.run.Delivered, g.run.Dropped, g.run.Skipped = nil, nil, nil
	}
}

// deliver records the next batch.
func (g *ledger) deliver(step batch.Step, evidence certificate.Evidence) {
	if g.count == len(g.recent) {
		e := g.at(0)
		e.addTo(&g.run, g.sequence.Records)
		g.start = e.step.After
		g.first = (g.first + 1) % len(g.recent)
		g.count--
	}
	g.count++
	*g.at(g.count - 1) = entry{step, evidence}
	g.now = step.After
}

// at returns the i-th recent batch.
func (g *ledger) at(i int) *entry { return &g.recent[(g.first+i)%len(g.recent)] }

// addTo adds the batch to a run. If it is the last of its epoch, the remainder of
// the epoch is dropped.
func (e *entry) addTo(r *certificate.Run, records int64) {
	p := e.step
	r.Deliver(p.Epoch, p.Position, p.Position+p.Valid, e.evidence)
	if p.After.Epoch != p.Epoch {
		r.Drop(certificate.Span{Epoch: p.Epoch, Epochs: 1, First: p.Position + p.Valid, Last: records})
	}
}

// upTo returns how many of the recent batches end at a cursor or before it.
func (g *ledger) upTo(c batch.Cursor) (n int, ok bool) {
	switch c {
	case g.now:
		return g.count, true
	case g.start:
		return 0, true
	}
	for i := range g.count {
		if g.at(i).step.After == c {
			return i + 1, true
		}
	}
	return 0, false
}

// sum returns the certificate up to the given number of recent batches.
func (g *ledger) sum(recent int) (certificate.Certificate, error) {
	if g.overflow {
		return certificate.Certificate{}, fail(status.ResourceExhausted, "the loader was moved, or skipped steps, more than %d times, which is more than a certificate can hold", maxDone).
			WithHint("make a new loader from the state, and take a certificate of each")
	}
	run := g.run.Clone()
	for i := range recent {
		g.at(i).addTo(&run, g.sequence.Records)
	}
	return certificate.New(g.sequence, append(slices.Clone(g.done), run))
}

// rewind removes the batches after a cursor. If the cursor is not the end of a
// recent batch, it begins a run there.
func (g *ledger) rewind(requested, at batch.Cursor) {
	n, ok := g.upTo(at)
	if !ok {
		g.begin(requested, at)
		return
	}
	g.count, g.now = n, at
}
