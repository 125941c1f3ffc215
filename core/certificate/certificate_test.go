package certificate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

const dataset = "000102030405060708090a0b0c0d0e0f"

func sequence(records int64) certificate.Sequence {
	return certificate.Sequence{Order: sampler.Shuffle, Dataset: dataset, Records: records, Seed: 7}
}

// row is a record at a position, as one process delivers it.
type row struct{ position, record int64 }

// deliver gives the certificate of a process for one batch.
func deliver(s certificate.Sequence, epoch, first, last int64, rows []row) certificate.Certificate {
	c := certificate.Certificate{Sequence: s}
	var t certificate.Tally
	for _, r := range rows {
		certificate.EpochOf(epoch).Count(&t, r.position, []int64{r.record})
	}
	c.Delivered(epoch, first, last, t)
	return c
}

// batchOf gives the rows of positions [first, last), dealt out to processes.
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

// sum adds the certificates of all processes.
func sum(t testing.TB, s certificate.Sequence, epoch, first, last int64, parts [][]row) certificate.Certificate {
	t.Helper()
	total := certificate.Certificate{Sequence: s}
	for _, rows := range parts {
		total = plus(t, total, deliver(s, epoch, first, last, rows))
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

// Each fault is one that a run without certificates would not notice.
func TestFaults(t *testing.T) {
	s := sequence(1797)
	const claim = "[64, 128) of epoch 2"
	const missing = "certificate: %d of 64 rows are missing, of positions " + claim + "; add the certificates of all processes; if all are there, rows were lost"
	const extra = "certificate: %d rows came for 64 positions, " + claim + "; a certificate was added twice, or rows were delivered twice"
	const replaced = "certificate: 64 rows came for as many positions, " + claim + ", but not each with its record: their digest is %s, and must be fe9bed1a64dd510f4a866065361cf245; rows were delivered in the place of others, or by another order or seed"
	exchange := func(a, b *row) { a.record, b.record = b.record, a.record }
	otherwise := func(s certificate.Sequence, epoch int64) func([][]row) [][]row {
		return func([][]row) [][]row { return batchOf(t, s, epoch, 64, 128, 4) }
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
		{"processes swapped", func(p [][]row) [][]row {
			for i := range p[1] {
				exchange(&p[1][i], &p[2][i])
			}
			return p
		}, replaced},
		{"a process missing", func(p [][]row) [][]row { return p[1:] }, fmt.Sprintf(missing, 16)},
		{"a process twice", func(p [][]row) [][]row { return append(p, p[0]) }, fmt.Sprintf(extra, 80)},
		{"one process in the place of another", func(p [][]row) [][]row { p[2] = p[1]; return p }, replaced},
		{"padding in the place of a row", func(p [][]row) [][]row { p[0][0].record = -1; return p }, fmt.Sprintf(missing, 1)},
		{"another seed", otherwise(otherSeed, 2), replaced},
		{"another order", otherwise(otherOrder, 2), replaced},
		{"a dataset that has grown", otherwise(otherData, 2), replaced},
		{"another epoch", otherwise(s, 3), replaced},
		{"one process with another seed", func(p [][]row) [][]row { p[3] = otherwise(otherSeed, 2)(nil)[3]; return p }, replaced},
	} {
		t.Run(c.what, func(t *testing.T) {
			total := sum(t, s, 2, 64, 128, c.fault(batchOf(t, s, 2, 64, 128, 4)))
			err := total.Check(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == replaced:
				wantError(t, err, status.DataLoss, fmt.Sprintf(replaced, total.Digest))
			case c.want != "":
				wantError(t, err, status.DataLoss, c.want)
			}
			whole := sum(t, s, 2, 64, 128, batchOf(t, s, 2, 64, 128, 1))
			if total.Equal(whole) != (c.want == "") {
				t.Errorf("compared with one process that made it all: %v", total.Equal(whole))
			}
		})
	}
}

func TestAddRefused(t *testing.T) {
	a := certificate.Certificate{Sequence: sequence(1797)}
	b := a
	b.Order, b.Seed = sampler.Sequential, 8
	const hint = "; every process and every run must load the same dataset with the same order and seed"
	_, err := a.Add(b)
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: order shuffle.1 and sequential.1; seed 7 and 8"+hint)
	b = a
	b.Dataset, b.Records = "ff"+dataset[2:], 1798
	_, err = a.Add(b)
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: dataset "+dataset+" and ff"+dataset[2:]+"; records 1797 and 1798"+hint)
	a.Rows, b = 1<<53, a
	b.Rows = 1
	_, err = a.Add(b)
	wantError(t, err, status.ResourceExhausted, "certificate: 9007199254740992 and 1 rows are more than 2^53")
	b = certificate.Certificate{Sequence: a.Sequence}
	for i := range int64(4097) {
		b.Delivered(3*i, i%1000, i%1000+1, certificate.Tally{})
	}
	_, err = b.Add(b)
	wantError(t, err, status.ResourceExhausted, "certificate: the positions lie in more than 4096 separate runs; add certificates of runs that follow each other first")
	if _, err := b.JSON(); err == nil || b.Equal(b) || b.Check(t.Context()) == nil {
		t.Errorf("a claim in too many pieces has JSON (%v)", err)
	}
}

// A job that goes on over several epochs, on other numbers of processes, with
// other batch sizes and remainders, has one complete certificate, in whatever
// order its parts are added.
func TestRandomRuns(t *testing.T) {
	r := random.New(t)
	for n := range 300 {
		s := certificate.Sequence{
			Order: []string{sampler.Sequential, sampler.Shuffle, "local.1:3:12"}[r.IntN(3)], Dataset: dataset,
			Records: 1 + r.Int64N(200), Seed: r.Int64N(1000) - 500,
		}
		parts, claim := randomJob(t, r, s)
		total := certificate.Certificate{Sequence: s}
		for _, i := range r.Perm(len(parts)) {
			total = plus(t, total, parts[i])
		}
		if err := total.Check(t.Context()); err != nil {
			t.Fatalf("job %d, %+v: %v", n, s, err)
		}
		checkClaim(t, total, claim)
		if lost := r.IntN(len(parts)); parts[lost].Rows > 0 {
			without := certificate.Certificate{Sequence: s}
			for i, part := range parts {
				if i != lost {
					without = plus(t, without, part)
				}
			}
			if parts[lost].Rows > 0 && without.Check(t.Context()) == nil && !claimsLess(t, without, total) {
				t.Fatalf("job %d: the certificate of one process is missing, and nothing was said", n)
			}
		}
	}
}

// claimsLess says whether a claims fewer positions than b: then its rows may
// be all of them.
func claimsLess(t *testing.T, a, b certificate.Certificate) bool {
	return len(positionsOf(t, a)) < len(positionsOf(t, b))
}

// randomJob gives the certificates of all processes of all runs of a job, and
// what was delivered.
func randomJob(t *testing.T, r *rand.Rand, s certificate.Sequence) (parts []certificate.Certificate, claim map[[2]int64]bool) {
	claim = map[[2]int64]bool{}
	epoch, position := r.Int64N(5), int64(0)
	for range 1 + r.IntN(5) {
		processes, batch, pad := 1+r.IntN(5), 1+r.Int64N(s.Records), r.IntN(2) == 0
		first := len(parts)
		for range processes {
			parts = append(parts, certificate.Certificate{Sequence: s})
		}
		for range r.IntN(12) {
			last := min(position+batch, s.Records)
			if !pad && position+batch > s.Records {
				epoch, position = epoch+1, 0
				last = batch
			}
			for p, rows := range batchOf(t, s, epoch, position, last, processes) {
				one := deliver(s, epoch, position, last, rows)
				parts[first+p].Delivered(epoch, position, last, one.Tally)
			}
			for ; position < last; position++ {
				claim[[2]int64{epoch, position}] = true
			}
			if position == s.Records {
				epoch, position = epoch+1, 0
			}
		}
	}
	return parts, claim
}

func positionsOf(t *testing.T, c certificate.Certificate) map[[2]int64]bool {
	runs, err := c.Runs()
	if err != nil {
		t.Fatal(err)
	}
	set := map[[2]int64]bool{}
	for _, r := range runs {
		for e := r.Epoch; e < r.Epoch+r.Epochs; e++ {
			for p := r.First; p < r.Last; p++ {
				if set[[2]int64{e, p}] {
					t.Fatalf("runs %v overlap", runs)
				}
				set[[2]int64{e, p}] = true
			}
		}
	}
	return set
}

func checkClaim(t *testing.T, c certificate.Certificate, want map[[2]int64]bool) {
	got := positionsOf(t, c)
	for p := range want {
		if !got[p] {
			t.Fatalf("position %v was delivered and is not claimed", p)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d positions are claimed, %d were delivered", len(got), len(want))
	}
}

// Any pieces that make up the same positions have the same canonical form.
func TestRunsAreCanonical(t *testing.T) {
	r := random.New(t)
	for range 500 {
		var whole certificate.Certificate
		var pieces []certificate.Certificate
		for range 1 + r.IntN(6) {
			epoch, first := r.Int64N(4), r.Int64N(20)
			for e := range 1 + r.Int64N(3) {
				last := first + 1 + r.Int64N(10)
				whole.Delivered(epoch+e, first, last, certificate.Tally{})
				for p := first; p < last; p++ {
					var one certificate.Certificate
					one.Delivered(epoch+e, p, p+1, certificate.Tally{})
					pieces = append(pieces, one)
				}
			}
		}
		var total certificate.Certificate
		for _, i := range r.Perm(len(pieces)) {
			total = plus(t, total, pieces[i])
		}
		if !total.Equal(whole) {
			a, _ := total.Runs()
			b, _ := whole.Runs()
			t.Fatalf("%v and %v", a, b)
		}
		checkClaim(t, total, positionsOf(t, whole))
	}
}

func TestDelivered(t *testing.T) {
	c := certificate.Certificate{Sequence: sequence(100)}
	for epoch := range int64(1000) {
		for p := int64(0); p < 96; p += 32 {
			c.Delivered(epoch, p, p+32, certificate.Tally{Rows: 32})
		}
	}
	c.Delivered(1000, 0, 32, certificate.Tally{})
	c.Delivered(1000, 40, 40, certificate.Tally{})
	before := c.Clone()
	c.Delivered(1000, 32, 64, certificate.Tally{})
	runs, err := c.Runs()
	want := []certificate.Run{{Epoch: 0, Epochs: 1000, First: 0, Last: 96}, {Epoch: 1000, Epochs: 1, First: 0, Last: 64}}
	if err != nil || !slices.Equal(runs, want) || c.Rows != 96_000 {
		t.Errorf("%d rows of %v, %v", c.Rows, runs, err)
	}
	if runs, _ := before.Runs(); runs[1].Last != 32 {
		t.Errorf("a clone has changed: %v", runs)
	}
}

func TestCheckCancelled(t *testing.T) {
	c := deliver(sequence(1797), 0, 0, 1, []row{{0, 0}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, c.Check(ctx), status.Cancelled, "certificate: the check was cancelled: context canceled")
	c.Order = "best.1"
	if err := c.Check(t.Context()); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an order that is not known: %v", err)
	}
}

// The digest is frozen, since certificates are kept. Nothing here may change.
func TestDigestsAreFrozen(t *testing.T) {
	for _, c := range []struct {
		epoch, position int64
		records         []int64
		want            string
	}{
		{0, 0, nil, "00000000000000000000000000000000"},
		{0, 0, []int64{-1}, "00000000000000000000000000000000"},
		{0, 0, []int64{0}, "37e898192a432f18fe9221b4dd668b6f"},
		{0, 0, []int64{1}, "00bc3cd4017b516094e6a6f997102f70"},
		{0, 1, []int64{0}, "66696d5572ddf6c11d162b0e41e3582b"},
		{1, 0, []int64{0}, "2329ccc2505968d6594f8a49a5b16625"},
		{1 << 53, 1<<40 - 2, []int64{1<<40 - 1, 5}, "119538a35de5b050a2f12ed282524bbf"},
		{3, 100, []int64{9, -1, 8, 7}, "a4496ec84adbbd9d22374c97353fa3c0"},
	} {
		var got certificate.Tally
		certificate.EpochOf(c.epoch).Count(&got, c.position, c.records)
		if got.Digest.String() != c.want {
			t.Errorf("epoch %d, position %d, %v: %s, frozen %s", c.epoch, c.position, c.records, got.Digest, c.want)
		}
	}
}

// No two of a million (position, record) pairs that lie close together have the
// same half of a hash, as multiples that cancel each other would.
func TestHashesDiffer(t *testing.T) {
	var high, low []uint64
	e := certificate.EpochOf(0)
	for position := range int64(1000) {
		for record := range int64(1000) {
			var t certificate.Tally
			e.Count(&t, position, []int64{record})
			high, low = append(high, t.Digest.High), append(low, t.Digest.Low)
		}
	}
	for _, half := range [][]uint64{high, low} {
		slices.Sort(half)
		if n := len(slices.Compact(half)); n != 1_000_000 {
			t.Errorf("%d different hashes of 1000000 pairs", n)
		}
	}
}

// Both halves of the digest see every bit of position, record and epoch.
func TestHashMixes(t *testing.T) {
	hash := func(epoch, position, record int64) [2]uint64 {
		var t certificate.Tally
		certificate.EpochOf(epoch).Count(&t, position, []int64{record})
		return [2]uint64{t.Digest.High, t.Digest.Low}
	}
	const samples = 500
	for word := range 3 {
		for bit := range 40 {
			var changed [2][64]int
			for i := range int64(samples) {
				at := [3]int64{i, i * i, 3 * i}
				before := hash(at[0], at[1], at[2])
				at[word] ^= 1 << bit
				after := hash(at[0], at[1], at[2])
				for half := range 2 {
					for b := range 64 {
						changed[half][b] += int((before[half] ^ after[half]) >> b & 1)
					}
				}
			}
			for half, counts := range changed {
				for b, n := range counts {
					if n < samples/2-75 || n > samples/2+75 { // 6.7 standard deviations
						t.Fatalf("bit %d of word %d changes bit %d of half %d in %d of %d cases", bit, word, b, half, n, samples)
					}
				}
			}
		}
	}
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1, 8, 128, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			records := make([]int64, n)
			for i := range records {
				records[i] = int64(i * 77)
			}
			var t certificate.Tally
			e := certificate.EpochOf(1)
			for b.Loop() {
				e.Count(&t, 5, records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	s := sequence(1_000_000)
	for b.Loop() {
		if _, err := certificate.Expect(b.Context(), s, []certificate.Run{{Epochs: 1, Last: s.Records}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/position")
}

// What was added up goes on as a whole: its last run may be of several epochs.
func TestDeliveredAfterAdd(t *testing.T) {
	c := certificate.Certificate{Sequence: sequence(100)}
	for epoch := range int64(3) {
		c.Delivered(epoch, 0, 64, certificate.Tally{})
	}
	c = plus(t, c, certificate.Certificate{Sequence: c.Sequence})
	c.Delivered(2, 64, 96, certificate.Tally{})
	runs, err := c.Runs()
	want := []certificate.Run{{Epoch: 0, Epochs: 2, First: 0, Last: 64}, {Epoch: 2, Epochs: 1, First: 0, Last: 96}}
	if err != nil || !slices.Equal(runs, want) {
		t.Errorf("runs %v, %v, want %v", runs, err, want)
	}
}
