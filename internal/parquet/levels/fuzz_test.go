package levels_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/internal/parquet"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding"
	"github.com/meshfeed/meshfeed/internal/parquet/encoding/encodingtest"
	"github.com/meshfeed/meshfeed/internal/parquet/levels"
	"github.com/meshfeed/meshfeed/tests/random"
)

// expand returns n numbers of runs, one by one and bit by bit.
func expand(src []byte, width, n int) (out []uint32, err error) {
	short := errors.New("short")
	for len(out) < n {
		head, size := binary.Uvarint(src)
		if size <= 0 {
			return nil, short
		}
		src = src[size:]
		if head&1 == 0 {
			if len(src) == 0 || src[0]>>width != 0 {
				return nil, short
			}
			for i := uint64(0); i < head>>1 && len(out) < n; i++ {
				out = append(out, uint32(src[0]))
			}
			src = src[1:]
			continue
		}
		for bit := 0; bit/width/8 < int(min(head>>1, 1<<20)) && len(out) < n; {
			v := uint32(0)
			for k := range width {
				if bit/8 >= len(src) {
					return nil, short
				}
				v |= uint32(src[bit/8]>>(bit%8)&1) << k
				bit++
			}
			out = append(out, v)
		}
		src = src[min(int(min(head>>1, 1<<20))*width, len(src)):]
	}
	return out, nil
}

// reference builds a shape one entry at a time, as the rules of the format say.
type reference struct {
	column  // its leaf, want, valid and outer
	max     uint32
	element []uint32
	rows    int
	last    uint32
}

func newReference(nodes []parquet.Node) *reference {
	r := &reference{column: column{leaf: parquet.Leaf{Nodes: nodes}}}
	r.max = uint32(r.leaf.MaxDefinition())
	for _, n := range nodes {
		if n.Repetition == parquet.Repeated {
			r.element = append(r.element, uint32(n.Definition))
			r.want.Lists = append(r.want.Lists, levels.List{Offsets: []int64{0}})
		}
	}
	r.valid = make([][]bool, len(r.element)+1)
	return r
}

// entry adds an entry and reports whether its levels are possible.
func (r *reference) entry(rep, def uint32) bool {
	if rep > uint32(len(r.element)) || def > r.max || rep > 0 && (r.rows == 0 || min(def, r.last) < r.element[rep-1]) {
		return false
	}
	if r.last = def; rep == 0 {
		r.rows++
		r.outer = append(r.outer, def >= uint32(r.leaf.Nodes[0].Definition))
	}
	for i, element := range r.element {
		l := &r.want.Lists[i]
		if rep <= uint32(i) {
			r.valid[i] = append(r.valid[i], def+1 >= element)
			l.Offsets = append(l.Offsets, l.Offsets[len(l.Offsets)-1])
		}
		if def < element {
			return true
		}
		if rep <= uint32(i)+1 {
			l.Offsets[len(l.Offsets)-1]++
		}
	}
	last := len(r.valid) - 1
	r.valid[last] = append(r.valid[last], def == r.max)
	r.want.Values++
	if def == r.max {
		r.want.Present++
	}
	return true
}

// page adds the levels of a page and reports whether they are possible.
func (r *reference) page(repetitions, definitions []byte, widths [2]int, n int) bool {
	var all [2][]uint32
	for i, src := range [][]byte{repetitions, definitions} {
		if all[i] = make([]uint32, n); widths[i] > 0 {
			var err error
			if all[i], err = expand(src, widths[i], n); err != nil {
				return false
			}
		}
	}
	for i, rep := range all[0] {
		if !r.entry(rep, all[1][i]) {
			return false
		}
	}
	return true
}

