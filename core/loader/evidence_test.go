package loader_test

import (
	"context"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// tampered is a dataset with gatherers that get wrong records, as if the code between order
// and gather had a bug. Fault changes the record list in place.
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

func (g *tamperedGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	g.fault(g.calls, records)
	g.calls++
	return g.Gatherer.Gather(ctx, draw, records, jobs)
}

// certificateOf returns the certificate of a loader.
func certificateOf(t testing.TB, l *loader.Loader) certificate.Certificate {
	t.Helper()
	c, err := l.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func plus(t testing.TB, a, b certificate.Certificate) certificate.Certificate {
	t.Helper()
	c, err := a.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// certify runs every process of a layout for some batches and adds their
// certificates.
func certify(t testing.TB, src source.Source, o loader.Options, batches int) certificate.Certificate {
	t.Helper()
	var total certificate.Certificate
	for i, process := range o.Layout.Mesh().Processes() {
		o.Process = process
		l := newLoader(t, src, o)
		forward(t, l, batches)
		if c := certificateOf(t, l); i == 0 {
			total = c
		} else {
			total = plus(t, total, c)
		}
	}
	return total
}

func forward(t testing.TB, l *loader.Loader, batches int) {
	t.Helper()
	for range batches {
		b, err := l.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
}

// at returns the positions [first, last) of some epochs.
func at(epoch, epochs, first, last int64) certificate.Span {
	return certificate.Span{Epoch: epoch, Epochs: epochs, First: first, Last: last}
}

// wantRuns compares what was delivered, run by run.
func wantRuns(t testing.TB, c certificate.Certificate, want ...[]certificate.Span) {
	t.Helper()
	runs := c.Runs()
	if len(runs) != len(want) {
		t.Fatalf("%d runs, want %v: %v", len(runs), want, c)
	}
	for i, r := range runs {
		if !slices.Equal(r.Delivered, want[i]) {
			t.Errorf("run %d delivered %v, want %v", i, r.Delivered, want[i])
		}
	}
}

type spans = []certificate.Span

// wantComplete checks a certificate and its dropped and skipped spans.
func wantComplete(t testing.TB, c certificate.Certificate, dropped, skipped spans) {
	t.Helper()
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	coverage, err := c.Coverage(certificate.Cursor{}, c.Last())
	if err != nil || !slices.Equal(coverage.Dropped, dropped) || !slices.Equal(coverage.Skipped, skipped) {
		t.Errorf("dropped %v, skipped %v, want %v and %v (%v)", coverage.Dropped, coverage.Skipped, dropped, skipped, err)
	}
}

// replicated returns a layout of two processes that both hold everything.
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
	for what, d := range map[string]*layout.Document{"split rows": document(32), "replicas": replicated(32), "extras": extras, "two batch dimensions": inner} {
		for _, way := range []string{layout.LoadProcess, layout.LoadGlobal, layout.LoadDevice, layout.LoadReshard} {
			t.Run(what+", "+way, func(t *testing.T) {
				d.Loading = way
				lay := newLayout(t, d)
				c := certify(t, digits(100), loader.Options{Layout: lay, Shuffle: true, Epochs: -1}, 5)
				wantRuns(t, c, spans{at(0, 1, 0, 96), at(1, 1, 0, 64)})
				wantComplete(t, c, spans{at(0, 1, 96, 100)}, nil)
				if r := c.Runs()[0]; r.Rows != 160*lay.Parts() {
					t.Errorf("%d rows in %d parts", r.Rows, lay.Parts())
				}
			})
		}
	}
	c := certify(t, digits(100), loader.Options{Layout: newLayout(t, padded), Shuffle: true, Epochs: -1}, 8)
	wantRuns(t, c, spans{at(0, 2, 0, 100)})
	wantComplete(t, c, nil, nil)
}

// columns returns a layout of two processes, each with half of the columns of all rows.
func columns(size int) *layout.Document {
	d := document(size)
	for i, a := range d.Arrays {
		d.Arrays[i].Spec = nil
		if len(a.RowShape) > 0 {
			d.Arrays[i].Spec = sharding.P(nil, "data")
		}
	}
	return d
}

// If only one process holds some columns, its evidence is needed for them. A process
// that stops early is reported.
func TestEveryBlockCounts(t *testing.T) {
	lay := newLayout(t, columns(8))
	var parts []certificate.Certificate
	for process, batches := range []int{12, 10} {
		l := newLoader(t, digits(96), loader.Options{Layout: lay, Process: process, Shuffle: true})
		forward(t, l, batches)
		parts = append(parts, certificateOf(t, l))
	}
	for i, c := range parts {
		if rows := c.Runs()[0].Rows; rows == 0 {
			t.Errorf("process %d counts no row", i)
		}
	}
	wantError(t, plus(t, parts[0], parts[1]).Check(t.Context()), status.DataLoss,
		"certificate: process 1 of 2 did not deliver 16 positions that others did: [80, 96) of epoch 0; "+
			"add the certificates of all processes; if all are there, these stopped earlier")
}

// Wrong rows of any process are found, however arrays are replicated.
func TestWrongRowsOfAnyProcess(t *testing.T) {
	for what, d := range map[string]*layout.Document{"rows": document(32), "columns": columns(32)} {
		lay := newLayout(t, d)
		for wrong := range 2 {
			total := certificate.Certificate{}
			for process := range 2 {
				src := source.Source(digits(200))
				if process == wrong {
					src = tampered{src, func(_ int, r []int64) { r[3] = r[4] }}
				}
				l := newLoader(t, src, loader.Options{Layout: lay, Process: process, Shuffle: true, Prefetch: -1, Workers: 1})
				forward(t, l, 6)
				if c := certificateOf(t, l); process == 0 {
					total = c
				} else {
					total = plus(t, total, c)
				}
			}
			if err := total.Check(t.Context()); status.CodeOf(err) != status.DataLoss {
				t.Errorf("%s, process %d: %v", what, wrong, err)
			}
		}
	}
}

// The evidence covers the gathered records, not the planned ones.
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

// A process that gathers another's rows is found, also if two are swapped.
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

// A certificate of another seed cannot be added.
func TestCertificateOfAnotherSeed(t *testing.T) {
	o := loader.Options{Layout: newLayout(t, document(32)), Shuffle: true, Seed: 1}
	a := newLoader(t, digits(100), o)
	o.Process, o.Seed = 1, 2
	b := newLoader(t, digits(100), o)
	_, err := certificateOf(t, a).Add(certificateOf(t, b))
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: seed 1 and 2; every process and every run must load the same dataset with the same order and seed")
}

// Restore and Seek begin a run in the same certificate; Rewind removes batches.
func TestCertificateFollowsTheCursor(t *testing.T) {
	lay := newLayout(t, replicated(8))
	l := newLoader(t, digits(80), loader.Options{Layout: lay, Shuffle: true, Epochs: -1})
	wantRuns(t, certificateOf(t, l))
	forward(t, l, 3)
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 24)})
	earlier, err := l.CertificateAt(batch.Cursor{Position: 16})
	if err != nil {
		t.Fatal(err)
	}
	wantRuns(t, earlier, spans{at(0, 1, 0, 16)})
	saved := l.State()
	forward(t, l, 1)

	if err := l.Rewind(batch.Cursor{Position: 16}); err != nil { // removes two batches
		t.Fatal(err)
	}
	if got := certificateOf(t, l); !got.Equal(earlier) || l.State().Position != 16 {
		t.Errorf("after Rewind: %v at %v", got, l.State())
	}
	_, err = l.CertificateAt(batch.Cursor{Position: 32})
	wantError(t, err, status.OutOfRange, "loader: none of the last 64 batches ended at position 32 of epoch 0; ask at the position of a state that is at most 64 batches old")
	forward(t, l, 2)
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 32)})

	if err := l.Restore(saved.JSON(), false); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 32)})
	forward(t, l, 2)
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 32)}, spans{at(0, 1, 24, 40)})
	if err := l.Seek(batch.Cursor{Position: 48}); err != nil {
		t.Fatal(err)
	}
	forward(t, l, 1)
	const hints = "; add the certificate of the run that delivered them, saved together with the state from which the next run began; " +
		"add each certificate once; restore and seek deliver again what comes after the position to which they go; " +
		"add the certificates of all processes; if all are there, these stopped earlier"
	wantError(t, certificateOf(t, l).Check(t.Context()), status.DataLoss, "certificate: 8 positions are missing: [40, 48) of epoch 0; "+
		"process 0 of 2 delivered 8 positions more than once: [24, 32) of epoch 0; "+
		"process 1 of 2 did not deliver 48 positions that others did: [0, 40) of epoch 0, [48, 56) of epoch 0"+hints)
}

