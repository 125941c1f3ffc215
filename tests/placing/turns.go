package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stretch is the length of a turn of a cell.
const stretch = 40 * time.Millisecond

// measured has the numbers of one cell in one turn, per step.
type measured struct {
	micros float64 // the median; where batches are read ahead, the mean
	faults float64 // page faults of the process, the mean
}

// measure runs the cells in turns. Each round begins with another cell, so that
// other load of the machine meets all of them. It returns the turns by cell and
// round.
func measure(cells []cell, rounds int) ([][]measured, error) {
	turns := make([][]measured, len(cells))
	for round := range rounds + 1 {
		for i := range cells {
			at := (round + i) % len(cells)
			m, err := turn(cells[at])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", cells[at].on, cells[at].what, err)
			}
			if round > 0 { // the first round only warms up
				turns[at] = append(turns[at], m)
			}
		}
	}
	return turns, nil
}

// turn runs a cell for one turn. The first steps do not count, because the caches
// hold data of the previous cell, and batches may be ready.
func turn(c cell) (measured, error) {
	for range 4 {
		if err := c.step(); err != nil {
			return measured{}, err
		}
	}
	var took []float64
	began, faults := time.Now(), pageFaults()
	for len(took) == 0 || time.Since(began) < stretch {
		at := time.Now()
		if err := c.step(); err != nil {
			return measured{}, err
		}
		took = append(took, float64(time.Since(at))/1e3)
	}
	steps := float64(len(took))
	m := measured{micros: quantile(took, 0.5), faults: (pageFaults() - faults) / steps}
	if c.flows {
		m.micros = float64(time.Since(began)) / 1e3 / steps
	}
	return m, nil
}

// pageFaults returns the number of faults of this process that needed no disk,
// if the system counts them.
func pageFaults() (n float64) {
	text, _ := os.ReadFile("/proc/self/stat")
	_, after, _ := strings.Cut(string(text), ") ")
	if fields := strings.Fields(after); len(fields) > 7 {
		n, _ = strconv.ParseFloat(fields[7], 64)
	}
	return n
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
