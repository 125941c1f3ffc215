package loader_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// stored is a dataset that knows its units.
type stored struct {
	*synthetic.Source
	units []int64
}

func (s stored) Facts() source.Facts {
	return source.Facts{Units: func() []int64 { return s.units }}
}

// storedIn returns digits in units of random sizes, some of them empty.
func storedIn(rng *rand.Rand, records int64) stored {
	s := stored{Source: digits(records)}
	most := 1 + rng.Int64N(records/4)
	for records > 0 {
		n := min(records, rng.Int64N(most+1))
		s.units, records = append(s.units, n), records-n
	}
	return s
}

// Every epoch has every record once, window by window; and all topologies, and loaders
// that are restored or remeshed, deliver the same records.
func TestBlocksOnOtherTopologies(t *testing.T) {
	rng := random.New(t)
	for range 12 {
		src := storedIn(rng, 200+rng.Int64N(1500))
		records := src.Len()
		order := []string{"blocks", "blocks:3", "blocks:0:7", "blocks:5:40", "blocks:1:100000"}[rng.IntN(5)]
		pad := func(processes, size int) *layout.Layout {
			d := wide(processes, size)
			d.Batch.Remainder = layout.Pad
			return newLayout(t, d)
		}
		o := loader.Options{Layout: pad(4, 32), Order: order, Seed: rng.Int64N(100), Epochs: 3}
		first := newLoader(t, src, o)
		full := first.State().Order
		checkEpochs(t, sequenceOf(t, first, int(2*records)), records, full)
		if err := first.Restore(first.State().JSON(), false); err != nil {
			t.Fatal(err)
		}
		first = newLoader(t, src, o)
		sequenceOf(t, first, 64)
		state := first.State().JSON()
		want := sequenceOf(t, first, int(records))
		for _, c := range []struct{ processes, size int }{{2, 32}, {1, 48}, {8, 16}} {
			o.Layout, o.State = pad(c.processes, c.size), state
			made := newLoader(t, src, o)
			o.State = nil
			restored := newLoader(t, src, o)
			next(t, restored)
			if err := restored.Restore(state, false); err != nil {
				t.Fatal(err)
			}
			remeshed, err := made.Remesh(pad(2, 24), 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			for what, l := range map[string]*loader.Loader{"made with the state": made, "restored": restored, "remeshed": remeshed} {
				got := sequenceOf(t, l, len(want)-64)
				if n := min(len(got), len(want)); !slices.Equal(got[:n], want[:n]) {
					t.Errorf("%s, %d processes, batches of %d, %s: other records", full, c.processes, c.size, what)
				}
				if got := l.State().Order; got != full {
					t.Errorf("%s: the order is %s, want %s", what, got, full)
				}
			}
			closeLoader(t, remeshed)
		}
	}
}

// The certificate of an order with units as blocks is checked with these units.
func TestBlocksCertificate(t *testing.T) {
	rng := random.New(t)
	src := storedIn(rng, 300)
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, wide(1, 16)), Order: "blocks:3"})
	sequenceOf(t, l, 256)
	certified, err := l.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if err := certified.Check(t.Context()); err != nil {
		t.Error(err)
	}
	json, err := certified.JSON()
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := certificate.Parse(json)
	if err != nil {
		t.Fatal(err)
	}
	if err := parsed.Check(t.Context()); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("checked without units: %v", err)
	}
	of, err := parsed.Of(src.units)
	if err != nil {
		t.Fatal(err)
	}
	if err := of.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := parsed.Of([]int64{299}); status.CodeOf(err) != status.Incompatible {
		t.Errorf("299 records: %v", err)
	}
	if _, err := parsed.Of([]int64{1, 298, 1}); status.CodeOf(err) != status.Incompatible {
		t.Errorf("other units: %v", err)
	}
}

// asking counts how often its units are asked for.
type asking struct {
	stored
	asked *int
}

func (c asking) Facts() source.Facts {
	f := c.stored.Facts()
	f.Units = func() []int64 {
		*c.asked++
		return c.units
	}
	return f
}

