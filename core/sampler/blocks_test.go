package sampler_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
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
				sizes := unitSizes(records)
				return sampler.NewOf(sampler.Units(window, sizes), seed, sizes)
			})
		})
	}
}

// An epoch visits window after window of whole blocks. The windows have equal numbers of
// blocks, or one block less. The last block of the dataset, which is smaller than the
// others, is in different windows.
func TestWindows(t *testing.T) {
	uneven := unitSizes(5000)
	for _, c := range []struct {
		name  string
		sizes []int64
		want  []int // blocks of every window
	}{
		{sampler.Blocks(4, 10), evenSizes(10, 997), slices.Repeat([]int{4}, 25)},
		{sampler.Blocks(64, 10), evenSizes(10, 1000), []int{50, 50}},
		{sampler.Blocks(33, 10), evenSizes(10, 1000), []int{25, 25, 25, 25}},
		{sampler.Blocks(34, 10), evenSizes(10, 1001), []int{34, 34, 33}},
		{sampler.Blocks(100, 10), evenSizes(10, 997), []int{100}},
		{sampler.Units(1<<20, uneven), uneven, []int{len(uneven) - countOf(uneven, 0)}},
		{sampler.Units(2, []int64{5, 0, 7, 1, 0, 2, 9}), []int64{5, 0, 7, 1, 0, 2, 9}, []int{2, 2, 1}},
		{sampler.Units(3, []int64{8}), []int64{8}, []int{1}},
	} {
		order, err := sampler.NewOf(c.name, 5, c.sizes)
		if err != nil {
			t.Fatal(err)
		}
		blocks := map[[2]int64]bool{} // that have records
		last := [2]int64{}
		for _, n := range c.sizes {
			if last = [2]int64{last[1], last[1] + n}; n > 0 {
				blocks[last] = true
			}
		}
		lastIn := map[int]bool{}
		for number := range int64(8) {
			var got []int
			for i, w := range windowsOf(t, order.Epoch(number), blocks) {
				got = append(got, len(w))
				if slices.Contains(w, last) {
					lastIn[i] = true
				}
			}
			if !slices.Equal(got, c.want) {
				t.Fatalf("%s, epoch %d: windows of %v blocks, want %v", c.name, number, got, c.want)
			}
		}
		if len(c.want) > 10 && len(lastIn) < 3 {
			t.Errorf("%s: in 8 epochs, the last block is in windows %v only", c.name, lastIn)
		}
	}
}

// windowsOf returns the blocks of every window of an epoch. It checks that every window
// has all records of its blocks, that no block is in two windows, and that Windowed
// returns the same windows.
func windowsOf(t *testing.T, e sampler.Epoch, blocks map[[2]int64]bool) (list [][][2]int64) {
	t.Helper()
	seen := map[[2]int64]bool{}
	for position := int64(0); len(seen) < len(blocks); {
		end, window := e.(sampler.Windowed).Window(position)
		if again, _ := e.(sampler.Windowed).Window(end - 1); again != end {
			t.Fatalf("positions %d and %d are in windows that end at %d and %d", position, end-1, end, again)
		}
		records := map[int64]bool{}
		for _, b := range window {
			if !blocks[b] || seen[b] {
				t.Fatalf("%v is not a block, or in two windows", b)
			}
			seen[b] = true
			for r := b[0]; r < b[1]; r++ {
				records[r] = true
			}
		}
		for ; position < end; position++ {
			if r := e.At(position); !records[r] {
				t.Fatalf("position %d has record %d, which is not in its window %v", position, r, window)
			} else {
				delete(records, r)
			}
		}
		if len(records) > 0 {
			t.Fatalf("the window that ends at %d does not have records %v", end, records)
		}
		list = append(list, window)
	}
	return list
}

func evenSizes(block, records int64) (sizes []int64) {
	for ; records > 0; records -= block {
		sizes = append(sizes, min(block, records))
	}
	return sizes
}

func countOf(list []int64, n int64) (count int) {
	for _, x := range list {
		if x == n {
			count++
		}
	}
	return count
}

// Two windows of one epoch may be used in turns, and by several goroutines.
func TestWindowsInTurns(t *testing.T) {
	const block, records = 100, 10_000
	sizes := evenSizes(block, records)
	order, err := sampler.NewOf(sampler.Units(7, sizes), 1, sizes)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, records)
	order.Epoch(3).Fill(want, 0)
	e := order.Epoch(3)
	var group sync.WaitGroup
	for g := range int64(4) {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(g)))
			for range 2000 {
				if p := rng.Int64N(records); e.At(p) != want[p] {
					t.Errorf("position %d has record %d, want %d", p, e.At(p), want[p])
				}
			}
		})
	}
	group.Wait()
}