// A long run keeps few spans, and the last 64 batches separately.
func TestCertificateOfLongRuns(t *testing.T) {
	l := newLoader(t, digits(84), loader.Options{Layout: newLayout(t, document(8)), Epochs: -1, State: []byte(
		`{"meshfeed":1,"order":"sequential.1","dataset":"` + newLoader(t, digits(84), loader.Options{Layout: newLayout(t, document(8))}).State().Dataset.String() +
			`","records":84,"seed":0,"epoch":0,"position":24}`)})
	forward(t, l, 197)
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 24, 80), at(1, 19, 0, 80)})
	if dropped := certificateOf(t, l).Runs()[0].Dropped; !slices.Equal(dropped, spans{at(0, 20, 80, 84)}) {
		t.Errorf("dropped %v", dropped)
	}
	before, err := l.CertificateAt(batch.Cursor{Epoch: 13, Position: 48}) // 64 batches ago
	if err != nil {
		t.Fatal(err)
	}
	wantRuns(t, before, spans{at(0, 1, 24, 80), at(1, 12, 0, 80), at(13, 1, 0, 48)})
	_, err = l.CertificateAt(batch.Cursor{Epoch: 13, Position: 40})
	wantError(t, err, status.OutOfRange, "loader: none of the last 64 batches ended at position 40 of epoch 13; ask at the position of a state that is at most 64 batches old")
	if err := l.Rewind(batch.Cursor{Epoch: 2}); err != nil { // too far back: begins a run
		t.Fatal(err)
	}
	forward(t, l, 1)
	wantRuns(t, certificateOf(t, l), spans{at(0, 1, 24, 80), at(1, 19, 0, 80)}, spans{at(2, 1, 0, 8)})
	wantError(t, l.Rewind(batch.Cursor{Position: 85}), status.OutOfRange, "loader: position 85 is outside the epoch of 84 records")
}

