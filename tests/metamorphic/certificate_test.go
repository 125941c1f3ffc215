package metamorphic

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestCertificates plays 150 random jobs, or 5,000 with MESHFEED_DEEP=1. Each
// job uses several topologies, batch sizes and remainders, and skips steps. The
// certificates of all processes together must be a proof. Without one of them,
// or with one of them twice, they must not.
func TestCertificates(t *testing.T) { random.Rounds(t, 150, 5000, testCertificates) }

func testCertificates(t *testing.T, r *rand.Rand) {
	p := &player{t: t, w: newWorkload(r)}
	var parts []certified
	state := batch.Cursor{}
	var saved []byte
	for range 1 + p.w.r.IntN(3) {
		u := p.w.topology(t, 0, []string{layout.Drop, layout.Pad}[p.w.r.IntN(2)])
		if u.steps(p.w.records) == 0 {
			u = p.w.topology(t, 0, layout.Pad)
		}
		var run []certified
		run, saved = p.certify(u, saved, p.actions())
		parts = append(parts, run...)
		after, err := loader.ParseState(saved)
		if err != nil {
			t.Fatal(err)
		}
		state = after.Cursor()
	}
	last := certificate.Cursor{Epoch: state.Epoch, Position: state.Position}
	total := p.sum(parts, -1)
	some := slices.ContainsFunc(parts, func(c certified) bool { return c.holds })
	if err := total.Covers(t.Context(), certificate.Cursor{}, last); (err == nil) != some {
		t.Fatalf("%v\nup to %v: %v", total, last, err)
	}
	p.checkRows(total, last)
	lost := p.w.r.IntN(len(parts))
	if !parts[lost].holds {
		return
	}
	if err := p.sum(parts, lost).Covers(t.Context(), certificate.Cursor{}, last); status.CodeOf(err) != status.DataLoss {
		t.Fatalf("without the certificate of one process: %v", err)
	}
	twice, err := total.Add(parts[lost].Certificate)
	if err == nil {
		err = twice.Covers(t.Context(), certificate.Cursor{}, last)
	}
	if status.CodeOf(err) != status.DataLoss {
		t.Fatalf("with one certificate twice: %v", err)
	}
}

// certified is the certificate of one process.
type certified struct {
	certificate.Certificate
	holds bool // the process is in the mesh and delivered a batch
}

// actions is a number of steps, and the steps skipped before each.
func (p *player) actions() (skips []int64) {
	for range p.w.r.IntN(8) {
		skips = append(skips, max(0, p.w.r.Int64N(9)-5))
	}
	return skips
}

// certify plays some steps in every process, starting from a state.
func (p *player) certify(u run, state []byte, skips []int64) (parts []certified, after []byte) {
	for _, process := range processes(u) {
		l := p.open(u, process, p.w.source(), loader.Options{Epochs: -1, State: state})
		for _, n := range skips {
			if err := l.Skip(n); err != nil {
				p.t.Fatal(err)
			}
			b, err := l.Next(context.Background())
			if err != nil {
				p.t.Fatal(err)
			}
			b.Release()
		}
		c, err := l.Certificate()
		if err != nil {
			p.t.Fatal(err)
		}
		parts = append(parts, certified{c, len(skips) > 0 && slices.Contains(u.lay.Mesh().Processes(), process)})
		after = l.State().JSON()
		if err := l.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	return parts, after
}

// checkRows checks that every position was delivered, dropped or skipped
// exactly once.
func (p *player) checkRows(c certificate.Certificate, last certificate.Cursor) {
	coverage, err := c.Coverage(certificate.Cursor{}, last)
	if err != nil {
		p.t.Fatal(err)
	}
	sum := int64(0)
	for _, spans := range [][]certificate.Span{coverage.Delivered, coverage.Dropped, coverage.Skipped} {
		for _, s := range spans {
			sum += s.Epochs * (s.Last - s.First)
		}
	}
	if want := last.Epoch*p.w.records + last.Position; sum != want {
		p.t.Fatalf("%d positions are accounted for, want %d: %v", sum, want, c)
	}
}

// sum adds up all certificates except one, in random order.
func (p *player) sum(parts []certified, without int) certificate.Certificate {
	sum := certificate.Certificate{Sequence: parts[0].Sequence}
	for _, i := range p.w.r.Perm(len(parts)) {
		if i == without {
			continue
		}
		var err error
		if sum, err = sum.Add(parts[i].Certificate); err != nil {
			p.t.Fatal(err)
		}
	}
	return sum
}
