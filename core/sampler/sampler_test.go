package sampler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sampler/samplertest"
	"github.com/meshfeed/meshfeed/core/status"
)

func TestOrders(t *testing.T) {
	for _, name := range sampler.Names() {
		t.Run(name, func(t *testing.T) {
			samplertest.Run(t, func(seed, records int64) (sampler.Order, error) { return sampler.New(name, seed, records) })
		})
	}
}

func TestSequential(t *testing.T) {
	e := epoch(t, sampler.Sequential, 77, 5, 100)
	for i := range int64(100) {
		if e.At(i) != i {
			t.Fatalf("At(%d) = %d", i, e.At(i))
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		name          string
		seed, records int64
		want          string
	}{
		{"shuffle", 0, 1, `sampler: there is no order "shuffle"; use one of sequential.1, shuffle.1, local.1:G:B with G parts for batches of B, or blocks.1:W:B:H with windows of W blocks of B records; loaders and layouts also take sequential, shuffle, local, blocks, blocks:W, or blocks:W:B with windows of W blocks of B records`},
		{"", 0, 1, `sampler: there is no order ""; use one of sequential.1, shuffle.1, local.1:G:B with G parts for batches of B, or blocks.1:W:B:H with windows of W blocks of B records; loaders and layouts also take sequential, shuffle, local, blocks, blocks:W, or blocks:W:B with windows of W blocks of B records`},
		{sampler.Shuffle, 1<<53 + 1, 1, `sampler: seed 9007199254740993 is not within ±2^53; use a seed that JSON carries exactly`},
		{sampler.Shuffle, -1<<53 - 1, 1, `sampler: seed -9007199254740993 is not within ±2^53; use a seed that JSON carries exactly`},
		{sampler.Sequential, 0, -1, `sampler: -1 records are not within 0…2^40`},
		{sampler.Sequential, 0, 1<<40 + 1, `sampler: 1099511627777 records are not within 0…2^40`},
	} {
		order, err := sampler.New(c.name, c.seed, c.records)
		if err == nil || err.Error() != c.want || status.CodeOf(err) != status.InvalidArgument || order != nil {
			t.Errorf("New(%q, %d, %d) = %v, %v; want %s", c.name, c.seed, c.records, order, err, c.want)
		}
	}
}

// Within an epoch, record keys are distinct; between epochs and seeds they are
// unrelated, and no bit of them is biased.
func TestRecordKey(t *testing.T) {
	seen := map[[2]uint32]string{}
	ones := [64]int{}
	const n = 20_000
	for _, at := range [][2]int64{{0, 0}, {0, 1}, {1, 0}, {-1, 0}, {1, 1}} {
		for record := range int64(n) {
			key := sampler.RecordKey(at[0], at[1], record)
			what := fmt.Sprintf("seed %d epoch %d record %d", at[0], at[1], record)
			if other, dup := seen[key]; dup {
				t.Fatalf("%s and %s have the same key", other, what)
			}
			seen[key] = what
			for bit := range 32 {
				ones[bit] += int(key[0] >> bit & 1)
				ones[32+bit] += int(key[1] >> bit & 1)
			}
		}
	}
	for bit, count := range ones {
		if z := deviation(float64(count), 5*n*0.5, 5*n*0.25); z > 5 {
			t.Errorf("bit %d is set in %d of %d keys (z = %.1f)", bit, count, 5*n, z)
		}
	}
}

func epoch(t testing.TB, name string, seed, number, records int64) sampler.Epoch {
	t.Helper()
	order, err := sampler.New(name, seed, records)
	if err != nil {
		t.Fatal(err)
	}
	return order.Epoch(number)
}

func shuffled(t testing.TB, seed, number, records int64) []int64 {
	all := make([]int64, records)
	epoch(t, sampler.Shuffle, seed, number, records).Fill(all, 0)
	return all
}

func ExampleNew() {
	order, err := sampler.New(sampler.Shuffle, 42, 10)
	if err != nil {
		panic(err)
	}
	for number := range int64(2) {
		records := make([]int64, order.Len())
		order.Epoch(number).Fill(records, 0)
		slices.Sort(records)
		fmt.Println(records)
	}
	// Output:
	// [0 1 2 3 4 5 6 7 8 9]
	// [0 1 2 3 4 5 6 7 8 9]
}
