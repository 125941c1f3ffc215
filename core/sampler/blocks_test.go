package sampler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sampler/samplertest"
	"github.com/meshfeed/meshfeed/core/status"
)

// blockOrders are names with edge cases: one block per window, one record per block,
// a window or a block of all records, sizes that are not powers of two.
var blockOrders = []string{
	sampler.Blocks(1, 1), sampler.Blocks(1, 100), sampler.Blocks(8, 1), sampler.Blocks(7, 13),
	sampler.Blocks(512, 256), sampler.Blocks(3, 4096), sampler.Blocks(sampler.MaxWindow, sampler.MaxBlock),
}

func TestBlockOrders(t *testing.T) {
	for _, name := range blockOrders {
		t.Run(name, func(t *testing.T) {
			samplertest.Run(t, func(seed, records int64) (sampler.Order, error) { return sampler.New(name, seed, records) })
			order, err := sampler.New(name, 0, 10)
			if err != nil || order.Name() != name {
				t.Errorf("the order has the name %v (%v)", order, err)
			}
		})
	}
}

// unitSizes divides records into units of uneven sizes, some of them empty.
func unitSizes(records int64) []int64 {
	rng := rand.New(rand.NewPCG(1, uint64(records)))
	sizes := []int64{0}
	for records > 0 {
		n := min(records, rng.Int64N(1+min(records, 1<<20))) // at most 2^20 units for the largest datasets of the suite
		if records > 1<<32 {
			n = records / 1000
		}
		sizes, records = append(sizes, n), records-n
	}
	return append(sizes, 0)
}

func TestUnitOrders(t *testing.T) {
	for _, window := range []int64{1, 2, 100, sampler.MaxWindow} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			samplertest.Run(t, func(seed, records int64) (sampler.Order, error) {
				return sampler.Units(window, seed, unitSizes(records))
			})
		})
	}
}

// An epoch visits window after window of whole blocks, and the last block, which is
// the only short one, is in different windows.
func TestWindowsOfEvenBlocks(t *testing.T) {
	const window, block, records = 4, 10, 997
	places := map[int]bool{}
	for number := range int64(8) {
		e := epoch(t, sampler.Blocks(window, block), 5, number, records)
		groups := blockGroups(t, e, records, func(record int64) int64 { return record / block })
		full := 0
		for i, g := range groups {
			if len(g) == window {
				full++
			}
			if len(g) > window {
				t.Fatalf("epoch %d: %d blocks were begun before all of them were finished, want at most %d", number, len(g), window)
			}
			if slices.Contains(g, records/block) {
				places[i] = true
			}
		}
		if want := (records + block - 1) / block / window; full != want {
			t.Errorf("epoch %d has %d windows of %d blocks, want %d", number, full, window, want)
		}
	}
	if len(places) < 3 {
		t.Errorf("in 8 epochs, the last block is in windows %v only", places)
	}
}

// The blocks of an order of units are the units.
func TestWindowsOfUnits(t *testing.T) {
	const window, records = 3, 5000
	sizes := unitSizes(records)
	var unitOf []int64
	for u, n := range sizes {
		unitOf = append(unitOf, slices.Repeat([]int64{int64(u)}, int(n))...)
	}
	order, err := sampler.Units(window, 1, sizes)
	if err != nil {
		t.Fatal(err)
	}
	for number := range int64(20) {
		for _, g := range blockGroups(t, order.Epoch(number), records, func(record int64) int64 { return unitOf[record] }) {
			if len(g) > window {
				t.Fatalf("epoch %d: units %v were begun before all of them were finished, want at most %d", number, g, window)
			}
		}
	}
}

// blockGroups divides an epoch where all blocks that were begun are finished, and
// returns the blocks of every part.
func blockGroups(t *testing.T, e sampler.Epoch, records int64, blockOf func(record int64) int64) (groups [][]int64) {
	t.Helper()
	left := map[int64]int{} // records of each block
	for record := range records {
		left[blockOf(record)]++
	}
	var group []int64
	unfinished := 0
	begun := map[int64]bool{}
	for position := range records {
		b := blockOf(e.At(position))
		if !begun[b] {
			begun[b] = true
			group = append(group, b)
			unfinished++
		}
		if left[b]--; left[b] == 0 {
			unfinished--
		}
		if unfinished == 0 {
			groups, group = append(groups, group), nil
		}
	}
	return groups
}

