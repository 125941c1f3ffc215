package view

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Take returns a view with record indices[k] of src as record k. Indices may repeat, and may be in
// any order. The view keeps a copy of them, 8 bytes a record. The copy holds record numbers of the
// dataset below all slices, filters and other takes.
func Take(src source.Source, indices []int64) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	n := src.Len()
	for k, i := range indices {
		if i < 0 || i >= n {
			return nil, status.Errorf(status.OutOfRange, "view", "index %d at position %d is outside the %d records of the dataset", i, k, n).
				WithHint("use indices from 0 to %d", n-1).With("index", i).With("position", k).With("records", n)
		}
	}
	v, err := over("take", src)
	if err != nil {
		return nil, err
	}
	var list []int64
	v.located(source.Draw{}, &list, indices)
	v.steps = nil
	v.push(take(list), int64(len(list)))
	return v, nil
}

// take lists the records.
type take []int64

func (t take) renumber(to, records []int64) {
	to = to[:len(records)]
	for i, r := range records {
		if r >= 0 {
			r = t[r]
		}
		to[i] = r
	}
}

func (t take) cover(start, stop int64) (from, to int64, exact bool) {
	from, to, exact = t[start], t[start]+1, true
	for k, r := range t[start:stop] {
		exact = exact && r == t[start]+int64(k)
		from, to = min(from, r), max(to, r+1)
	}
	return from, to, exact
}

func (t take) identify(ctx context.Context, below source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("take", below)
	err := hashNumbers(ctx, h, t...)
	return fingerprint(h), err
}
