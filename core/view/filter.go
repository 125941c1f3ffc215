package view

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Filter returns a view of the records i of src with keep[i] true, in their order.
// The view keeps 1.1 bits a record, and not the slice.
func Filter(src source.Source, keep []bool) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	if n := src.Len(); int64(len(keep)) != n {
		return nil, status.Errorf(status.InvalidArgument, "view", "the filter is for %d records, but the dataset has %d", len(keep), n).
			WithHint("give one value for each record of this dataset")
	}
	return FilterFunc(src, func(record int64) bool { return keep[record] })
}

// FilterFunc is Filter for a function of the number of a record. It calls the function
// once for each record, before it returns.
func FilterFunc(src source.Source, keep func(record int64) bool) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	if keep == nil {
		return nil, status.New(status.InvalidArgument, "view", "the function of the filter is nil").
			WithHint("give a function that returns true for the numbers of the records to keep")
	}
	if err := keepsRecords("filter", src); err != nil {
		return nil, err
	}
	v, err := over("filter", src)
	if err != nil {
		return nil, err
	}
	bits := newBitmap(src.Len(), keep)
	v.push(filter{bits}, bits.ones)
	return v, nil
}

// filter has the bits of the records below.
type filter struct{ *bitmap }

func (f filter) renumber(to, records []int64) {
	for i, r := range records {
		if r >= 0 {
			r = f.find(r)
		}
		to[i] = r
	}
}

func (f filter) cover(start, stop int64) (from, to int64, exact bool) {
	from, to = f.find(start), f.find(stop-1)+1
	return from, to, to-from == stop-start
}

func (f filter) identify(ctx context.Context, below source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("filter", below)
	err := hashNumbers(ctx, h, f.words...)
	return fingerprint(h), err
}
