package loader_test

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

func TestBytesOfEveryProcess(t *testing.T) {
	d := document(8)
	d.Batch.Remainder = layout.Pad
	d.Batch.Extras = []string{layout.ExtraRecord, layout.ExtraKey}
	d.Dataset = &layout.DatasetSpec{Records: 21, Order: sampler.Shuffle, Seed: 5}
	lay := newLayout(t, d)
	for process := range 3 { // process 2 has no devices
		src := digits(21)
		l := newLoader(t, src, loader.Options{Layout: lay, Process: process, Processes: 3, Epochs: 2})
		n := 0
		for b, err := range l.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			checkBytes(t, l, b)
			b.Release()
			n++
		}
		if n != 6 {
			t.Errorf("process %d got %d batches, want 6", process, n)
		}
		closeLoader(t, l)
		if c := src.Counts(); c.Gatherers != 0 {
			t.Errorf("%d gatherers are left open", c.Gatherers)
		}
	}
}

// With several batch dimensions, a part of an inner one has several runs of rows.
func TestMicroBatches(t *testing.T) {
	for process := range 2 {
		l := newLoader(t, digits(40), loader.Options{Layout: newLayout(t, document(3, 4)), Process: process, Shuffle: true})
		for range 3 {
			next(t, l)
		}
	}
}

// A part of the second of three batch dimensions has several runs of rows.
func TestPartOfMiddleBatchDimension(t *testing.T) {
	d := document(2, 4, 2)
	for i := range d.Arrays {
		d.Arrays[i].Spec = sharding.P(nil, "data", "model")
	}
	for process := range 2 {
		l := newLoader(t, digits(40), loader.Options{Layout: newLayout(t, d), Process: process, Shuffle: true})
		next(t, l)
	}
}

// Blocks of different rows share a part if they take the same part of each row.
func TestPartsAreShared(t *testing.T) {
	d := document(8)
	d.Mesh.Processes = 1
	src := digits(40)
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, d)})
	if parts := src.Counts().Parts[0]; len(l.Blocks()) != 6 || len(parts) != 3 {
		t.Errorf("%d blocks of %d parts, want 6 of 3: two halves of an image, and a label", len(l.Blocks()), len(parts))
	}
}

// Columns may be out of order and overlap, and the mesh may split a range of them.
func TestColumns(t *testing.T) {
	src := synthetic.New(9, source.Field{Name: "tokens", Type: dtype.Int64, Shape: []int{10, 3}})
	lay := newLayout(t, &layout.Document{
		Mesh: layout.MeshSpec{Axes: []mesh.Axis{{Name: "seq", Size: 4}}, Processes: 2},
		Arrays: []layout.ArraySpec{
			{Name: "zigzag", Field: "tokens", Columns: [][2]int{{7, 10}, {0, 3}, {2, 4}}, RowShape: []int{8, 3}, Type: dtype.Int32, Spec: sharding.P(nil, "seq")},
			{Name: "targets", Field: "tokens", Columns: [][2]int{{1, 5}, {5, 9}}, RowShape: []int{8, 3}, Type: dtype.Int64, Spec: sharding.P()},
		},
		Batch: &layout.BatchSpec{Size: []int{3}},
	})
	for process := range 2 {
		l := newLoader(t, src, loader.Options{Layout: lay, Process: process})
		for range 3 {
			next(t, l)
		}
	}
	parts := src.Counts().Parts[0]
	if got, want := parts[len(parts)-1].Boxes, [][][2]int{{{1, 9}, {0, 3}}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("adjacent columns are not one box: %v", got)
	}
}

// computed is a dataset of rows that take long to compute.
type computed struct{ *synthetic.Source }

func (computed) Facts() source.Facts { return source.Facts{Slow: true} }

// A small batch has one worker, unless its rows take long to compute.
func TestSlowRows(t *testing.T) {
	for name, c := range map[string]struct {
		open func(src *synthetic.Source) source.Source
		want int
	}{
		"quick": {func(src *synthetic.Source) source.Source { return src }, 1},
		"slow":  {func(src *synthetic.Source) source.Source { return computed{src} }, min(runtime.GOMAXPROCS(0), 8)},
	} {
		src := digits(64)
		next(t, newLoader(t, c.open(src), loader.Options{Layout: newLayout(t, document(16)), Prefetch: -1}))
		if got := src.Counts().Gathers; got != c.want {
			t.Errorf("%s rows: %d gathers, want %d", name, got, c.want)
		}
	}
}

// A row is gathered once per step for all blocks, and a block once for all devices.
func TestEachRowOnce(t *testing.T) {
	for _, workers := range []int{1, 3} {
		src := digits(64)
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(16)), Workers: workers, Prefetch: -1})
		next(t, l)
		c := src.Counts()
		if c.Gathers != workers {
			t.Errorf("%d gathers, want %d", c.Gathers, workers)
		}
		if len(c.Rows) != 8 {
			t.Errorf("%d rows were gathered, want the 8 of process 0", len(c.Rows))
		}
		for r, n := range c.Rows {
			if n != 1 || r >= 8 {
				t.Errorf("record %d was gathered %d times", r, n)
			}
		}
		if n := len(l.Blocks()); n != 3 {
			t.Errorf("%d blocks, want 3: two halves of the images, and the labels that both devices hold", n)
		}
	}
}

