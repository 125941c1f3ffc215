package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Facts implements source.Source. Every view begins with these facts of the datasets below. A view
// of one dataset has its units and checks its fields; views with other records or fields
// replace these.
func (b *base) Facts() source.Facts {
	f := source.Facts{
		Coverage: b.coverage, CacheBytes: b.cacheBytes, Cache: b.cache, Decoding: b.decoding, Fetched: b.fetched, Commits: b.commits, FarBytes: b.farBytes, Components: b.components, Version: b.version, Drawn: b.drawn,
	}
	for _, below := range b.facts {
		if below.Changes != nil {
			f.Changes = b.changes
		}
		f.Slow = f.Slow || below.Slow
		if f.Notes == nil {
			f.Notes = below.Notes
		}
	}
	if len(b.below) == 1 {
		f.Units = b.facts[0].Units
		f.Check = b.checked(func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
			return below(ctx, fields, start, stop)
		})
	}
	return f
}

// changes returns the changes of the datasets below. If the view has other records, it counts a
// change from the start of its epoch on, because any record of the epoch may be later.
func (b *base) changes(ctx context.Context) ([]source.Change, error) {
	return b.changesBelow(ctx, func(i int, record int64) (at int64, reached bool) {
		n := max(b.below[i].Len(), 1)
		at = record / n * b.records
		if b.renumber == nil {
			at += b.starts[i] + record%n
		}
		return at, true
	})
}

// changesBelow returns the changes of each dataset below, while the others stay as they are. first returns
// the first record of the view that a change of dataset i reaches.
func (b *base) changesBelow(ctx context.Context, first func(i int, record int64) (at int64, reached bool)) (all []source.Change, err error) {
	err = b.call(ctx, func(ctx context.Context) error {
		now, err := b.identitiesBelow(ctx)
		if err != nil {
			return err
		}
		for i, f := range b.facts {
			if f.Changes == nil {
				continue
			}
			changes, err := f.Changes(ctx)
			if err != nil {
				return err
			}
			for _, c := range changes {
				at, reached := first(i, c.Record)
				if !reached {
					continue
				}
				before := slices.Clone(now)
				for k := range before {
					if now[k] == now[i] { // a dataset that occurs twice changes twice
						before[k] = c.Before
					}
				}
				if c.Before, err = b.identify(ctx, before); err != nil {
					return err
				}
				all = append(all, source.Change{Record: at, Before: c.Before})
			}
		}
		slices.SortStableFunc(all, func(a, b source.Change) int { return cmp.Compare(a.Record, b.Record) })
		return nil
	})
	return all, err
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

// fetched is the sum of the datasets below.
func (b *base) fetched() (sum source.Fetched) {
	for _, s := range b.below {
		f := source.FetchedOf(s)
		sum = source.Fetched{Requests: sum.Requests + f.Requests, Retries: sum.Retries + f.Retries, Planned: sum.Planned + f.Planned, Bytes: sum.Bytes + f.Bytes}
	}
	return sum
}

// farBytes is the sum of the datasets below.
func (b *base) farBytes() (sum int64) {
	for _, s := range b.below {
		sum += source.FarBytesOf(s)
	}
	return sum
}

// commits joins the commits of the datasets below.
func (b *base) commits() (all []string) {
	for _, s := range b.below {
		all = append(all, source.CommitsOf(s)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
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
