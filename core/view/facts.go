package view

import (
	"context"
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Facts implements source.Source. Every view begins with these facts of the datasets below. A view
// of one dataset has its units and checks its fields; views with other records or fields
// replace these.
func (b *base) Facts() source.Facts {
	f := source.Facts{
		Coverage: b.coverage, CacheBytes: b.cacheBytes, Cache: b.cache, Decoding: b.decoding, Components: b.components, Version: b.version, Drawn: b.drawn,
	}
	for _, below := range b.facts {
		f.Slow = f.Slow || below.Slow
		if f.Notes == nil {
			f.Notes = below.Notes
		}
	}
	if len(b.below) == 1 {
		f.Units = b.facts[0].Units
		if b.facts[0].Changes != nil {
			f.Changes = b.changes
		}
		f.Check = b.checked(func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
			return below(ctx, fields, start, stop)
		})
	}
	return f
}

// changes returns the changes of the one dataset below. If the view has other records, it counts a
// change from the start of its epoch on, because any record of the epoch may be later.
func (b *base) changes(ctx context.Context) (changes []source.Change, err error) {
	err = b.call(ctx, func(ctx context.Context) error {
		if changes, err = b.facts[0].Changes(ctx); err != nil {
			return err
		}
		for i := range changes {
			c := &changes[i]
			if b.renumber != nil {
				c.Record = c.Record / max(b.below[0].Len(), 1) * b.records
			}
			if c.Before, err = b.identify(ctx, []source.Fingerprint{c.Before}); err != nil {
				return err
			}
		}
		return nil
	})
	return changes, err
}

// checked returns a check of the view by the check of the one dataset below, or nil if that has
// none.
func (b *base) checked(check func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error) checkFunc {
	below := b.facts[0].Check
	if below == nil {
		return nil
	}
	return func(ctx context.Context, fields []int, start, stop int64) error {
		return b.call(ctx, func(ctx context.Context) error { return check(ctx, below, fields, start, stop) })
	}
}

type checkFunc = func(ctx context.Context, fields []int, start, stop int64) error

// coverage is the sum of the datasets below.
func (b *base) coverage() (hashed, of int64) {
	for _, s := range b.below {
		h, o := source.CoverageOf(s)
		hashed, of = hashed+h, of+o
	}
	return hashed, of
}

// cacheBytes is the smallest cache of the datasets below.
func (b *base) cacheBytes() (least int64) {
	for _, s := range b.below {
		if n := source.CacheOf(s); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// cache returns where a dataset below keeps decoded units: the first that has a problem, or
// else the first that has a folder.
func (b *base) cache() (found source.CacheInfo) {
	for _, s := range b.below {
		info := source.CacheInfoOf(s)
		if info.Problem != nil {
			return info
		}
		if found.Folder == "" {
			found = info
		}
	}
	return found
}

// decoding is the sum of the datasets below.
func (b *base) decoding() (sum source.Work) {
	for _, s := range b.below {
		w := source.DecodingOf(s)
		sum.Running, sum.Waiting = sum.Running+w.Running, sum.Waiting+w.Waiting
	}
	return sum
}

// version joins the versions of the datasets below.
func (b *base) version() (string, error) {
	var all strings.Builder
	for _, s := range b.below {
		v, err := source.VersionOf(s)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%q\n", v)
	}
	return all.String(), nil
}

// keepsRecords returns an error if record k of a dataset stands for another record in every epoch.
func keepsRecords(kind string, src source.Source) error {
	if !src.Facts().Drawn {
		return nil
	}
	return status.Errorf(status.InvalidArgument, "view", "a %s chooses records by their rows, but a mixture has other rows in every epoch", kind).
		WithHint("make the %s of each dataset before they are mixed", kind)
}
