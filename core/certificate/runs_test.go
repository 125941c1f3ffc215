package certificate_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/tests/random"
)

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
