package levels_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// rows returns the column with the rows from start to stop-1.
func (c *column) rows(start, stop int) *column {
	out := &column{leaf: c.leaf, rng: c.rng}
	row := -1
	for i, rep := range c.rep {
		if rep == 0 {
			row++
		}
		if row >= start && row < stop {
			out.rep, out.def = append(out.rep, rep), append(out.def, c.def[i])
		}
	}
	return out
}

func (c *column) shape(t *testing.T, rows int) *levels.Shape {
	t.Helper()
	b := levels.NewBuilder(&c.leaf)
	if _, err := c.build(b); err != nil {
		t.Fatal(err)
	}
	if b.Rows() != int64(rows) {
		t.Fatalf("%d rows, want %d", b.Rows(), rows)
	}
	s, err := b.Finish(int64(rows))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCut: the shape of some rows equals the shape of a column with these rows alone.
func TestCut(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 4))
		rows := 1 + rng.IntN(100)
		c := newColumn(rng, rows)
		start := rng.IntN(rows)
		stop := start + 1 + rng.IntN(rows-start)
		got, want := c.shape(t, rows), c.rows(start, stop).shape(t, stop-start)
		all := got.Values
		first, last := got.Cut(int64(start), int64(stop))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: rows %d to %d of %d: got %+v, want %+v", seed, start, stop, rows, got, want)
		}
		if before := c.rows(0, start); first != before.shape(t, start).Values || last != first+want.Values || last > all {
			t.Fatalf("seed %d: values %d to %d", seed, first, last)
		}
	}
}

// TestKept: a small part of a slice does not keep the memory of all of it.
func TestKept(t *testing.T) {
	all := make([]int64, 100)
	if part := levels.Kept(all, 10, 20); cap(part) > 20 || len(part) != 10 {
		t.Errorf("%d elements in memory of %d", len(part), cap(part))
	}
	if part := levels.Kept(all, 10, 80); &part[0] != &all[10] || cap(part) != 70 {
		t.Error("a large part was copied")
	}
}