// The variance of a batch's mean is at most what Windows.Variance promises for the worst
// data: all records of a block are equal. For blocks of equal size it is nearly that
// much. The tolerance of 13 % is for the random numbers of fixed seeds.
func TestVariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	uneven := make([]int64, 600)
	for i := range uneven {
		uneven[i] = 1 + rng.Int64N(60)
	}
	skewed := slices.Concat(slices.Repeat([]int64{4}, 900), slices.Repeat([]int64{200}, 100))
	for _, c := range []struct {
		batch, window int64
		sizes         []int64
		want          float64
	}{
		{64, 64, slices.Repeat([]int64{16}, 1024), 1.92}, {64, 256, slices.Repeat([]int64{16}, 1024), 1.18},
		{64, 16, slices.Repeat([]int64{16}, 1024), 4.88}, {128, 32, slices.Repeat([]int64{64}, 512), 4.73},
		{32, 512, slices.Repeat([]int64{8}, 1024), 1.03}, {64, 1024, slices.Repeat([]int64{8}, 1024), 1},
		{64, 60, slices.Repeat([]int64{40}, 61), 2.09}, {16, 1, slices.Repeat([]int64{80}, 40), 16}, {16, 1, []int64{160, 160}, 16},
		{64, 100, uneven, 1.695}, {64, 20, uneven, 5.03}, {64, 100, skewed, 5.12}, {8, 1, []int64{800, 80, 80}, 8},
	} {
		order, err := sampler.NewOf(sampler.Units(c.window, c.sizes), 0, c.sizes)
		if err != nil {
			t.Fatal(err)
		}
		w, ok := sampler.WindowsOf(order)
		bound := w.Variance(c.batch)
		if !ok || math.Abs(bound-c.want) > 0.01*c.want {
			t.Errorf("%s, batches of %d: the bound is %.3f (%t), want %.2f", order.Name(), c.batch, bound, ok, c.want)
		}
		got := measureVariance(t, c.sizes, c.window, c.batch)
		t.Logf("%s over %d blocks, batches of %d: the variance is %.2f, promised %.2f", order.Name(), len(c.sizes), c.batch, got, bound)
		equal := slices.Min(c.sizes) == slices.Max(c.sizes)
		if got > bound*1.13 || equal && got < bound*0.87 {
			t.Errorf("%s over %d blocks, batches of %d: the variance is %.2f, promised %.2f", order.Name(), len(c.sizes), c.batch, got, bound)
		}
	}
}

// measureVariance measures the variance of a batch's mean, in relation to independent
// records, where the value of a record is the value of its block: 1 or -1 at random.
func measureVariance(t *testing.T, sizes []int64, window, batch int64) float64 {
	t.Helper()
	ratio, count := 0.0, 0.0
	for seed := range int64(40) {
		order, err := sampler.NewOf(sampler.Units(window, sizes), seed, sizes)
		if err != nil {
			t.Fatal(err)
		}
		rng, values, sum := rand.New(rand.NewPCG(1, uint64(seed))), []float64{}, 0.0
		for i, n := range sizes {
			v := float64((i+int(rng.Int64N(2)))%2*2 - 1)
			if len(sizes) < 50 { // few values at random are often equal
				v = float64(i%2*2 - 1)
			}
			values, sum = append(values, slices.Repeat([]float64{v}, int(n))...), sum+v*float64(n)
		}
		mean := sum / float64(len(values))
		rows, e := make([]int64, batch), order.Epoch(0)
		for position := int64(0); position+batch <= order.Len(); position += batch {
			e.Fill(rows, position)
			of := 0.0
			for _, r := range rows {
				of += (values[r] - mean) / float64(batch)
			}
			ratio, count = ratio+of*of*float64(batch)/(1-mean*mean), count+1
		}
	}
	return ratio / count
}

func TestBlockOrderErrors(t *testing.T) {
	const form = "; use the name in the state of the first loader"
	for _, c := range []struct{ name, want string }{
		{"blocks.1:0:8:0", `has windows of 0 blocks, but they may have from 1 to 1048576` + form},
		{"blocks.1:1048577:8:0", `has windows of 1048577 blocks, but they may have from 1 to 1048576` + form},
		{"blocks.1:8:-1:0", `has blocks of -1 records, but they may have from 1 to 2^40` + form},
		{"blocks.1:8:1099511627777:0", `has blocks of 1099511627777 records, but they may have from 1 to 2^40` + form},
		{"blocks.1:8:8:1", `has blocks of 8 records, but also the hash of a dataset's units` + form},
		{"blocks.1:8:0:4503599627370496", `has a hash of more than 52 bits` + form},
		{"blocks.1:8:8", `is not blocks.1:W:B:H with windows of W blocks of B records` + form},
		{"blocks.1:8:0:7", `has the units of a dataset as its blocks, but the dataset is not known here; give the dataset (Go: Certificate.Of; Python: certificate.check(dataset=ds)), or use blocks with a number of records`},
	} {
		order, err := sampler.New(c.name, 0, 100)
		want := fmt.Sprintf("sampler: order %q %s", c.name, c.want)
		if err == nil || err.Error() != want || status.CodeOf(err) != status.InvalidArgument || order != nil {
			t.Errorf("New(%q) = %v, %v; want %s", c.name, order, err, want)
		}
		if checked := sampler.Check(c.name, 0, 100); (checked == nil) != (c.name == "blocks.1:8:0:7") {
			t.Errorf("Check(%q) = %v", c.name, checked)
		}
	}
	for _, c := range []struct {
		name  string
		units []int64
		want  string
	}{
		{"blocks.1:8:0:7", []int64{3, 4}, `order "blocks.1:8:0:7" is for units with the hash 7, but the units of this dataset have 826757917153301; open the dataset as it was stored when the order was made`},
		{sampler.Sequential, []int64{1, -1}, "unit 1 of -1 records does not fit the 2^40 records of a dataset"},
		{sampler.Sequential, []int64{1 << 40, 1}, "unit 1 of 1 records does not fit the 2^40 records of a dataset"},
	} {
		if _, err := sampler.NewOf(c.name, 0, c.units); err == nil || err.Error() != "sampler: "+c.want {
			t.Errorf("got  %v\nwant sampler: %s", err, c.want)
		}
	}
}

