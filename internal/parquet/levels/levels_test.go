package levels_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
)

// column is a random column: its nodes, the entries of its rows, and the shape that they
// must have.
type column struct {
	leaf     parquet.Leaf
	rep, def []uint32
	want     levels.Shape
	valid    [][]bool // by list, then of the values
	outer    []bool   // by row: the first node is there
	rng      *rand.Rand
	nulls    float64
}

// newColumn makes a column of random nodes, up to three of which are repeated.
func newColumn(rng *rand.Rand, rows int) *column {
	c := &column{rng: rng, nulls: []float64{0, 0.01, 0.5}[rng.IntN(3)]}
	definition, repeat := 0, 0
	for range 1 + rng.IntN(5) {
		n := parquet.Node{Repetition: parquet.Repetition(rng.IntN(3))}
		if repeat == 3 && n.Repetition == parquet.Repeated {
			n.Repetition = parquet.Optional
		}
		if n.Repetition != parquet.Required {
			definition++
		}
		if n.Repetition == parquet.Repeated {
			repeat++
			c.want.Lists = append(c.want.Lists, levels.List{Offsets: []int64{0}})
		}
		n.Definition, n.Repeat = definition, repeat
		c.leaf.Nodes = append(c.leaf.Nodes, n)
	}
	c.valid = make([][]bool, repeat+1)
	for range rows {
		c.write(0, 0, 0)
	}
	return c
}

// write shreds a value of node i and what is below it, as section 4 of the paper does. If
// an optional node is null, so is the list or the value below it.
func (c *column) write(i int, rep, def uint32) {
	for ; i < len(c.leaf.Nodes); i++ {
		n := c.leaf.Nodes[i]
		switch n.Repetition {
		case parquet.Optional:
			if c.rng.Float64() < c.nulls {
				c.end(i, rep, def, false)
				return
			}
			def++
		case parquet.Repeated:
			c.list(i, rep, def)
			return
		}
	}
	c.end(i, rep, def, true)
}

// end adds an entry with a path that ends before node i: the list or value below is null
// or, if it is a list without elements, empty.
func (c *column) end(i int, rep, def uint32, valid bool) {
	c.rep, c.def = append(c.rep, rep), append(c.def, def)
	if rep == 0 {
		c.outer = append(c.outer, i > 0)
	}
	level := 0
	for _, n := range c.leaf.Nodes[:min(i, len(c.leaf.Nodes))] {
		if n.Repetition == parquet.Repeated {
			level++
		}
	}
	c.valid[level] = append(c.valid[level], valid)
	if level < len(c.want.Lists) {
		l := &c.want.Lists[level]
		l.Offsets = append(l.Offsets, l.Offsets[len(l.Offsets)-1])
		return
	}
	c.want.Values++
	if valid {
		c.want.Present++
	}
}

// list writes a list of random length at node i.
func (c *column) list(i int, rep, def uint32) {
	n := c.leaf.Nodes[i]
	count := c.rng.IntN(5)
	if c.nulls == 0 {
		count = 1 + c.rng.IntN(40)
	}
	if count == 0 {
		c.end(i, rep, def, true)
		return
	}
	level := n.Repeat - 1
	l := &c.want.Lists[level]
	l.Offsets = append(l.Offsets, l.Offsets[len(l.Offsets)-1]+int64(count))
	c.valid[level] = append(c.valid[level], true)
	for k := range count {
		if k > 0 {
			rep = uint32(n.Repeat)
		}
		c.write(i+1, rep, def+1)
	}
}

// build adds the entries in pages of random sizes.
func (c *column) build(b *levels.Builder) (present int64, err error) {
	rWidth, dWidth := b.Widths()
	for at := 0; at < len(c.rep); {
		n := min(len(c.rep)-at, 1+c.rng.IntN(200))
		r, err := encoding.NewRuns(encodingtest.Runs(c.rng, c.rep[at:at+n], rWidth), rWidth, n)
		if err != nil {
			return 0, err
		}
		d, err := encoding.NewRuns(encodingtest.Runs(c.rng, c.def[at:at+n], dWidth), dWidth, n)
		if err != nil {
			return 0, err
		}
		k, err := b.Page(&r, &d, n)
		if err != nil {
			return 0, err
		}
		present, at = present+int64(k.Present), at+n
	}
	return present, nil
}