// The units are checked for the first certificate of a loader, and again after a Restore of
// another order.
func TestUnitsOfCertificates(t *testing.T) {
	asked := 0
	src := asking{stored{digits(300), []int64{100, 0, 150, 50}}, &asked}
	lay := newLayout(t, wide(1, 16))
	l := newLoader(t, src, loader.Options{Layout: lay, Order: "blocks"})
	another := newLoader(t, src, loader.Options{Layout: lay, Order: "blocks:1"})
	certify := func() {
		t.Helper()
		c, err := l.Certificate()
		if err == nil {
			_, err = l.CertificateAt(l.State().Cursor())
		}
		if err == nil {
			err = c.Check(t.Context())
		}
		if err != nil {
			t.Error(err)
		}
	}
	sequenceOf(t, l, 64)
	for i := range 3 {
		before := asked
		certify()
		if got, want := asked-before, 1-min(i, 1); got != want {
			t.Errorf("certificates %d asked %d times for the units, want %d", i, got, want)
		}
	}
	if err := l.Restore(another.State().JSON(), false); err != nil {
		t.Fatal(err)
	}
	sequenceOf(t, l, 64)
	before := asked
	certify()
	if asked-before != 1 {
		t.Errorf("the certificate of another order asked %d times for the units", asked-before)
	}
}

func checkEpochs(t *testing.T, list []int64, records int64, order string) {
	t.Helper()
	for epoch := range 2 {
		times := make([]int, records)
		for _, r := range list[int64(epoch)*records:][:records] {
			times[r]++
		}
		if slices.Min(times) != 1 || slices.Max(times) != 1 {
			t.Fatalf("%s: epoch %d does not have every record once", order, epoch)
		}
	}
}

// The parameters that the user leaves out follow from the layout and the dataset.
func TestBlocksParameters(t *testing.T) {
	units := slices.Repeat([]int64{10}, 500)
	src := stored{digits(5000), units}
	planned := document(8)
	planned.Dataset = &layout.DatasetSpec{Records: 5000, Order: "blocks", Seed: 7}
	sliced, err := view.Slice(src, 5, 4992)
	if err != nil {
		t.Fatal(err)
	}
	cut := slices.Concat([]int64{5}, units[:498], []int64{2})
	for _, c := range []struct {
		what string
		src  source.Source
		o    loader.Options
		want string
	}{
		{"units", src, loader.Options{Layout: newLayout(t, document(8)), Order: "blocks"}, sampler.Units(32, units)},
		{"a document", src, loader.Options{Layout: newLayout(t, planned)}, sampler.Units(32, units)},
		{"a slice", sliced, loader.Options{Layout: newLayout(t, document(8)), Order: "blocks"}, sampler.Units(32, cut)},
		{"blocks", digits(5000), loader.Options{Layout: newLayout(t, document(8)), Order: "blocks:0:10"}, sampler.Blocks(32, 10)},
		{"a full name", src, loader.Options{Layout: newLayout(t, document(8)), Order: sampler.Units(3, units)}, sampler.Units(3, units)},
	} {
		l := newLoader(t, c.src, c.o)
		if got := l.State().Order; got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
		closeLoader(t, l)
	}
}

func TestBlocksRefused(t *testing.T) {
	lay := newLayout(t, document(8))
	const hint = `; give the number of records of a block: order "blocks:W:B" (Python: mf.Blocks(records=B)), with W = 0 for the default window`
	_, err := loader.New(digits(100), loader.Options{Layout: lay, Order: "blocks"})
	wantError(t, err, status.Unsupported, "source: the dataset has no unit boundaries"+hint)
	_, err = loader.New(digits(100), loader.Options{Layout: lay, Order: "blocks.1:4:0:7"})
	wantError(t, err, status.Unsupported, "source: the dataset has no unit boundaries"+hint)

	l := newLoader(t, stored{digits(100), []int64{40, 60}}, loader.Options{Layout: lay, Order: "blocks"})
	next(t, l)
	state := l.State().JSON()
	o := loader.Options{Layout: lay, Order: "blocks", State: state}
	_, err = loader.New(stored{digits(100), []int64{50, 50}}, o)
	wantError(t, err, status.Incompatible, `sampler: order "blocks.1:2:0:2994788312641029" is for units with the hash 2994788312641029, but the units of this dataset have 1052589060827684; open the dataset as it was stored when the order was made`)
	o.Order = "blocks:1"
	_, err = loader.New(stored{digits(100), []int64{40, 60}}, o)
	wantError(t, err, status.Incompatible, `loader: the saved state is of another run: order saved "blocks.1:2:0:2994788312641029", live "blocks.1:1:0:2994788312641029"; continue with the dataset, order and seed that were saved`)
}

