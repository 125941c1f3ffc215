package loader_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/source"
)

// Rows / Build is the rate that a loader reaches: four workers gather a row each in the
// time of one row. Neither ready batches nor the pauses of the caller count.
func TestBuildTime(t *testing.T) {
	for workers, want := range map[int]loader.Stats{
		1: {Gather: 20 * time.Second, Build: 20*time.Second + 700*time.Millisecond},
		4: {Gather: 5 * time.Second, Build: 5*time.Second + 700*time.Millisecond},
	} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := digits(80)
				src.Hook = func(_ context.Context, records []int64) error {
					time.Sleep(time.Duration(len(records)) * time.Second)
					return nil
				}
				announced := func() { time.Sleep(100 * time.Millisecond) } // called for seven steps before the fifth
				l := newLoader(t, announcedSource{src, announced}, loader.Options{Layout: newLayout(t, document(8)), Workers: workers})
				for range 5 {
					next(t, l)
					time.Sleep(time.Minute)
				}
				s := l.Stats()
				if s.Rows != 20 || s.Queued != 2 || s.Gather != want.Gather || s.Build != want.Build {
					t.Errorf("%d rows, %d queued, gather %v, build %v, want 20, 2, %v and %v", s.Rows, s.Queued, s.Gather, s.Build, want.Gather, want.Build)
				}
			})
		})
	}
}

// Storage and Decode are the times of the worker that waited longest, because the others
// have finished before it.
func TestStorageAndDecode(t *testing.T) {
	for workers, want := range map[int]loader.Stats{
		1: {Storage: 30 * time.Second, Decode: 10 * time.Second},
		4: {Storage: 15 * time.Second, Decode: 5 * time.Second},
	} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := digits(80)
				src.Hook = func(ctx context.Context, records []int64) error {
					for _, r := range records {
						if r%4 == 0 { // one row of each batch waits
							source.TimesOf(ctx).AddStorage(3 * time.Second)
							source.TimesOf(ctx).AddDecode(time.Second)
							time.Sleep(4 * time.Second)
						}
						if workers == 1 && r%4 == 1 {
							source.TimesOf(ctx).AddStorage(3 * time.Second)
							source.TimesOf(ctx).AddDecode(time.Second)
						}
					}
					return nil
				}
				l := newLoader(t, src, loader.Options{Layout: newLayout(t, document(8)), Workers: workers})
				for range 5 {
					next(t, l)
					time.Sleep(time.Minute)
				}
				if s := l.Stats(); s.Storage != want.Storage || s.Decode != want.Decode {
					t.Errorf("storage %v, decode %v, want %v and %v", s.Storage, s.Decode, want.Storage, want.Decode)
				}
			})
		})
	}
}

// announcedSource calls a function when its records are announced.
type announcedSource struct {
	source.Source
	announced func()
}

func (d announcedSource) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := d.Source.Gatherer(parts)
	return announcedGatherer{g, d.announced}, err
}

type announcedGatherer struct {
	source.Gatherer
	announced func()
}

func (g announcedGatherer) Ahead(source.Draw, []int64) { g.announced() }