// The variance of a batch's mean is at most what BlocksVariance promises, also for the
// worst data: all records of a block are equal. Seeds are fixed. The bound of 13 % is
// that of the random numbers.
func TestBlocksVariance(t *testing.T) {
	for _, c := range []struct{ batch, window, block, blocks int64 }{
		{64, 64, 16, 1024}, {64, 256, 16, 1024}, {64, 16, 16, 1024}, {128, 32, 64, 512}, {32, 512, 8, 1024}, {64, 1024, 8, 1024},
	} {
		name, want := sampler.Blocks(c.window, c.block), sampler.BlocksVariance(c.batch, c.window, c.blocks)
		sum, count := 0.0, 0
		for seed := range int64(10) {
			e := epoch(t, name, seed, 0, c.block*c.blocks)
			rows := make([]int64, c.batch)
			for position := int64(0); position+c.batch <= c.block*c.blocks; position += c.batch {
				e.Fill(rows, position)
				mean := 0.0
				for _, r := range rows {
					mean += value(r/c.block) / float64(c.batch)
				}
				sum, count = sum+mean*mean, count+1
			}
		}
		got := sum / float64(count) * float64(c.batch) // the variance of a value is 1
		if got > want*1.13 || got < want*0.7 {
			t.Errorf("%s over %d blocks, batches of %d: the variance is %.2f, promised %.2f", name, c.blocks, c.batch, got, want)
		}
	}
}

// value is 1 for one half of the blocks, and -1 for the other.
func value(block int64) float64 { return float64(block%2*2 - 1) }

func TestBlockOrderErrors(t *testing.T) {
	const form = "; use the name in the state of the first loader"
	for _, c := range []struct{ name, want string }{
		{"blocks.1:0:8:0", `has windows of 0 blocks, but they may have from 1 to 1048576`},
		{"blocks.1:1048577:8:0", `has windows of 1048577 blocks, but they may have from 1 to 1048576`},
		{"blocks.1:8:-1:0", `has blocks of -1 records, but they may have from 1 to 2^40`},
		{"blocks.1:8:1099511627777:0", `has blocks of 1099511627777 records, but they may have from 1 to 2^40`},
		{"blocks.1:8:8:1", `has a hash of units, but blocks of 8 records`},
		{"blocks.1:8:0:4503599627370496", `has a hash of more than 52 bits`},
		{"blocks.1:8:0:7", `has the units of a dataset as its blocks, but their sizes are not given`},
		{"blocks.1:8:8", `is not blocks.1:W:B:H with windows of W blocks of B records`},
	} {
		order, err := sampler.New(c.name, 0, 100)
		want := fmt.Sprintf("sampler: order %q %s%s", c.name, c.want, form)
		if err == nil || err.Error() != want || status.CodeOf(err) != status.InvalidArgument || order != nil {
			t.Errorf("New(%q) = %v, %v; want %s", c.name, order, err, want)
		}
	}
	if _, err := sampler.Units(8, 0, []int64{1, -1}); err == nil || err.Error() != "sampler: unit 1 of the dataset has -1 records" {
		t.Error(err)
	}
	if _, err := sampler.Units(8, 0, []int64{1 << 40, 1}); err == nil || err.Error() != "sampler: the units of the dataset have more than 2^40 records" {
		t.Error(err)
	}
}

// The name tells two divisions into units apart.
func TestUnitsHash(t *testing.T) {
	seen := map[int64][]int64{}
	for _, sizes := range [][]int64{nil, {0}, {0, 0}, {1}, {1, 2}, {2, 1}, {3}, {1, 2, 0}, {0, 1, 2}} {
		h := sampler.UnitsHash(sizes)
		if other, dup := seen[h]; dup || h < 0 || h >= 1<<52 {
			t.Errorf("%v has the hash %d, as %v", sizes, h, other)
		}
		seen[h] = sizes
	}
}

func BenchmarkBlocks(b *testing.B) {
	const records, rows = 1 << 24, 1024
	for _, name := range []string{sampler.Shuffle, sampler.Blocks(512, 256), sampler.Blocks(4096, 1000)} {
		b.Run(name, func(b *testing.B) {
			e, dst := epoch(b, name, 1, 0, records), make([]int64, rows)
			position := int64(0)
			for b.Loop() {
				e.Fill(dst, position)
				if position += rows; position+rows > records {
					position = 0
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/record")
		})
	}
}

func BenchmarkUnits(b *testing.B) {
	sizes := slices.Repeat([]int64{1000}, 1_000_000)
	order, err := sampler.Units(2048, 1, sizes)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		order.Epoch(1).At(5)
	}
}
