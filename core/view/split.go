package view

import (
	"context"
	"math"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Division says how [Split] divides a dataset.
type Division struct {
	Parts  []Share // at least one; the shares add up to 1
	Seed   int64   // within ±sampler.MaxSeed
	Within string  // the name of a field; records with equal values stay together; empty for none
}

// Share is a part of a dataset.
type Share struct {
	Name string  // for errors
	Of   float64 // the share of the records, above 0
}

// Split returns a view for each part of a division. Every record is in one part, and the
// records of a part are in the order of src. The parts depend on the shares, the seed and
// the number of records alone, in every later release.
//
// If Within names a field, such as the number of a patient, all records with one value of it
// are in one part. The values are counted in the order of their first occurrence. Split then
// reads the field once, and needs about 16 bytes for each run of equal values, and memory
// for each value. Shares hold as far as the sizes of these groups allow it.
func Split(ctx context.Context, src source.Source, d Division) ([]source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	if err := keepsRecords("split", src); err != nil {
		return nil, err
	}
	limits, err := d.limits(src.Len())
	if err != nil {
		return nil, err
	}
	together := groups{count: src.Len()}
	if d.Within != "" {
		if err := together.read(ctx, src, d.Within); err != nil {
			return nil, err
		}
	}
	order, err := sampler.Split(d.Seed, together.count)
	if err != nil {
		return nil, err
	}
	keep := make([][]byte, len(limits))
	for i := range keep {
		keep[i] = make([]byte, (src.Len()+7)/8)
	}
	if err := together.divide(ctx, order, limits, keep); err != nil {
		return nil, err
	}
	views := make([]source.Source, len(keep))
	for i, bits := range keep {
		if views[i], err = FilterFunc(src, func(k int64) bool { return bits[k/8]>>(k%8)&1 != 0 }); err != nil {
			return nil, err
		}
		if views[i].Len() == 0 {
			return nil, d.empty(i, src.Len(), together.count)
		}
	}
	return views, nil
}

// limits returns for each part twice the position where it ends. The middle of a group is
// compared with it, so that shares are rounded to the nearest group.
func (d Division) limits(records int64) ([]float64, error) {
	fail := func(format string, args ...any) error {
		return status.Errorf(status.InvalidArgument, "view", format, args...).
			WithHint("give each part a share above 0, so that all of them add up to 1")
	}
	if len(d.Parts) == 0 {
		return nil, fail("a split has no part")
	}
	limits, sum := make([]float64, len(d.Parts)), 0.0
	for i, p := range d.Parts {
		if !(p.Of > 0 && p.Of <= 1) {
			return nil, fail("the share of part %q is %v", p.Name, p.Of)
		}
		sum += p.Of
		limits[i] = 2 * float64(sum*float64(records))
	}
	if math.Abs(sum-1) > 1e-9 {
		return nil, fail("the shares of the parts add up to %v", math.Round(sum*1e9)/1e9)
	}
	limits[len(limits)-1] = math.Inf(1) // whatever the sum was rounded to
	return limits, nil
}

// empty returns the error for a part without a record.
func (d Division) empty(part int, records, groups int64) error {
	p := d.Parts[part]
	if d.Within == "" {
		return status.Errorf(status.InvalidArgument, "view", "part %q has no record: its share is %v of %d records", p.Name, p.Of, records).
			WithHint("give it a larger share")
	}
	return status.Errorf(status.InvalidArgument, "view", "part %q has no record: its share is %v of %d records, whose field %q has %d values", p.Name, p.Of, records, d.Within, groups).
		WithHint("give it a larger share, or split within another field")
}

// groups are the records that stay together. Without sizes, each record is a group.
type groups struct {
	count  int64
	sizes  []int64 // by group: its records
	starts []int64 // by run of records: the first
	of     []int64 // by run of records: its group
}

// read finds the groups of equal values of a field.
func (g *groups) read(ctx context.Context, src source.Source, field string) error {
	known := map[string]int64{}
	g.count = 0
	return eachRun(ctx, src, field, func(start, stop int64, row []byte) {
		group, ok := known[string(row)]
		if !ok {
			group = g.count
			known[string(row)] = group
			g.sizes = append(g.sizes, 0)
			g.count++
		}
		g.sizes[group] += stop - start
		g.starts, g.of = append(g.starts, start), append(g.of, group)
	})
}

// divide sets the bit of each record in the bitmap of its part.
func (g *groups) divide(ctx context.Context, order sampler.Epoch, limits []float64, keep [][]byte) error {
	const chunk = 1 << 13
	list, parts := make([]int64, min(chunk, g.count)), make([]int32, len(g.sizes))
	part, before := 0, int64(0) // the records of the groups before
	for from := int64(0); from < g.count; from += chunk {
		if err := ended(ctx); err != nil {
			return err
		}
		list = list[:min(chunk, g.count-from)]
		order.Fill(list, from)
		for _, group := range list {
			size := int64(1)
			if g.sizes != nil {
				size = g.sizes[group]
			}
			for float64(2*before+size) >= limits[part] {
				part++
			}
			before += size
			if g.sizes != nil {
				parts[group] = int32(part)
			} else {
				keep[part][group/8] |= 1 << (group % 8) // the group is a record
			}
		}
	}
	for i, start := range g.starts {
		stop := before
		if i+1 < len(g.starts) {
			stop = g.starts[i+1]
		}
		bits := keep[parts[g.of[i]]]
		for r := start; r < stop; r++ {
			bits[r/8] |= 1 << (r % 8)
		}
	}
	return nil
}
