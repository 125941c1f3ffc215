package samplertest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// sizes lists numbers of records: zero, small numbers, powers of two, squares, primes,
// and their neighbors.
var sizes = []int64{
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 99, 100, 101, 127, 128, 255, 256, 257,
	1000, 1023, 1024, 1025, 1797, 4095, 4096, 4097, 4224, 4225, 4226, 5039, 10_000, 10_001, 65_535, 65_536, 65_537, 99_991,
}

// epochs and seeds include values that a weak hash would confuse.
var (
	epochs = []int64{0, 1, 2, 1 << 40}
	seeds  = []int64{0, 1, -1, sampler.MaxSeed, -sampler.MaxSeed}
)

// bijection checks that every epoch has every record exactly once.
func bijection(make New) error {
	for _, n := range sizes {
		for i, seed := range seeds {
			order, err := make(seed, n)
			if err != nil {
				return err
			}
			if order.Len() != n {
				return fmt.Errorf("an order of %d records says Len() = %d", n, order.Len())
			}
			epoch := epochs[i%len(epochs)]
			if err := once(order.Epoch(epoch), n); err != nil {
				return fmt.Errorf("%s, %d records, seed %d, epoch %d: %w", order.Name(), n, seed, epoch, err)
			}
		}
	}
	return nil
}

// once checks that an epoch of n records has each of them exactly once.
func once(e sampler.Epoch, n int64) error {
	seen := make([]bool, n)
	all := make([]int64, n)
	e.Fill(all, 0)
	for position, record := range all {
		if record < 0 || record >= n {
			return fmt.Errorf("position %d holds record %d", position, record)
		}
		if seen[record] {
			return fmt.Errorf("record %d comes twice, the second time at position %d", record, position)
		}
		seen[record] = true
	}
	return nil
}

// bounds checks that a position outside the epoch panics.
func bounds(make New) error {
	for _, n := range []int64{0, 1, 10, 5000, sampler.MaxRecords} {
		order, err := make(1, n)
		if err != nil {
			return err
		}
		e := order.Epoch(0)
		for _, position := range []int64{-1, n, n + 1, -1 << 63, 1<<63 - 1} {
			if !panics(func() { e.At(position) }) {
				return fmt.Errorf("of %d records, At(%d) did not panic", n, position)
			}
			if !panics(func() { e.Fill(slices.Repeat([]int64{0}, 2), position-1) }) {
				return fmt.Errorf("of %d records, Fill of 2 positions at %d did not panic", n, position-1)
			}
		}
		e.Fill(nil, 0)
		e.Fill(nil, n)
	}
	return nil
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// fill checks that Fill agrees with At for every length and offset that an
// implementation could treat differently.
func fill(make New) error {
	for _, n := range []int64{1, 7, 130, 1797, 4097, 10_000} {
		order, err := make(3, n)
		if err != nil {
			return err
		}
		e := order.Epoch(2)
		for length := range min(n, 131) + 1 {
			for _, position := range []int64{0, 1, (n - length) / 2, n - length} {
				if position+length > n {
					continue
				}
				if err := same(e, position, length); err != nil {
					return fmt.Errorf("%d records: %w", n, err)
				}
			}
		}
	}
	return nil
}

// same checks that Fill agrees with At in one range, and writes nothing after it.
func same(e sampler.Epoch, position, length int64) error {
	const untouched = -7
	got := slices.Repeat([]int64{untouched}, int(length)+1)
	e.Fill(got[:length], position)
	for i, record := range got[:length] {
		if want := e.At(position + int64(i)); record != want {
			return fmt.Errorf("Fill(%d positions, %d)[%d] = %d, but At returns %d", length, position, i, record, want)
		}
	}
	if got[length] != untouched {
		return fmt.Errorf("Fill(%d positions, %d) wrote past its end", length, position)
	}
	return nil
}

// large checks parts of large epochs: the records at the edges and in the middle are
// in range and distinct.
func large(make New) error {
	for _, n := range []int64{1<<32 - 1, 1 << 32, 1<<32 + 1, 1e12, sampler.MaxRecords - 1, sampler.MaxRecords} {
		order, err := make(-5, n)
		if err != nil {
			return err
		}
		e := order.Epoch(1)
		seen := map[int64]int64{}
		for _, start := range []int64{0, n / 2, n - 1000} {
			for position := start; position < start+1000; position++ {
				record := e.At(position)
				if record < 0 || record >= n {
					return fmt.Errorf("%d records: position %d holds record %d", n, position, record)
				}
				if other, dup := seen[record]; dup {
					return fmt.Errorf("%d records: positions %d and %d hold record %d", n, other, position, record)
				}
				seen[record] = position
			}
			if err := same(e, start, 1000); err != nil {
				return fmt.Errorf("%d records: %w", n, err)
			}
		}
	}
	return nil
}

// purity checks that an epoch does not depend on earlier calls.
func purity(make New) error {
	const n = 5000
	first, err := make(9, n)
	if err != nil {
		return err
	}
	want := written(first.Epoch(3), n)
	for _, e := range []int64{0, 4, -1} {
		first.Epoch(e).At(n - 1)
	}
	second, err := make(9, n)
	if err != nil {
		return err
	}
	again := second.Epoch(3)
	for position := int64(n - 1); position >= 0; position-- {
		if got := again.At(position); got != want[position] {
			return fmt.Errorf("position %d holds record %d, and in another order with the same arguments %d", position, want[position], got)
		}
	}
	if !slices.Equal(written(first.Epoch(3), n), want) || first.Name() != second.Name() {
		return fmt.Errorf("the second reading of an epoch differs from the first")
	}
	return nil
}

// written returns the records that Fill writes for the first n positions.
func written(e sampler.Epoch, n int64) []int64 {
	all := make([]int64, n)
	e.Fill(all, 0)
	return all
}

// concurrency reads one epoch from several goroutines. Run it with -race.
func concurrency(make New) error {
	const n, readers = 5000, 4
	order, err := make(9, n)
	if err != nil {
		return err
	}
	e := order.Epoch(3)
	want := written(e, n)
	differ := [readers]bool{}
	var done sync.WaitGroup
	for i := range differ {
		done.Go(func() {
			own := written(order.Epoch(3), n)
			differ[i] = !slices.Equal(own, want) || !slices.Equal(written(e, n), want) || e.At(int64(i)) != want[i]
		})
	}
	done.Wait()
	if slices.Contains(differ[:], true) {
		return fmt.Errorf("concurrent readers saw different epochs")
	}
	return nil
}
