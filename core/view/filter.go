package view

import (
	"context"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Filter returns a view of the records of src whose bit is set, in their order. Bit
// i%8 of keep[i/8] belongs to record i, as in the bitmaps of Arrow. The view keeps a
// copy of the bits, and an index of less than a tenth of their size.
func Filter(src source.Source, keep []byte) (source.Source, error) {
	n := src.Len()
	if want := (n + 7) / 8; int64(len(keep)) != want {
		return nil, status.Errorf(status.InvalidArgument, "view", "the filter has %d bytes, but one bit for each of the %d records takes %d", len(keep), n, want)
	}
	v, err := over("filter", src)
	if err != nil {
		return nil, err
	}
	bits := newBitmap(keep, n)
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