// If every device has the whole mask, but a part of the data, the other rows are
// neither gathered nor announced for the mask.
func TestMaskOfOtherRows(t *testing.T) {
	d := document(8)
	d.Batch.Remainder, d.Batch.MaskSpec = layout.Pad, sharding.P(nil)
	for process := range 2 {
		src := digits(21)
		l := newLoader(t, src, loader.Options{Layout: newLayout(t, d), Process: process, Epochs: 1})
		for range 3 {
			next(t, l)
		}
		c := src.Counts()
		for r := range c.Rows {
			if r >= 0 && r/4%2 != int64(process) {
				t.Errorf("process %d read record %d", process, r)
			}
		}
		for r := range c.Ahead {
			if r >= 0 && r/4%2 != int64(process) {
				t.Errorf("record %[2]d was announced to process %[1]d", process, r)
			}
		}
		if n := l.Stats().Rows; n != 21 {
			t.Errorf("process %d has %d rows, want the 21 of its mask", process, n)
		}
	}
}

// Every row is announced once, before it is gathered.
func TestAhead(t *testing.T) {
	src := digits(64)
	announced, steps := map[int64]int{}, 0
	src.Hook = func(_ context.Context, records []int64) error {
		for r, n := range src.Counts().Ahead {
			announced[r] += n
		}
		for _, r := range records {
			if steps > 0 && announced[r] != 1 {
				t.Errorf("step %d: record %d was announced %d times before", steps, r, announced[r])
			}
		}
		steps++
		return nil
	}
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Epochs: 1, Prefetch: -1})
	if n := len(loopSteps(t, l)); n != 8 || steps != 8 {
		t.Errorf("%d batches, %d gathers", n, steps)
	}
	if len(announced) != 28 { // rows of process 0, without the first step
		t.Errorf("%d rows were announced, want 28", len(announced))
	}
}

// If a gatherer panics in Ahead, the next batch of its loader is an error.
func TestAheadPanics(t *testing.T) {
	l := newLoader(t, announcedSource{digits(64), func() { panic("no announcement") }}, loader.Options{Layout: newLayout(t, document(8))})
	next(t, l)
	_, err := l.Next(t.Context())
	wantError(t, err, status.Internal, "loader: step 1 of epoch 0: panic: no announcement; "+
		"this is a bug in meshfeed: please report it with the file and the options that led here")
	next(t, l)
}

// The last record numbers of the largest dataset have more than 32 bits.
func TestLargestDataset(t *testing.T) {
	d := document(24)
	d.Batch.Remainder, d.Batch.Extras = layout.Pad, []string{layout.ExtraRecord}
	for _, shuffle := range []bool{false, true} {
		l := newLoader(t, digits(sampler.MaxRecords), loader.Options{Layout: newLayout(t, d), Shuffle: shuffle, Epochs: -1})
		if err := l.Seek(batch.Cursor{Position: sampler.MaxRecords - 16 - 24}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []batch.Step{
			{Cursor: batch.Cursor{Position: sampler.MaxRecords - 40}, Index: l.StepsPerEpoch() - 2, Valid: 24, After: batch.Cursor{Position: sampler.MaxRecords - 16}},
			{Cursor: batch.Cursor{Position: sampler.MaxRecords - 16}, Index: l.StepsPerEpoch() - 1, Valid: 16, After: batch.Cursor{Epoch: 1}},
		} {
			if got := next(t, l); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}
}

// A loop may have more batches than an int64 holds.
func TestLongestLoop(t *testing.T) {
	const most = math.MaxInt64
	for _, c := range []struct{ epochs, want int64 }{{most / 10, most/10*10 - 1}, {most/10 + 1, most}, {most, most}} {
		l := newLoader(t, digits(80), loader.Options{Layout: newLayout(t, document(8)), Epochs: int(c.epochs)})
		next(t, l)
		if got := l.Len(); got != c.want {
			t.Errorf("%d epochs of 10 batches: len is %d after the first, want %d", c.epochs, got, c.want)
		}
	}
}

// Records has no batch beyond the last epoch, at a remainder that is dropped, and outside the data.
func TestRecordsOfNoBatch(t *testing.T) {
	l := newLoader(t, digits(20), loader.Options{Layout: newLayout(t, document(8)), Epochs: 2})
	for _, c := range []struct {
		at   batch.Cursor
		text string
	}{
		{batch.Cursor{Epoch: 2}, "loader: there is no epoch 2: the loader has 2; epochs count from 0"},
		{batch.Cursor{Epoch: 1, Position: 13}, "loader: no batch of 8 starts at position 13 of 20 records"},
		{batch.Cursor{Epoch: 1, Position: 21}, "loader: position 21 is outside the epoch of 20 records"},
		{batch.Cursor{Epoch: -1}, "loader: epoch -1 is outside 0…2^53"},
	} {
		_, err := l.Records(c.at)
		wantError(t, err, status.OutOfRange, c.text)
	}
	if _, err := l.Records(batch.Cursor{Epoch: 1, Position: 12}); err != nil {
		t.Error(err)
	}
}

// The records of a batch may be too many to list.
func TestRecordsAreBounded(t *testing.T) {
	l := newLoader(t, digits(1<<30), loader.Options{Layout: newLayout(t, document(1<<27)), Process: 7, Processes: 8})
	_, err := l.Records(batch.Cursor{})
	wantError(t, err, status.ResourceExhausted, "loader: a batch of 134217728 rows is too large to list: at most 67108864 rows")
}

func TestProcessWithoutDevices(t *testing.T) {
	src := digits(20)
	l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Process: 7, Processes: 8})
	if n := len(loopSteps(t, l)); n != 2 || len(l.Blocks()) != 0 {
		t.Errorf("%d batches of %d blocks, want 2 of none", n, len(l.Blocks()))
	}
	if c := src.Counts(); c.Gathers != 0 {
		t.Errorf("%d gathers", c.Gathers)
	}
}