// If the rest of an epoch is too short for a larger batch, it is dropped; it is not
// a gap.
func TestCertificateOfALargerBatch(t *testing.T) {
	o := loader.Options{Layout: newLayout(t, document(8)), Process: 0, Epochs: -1}
	first := certify(t, digits(80), o, 9)
	l := newLoader(t, digits(80), o)
	forward(t, l, 9)
	o.Layout, o.State = newLayout(t, document(32)), l.State().JSON()
	total := plus(t, first, certify(t, digits(80), o, 3))
	wantRuns(t, total, spans{at(0, 1, 0, 72)}, spans{at(1, 1, 0, 64), at(2, 1, 0, 32)})
	wantComplete(t, total, spans{at(0, 1, 72, 80), at(1, 1, 64, 80)}, nil)
}

// The number of runs is bounded, and so is their memory.
func TestCertificateOfTooManyRuns(t *testing.T) {
	l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Prefetch: -1})
	for range 4098 {
		forward(t, l, 1)
		if err := l.Seek(batch.Cursor{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := l.Certificate()
	wantError(t, err, status.ResourceExhausted, "loader: the loader was moved, or skipped steps, more than 4096 times, which is more than a certificate can hold; make a new loader from the state, and take a certificate of each")
}

// A remeshed loader continues the certificate in another run. All processes of both
// layouts together have a complete certificate.
func TestCertificateAfterRemesh(t *testing.T) {
	before, after := newLayout(t, document(8)), newLayout(t, replicated(12))
	var total certificate.Certificate
	for process := range 2 {
		l := newLoader(t, digits(100), loader.Options{Layout: before, Process: process, Shuffle: true, Epochs: -1})
		forward(t, l, 3)
		other, err := l.Remesh(after, 1-process, nil)
		if err != nil {
			t.Fatal(err)
		}
		forward(t, other, 2)
		c := certificateOf(t, other)
		closeLoader(t, other)
		wantRuns(t, certificateOf(t, l), spans{at(0, 1, 0, 24)})
		if process == 0 {
			total = c
		} else {
			total = plus(t, total, c)
		}
	}
	wantRuns(t, total, spans{at(0, 1, 0, 24)}, spans{at(0, 1, 24, 48)})
	wantComplete(t, total, nil, nil)
}

// Two loaders that were remeshed from one have separate certificates.
func TestCertificatesAfterRemeshAreSeparate(t *testing.T) {
	lay := newLayout(t, document(8))
	l := newLoader(t, digits(80), loader.Options{Layout: lay, Epochs: -1})
	forward(t, l, 105) // more than are kept separately, so that some are in the sum
	other, err := l.Remesh(lay, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Rewind(batch.Cursor{Epoch: 10}); err != nil {
		t.Fatal(err)
	}
	wantRuns(t, certificateOf(t, l), spans{at(0, 10, 0, 80)})
	forward(t, other, 70)
	forward(t, l, 80) // so that some of these are in the sum, too
	wantRuns(t, certificateOf(t, other), spans{at(0, 10, 0, 80), at(10, 1, 0, 40)}, spans{at(10, 1, 40, 80), at(11, 6, 0, 80), at(17, 1, 0, 40)})
	wantRuns(t, certificateOf(t, l), spans{at(0, 18, 0, 80)})
	closeLoader(t, other)
}

// If a layout drops the rest that the former layout pads, the next epoch begins, and
// the certificate continues.
func TestCertificateAfterRemeshAtTheEnd(t *testing.T) {
	padded := document(8)
	padded.Batch.Remainder = layout.Pad
	l := newLoader(t, digits(20), loader.Options{Layout: newLayout(t, padded), Epochs: -1})
	forward(t, l, 2)
	other, err := l.Remesh(newLayout(t, document(8)), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := other.State().Cursor()
	if to != (batch.Cursor{Epoch: 1}) {
		t.Errorf("the loader continues at %v", to)
	}
	c, err := other.CertificateAt(to)
	if err != nil {
		t.Fatal(err)
	}
	wantRuns(t, c, spans{at(0, 1, 0, 16)}, nil)
	if dropped := c.Runs()[1].Dropped; !slices.Equal(dropped, spans{at(0, 1, 16, 20)}) {
		t.Errorf("dropped %v", dropped)
	}
	if err := other.Rewind(to); err != nil || !certificateOf(t, other).Equal(c) {
		t.Errorf("after Rewind to the same position: %v, %v", certificateOf(t, other), err)
	}
	closeLoader(t, other)
}
