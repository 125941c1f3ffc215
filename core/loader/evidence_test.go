package loader_test

import (
	"context"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// tampered is a dataset whose gatherers get other records than were asked for,
// as a fault between order and gather would make it: fault changes the list
// that a loader gathers, in place.
type tampered struct {
	source.Source
	fault func(call int, records []int64)
}

func (s tampered) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := s.Source.Gatherer(parts)
	return &tamperedGatherer{Gatherer: g, fault: s.fault}, err
}

type tamperedGatherer struct {
	source.Gatherer
	fault func(int, []int64)
	calls int
}

func (g *tamperedGatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	g.fault(g.calls, records)
	g.calls++
	return g.Gatherer.Gather(ctx, records, jobs)
}

// run plays every process of a layout for some batches and adds up their
// certificates.
func certify(t testing.TB, src source.Source, o loader.Options, batches int) certificate.Certificate {
	t.Helper()
	var total certificate.Certificate
	for i, process := range o.Layout.Mesh().Processes() {
		o.Process = process
		l := newLoader(t, src, o)
		for range batches {
			b, err := l.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		if i == 0 {
			total = l.Certificate()
			continue
		}
		var err error
		if total, err = total.Add(l.Certificate()); err != nil {
			t.Fatal(err)
		}
	}
	return total
}

func wantRuns(t testing.TB, c certificate.Certificate, want ...certificate.Run) {
	t.Helper()
	runs, err := c.Runs()
	if err != nil || len(runs) != len(want) {
		t.Fatalf("runs %v, %v, want %v", runs, err, want)
	}
	for i := range want {
		if runs[i] != want[i] {
			t.Errorf("run %d is %v, want %v", i, runs[i], want[i])
		}
	}
}

// replicated is a layout of two processes in which everything is held twice.
func replicated(size int) *layout.Document {
	d := document(size)
	for i := range d.Arrays {
		d.Arrays[i].Spec = nil
	}
	return d
}

func TestCertificate(t *testing.T) {
	padded := document(32)
	padded.Batch.Remainder = layout.Pad
	extras := document(32)
	extras.Batch.Extras = []string{layout.ExtraKey}
	inner := document(4, 8)
	whole := certify(t, digits(100), loader.Options{Layout: newLayout(t, replicated(32)), Shuffle: true, Epochs: -1}, 5)
	wantRuns(t, whole, certificate.Run{Epoch: 0, Epochs: 1, First: 0, Last: 96}, certificate.Run{Epoch: 1, Epochs: 1, First: 0, Last: 64})
	if err := whole.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for what, d := range map[string]*layout.Document{"split rows": document(32), "extras": extras, "two batch dimensions": inner} {
		for _, way := range []string{layout.LoadProcess, layout.LoadGlobal, layout.LoadDevice, layout.LoadReshard} {
			d.Loading = way
			got := certify(t, digits(100), loader.Options{Layout: newLayout(t, d), Shuffle: true, Epochs: -1}, 5)
			if !got.Equal(whole) {
				t.Errorf("%s, loading %s: %+v, want %+v", what, way, got, whole)
			}
		}
	}
	all := certify(t, digits(100), loader.Options{Layout: newLayout(t, padded), Shuffle: true, Epochs: -1}, 8)
	wantRuns(t, all, certificate.Run{Epoch: 0, Epochs: 2, First: 0, Last: 100})
	if err := all.Check(t.Context()); err != nil || all.Rows != 200 {
		t.Errorf("%d rows, %v", all.Rows, err)
	}
}

// What the gatherer did is what counts, not what was planned.
func TestCertificateFindsFaults(t *testing.T) {
	lay := newLayout(t, document(32)) // 16 rows per process
	for what, c := range map[string]struct {
		fault func(int, []int64)
		code  status.Code
	}{
		"none":             {func(int, []int64) {}, status.OK},
		"a dropped row":    {func(n int, r []int64) { r[3] = -1 }, status.DataLoss},
		"a doubled row":    {func(n int, r []int64) { r[3] = r[4] }, status.DataLoss},
		"exchanged rows":   {func(n int, r []int64) { r[3], r[4] = r[4], r[3] }, status.DataLoss},
		"one batch of six": {func(n int, r []int64) { r[n/5*7], r[0] = r[0], r[n/5*7] }, status.DataLoss},
		"a shift": {func(n int, r []int64) {
			for i := range r {
				r[i] = (r[i] + 1) % 200
			}
		}, status.DataLoss},
	} {
		o := loader.Options{Layout: lay, Shuffle: true, Prefetch: -1, Workers: 1}
		total := certify(t, tampered{digits(200), c.fault}, o, 6)
		if err := total.Check(t.Context()); status.CodeOf(err) != c.code {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A process that gathers the rows of another is found, by itself and if they
// are swapped.
func TestCertificateFindsSwappedProcesses(t *testing.T) {
	lay := newLayout(t, document(32))
	lists := [2][][]int64{}
	for process := range 2 {
		l := newLoader(t, tampered{digits(200), func(_ int, r []int64) {
			lists[process] = append(lists[process], append([]int64(nil), r...))
		}}, loader.Options{Layout: lay, Process: process, Shuffle: true, Prefetch: -1, Workers: 1})
		for range 6 {
			next(t, l)
		}
	}
	process := -1
	take := func(n int, r []int64) {
		if n == 0 {
			process++
		}
		copy(r, lists[1-process][n])
	}
	total := certify(t, tampered{digits(200), take}, loader.Options{Layout: lay, Shuffle: true, Prefetch: -1, Workers: 1}, 6)
	if err := total.Check(t.Context()); status.CodeOf(err) != status.DataLoss {
		t.Errorf("got %v", err)
	}
}

// Of a process with another seed, the certificate cannot even be added.
func TestCertificateOfAnotherSeed(t *testing.T) {
	o := loader.Options{Layout: newLayout(t, document(32)), Shuffle: true, Seed: 1}
	a := newLoader(t, digits(100), o)
	o.Process, o.Seed = 1, 2
	b := newLoader(t, digits(100), o)
	_, err := a.Certificate().Add(b.Certificate())
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: seed 1 and 2; every process and every run must load the same dataset with the same order and seed")
}

func TestCertificateFollowsTheCursor(t *testing.T) {
	lay := newLayout(t, document(8))
	l := newLoader(t, digits(80), loader.Options{Layout: lay, Shuffle: true, Epochs: -1})
	wantRuns(t, l.Certificate())
	for range 3 {
		next(t, l)
	}
	at := func(epoch, epochs, first, last int64) certificate.Run {
		return certificate.Run{Epoch: epoch, Epochs: epochs, First: first, Last: last}
	}
	wantRuns(t, l.Certificate(), at(0, 1, 0, 24))
	earlier, err := l.CertificateAt(batch.Cursor{Position: 16})
	if err != nil {
		t.Fatal(err)
	}
	wantRuns(t, earlier, at(0, 1, 0, 16))
	saved := l.State()
	next(t, l)

	if err := l.Rewind(batch.Cursor{Position: 16}); err != nil { // as if two had not been delivered
		t.Fatal(err)
	}
	if got := l.Certificate(); !got.Equal(earlier) || l.State().Position != 16 {
		t.Errorf("after Rewind: %+v at %v", got, l.State())
	}
	_, err = l.CertificateAt(batch.Cursor{Position: 32})
	wantError(t, err, status.OutOfRange, "loader: none of the last 64 batches ended at position 32 of epoch 0; ask at the place of a state that is at most 64 batches old")
	next(t, l)
	wantRuns(t, l.Certificate(), at(0, 1, 0, 24))

	if err := l.Seek(batch.Cursor{Position: 16}); err != nil { // a run of its own
		t.Fatal(err)
	}
	wantRuns(t, l.Certificate())
	next(t, l)
	wantRuns(t, l.Certificate(), at(0, 1, 16, 24))

	if err := l.Restore(saved.JSON(), false); err != nil {
		t.Fatal(err)
	}
	if got := l.Certificate(); got.Rows != 0 {
		t.Errorf("after Restore %d rows are counted", got.Rows)
	}
	for range 200 { // more than are kept apart, over the ends of epochs
		next(t, l)
	}
	wantRuns(t, l.Certificate(), at(0, 1, 24, 80), at(1, 19, 0, 80), at(20, 1, 0, 24))
	before, err := l.CertificateAt(batch.Cursor{Epoch: 13, Position: 72}) // 64 batches ago
	if err != nil {
		t.Fatal(err)
	}
	wantRuns(t, before, at(0, 1, 24, 80), at(1, 12, 0, 80), at(13, 1, 0, 72))
	_, err = l.CertificateAt(batch.Cursor{Epoch: 13, Position: 64})
	wantError(t, err, status.OutOfRange, "loader: none of the last 64 batches ended at position 64 of epoch 13; ask at the place of a state that is at most 64 batches old")
	if err := l.Rewind(batch.Cursor{Epoch: 2}); err != nil { // too far back: a run of its own
		t.Fatal(err)
	}
	wantRuns(t, l.Certificate())
	wantError(t, l.Rewind(batch.Cursor{Position: 81}), status.OutOfRange, "loader: position 81 is outside the epoch of 80 records")
}

// A loader on another layout goes on with the certificate, and all processes
// of both together have a complete one.
func TestCertificateAfterRemesh(t *testing.T) {
	before, after := newLayout(t, document(8)), newLayout(t, replicated(12))
	var total certificate.Certificate
	for process := range 2 {
		l := newLoader(t, digits(100), loader.Options{Layout: before, Process: process, Shuffle: true, Epochs: -1})
		for range 3 {
			next(t, l)
		}
		other, err := l.Remesh(after, 1-process, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			next(t, other)
		}
		c := other.Certificate()
		closeLoader(t, other)
		wantRuns(t, l.Certificate(), certificate.Run{Epochs: 1, Last: 24})
		if process == 0 {
			total = c
		} else if total, err = total.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	wantRuns(t, total, certificate.Run{Epochs: 1, Last: 48})
	if err := total.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// Two loaders that came from one keep accounts of their own.
func TestCertificatesAfterRemeshAreApart(t *testing.T) {
	lay := newLayout(t, document(8))
	l := newLoader(t, digits(80), loader.Options{Layout: lay, Epochs: -1})
	forward := func(l *loader.Loader, batches int) {
		for range batches {
			next(t, l)
		}
	}
	forward(l, 105) // more than are kept apart, so that some are in the sum
	other, err := l.Remesh(lay, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	forward(other, 70)
	forward(l, 5)
	wantRuns(t, other.Certificate(), certificate.Run{Epochs: 17, Last: 80}, certificate.Run{Epoch: 17, Epochs: 1, Last: 40})
	wantRuns(t, l.Certificate(), certificate.Run{Epochs: 11, Last: 80})
	closeLoader(t, other)
}

// A layout that drops what another one pads begins the next epoch, and the
// certificate is still there.
func TestCertificateAfterRemeshAtTheEnd(t *testing.T) {
	padded := document(8)
	padded.Batch.Remainder = layout.Pad
	l := newLoader(t, digits(20), loader.Options{Layout: newLayout(t, padded), Epochs: -1})
	next(t, l)
	next(t, l)
	other, err := l.Remesh(newLayout(t, document(8)), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	at := other.State().Cursor()
	if at != (batch.Cursor{Epoch: 1}) {
		t.Errorf("the loader goes on at %v", at)
	}
	c, err := other.CertificateAt(at)
	if err != nil {
		t.Fatal(err)
	}
	wantRuns(t, c, certificate.Run{Epochs: 1, Last: 16})
	if err := other.Rewind(at); err != nil || !other.Certificate().Equal(c) {
		t.Errorf("after Rewind to the same place: %+v, %v", other.Certificate(), err)
	}
	closeLoader(t, other)
}
