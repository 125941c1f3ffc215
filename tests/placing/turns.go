package main

import (
	"fmt"
	"slices"
	"time"
)

// stretch is the length of a turn of a cell.
const stretch = 40 * time.Millisecond

// measure runs the cells in turns. Each round begins with another cell, so that
// other load of the machine meets all of them. It returns microseconds per step by
// cell and round.
func measure(cells []cell, rounds int) ([][]float64, error) {
	turns := make([][]float64, len(cells))
	for round := range rounds + 1 {
		for i := range cells {
			at := (round + i) % len(cells)
			micros, err := turn(cells[at])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", cells[at].on, cells[at].what, err)
			}
			if round > 0 { // the first round only warms up
				turns[at] = append(turns[at], micros)
			}
		}
	}
	return turns, nil
}

// turn runs a cell for one turn, and returns the microseconds of a step: the median,
// or the mean if batches are read ahead. The first steps do not count, because the
// caches hold data of the previous cell, and batches may be ready.
func turn(c cell) (float64, error) {
	for range 4 {
		if err := c.step(); err != nil {
			return 0, err
		}
	}
	var took []float64
	began := time.Now()
	for len(took) == 0 || time.Since(began) < stretch {
		at := time.Now()
		if err := c.step(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(at))/1e3)
	}
	if c.flows {
		return float64(time.Since(began)) / 1e3 / float64(len(took)), nil
	}
	return quantile(took, 0.5), nil
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// spread is a median, and the range from the 10th to the 90th percentile.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	return spread{quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9)}
}

// ratios divides two cells round by round.
func ratios(a, b []float64) []float64 {
	list := make([]float64, len(a))
	for i := range a {
		list[i] = a[i] / b[i]
	}
	return list
}
