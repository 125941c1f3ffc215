package certificate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

const dataset = "000102030405060708090a0b0c0d0e0f"

func sequence(records int64) certificate.Sequence {
	return certificate.Sequence{Order: sampler.Shuffle, Dataset: dataset, Records: records, Seed: 7}
}

// row is a record at a position.
type row struct{ position, record int64 }

// all returns the processes from 0 to n-1.
func all(n int) certificate.Processes { return certificate.Processes{{0, int64(n)}} }

// newRun makes an empty run of one process of n, with rows in one part.
func newRun(process, n int) certificate.Run {
	return certificate.Run{Mesh: all(n), Processes: certificate.ProcessesOf([]int{process}), Parts: 1}
}

// deliver adds a batch to a run.
func deliver(r *certificate.Run, epoch, first, last int64, rows []row) {
	var t certificate.Evidence
	for _, row := range rows {
		t = t.Plus(certificate.EpochOf(epoch).Count(row.position, []int64{row.record}))
	}
	r.Deliver(epoch, first, last, t)
}

// batchOf returns the rows of positions [first, last), distributed over processes.
func batchOf(t testing.TB, s certificate.Sequence, epoch, first, last int64, processes int) [][]row {
	t.Helper()
	order, err := sampler.New(s.Order, s.Seed, s.Records)
	if err != nil {
		t.Fatal(err)
	}
	parts, e := make([][]row, processes), order.Epoch(epoch)
	for p := first; p < last; p++ {
		n := int(p-first) * processes / int(last-first)
		parts[n] = append(parts[n], row{p, e.At(p)})
	}
	return parts
}

