package view

import (
	"context"
	"slices"

	"github.com/meshfeed/meshfeed/core/source"
)

// chain is a view whose record k is one record of src, with some of its fields. A
// view over a chain is a chain over the same src, with one more step.
type chain struct {
	base
	src    source.Source // not a chain
	steps  []step        // from src up to the view
	fields []column      // nil if the view has the fields of src
}

// step renumbers the records of a chain.
type step interface {
	// renumber writes the numbers that records have in the step below to a list, which
	// may be the list of records. -1 stays.
	renumber(to, records []int64)

	// cover returns the smallest range below that contains the records
	// [start, stop), and whether it contains no other record.
	cover(start, stop int64) (from, to int64, exact bool)

	// units returns the units of the step, given the units of the step below; nil if
	// they are not known.
	units(sizes []int64) []int64

	// kind returns the name of the view that has the step alone.
	kind() string

	// identify returns the fingerprint of the step over a dataset.
	identify(ctx context.Context, below source.Fingerprint) (source.Fingerprint, error)
}

// over returns a view of all records and fields of a dataset. If the dataset is a
// chain, the view has its steps, else none.
func over(kind string, src source.Source) (*chain, error) {
	c := &chain{src: src}
	if below, ok := src.(*chain); ok {
		if err := below.calls.Enter(); err != nil {
			return nil, err
		}
		defer below.calls.Leave()
		c.src, c.steps, c.fields = below.src, slices.Clone(below.steps), below.fields
	}
	c.base = newBase(kind, c.src)
	c.schema, c.records, c.base.identify = src.Schema(), src.Len(), c.identify
	if len(c.steps) > 0 {
		c.base.renumber = c.renumber
	}
	c.choose(c.fields)
	return c, nil
}

// choose sets the fields of the chain.
func (c *chain) choose(fields []column) {
	if c.fields = fields; fields == nil {
		c.origins = allOf(c.src)
		return
	}
	numbers := make([]int, len(fields))
	for i, f := range fields {
		numbers[i] = f.below
	}
	c.origins = passed(numbers...)
}

// last returns the last step, or nil.
func (c *chain) last() step {
	if len(c.steps) == 0 {
		return nil
	}
	return c.steps[len(c.steps)-1]
}

// replace replaces the last step.
func (c *chain) replace(s step, records int64) {
	c.steps[len(c.steps)-1], c.records = s, records
}

// push adds a step with a number of records.
func (c *chain) push(s step, records int64) {
	c.steps, c.records, c.schema = append(c.steps, s), records, c.schema.Some()
	c.base.renumber = c.renumber
}

// renumber appends the numbers that records of the view have in src to an empty list.
func (c *chain) renumber(_ source.Draw, list *[]int64, records []int64) {
	*list = slices.Grow(*list, len(records))[:len(records)]
	for _, s := range slices.Backward(c.steps) {
		s.renumber(*list, records)
		records = *list
	}
}

// identify adds the steps to the fingerprint of src, then the fields.
func (c *chain) identify(ctx context.Context, below []source.Fingerprint) (f source.Fingerprint, err error) {
	f = below[0]
	for _, s := range c.steps {
		if f, err = s.identify(ctx, f); err != nil {
			return f, err
		}
	}
	return identifyFields(f, c.fields, c.src.Schema()), nil
}

// Facts implements source.Source.
func (c *chain) Facts() source.Facts {
	f := c.base.Facts()
	f.Units, f.Components, f.Adjacent = c.unitSizes, c.components, c.adjacent
	f.Check = c.checked(c.check)
	return f
}

// check checks records by a check of the dataset below. If the view leaves out records between
// its own, a failure may be about a record that is left out. The gather then reports it.
func (c *chain) check(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
	if start >= stop {
		return nil
	}
	from, to, exact := start, stop, true
	for _, s := range slices.Backward(c.steps) {
		var all bool
		from, to, all = s.cover(from, to)
		exact = exact && all
	}
	if to-from > sparse*(stop-start) {
		return nil
	}
	err := below(ctx, c.fieldsBelow(fields), from, to)
	if !exact && ctx.Err() == nil {
		return nil
	}
	return err
}

// sparse is how many records chain.check reads at most for each record of the view.
const sparse = 16