// cached is a dataset with units that have to be decoded.
type cached struct {
	stored
	bytes int64
}

func (c cached) Facts() source.Facts {
	f := c.stored.Facts()
	f.CacheBytes = func() int64 { return c.bytes }
	return f
}

// While a window is delivered, the units of the next are announced: all that the cache
// has room for beside the current window, and none after the last epoch.
func TestNextWindowIsAnnounced(t *testing.T) {
	const unit, units, row = 10, 50, 2*4*4 + 8 // records, and bytes
	sizes := slices.Repeat([]int64{unit}, units)
	order, err := sampler.NewOf(sampler.Units(10, sizes), 3, sizes)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cache  int64 // units
		epochs int
		skip   int64 // position at which the loader begins
		want   int   // announcements in the window after that: units, and 20 rows of 4 later steps
	}{
		{0, 0, 0, 20}, {10, 0, 0, 20}, {13, 0, 0, 23}, {20, 0, 0, 30}, {1000, 0, 0, 30},
		{1000, 2, 400, 50}, {1000, 1, 400, 20}, // the last window of an epoch has 20 rows in the same blocks
	} {
		src := cached{stored{digits(unit * units), sizes}, c.cache * unit * row}
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(10)), Order: "blocks:10", Seed: 3, Epochs: c.epochs, Prefetch: -1})
		if err := l.Seek(batch.Cursor{Position: c.skip}); err != nil {
			t.Fatal(err)
		}
		_, blocks := order.Epoch((c.skip + 100) / 500).(sampler.Windowed).Window((c.skip + 100) % 500)
		for range 10 {
			next(t, l)
		}
		closeLoader(t, l)
		counts := src.Counts()
		got, announced := 0, counts.Ahead
		for _, b := range blocks {
			for r := b[0]; r < b[1]; r++ {
				got += announced[r]
			}
		}
		if got != c.want {
			t.Errorf("%+v: %d announcements", c, got)
		}
		if next := counts.Draws[source.Draw{Seed: 3, Epoch: 1}]; c.epochs == 2 && next != 20+10+1 { // rows of steps, units of a window, the first unit of the window after it
			t.Errorf("%+v: %d records of the next epoch were announced", c, next)
		}
	}
}

// TestUnitsFarAwayAreAnnouncedInOrder: as many as take half of the cache, each once, and none beyond the records.
func TestUnitsFarAwayAreAnnouncedInOrder(t *testing.T) {
	const unit, units, row = 10, 50, 2*4*4 + 8 // records, and bytes
	sizes := slices.Repeat([]int64{unit}, units)
	for _, c := range []struct {
		cache int64 // units
		far   bool
		skip  int64
		want  []int64 // units that are announced beside the rows of 4 later steps
	}{
		{20, false, 0, nil}, {0, true, 0, nil}, {20, true, 0, []int64{1, 11}}, {20, true, 460, []int64{47, 49}}, {1000, true, 0, []int64{1, 49}},
	} {
		src := cached{stored{digits(unit * units), sizes}, c.cache * unit * row}
		l := newLoader(t, counting{src, c.far}, loader.Options{Layout: newLayout(t, document(10)), Order: "sequential", Epochs: 1, Prefetch: -1})
		if err := l.Seek(batch.Cursor{Position: c.skip}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			next(t, l)
		}
		closeLoader(t, l)
		counts := src.Counts()
		var got []int64
		for first := int64(0); first < units*unit; first += unit {
			if counts.Ahead[first] > counts.Ahead[first+1] {
				got = append(got, first/unit)
			}
			if counts.Ahead[first] > 2 {
				t.Errorf("%+v: unit %d was announced %d times", c, first/unit, counts.Ahead[first])
			}
		}
		if len(got) > 0 {
			got = []int64{got[0], got[len(got)-1]}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: units %v", c, got)
		}
	}
}

// counting is a source that counts what is fetched, as each view does. It may be on another machine.
type counting struct {
	source.Source
	far bool
}

func (c counting) Facts() source.Facts {
	f := c.Source.Facts()
	f.Fetched = func() source.Fetched { return source.Fetched{} }
	if c.far {
		f.FarBytes = func() int64 { return 1 }
	}
	return f
}
