package sampler_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// The tests of this file check that shuffle.1 looks like a uniformly random
// permutation. Their seeds are fixed, so a bound of five standard deviations does
// not fail by chance once it has passed.

// deviation returns the distance of got from its mean in standard deviations.
func deviation(got, mean, variance float64) float64 {
	return math.Abs(got-mean) / math.Sqrt(variance)
}

// chiSquare returns the deviation of the chi-square statistic of counts from its
// mean, if every cell is equally likely and there are free degrees of freedom.
func chiSquare(counts []int, free int) float64 {
	total := 0
	for _, c := range counts {
		total += c
	}
	expected := float64(total) / float64(len(counts))
	sum := 0.0
	for _, c := range counts {
		d := float64(c) - expected
		sum += d * d / expected
	}
	return deviation(sum, float64(free), 2*float64(free))
}

const bound = 5

// sizesToProbe has sizes around permutation.TableSize, squares, and sizes with a rectangle
// that is not a square.
var sizesToProbe = []int64{1797, 4096, 4097, 4225, 5003, 50_000, 1_000_003}

func factorial(n int64) int {
	if n < 2 {
		return 1
	}
	return int(n) * factorial(n-1)
}

// rank returns the number of a permutation in lexicographic order.
func rank(p []int64) int {
	r := 0
	for i, x := range p {
		smaller := 0
		for _, y := range p[i+1:] {
			if y < x {
				smaller++
			}
		}
		r = r*(len(p)-i) + smaller
	}
	return r
}

func TestAllPermutationsOfFewRecords(t *testing.T) {
	for n := int64(2); n <= 6; n++ {
		counts := make([]int, factorial(n))
		for seed := int64(-100); seed < 100; seed++ {
			for number := range int64(200) {
				counts[rank(shuffled(t, seed, number, n))]++
			}
		}
		if z := chiSquare(counts, len(counts)-1); z > bound {
			t.Errorf("%d records: the %d permutations are not equally frequent (z = %.1f)", n, len(counts), z)
		}
	}
}

// Every record is equally often at every position.
func TestPositions(t *testing.T) {
	const n, epochs = 40, 20_000
	counts := make([]int, n*n)
	for number := range int64(epochs) {
		for position, record := range shuffled(t, 7, number, n) {
			counts[position*n+int(record)]++
		}
	}
	if z := chiSquare(counts, (n-1)*(n-1)); z > bound {
		t.Errorf("records prefer positions (z = %.1f)", z)
	}
}

// Every block of positions has equally many records of every block of records,
// within one epoch and over several.
func TestBlocks(t *testing.T) {
	const blocks = 20
	for _, n := range sizesToProbe {
		n -= n % blocks
		counts := make([]int, blocks*blocks)
		for number := range int64(5) {
			for position, record := range shuffled(t, 11, number, n) {
				counts[int64(position)*blocks/n*blocks+record*blocks/n]++
			}
		}
		if z := chiSquare(counts, (blocks-1)*(blocks-1)); z > bound {
			t.Errorf("%d records: blocks are mixed unevenly (z = %.1f)", n, z)
		}
	}
}

// correlation returns the deviation from 0 of the correlation of x[i] and y[i],
// two permutations of the same numbers. Its variance is 1/(n-1).
func correlation(x, y []int64) float64 {
	mean, n := float64(len(x)-1)/2, float64(len(x))
	sum := 0.0
	for i := range x {
		sum += (float64(x[i]) - mean) * (float64(y[i]) - mean)
	}
	r := sum / (n * (n*n - 1) / 12)
	return deviation(r, 0, 1/(n-1))
}

// Neighbors, and positions that are one row of the rectangle apart, are not
// correlated, and their differences are even.
func TestSerialCorrelation(t *testing.T) {
	for _, n := range sizesToProbe {
		p := shuffled(t, 13, 1, n)
		row := int(math.Sqrt(float64(n)))
		for _, lag := range []int{1, 2, 3, 64, row - 2, row - 1, row, row + 1, row + 2, int(n) / 2} {
			turned := append(append([]int64(nil), p[lag:]...), p[:lag]...)
			if z := correlation(p, turned); z > bound {
				t.Errorf("%d records: correlation at lag %d (z = %.1f)", n, lag, z)
			}
			if z := differences(p, turned); z > bound {
				t.Errorf("%d records: differences at lag %d are uneven (z = %.1f)", n, lag, z)
			}
		}
	}
}

// differences returns the deviation of the chi-square of (x[i]-y[i]) mod n.
func differences(x, y []int64) float64 {
	const buckets = 32
	n := int64(len(x))
	counts := make([]int, buckets)
	for i := range x {
		counts[((x[i]-y[i]+n)%n)*buckets/n]++
	}
	return chiSquare(counts, buckets-1)
}

