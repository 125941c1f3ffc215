package view_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

func numbers() *synthetic.Source {
	return synthetic.New(100, source.Field{Name: "x", Type: dtype.Int32, Shape: []int{3}})
}

func slice(t testing.TB, src source.Source, start, stop int64) source.Source {
	t.Helper()
	v, err := view.Slice(src, start, stop)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// gather returns the rows of records.
func gather(ctx context.Context, t testing.TB, src source.Source, records ...int64) ([]byte, error) {
	t.Helper()
	g, err := src.Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{{0, 3}}}}})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 12*len(records))
	err = g.Gather(ctx, source.Draw{}, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}})
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	return dst, err
}

func fingerprint(t testing.TB, src source.Source) source.Fingerprint {
	t.Helper()
	f, err := src.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSliceRows(t *testing.T) {
	src := numbers()
	part := slice(t, src, 40, 60)
	inner := slice(t, part, 5, 10)
	if part.Len() != 20 || inner.Len() != 5 || len(part.Schema().Fields) != 1 {
		t.Errorf("lengths %d and %d", part.Len(), inner.Len())
	}
	want, err := gather(t.Context(), t, src, 45, -1, 49)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		src     source.Source
		records []int64
	}{{part, []int64{5, -1, 9}}, {inner, []int64{0, -1, 4}}} {
		if got, err := gather(t.Context(), t, c.src, c.records...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("records %v: %v, %v", c.records, got, err)
		}
	}
}

// TestSliceBounds: a slice gives no access to records outside it.
func TestSliceBounds(t *testing.T) {
	src := numbers()
	for _, r := range [][2]int64{{-1, 5}, {5, 4}, {0, 101}, {101, 101}} {
		_, err := view.Slice(src, r[0], r[1])
		want := fmt.Sprintf("view: the slice [%d, %d) does not lie within the 100 records of the dataset; use 0 <= start <= stop <= 100", r[0], r[1])
		if status.CodeOf(err) != status.OutOfRange || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for _, r := range []int64{-2, 20} {
		_, err := gather(t.Context(), t, slice(t, src, 40, 60), r)
		want := fmt.Sprintf("view: record %d is outside the 20 records of the slice", r)
		if status.CodeOf(err) != status.OutOfRange || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if empty := slice(t, src, 100, 100); empty.Len() != 0 {
		t.Errorf("%d records in an empty slice", empty.Len())
	}
}

func TestSliceAhead(t *testing.T) {
	src := numbers()
	g, err := slice(t, src, 40, 60).Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{{0, 3}}}}})
	if err != nil {
		t.Fatal(err)
	}
	g.Ahead(source.Draw{}, []int64{3, -1, 25, 19})
	if c := src.Counts(); len(c.Ahead) != 2 || c.Ahead[43] != 1 || c.Ahead[59] != 1 {
		t.Errorf("announced %v, want 43 and 59", c.Ahead)
	}
	if err := g.Close(); err != nil || src.Counts().Gatherers != 0 {
		t.Errorf("the gatherer beneath is open, %v", err)
	}
}

func TestSliceFingerprint(t *testing.T) {
	src := numbers()
	seen := map[source.Fingerprint]string{fingerprint(t, src): "whole"}
	for _, r := range [][2]int64{{0, 100}, {0, 50}, {50, 100}, {1, 50}} {
		f := fingerprint(t, slice(t, src, r[0], r[1]))
		if other, dup := seen[f]; dup {
			t.Errorf("%v has the fingerprint of %s", r, other)
		}
		seen[f] = fmt.Sprint(r)
	}
	if fingerprint(t, slice(t, slice(t, src, 10, 90), 5, 15)) != fingerprint(t, slice(t, src, 15, 25)) {
		t.Error("the same records have two fingerprints")
	}
}

func TestSliceClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := numbers()
		src.Hook = func(ctx context.Context, _ []int64) error { <-ctx.Done(); return ctx.Err() }
		part := slice(t, src, 40, 60)
		inner := slice(t, part, 0, 5)
		time.AfterFunc(time.Second, func() {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err := gather(t.Context(), t, part, 1); status.CodeOf(err) != status.Cancelled {
			t.Errorf("the gather under way ended with %v", err)
		}
		for _, err := range []error{
			func() error { _, err := part.Gatherer(nil); return err }(),
			func() error { _, err := part.Fingerprint(t.Context()); return err }(),
			func() error { _, err := view.Slice(part, 0, 1); return err }(),
		} {
			if status.CodeOf(err) != status.InvalidState || err.Error() != "view: the slice is closed" {
				t.Errorf("got %v", err)
			}
		}
		src.Hook = nil
		if _, err := gather(t.Context(), t, inner, 1); err != nil {
			t.Errorf("a slice of a closed slice: %v", err)
		}
		if err := part.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSliceCloseDuringHungGather: Close waits one second for a gather that hangs.
func TestSliceCloseDuringHungGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := numbers()
		src.Hook = func(context.Context, []int64) error { time.Sleep(5 * time.Second); return nil }
		part := slice(t, src, 40, 60)
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			if err := part.Close(); err != nil || time.Since(began) != 2*time.Second {
				t.Errorf("Close came back after %v: %v", time.Since(began), err)
			}
		})
		if _, err := gather(t.Context(), t, part, 1); status.CodeOf(err) != status.Cancelled {
			t.Errorf("the gather ended with %v", err)
		}
	})
}

// TestSliceAllocatesNothingPerRow: gathers use the list of renumbered records of
// gathers before them. The race detector drops some of these lists.
func TestSliceAllocatesNothingPerRow(t *testing.T) {
	src, lists := numbers(), map[*int64]bool{}
	src.Hook = func(_ context.Context, records []int64) error {
		lists[unsafe.SliceData(records)] = true
		return nil
	}
	g, err := slice(t, src, 40, 60).Gatherer([]source.Part{{Field: 0, Boxes: [][][2]int{{{0, 3}}}}})
	if err != nil {
		t.Fatal(err)
	}
	const rows = 2000
	records, jobs := make([]int64, rows), []source.Job{{Rows: [2]int{0, rows}, Dst: make([]byte, 12*rows)}}
	for range 10 {
		g.Ahead(source.Draw{}, records)
		if err := g.Gather(t.Context(), source.Draw{}, records, jobs); err != nil {
			t.Fatal(err)
		}
	}
	if len(lists) == 10 {
		t.Error("every gather made a list")
	}
}

func ExampleSlice() {
	all := numbers()
	train, _ := view.Slice(all, 0, 80)
	valid, _ := view.Slice(all, 80, 100)
	fmt.Println(train.Len(), valid.Len())

	_, err := view.Slice(all, 80, 101)
	fmt.Println(err)
	// Output:
	// 80 20
	// view: the slice [80, 101) does not lie within the 100 records of the dataset; use 0 <= start <= stop <= 100
}

// TestSliceConformance runs the suite of all sources over a slice of a slice.
func TestSliceConformance(t *testing.T) {
	sourcetest.Run(t, func(t *testing.T) source.Source {
		return slice(t, slice(t, numbers(), 10, 90), 5, 50)
	})
}