func certify(t testing.TB, s certificate.Sequence, runs ...certificate.Run) certificate.Certificate {
	t.Helper()
	c, err := certificate.New(s, runs)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sum adds the certificates of all processes for one batch.
func sum(t testing.TB, s certificate.Sequence, epoch, first, last int64, parts [][]row) certificate.Certificate {
	t.Helper()
	total := certify(t, s)
	for process, rows := range parts {
		r := newRun(process, len(parts))
		deliver(&r, epoch, first, last, rows)
		total = plus(t, total, certify(t, s, r))
	}
	return total
}

func plus(t testing.TB, a, b certificate.Certificate) certificate.Certificate {
	t.Helper()
	c, err := a.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantError(t testing.TB, err error, code status.Code, text string) {
	t.Helper()
	if status.CodeOf(err) != code || err == nil || err.Error() != text {
		t.Errorf("got  %v: %v\nwant %v: %s", status.CodeOf(err), err, code, text)
	}
}

// Each fault is in the rows, while the claimed positions are complete.
func TestFaultsOfRows(t *testing.T) {
	s := sequence(1797)
	const claim = "[0, 64) of epoch 0"
	const missing = "certificate: %d of 64 rows are missing, of positions " + claim + "; rows were lost on their way into batches; please report it"
	const extra = "certificate: %d rows came for 64, of positions " + claim + "; rows came twice in batches; please report it"
	const replaced = "certificate: 64 rows came for as many, of positions " + claim + ", but not each with its record: their digest is %s, and must be e9bb7e621d6b0fe47042a7814a9d526b; rows were delivered in the place of others, or by another order or seed"
	exchange := func(a, b *row) { a.record, b.record = b.record, a.record }
	otherwise := func(s certificate.Sequence, epoch int64) func([][]row) [][]row {
		return func([][]row) [][]row { return batchOf(t, s, epoch, 0, 64, 4) }
	}
	otherSeed, otherOrder, otherData := s, s, sequence(1798)
	otherSeed.Seed++
	otherOrder.Order = sampler.Sequential
	for _, c := range []struct {
		what  string
		fault func([][]row) [][]row
		want  string
	}{
		{"none", func(p [][]row) [][]row { return p }, ""},
		{"processes in another order", func(p [][]row) [][]row { return [][]row{p[3], p[1], p[0], p[2]} }, ""},
		{"rows in another order", func(p [][]row) [][]row { slices.Reverse(p[1]); return p }, ""},
		{"a dropped row", func(p [][]row) [][]row { p[1] = p[1][1:]; return p }, fmt.Sprintf(missing, 1)},
		{"a doubled row", func(p [][]row) [][]row { p[1] = append(p[1], p[1][3]); return p }, fmt.Sprintf(extra, 65)},
		{"a row in the place of another", func(p [][]row) [][]row { p[1][2].record = p[1][3].record; return p }, replaced},
		{"one dropped, one doubled", func(p [][]row) [][]row { p[1][2] = p[1][3]; return p }, replaced},
		{"two dropped, one of them three times", func(p [][]row) [][]row { p[1][1], p[1][2] = p[1][3], p[1][3]; return p }, replaced},
		{"two rows exchanged", func(p [][]row) [][]row { exchange(&p[1][2], &p[1][3]); return p }, replaced},
		{"rows shifted by one", func(p [][]row) [][]row {
			for i := range p[2] {
				p[2][i].position++
			}
			return p
		}, replaced},
		{"rows of processes swapped", func(p [][]row) [][]row {
			for i := range p[1] {
				exchange(&p[1][i], &p[2][i])
			}
			return p
		}, replaced},
		{"a process counts nothing", func(p [][]row) [][]row { p[0] = nil; return p }, fmt.Sprintf(missing, 16)},
		{"one process in the place of another", func(p [][]row) [][]row { p[2] = p[1]; return p }, replaced},
		{"padding in the place of a row", func(p [][]row) [][]row { p[0][0].record = -1; return p }, fmt.Sprintf(missing, 1)},
		{"another seed", otherwise(otherSeed, 0), replaced},
		{"another order", otherwise(otherOrder, 0), replaced},
		{"a dataset that has grown", otherwise(otherData, 0), replaced},
		{"another epoch", otherwise(s, 3), replaced},
		{"one process with another seed", func(p [][]row) [][]row { p[3] = otherwise(otherSeed, 0)(nil)[3]; return p }, replaced},
	} {
		t.Run(c.what, func(t *testing.T) {
			total := sum(t, s, 0, 0, 64, c.fault(batchOf(t, s, 0, 0, 64, 4)))
			err := total.Check(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == replaced:
				wantError(t, err, status.DataLoss, fmt.Sprintf(replaced, total.Runs()[0].Digest))
			case c.want != "":
				wantError(t, err, status.DataLoss, c.want)
			}
		})
	}
}

// script describes a run: a process, its mesh, and spans of whole batches [epoch,
// first, last].
type script struct {
	process, of int
	spans       [][3]int64
}

// play delivers the batches of scripts. Every process delivers its part of each.
func play(t testing.TB, s certificate.Sequence, scripts ...script) certificate.Certificate {
	t.Helper()
	total := certify(t, s)
	for _, c := range scripts {
		r := newRun(c.process, c.of)
		for _, b := range c.spans {
			for first := b[1]; first < b[2]; first += 8 {
				last := min(first+8, b[2])
				deliver(&r, b[0], first, last, batchOf(t, s, b[0], first, last, c.of)[c.process])
			}
		}
		total = plus(t, total, certify(t, s, r))
	}
	return total
}

// Each fault is in the delivered positions.
func TestFaultsOfRuns(t *testing.T) {
	const (
		addRuns      = "; add the certificate of the run that delivered them, saved together with the state from which the next run began"
		addOnce      = "; add each certificate once; restore and seek deliver again what comes after the position to which they go"
		addProcesses = "; add the certificates of all processes; if all are there, these stopped earlier"
	)
	whole := func(first, last int64) []script {
		return []script{{0, 2, [][3]int64{{0, first, last}}}, {1, 2, [][3]int64{{0, first, last}}}}
	}
	epochs := func(spans ...[3]int64) []script { return []script{{0, 1, spans}} }
	for _, c := range []struct {
		what    string
		scripts []script
		want    string
	}{
		{"nothing", nil, "nothing was delivered; take the certificate after the loop, and add the certificates of all processes and runs"},
		{"one run", whole(0, 64), ""},
		{"two runs that meet", append(whole(0, 32), whole(32, 64)...), ""},
		{"two runs in the other order", append(whole(32, 64), whole(0, 32)...), ""},
		{"another mesh", append(whole(0, 32), epochs([3]int64{0, 32, 64})...), ""},
		{"the first step missing", whole(8, 64), "8 positions are missing: [0, 8) of epoch 0" + addRuns},
		{"a gap between runs", append(whole(0, 16), whole(40, 64)...), "24 positions are missing: [16, 40) of epoch 0" + addRuns},
		{"one position", epochs([3]int64{0, 0, 15}, [3]int64{0, 16, 32}), "1 position is missing: [15, 16) of epoch 0" + addRuns},
		{"an epoch skipped", epochs([3]int64{0, 0, 96}, [3]int64{2, 0, 96}), "96 positions are missing: [0, 96) of epoch 1" + addRuns},
		{"three epochs with gaps", epochs([3]int64{0, 0, 80}, [3]int64{1, 0, 80}, [3]int64{2, 8, 96}, [3]int64{3, 0, 8}),
			"40 positions are missing: [80, 96) of epochs 0 to 1, [0, 8) of epoch 2" + addRuns},
		{"an overlap", append(whole(0, 40), whole(24, 64)...), "all processes delivered 16 positions more than once: [24, 40) of epoch 0" + addOnce},
		{"an overlap of one process", append(epochs([3]int64{0, 0, 40}), epochs([3]int64{0, 24, 64})...),
			"the process delivered 16 positions more than once: [24, 40) of epoch 0" + addOnce},
		{"an overlap of meshes", append(whole(0, 40), epochs([3]int64{0, 24, 64})...), "all processes delivered 16 positions more than once: [24, 40) of epoch 0" + addOnce},
		{"all twice", append(whole(0, 64), whole(0, 64)...), "all processes delivered 64 positions more than once: [0, 64) of epoch 0" + addOnce},
		{"a process twice", append(whole(0, 64), whole(0, 64)[1]), "process 1 of 2 delivered 64 positions more than once: [0, 64) of epoch 0" + addOnce},
		{"a process missing", whole(0, 64)[:1], "process 1 of 2 did not deliver 64 positions that others did: [0, 64) of epoch 0" + addProcesses},
		{"a process twice in the place of another", []script{whole(0, 64)[0], whole(0, 64)[0]},
			"process 0 of 2 delivered 64 positions more than once: [0, 64) of epoch 0; process 1 of 2 did not deliver 64 positions that others did: [0, 64) of epoch 0" +
				addOnce + addProcesses},
		{"a process that stopped", []script{whole(0, 64)[0], whole(0, 16)[1]},
			"process 1 of 2 did not deliver 48 positions that others did: [16, 64) of epoch 0" + addProcesses},
		{"a process that stopped and went on", []script{whole(0, 64)[0], whole(0, 16)[1], whole(16, 64)[1]}, ""},
		{"all at once", append(append(whole(8, 40), whole(24, 64)...), whole(72, 80)[0]),
			"16 positions are missing: [0, 8) of epoch 0, [64, 72) of epoch 0; all processes delivered 16 positions more than once: [24, 40) of epoch 0; " +
				"process 1 of 2 did not deliver 8 positions that others did: [72, 80) of epoch 0" + addRuns + addOnce + addProcesses},
	} {
		t.Run(c.what, func(t *testing.T) {
			total := play(t, sequence(96), c.scripts...)
			err := total.Check(t.Context())
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantError(t, err, status.DataLoss, "certificate: "+c.want)
		})
	}
}

// A range may have fewer or more positions than were delivered.
func TestCovers(t *testing.T) {
	at := func(epoch, position int64) certificate.Cursor {
		return certificate.Cursor{Epoch: epoch, Position: position}
	}
	back := play(t, sequence(96), script{0, 1, [][3]int64{{0, 0, 96}, {1, 0, 64}}}, script{0, 1, [][3]int64{{1, 32, 96}, {3, 0, 96}}})
	for _, c := range []struct {
		what        string
		c           certificate.Certificate
		first, last certificate.Cursor
		ok          bool
	}{
		{"an epoch", back, at(0, 0), at(1, 0), true},
		{"the same by its last position", back, at(0, 0), at(0, 96), true},
		{"up to the overlap", back, at(0, 0), at(1, 32), true},
		{"into the overlap", back, at(0, 0), at(1, 33), false},
		{"behind the overlap", back, at(1, 64), at(2, 0), true},
		{"with an epoch that is missing", back, at(1, 64), at(4, 0), false},
		{"the last epoch", back, at(3, 0), at(4, 0), true},
		{"beyond it", back, at(3, 0), at(4, 1), false},
		{"the next run of a process is missing", play(t, sequence(96), script{0, 2, [][3]int64{{0, 0, 64}}}, script{1, 2, [][3]int64{{0, 0, 64}}}, script{1, 2, [][3]int64{{0, 64, 96}}}),
			at(0, 0), at(0, 64), true},
		{"a process in two runs", play(t, sequence(96), script{0, 2, [][3]int64{{0, 0, 64}}}, script{1, 2, [][3]int64{{0, 0, 32}}}, script{1, 2, [][3]int64{{0, 32, 64}}}),
			at(0, 0), at(0, 16), true},
	} {
		if err := c.c.Covers(t.Context(), c.first, c.last); (err == nil) != c.ok || (err != nil && status.CodeOf(err) != status.DataLoss) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	late := play(t, sequence(96), script{0, 2, [][3]int64{{0, 0, 64}}}, script{1, 2, [][3]int64{{0, 0, 56}}})
	wantError(t, late.Covers(t.Context(), at(0, 0), at(0, 48)), status.DataLoss,
		"certificate: process 1 of 2 did not deliver 8 positions that others did: [56, 64) of epoch 0; add the certificates of all processes; if all are there, these stopped earlier")
	wantError(t, back.Covers(t.Context(), at(2, 0), at(2, 0)), status.InvalidArgument,
		"certificate: there are no positions from position 0 of epoch 2 to position 0 of epoch 2; the last one is the cursor after the last position")
	wantError(t, back.Covers(t.Context(), at(0, 0), at(0, 0)), status.InvalidArgument,
		"certificate: there are no positions from position 0 of epoch 0 to position 0 of epoch 0; the last one is the cursor after the last position")
	wantError(t, certify(t, sequence(96)).Covers(t.Context(), at(1, 0), at(0, 0)), status.DataLoss,
		"certificate: nothing was delivered; take the certificate after the loop, and add the certificates of all processes and runs")
	wantError(t, back.Covers(t.Context(), at(0, 0), at(2, 97)), status.OutOfRange, "certificate: position 97 of epoch 2 is outside of epochs of 96 records")
	wantError(t, back.Covers(t.Context(), at(-1, 0), at(2, 0)), status.OutOfRange, "certificate: position 0 of epoch -1 is outside of epochs of 96 records")
}

// Dropped and skipped positions are not missing. They count as dropped or skipped
// only if no run delivered them.
func TestDroppedAndSkipped(t *testing.T) {
	s := sequence(96)
	r := newRun(0, 1)
	deliver(&r, 0, 0, 64, batchOf(t, s, 0, 0, 64, 1)[0])
	r.Skip(certificate.Span{Epochs: 1, First: 64, Last: 72})
	deliver(&r, 0, 72, 80, batchOf(t, s, 0, 72, 80, 1)[0])
	r.Drop(certificate.Span{Epochs: 1, First: 80, Last: 96})
	deliver(&r, 1, 0, 96, batchOf(t, s, 1, 0, 96, 1)[0])
	c := certify(t, s, r)
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	again := newRun(0, 1)
	deliver(&again, 0, 68, 72, batchOf(t, s, 0, 68, 72, 1)[0])
	deliver(&again, 0, 80, 88, batchOf(t, s, 0, 80, 88, 1)[0])
	c = plus(t, c, certify(t, s, again))
	if err := c.Covers(t.Context(), certificate.Cursor{}, certificate.Cursor{Epoch: 2}); err != nil {
		t.Error(err)
	}
	coverage, err := c.Coverage(certificate.Cursor{}, c.Last())
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string][2][]certificate.Span{
		"skipped":   {coverage.Skipped, {{Epochs: 1, First: 64, Last: 68}}},
		"dropped":   {coverage.Dropped, {{Epochs: 1, First: 88, Last: 96}}},
		"delivered": {coverage.Delivered, {{Epochs: 1, Last: 64}, {Epochs: 1, First: 68, Last: 88}, {Epoch: 1, Epochs: 1, Last: 96}}},
	} {
		if !slices.Equal(got[0], got[1]) {
			t.Errorf("%s: %v, want %v", what, got[0], got[1])
		}
	}
	const want = `certificate of shuffle.1, seed 7, over 96 records of dataset ` + dataset + `
  run 1, process 0 of 1: delivered [0, 64) of epoch 0, [72, 80) of epoch 0, [0, 96) of epoch 1; dropped [80, 96) of epoch 0; skipped [64, 72) of epoch 0
  run 2, process 0 of 1: delivered [68, 72) of epoch 0, [80, 88) of epoch 0
  up to position 96 of epoch 1 nothing is missing and nothing came twice; check compares the records`
	if got := c.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The certificate of a process without devices in the mesh has positions, but no
// rows.
func TestProcessOutsideTheMesh(t *testing.T) {
	s := sequence(96)
	outside := newRun(5, 2)
	deliver(&outside, 0, 0, 64, nil)
	alone := certify(t, s, outside)
	wantError(t, alone.Check(t.Context()), status.DataLoss, "certificate: nothing was delivered; take the certificate after the loop, and add the certificates of all processes and runs")
	total := plus(t, alone, play(t, s, script{0, 2, [][3]int64{{0, 0, 64}}}, script{1, 2, [][3]int64{{0, 0, 64}}}))
	if err := total.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// A row with three parts counts three times, each part with its own weight.
func TestParts(t *testing.T) {
	s := sequence(96)
	count := func(parts ...int64) (t certificate.Evidence) {
		for p := range int64(64) {
			order, err := sampler.New(s.Order, s.Seed, s.Records)
			if err != nil {
				panic(err)
			}
			t = t.Plus(certificate.EpochOf(0).Count(p, []int64{order.Epoch(0).At(p)}))
		}
		var w certificate.Weight
		for _, part := range parts {
			w = w.Plus(certificate.WeightOf(part))
		}
		return t.Times(w)
	}
	delivered := func(process int, t certificate.Evidence) certificate.Run {
		r := newRun(process, 2)
		r.Parts = 3
		r.Deliver(0, 0, 64, t)
		return r
	}
	if err := certify(t, s, delivered(0, count(0, 2)), delivered(1, count(1))).Check(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, certify(t, s, delivered(0, count(0, 2)), delivered(1, count())).Check(t.Context()), status.DataLoss,
		"certificate: 64 of 192 rows are missing, of positions [0, 64) of epoch 0 in 3 parts each; rows were lost on their way into batches; please report it")
	for _, parts := range [][]int64{{0, 1, 1}, {0, 0, 2}, {2, 2, 2}, {1, 1, 1}} {
		if err := certify(t, s, delivered(0, count(parts...)), delivered(1, count())).Check(t.Context()); status.CodeOf(err) != status.DataLoss {
			t.Errorf("parts %v: %v", parts, err)
		}
	}
}

func TestAddRefused(t *testing.T) {
	a := certify(t, sequence(1797))
	other := sequence(1797)
	other.Order, other.Seed = sampler.Sequential, 8
	const hint = "; every process and every run must load the same dataset with the same order and seed"
	_, err := a.Add(certify(t, other))
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: order shuffle.1 and sequential.1; seed 7 and 8"+hint)
	other = sequence(1798)
	other.Dataset = "ff" + dataset[2:]
	_, err = a.Add(certify(t, other))
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: dataset "+dataset+" and ff"+dataset[2:]+"; records 1797 and 1798"+hint)
	const half, tooMany = 4100, "certificate: the runs have more than 8192 pieces; take certificates more often, each of a new loader, and keep them apart"
	r := newRun(0, 1)
	for i := range int64(half) {
		r.Deliver(3*i, i%1000, i%1000+1, certificate.Evidence{})
	}
	b := certify(t, a.Sequence, r)
	_, err = b.Add(b)
	wantError(t, err, status.ResourceExhausted, tooMany)
	_, err = certificate.New(a.Sequence, []certificate.Run{r, r})
	wantError(t, err, status.ResourceExhausted, tooMany)
}

func TestCheckCancelled(t *testing.T) {
	c := play(t, sequence(96), script{0, 1, [][3]int64{{0, 0, 8}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, c.Check(ctx), status.Cancelled, "certificate: the check was cancelled: context canceled")
	c.Order = "best.1"
	if err := c.Check(t.Context()); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an order that is not known: %v", err)
	}
}
