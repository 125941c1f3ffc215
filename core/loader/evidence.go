package loader

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/status"
)

// Certificate says what this loader has delivered since it was made, and what
// this process counted of it. A Restore, a Seek and a Remesh begin another run
// in the same account; so does a Restore of another local order, but in an
// account of its own, since positions of two orders do not add up. Package
// certificate tells how the certificates of all processes become a proof.
//
// The error is ResourceExhausted where the loader was moved, or skipped steps,
// thousands of times.
func (l *Loader) Certificate() (certificate.Certificate, error) {
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
	return l.line.ledger.sum(n)
}

// Rewind goes back to where one of the last 64 batches ended, and takes those
// behind it back: the certificate is as if they had not been delivered. It is
// for a caller that got batches and has not handed them on. At any other place,
// and behind a Restore, Seek, Skip or Remesh, it is Seek.
func (l *Loader) Rewind(c batch.Cursor) error {
	if err := l.grid.check(c); err != nil {
		return err
	}
	return l.line.jump(l.grid.settle(c), func(g *ledger, to batch.Cursor) { g.rewind(c, to) })
}

// recentBatches is how many batches a ledger keeps apart.
const recentBatches = 64

// ledger keeps account of what was delivered: the runs that have ended, the one
// that goes on, and its last batches.
type ledger struct {
	sequence certificate.Sequence
	done     []certificate.Run
	overflow bool            // there were more than maxDone
	run      certificate.Run // without the recent batches
	start    batch.Cursor    // of the recent ones
	now      batch.Cursor    // behind them
	recent   [recentBatches]entry
	first    int // recent is a ring
	count    int
}

// maxDone bounds the runs that a ledger keeps. Certificates of more are an
// error, and take no more memory.
const maxDone = 4096

// entry is one batch.
type entry struct {
	place batch.Place
	tally certificate.Tally
}

// begin begins a run at a cursor that was asked for, and at which the grid
// settled: an end of an epoch between them fills no step.
func (g *ledger) begin(asked, at batch.Cursor) {
	g.end()
	if asked != at {
		g.run.Drop(certificate.Span{Epoch: asked.Epoch, Epochs: 1, First: asked.Position, Last: g.sequence.Records})
	}
	g.start, g.now = at, at
}

// end ends the run.
func (g *ledger) end() {
	g.settle()
	switch {
	case g.run.Empty():
	case len(g.done) == maxDone:
		g.overflow = true
	default:
		g.done = append(g.done, g.run)
	}
	g.run = g.run.Afresh()
}

// remeshed gives a ledger that goes on with another mesh: in a run like the one
// given, at a cursor, and where the grid settled.
func (g ledger) remeshed(run certificate.Run, cursor, at batch.Cursor) ledger {
	g.run, g.done = g.run.Clone(), slices.Clip(g.done) // the other loader goes on with its own
	g.end()
	g.run = run
	g.begin(cursor, at)
	return g
}

// follow goes on with records of a sequence. An account of another one ends.
func (g *ledger) follow(s certificate.Sequence) {
	if s != g.sequence {
		*g = ledger{sequence: s, run: g.run.Afresh()}
	}
}

// settle puts the recent batches with those before them.
func (g *ledger) settle() {
	for i := range g.count {
		g.at(i).addTo(&g.run, g.sequence.Records)
	}
	g.first, g.count, g.start = 0, 0, g.now
}

// skip notes that steps were left out, and where they end.
func (g *ledger) skip(s skip) {
	g.settle()
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

// deliver adds the next batch.
func (g *ledger) deliver(place batch.Place, t certificate.Tally) {
	if g.count == len(g.recent) {
		e := g.at(0)
		e.addTo(&g.run, g.sequence.Records)
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

// addTo adds the batch to a run. If it is the last of its epoch, what is left
// of the epoch is dropped.
func (e *entry) addTo(r *certificate.Run, records int64) {
	p := e.place
	r.Deliver(p.Epoch, p.Position, p.Position+p.Valid, e.tally)
	if p.After.Epoch != p.Epoch {
		r.Drop(certificate.Span{Epoch: p.Epoch, Epochs: 1, First: p.Position + p.Valid, Last: records})
	}
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
func (g *ledger) sum(recent int) (certificate.Certificate, error) {
	if g.overflow {
		return certificate.Certificate{}, fail(status.ResourceExhausted, "the loader was moved, or skipped steps, more than %d times, which no certificate can tell", maxDone).
			WithHint("make a new loader from the state, and take a certificate of each")
	}
	run := g.run.Clone()
	for i := range recent {
		g.at(i).addTo(&run, g.sequence.Records)
	}
	return certificate.New(g.sequence, append(slices.Clone(g.done), run))
}

// rewind takes back what lies behind a place, or begins a run there.
func (g *ledger) rewind(asked, at batch.Cursor) {
	n, ok := g.behind(at)
	if !ok {
		g.begin(asked, at)
		return
	}
	g.count, g.now = n, at
}