// The distance between the positions of a record in the file and in the epoch is a
// third of the records on average. The sum has the mean (n²-1)/3 and the variance
// (n+1)(2n²+7)/45 (Diaconis and Graham, Spearman's Footrule as a Measure of
// Disarray, 1977).
func TestDisplacement(t *testing.T) {
	for _, n := range sizesToProbe {
		for number := range int64(3) {
			footrule := 0.0
			for position, record := range shuffled(t, 17, number, n) {
				footrule += math.Abs(float64(record) - float64(position))
			}
			f := float64(n)
			if z := deviation(footrule, (f*f-1)/3, (f+1)*(2*f*f+7)/45); z > bound {
				t.Errorf("%d records: mean displacement is %.4f of the records (z = %.1f)", n, footrule/f/f, z)
			}
		}
	}
}

// Half of the neighbors ascend: mean (n-1)/2, variance (n+1)/12.
func TestAscents(t *testing.T) {
	for _, n := range sizesToProbe {
		p, ascents := shuffled(t, 19, 2, n), 0
		for i := range p[1:] {
			if p[i] < p[i+1] {
				ascents++
			}
		}
		if z := deviation(float64(ascents), float64(n-1)/2, float64(n+1)/12); z > bound {
			t.Errorf("%d records: %d ascents (z = %.1f)", n, ascents, z)
		}
	}
}

// Consecutive epochs and seeds are unrelated, and epoch 1 of a seed is not epoch 0 of
// the next seed.
func TestEpochsAreUnrelated(t *testing.T) {
	type at struct{ seed, epoch int64 }
	pairs := [][2]at{
		{{0, 0}, {0, 1}}, {{0, 0}, {1, 0}}, {{0, 1}, {1, 0}}, {{0, 0}, {1, 1}}, {{1, 0}, {-1, 0}}, {{0, 1}, {0, -1}},
		{{5, 6}, {6, 5}}, {{0, 1 << 32}, {0, 0}}, {{1 << 32, 0}, {0, 0}}, {{1 << 53, 0}, {-1 << 53, 0}},
	}
	for _, n := range sizesToProbe {
		for _, pair := range pairs {
			x := shuffled(t, pair[0].seed, pair[0].epoch, n)
			y := shuffled(t, pair[1].seed, pair[1].epoch, n)
			what := fmt.Sprintf("%d records, %v", n, pair)
			if z := correlation(x, y); z > bound {
				t.Errorf("%s: correlated (z = %.1f)", what, z)
			}
			if z := differences(x, y); z > bound {
				t.Errorf("%s: differences are uneven (z = %.1f)", what, z)
			}
			if hits := agreements(x, y); hits > 9 {
				t.Errorf("%s: %d positions hold the same record, expected about 1", what, hits)
			}
		}
	}
}

func agreements(x, y []int64) int {
	hits := 0
	for i := range x {
		if x[i] == y[i] {
			hits++
		}
	}
	return hits
}

// A dataset with one more record has an unrelated order, not the old order with a
// record inserted.
func TestSizesAreUnrelated(t *testing.T) {
	for _, n := range sizesToProbe {
		x, y := shuffled(t, 0, 0, n), shuffled(t, 0, 0, n+1)[:n]
		if hits := agreements(x, y); hits > 9 {
			t.Errorf("%d and %d records agree at %d positions, expected about 1", n, n+1, hits)
		}
	}
}

// Both parities occur, also at sizes with a rectangle that could have two odd sides. Every
// round would then be an even permutation.
func TestParity(t *testing.T) {
	const epochs = 400
	for _, n := range []int64{225, 4225, 4356, 4489} {
		odd := 0
		for number := range int64(epochs) {
			odd += parity(shuffled(t, 23, number, n))
		}
		if z := deviation(float64(odd), epochs/2, epochs/4.); z > bound {
			t.Errorf("%d records: %d of %d permutations are odd (z = %.1f)", n, odd, epochs, z)
		}
	}
}

func parity(p []int64) int {
	seen, transpositions := make([]bool, len(p)), 0
	for i := range p {
		for j := i; !seen[j]; j = int(p[j]) {
			seen[j] = true
			if int(p[j]) != i {
				transpositions++
			}
		}
	}
	return transpositions % 2
}

// Over many epochs, two positions that share a half of the Feistel network are as
// independent as any two, and so are the four corners of a rectangle. Networks with
// too few rounds fail this.
func TestCorners(t *testing.T) {
	const height, width, epochs = 66, 65, 40_000 // 4290 records fill this rectangle
	row, column, top, low := make([]int, 33), make([]int, 33), make([]int, height), make([]int, width)
	for number := range int64(epochs) {
		e := epoch(t, sampler.Shuffle, 29, number, height*width)
		a, b, c, d := e.At(0), e.At(1), e.At(width), e.At(width+1)
		row[modulo(a-b, height*width)*33/(height*width)]++
		column[modulo(a-c, height*width)*33/(height*width)]++
		top[modulo(a/width-b/width-c/width+d/width, height)]++
		low[modulo(a-b-c+d, width)]++
	}
	for what, counts := range map[string][]int{"a row": row, "a column": column, "corners, high half": top, "corners, low half": low} {
		if z := chiSquare(counts, len(counts)-1); z > bound {
			t.Errorf("%s: differences over epochs are uneven (z = %.1f)", what, z)
		}
	}
}

func modulo(x, m int64) int64 { return (x%m + m) % m }
