package metamorphic

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestCertificates plays 150 random jobs, or 5,000 with MESHFEED_DEEP=1: each
// goes over several topologies, batch sizes and remainders, and the
// certificates of all processes of all of them must be a proof together, and
// none without one of them.
func TestCertificates(t *testing.T) { random.Rounds(t, 150, 5000, testCertificates) }

func testCertificates(t *testing.T, r *rand.Rand) {
	p := &player{t: t, w: newWorld(r)}
	var parts []certificate.Certificate
	var state []byte
	delivered := int64(0)
	for range 1 + p.w.r.IntN(3) {
		u := p.w.topology(t, 0, []string{layout.Drop, layout.Pad}[p.w.r.IntN(2)])
		if u.steps(p.w.records) == 0 {
			u = p.w.topology(t, 0, layout.Pad)
		}
		certified, after, rows := p.certify(u, state, p.w.r.IntN(8))
		parts, state, delivered = append(parts, certified...), after, delivered+rows
	}
	total := p.sum(parts, -1)
	if err := total.Check(t.Context()); err != nil || total.Rows != delivered {
		t.Fatalf("%d rows were delivered, %d certified: %v", delivered, total.Rows, err)
	}
	lost := p.w.r.IntN(len(parts)) // its claim stays, since a process without devices has the same
	if err := p.sum(parts, lost).Check(t.Context()); parts[lost].Rows > 0 && status.CodeOf(err) != status.DataLoss {
		t.Fatalf("without the certificate of one process: %v", err)
	}
	if twice, err := total.Add(parts[lost]); err != nil || (parts[lost].Rows > 0) != (twice.Check(t.Context()) != nil) {
		t.Fatalf("with one certificate twice: %v", err)
	}
}

// certify plays some steps in every process, from a state on.
func (p *player) certify(u run, state []byte, steps int) (parts []certificate.Certificate, after []byte, rows int64) {
	for _, process := range processes(u) {
		l := p.open(u, process, p.w.source(), loader.Options{Epochs: -1, State: state})
		rows = 0
		for range steps {
			b, err := l.Next(context.Background())
			if err != nil {
				p.t.Fatal(err)
			}
			rows += b.Place().Valid
			b.Release()
		}
		parts, after = append(parts, l.Certificate()), l.State().JSON()
		if err := l.Close(); err != nil {
			p.t.Fatal(err)
		}
	}
	return parts, after, rows
}

// sum adds up all certificates but one, in any order.
func (p *player) sum(parts []certificate.Certificate, without int) certificate.Certificate {
	sum := certificate.Certificate{Sequence: parts[0].Sequence}
	for _, i := range p.w.r.Perm(len(parts)) {
		if i == without {
			continue
		}
		var err error
		if sum, err = sum.Add(parts[i]); err != nil {
			p.t.Fatal(err)
		}
	}
	return sum
}
