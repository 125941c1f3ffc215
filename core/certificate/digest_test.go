package certificate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// The digest is frozen, because certificates are kept. No value may change.
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
		if got := certificate.EpochOf(c.epoch).Count(c.position, c.records); got.Digest.String() != c.want {
			t.Errorf("epoch %d, position %d, %v: %s, frozen %s", c.epoch, c.position, c.records, got.Digest, c.want)
		}
	}
}

// The weights are frozen too.
func TestWeightsAreFrozen(t *testing.T) {
	one := certificate.Evidence{Rows: 2, Digest: certificate.Digest{Low: 1}}
	for part, want := range []string{"00000000000000000000000000000001", "1a68f6abbe42378177f535400274013d", "04b96a19ad62c31448f259273c0ea0d1"} {
		if got := one.Times(certificate.WeightOf(int64(part))); got.Digest.String() != want || got.Rows != 2 {
			t.Errorf("part %d: %+v, frozen %s", part, got, want)
		}
	}
	both := certificate.WeightOf(1).Plus(certificate.WeightOf(2))
	if both.Minus(certificate.WeightOf(2)) != certificate.WeightOf(1) || one.Times(both).Rows != 4 {
		t.Errorf("weights do not add up: %+v", both)
	}
	large := certificate.Evidence{Rows: 1, Digest: certificate.Digest{High: 1 << 63, Low: 1<<64 - 1}}
	sum := large.Times(certificate.WeightOf(1)).Plus(large.Times(certificate.WeightOf(2)))
	if got := large.Times(both); got != sum {
		t.Errorf("times the sum of weights: %+v, want %+v", got, sum)
	}
}

// No two of a million neighboring (position, record) pairs have an equal half of a
// hash. Multiples that cancel each other would be equal.
func TestHashesDiffer(t *testing.T) {
	var high, low []uint64
	e := certificate.EpochOf(0)
	for position := range int64(1000) {
		for record := range int64(1000) {
			d := e.Count(position, []int64{record}).Digest
			high, low = append(high, d.High), append(low, d.Low)
		}
	}
	for _, half := range [][]uint64{high, low} {
		slices.Sort(half)
		if n := len(slices.Compact(half)); n != 1_000_000 {
			t.Errorf("%d different hashes of 1000000 pairs", n)
		}
	}
}

// Every bit of position, record and epoch changes both halves of the digest.
func TestHashMixes(t *testing.T) {
	hash := func(epoch, position, record int64) [2]uint64 {
		d := certificate.EpochOf(epoch).Count(position, []int64{record}).Digest
		return [2]uint64{d.High, d.Low}
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
			e := certificate.EpochOf(1)
			for b.Loop() {
				e.Count(5, records)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	s := sequence(1_000_000)
	order, err := sampler.New(s.Order, s.Seed, s.Records)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := certificate.Expect(b.Context(), order, []certificate.Span{{Epochs: 1, Last: s.Records}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/position")
}
