package view

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Slice returns a view of the records [start, stop) of src, numbered from 0, for
// example the validation part of a dataset. The range is part of the fingerprint, so
// a loader over one slice rejects a state saved over another. A slice of a slice is
// the same as a slice of the original source.
func Slice(src source.Source, start, stop int64) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	n := src.Len()
	if start < 0 || stop < start || stop > n {
		return nil, status.Errorf(status.OutOfRange, "view", "the slice [%d, %d) does not lie within the %d records of the dataset", start, stop, n).
			WithHint("use 0 <= start <= stop <= %d", n).With("start", start).With("stop", stop).With("records", n)
	}
	v, err := over("slice", src)
	if err != nil {
		return nil, err
	}
	switch outer := v.last().(type) {
	case slice:
		v.replace(slice{outer.start + start, outer.start + stop}, stop-start)
	case take:
		v.replace(outer[start:stop], stop-start)
	default:
		v.push(slice{start, stop}, stop-start)
	}
	return v, nil
}

// slice is a range of records.
type slice struct{ start, stop int64 }

func (s slice) renumber(to, records []int64) {
	to = to[:len(records)]
	for i, r := range records {
		if r >= 0 {
			r += s.start
		}
		to[i] = r
	}
}

func (s slice) cover(start, stop int64) (from, to int64, exact bool) {
	return s.start + start, s.start + stop, true
}

// identify keeps its text forever, because saved states contain the result.
func (s slice) identify(ctx context.Context, below source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("slice", below)
	err := hashNumbers(ctx, h, s.start, s.stop)
	return fingerprint(h), err
}