func TestShapes(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rows := rng.IntN(100)
		c := newColumn(rng, rows)
		b := levels.NewBuilder(&c.leaf)
		present, err := c.build(b)
		if err != nil {
			t.Fatalf("seed %d: %v of %v: %v", seed, c.leaf.Nodes, c.rep, err)
		}
		got, err := b.Finish(int64(rows))
		if err != nil || present != c.want.Present {
			t.Fatalf("seed %d: %d values, want %d: %v", seed, present, c.want.Present, err)
		}
		if err := c.compare(got); err != nil {
			t.Fatalf("seed %d: nodes %v, repetition %v, definition %v: %v", seed, c.leaf.Nodes, c.rep, c.def, err)
		}
		if _, err := b.Finish(int64(rows + 1)); err == nil {
			t.Fatal("a wrong number of rows was accepted")
		}
	}
}

func (c *column) compare(got *levels.Shape) error {
	if got.Values != c.want.Values || got.Present != c.want.Present {
		return fmt.Errorf("%d of %d values, want %d of %d", got.Present, got.Values, c.want.Present, c.want.Values)
	}
	if len(c.leaf.Nodes) == 2 && len(c.want.Lists) == 0 {
		for k, want := range c.outer {
			if got.Outer.Get(int64(k)) != want {
				return fmt.Errorf("row %d: the first node is there: %v, want %v", k, !want, want)
			}
		}
	} else if got.Outer != nil {
		return fmt.Errorf("a bitmap of the first node")
	}
	for i := range c.valid {
		bitmap, n := got.Valid, got.Values
		if i < len(got.Lists) {
			bitmap, n = got.Lists[i].Valid, got.Lists[i].Len()
			if !slices.Equal(got.Lists[i].Offsets, c.want.Lists[i].Offsets) {
				return fmt.Errorf("list %d has the offsets %v, want %v", i, got.Lists[i].Offsets, c.want.Lists[i].Offsets)
			}
		}
		if n != int64(len(c.valid[i])) || bitmap != nil && int64(len(bitmap)) != (n+7)/8 {
			return fmt.Errorf("level %d has %d slots and %d bytes of bits, want %d slots", i, n, len(bitmap), len(c.valid[i]))
		}
		for k, want := range c.valid[i] {
			if bitmap.Get(int64(k)) != want {
				return fmt.Errorf("level %d, slot %d: valid is %v, want %v", i, k, !want, want)
			}
		}
		if bitmap == nil != !slices.Contains(c.valid[i], false) {
			return fmt.Errorf("level %d has a bitmap, or has none, but its slots are %v", i, c.valid[i])
		}
	}
	return nil
}

// Levels that contradict each other are refused.
func TestRefused(t *testing.T) {
	list := []parquet.Node{
		{Repetition: parquet.Optional, Definition: 1},
		{Repetition: parquet.Repeated, Definition: 2, Repeat: 1},
		{Repetition: parquet.Optional, Definition: 3, Repeat: 1},
	}
	for _, c := range []struct {
		rep, def []uint32
		want     string
	}{
		{[]uint32{1}, []uint32{3}, "the first repetition level is 1"},
		{[]uint32{0, 1}, []uint32{1, 3}, "continues a list that has no elements"},
		{[]uint32{0, 1}, []uint32{3, 1}, "continues a list that has no elements"},
		{[]uint32{0, 0}, nil, "definition levels: the page ends before its last value"},
		{nil, []uint32{3, 3}, "repetition levels: the page ends before its last value"},
	} {
		leaf := parquet.Leaf{Nodes: list}
		b := levels.NewBuilder(&leaf)
		rng := rand.New(rand.NewPCG(1, 1))
		n := max(len(c.rep), len(c.def))
		r, _ := encoding.NewRuns(encodingtest.Runs(rng, c.rep, 1), 1, n)
		d, _ := encoding.NewRuns(encodingtest.Runs(rng, c.def, 2), 2, n)
		if _, err := b.Page(&r, &d, n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %v: %v, want %s", c.rep, c.def, err, c.want)
		}
	}
}