func TestNeedsUnits(t *testing.T) {
	for text, want := range map[string]bool{
		"blocks": true, "blocks:64": true, "blocks:64:0": true, "blocks:64:1000": false, "blocks.1:64:0:7": true, "blocks.1:64:1000:0": false,
		"local": false, "local.1:4:0": false, "shuffle.1": false, "": false,
	} {
		if sampler.NeedsUnits(text) != want {
			t.Errorf("NeedsUnits(%q) = %t", text, !want)
		}
	}
}

// The name tells two divisions into units apart. Empty units make no difference.
func TestUnitsHash(t *testing.T) {
	seen := map[int64][]int64{}
	for _, sizes := range [][]int64{nil, {1}, {1, 2}, {2, 1}, {3}, {1, 2, 1}, {1, 1, 1}} {
		h := sampler.UnitsHash(sizes)
		if other, dup := seen[h]; dup || h < 0 || h >= 1<<52 {
			t.Errorf("%v has the hash %d, as %v", sizes, h, other)
		}
		seen[h] = sizes
		if with := slices.Concat([]int64{0}, sizes, []int64{0, 0}); sampler.UnitsHash(with) != h {
			t.Errorf("%v has another hash than %v", with, sizes)
		}
	}
}

// The parameters that a user leaves out follow from the run.
func TestDeriveBlocks(t *testing.T) {
	units := slices.Repeat([]int64{1000}, 50_000)
	hash := sampler.UnitsHash(units)
	run := sampler.Run{Batch: 256, Records: 50_000_000, RowBytes: 100, Units: units}
	bare := run
	bare.Units = nil
	large := run
	large.RowBytes = 1 << 20
	few := sampler.Run{Batch: 256, Records: 3000, RowBytes: 100, Units: units[:3]}
	for _, c := range []struct {
		short string
		run   sampler.Run
		want  string
	}{
		{"blocks", run, fmt.Sprintf("blocks.1:1024:0:%d", hash)},
		{"blocks:0:10", sampler.Run{Batch: math.MaxInt64, Records: 50}, "blocks.1:5:10:0"},
		{"blocks:64", run, fmt.Sprintf("blocks.1:64:0:%d", hash)},
		{"blocks:0:500", run, "blocks.1:1024:500:0"},
		{"blocks:0:500", bare, "blocks.1:1024:500:0"},
		{"blocks:64:500", bare, "blocks.1:64:500:0"},
		{"blocks", large, fmt.Sprintf("blocks.1:1:0:%d", hash)},
		{"blocks:0:10", large, "blocks.1:12:10:0"}, // 128 rows of 1 MiB fit
		{"blocks", few, fmt.Sprintf("blocks.1:3:0:%d", sampler.UnitsHash(units[:3]))},
		{"blocks", sampler.Run{Batch: 1, Units: []int64{}}, fmt.Sprintf("blocks.1:1:0:%d", sampler.UnitsHash(nil))},
		{"blocks", bare, `sampler: order "blocks" has the units of a dataset as its blocks, but the dataset is not known here; give the number of records of a block: blocks:W:B, with W = 0 for the default window`},
		{"blocks:x", run, `sampler: order "blocks:x" is not blocks, blocks:W, or blocks:W:B with windows of W blocks of B records`},
		{"blocks:1:2:0", run, `sampler: order "blocks:1:2:0" is not blocks, blocks:W, or blocks:W:B with windows of W blocks of B records`},
		{"blocks:-1", run, fmt.Sprintf(`sampler: order "blocks.1:-1:0:%d" has windows of -1 blocks, but they may have from 1 to 1048576; use the name in the state of the first loader`, hash)},
		{"local:4", run, `sampler: order "local:4" is not local`},
	} {
		got, err := sampler.Derive(c.short, c.run)
		if err != nil {
			got = err.Error()
		}
		if !sampler.IsDerived(c.short) || got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.short, got, c.want)
		}
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
	order, err := sampler.NewOf(sampler.Units(2048, sizes), 1, sizes)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		order.Epoch(1).At(5)
	}
}