// nodesOf makes a path of nodes: two bits of kinds for each.
func nodesOf(kinds uint32) (nodes []parquet.Node) {
	n := parquet.Node{}
	for ; len(nodes) == 0 || kinds > 0; kinds >>= 2 {
		if n.Repetition = parquet.Repetition(kinds & 3 % 3); n.Repetition != parquet.Required {
			n.Definition++
		}
		if n.Repetition == parquet.Repeated {
			n.Repeat++
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// samePage compares what the levels of a page add to the builder and to the reference.
func samePage(b *levels.Builder, r *reference, repetitions, definitions []byte, n int) (more bool, err error) {
	var widths [2]int
	widths[0], widths[1] = b.Widths()
	before, present := r.want.Values, r.want.Present
	want := r.page(repetitions, definitions, widths, n)
	rep, err := encoding.NewRuns(repetitions, widths[0], n)
	if err != nil {
		return false, err
	}
	def, err := encoding.NewRuns(definitions, widths[1], n)
	if err != nil {
		return false, err
	}
	slots, err := b.Page(&rep, &def, n)
	if (err == nil) != want {
		return false, fmt.Errorf("possible: %v, but %w", want, err)
	}
	if !want {
		return false, nil
	}
	valid := r.valid[len(r.valid)-1][before:]
	if slots.Count != len(valid) || slots.Present != int(r.want.Present-present) {
		return false, fmt.Errorf("%+v, want %v", slots, valid)
	}
	for i, want := range valid {
		if got := slots.Word(i)&1 == 1; got != want || slots.Word(i&^63)>>(i&63)&1 == 1 != want {
			return false, fmt.Errorf("slot %d of the page: %v, want %v", i, got, want)
		}
	}
	return true, nil
}

// TestReference compares pages of levels with the reference. Some levels are impossible.
func TestReference(t *testing.T) {
	rng := random.New(t)
	for range 1000 {
		c := newColumn(rng, 1+rng.IntN(5))
		b := levels.NewBuilder(&c.leaf)
		width, more := b.Widths()
		n := rng.IntN(4000)
		rep := slices.Repeat(c.rep, n/len(c.rep)+1)[:n]
		def := slices.Repeat(c.def, n/len(c.rep)+1)[:n]
		for range rng.IntN(4) {
			stretch(rng, rep, width)
			stretch(rng, def, more)
		}
		repetitions, definitions := encodingtest.Runs(rng, rep, width), encodingtest.Runs(rng, def, more)
		switch rng.IntN(6) {
		case 0:
			n = rng.IntN(n + 1)
		case 1:
			definitions = definitions[:rng.IntN(len(definitions)+1)]
		case 2:
			if i := rng.IntN(len(definitions) + 1); i < len(definitions) {
				definitions[i] ^= 1 << rng.IntN(8)
			}
		}
		if err := same(b, c.leaf.Nodes, repetitions, definitions, n, rng.IntN(n+1)); err != nil {
			t.Fatal(err)
		}
	}
}

// stretch sets a part of some levels to one that has no more bits.
func stretch(rng *rand.Rand, all []uint32, width int) {
	from := rng.IntN(len(all) + 1)
	level := rng.Uint32N(1 << width)
	for i := range all[from:min(len(all), from+random.One(rng, 1, 10, 1000))] {
		all[from+i] = level
	}
}

// FuzzLevels compares pages of any levels with the reference.
func FuzzLevels(f *testing.F) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		c := newColumn(rng, rng.IntN(100))
		kinds := uint32(0)
		for i, n := range c.leaf.Nodes {
			kinds |= uint32(n.Repetition) << (2 * i)
		}
		width, more := levels.NewBuilder(&c.leaf).Widths()
		f.Add(kinds, uint16(len(c.rep)), uint16(len(c.rep)), encodingtest.Runs(rng, c.rep, width), encodingtest.Runs(rng, c.def, more))
	}
	const list, outer = 1 | 2<<2 | 1<<4, 1 | 1<<2
	f.Add(uint32(list), uint16(1001), uint16(0), []byte{2, 0, 0xd0, 0x0f, 1}, []byte{2, 1, 0xd0, 0x0f, 3}) // a long run continues a null list
	f.Add(uint32(outer), uint16(1002), uint16(9), []byte{}, []byte{2, 0, 0xd0, 0x0f, 2, 2, 0})             // a long run of values after a null
	f.Add(uint32(1), uint16(2), uint16(1), []byte{}, []byte{0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0})  // a long header without a level
	f.Fuzz(func(t *testing.T, kinds uint32, first, second uint16, repetitions, definitions []byte) {
		nodes := nodesOf(kinds)
		b := levels.NewBuilder(&parquet.Leaf{Nodes: nodes})
		if err := same(b, nodes, repetitions, definitions, int(first), int(second)); err != nil {
			t.Fatal(err)
		}
	})
}

// same compares what a new builder and a reference make of two pages with the same levels, but
// of different lengths.
func same(b *levels.Builder, nodes []parquet.Node, repetitions, definitions []byte, lengths ...int) error {
	r := newReference(nodes)
	for i, n := range lengths {
		more, err := samePage(b, r, repetitions, definitions, n)
		if err != nil {
			return fmt.Errorf("nodes %v, page %d of %d entries: %w", nodes, i, n, err)
		}
		if !more {
			return nil
		}
	}
	got, err := b.Finish(int64(r.rows))
	if err == nil {
		err = r.compare(got)
	}
	if err != nil {
		return fmt.Errorf("nodes %v, pages of %v entries: %w", nodes, lengths, err)
	}
	return nil
}
