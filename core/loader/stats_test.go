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
				announced := func() { time.Sleep(100 * time.Millisecond) } // of seven steps before the fifth
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

func (g announcedGatherer) Ahead([]int64) { g.announced() }
