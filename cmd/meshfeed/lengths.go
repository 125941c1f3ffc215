package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/meshfeed/meshfeed/core/source"
)

// lengthFacts describes the lengths of the rows of a ragged field: of their first
// dimension. The median and the 99th percentile are lengths that rows have: the smallest
// that at least this share of the rows does not exceed. Without rows, all are 0.
type lengthFacts struct {
	Nulls  int64 `json:"nulls"`
	Min    int64 `json:"min"`
	Median int64 `json:"median"`
	P99    int64 `json:"p99"`
	Max    int64 `json:"max"`
}

// lengthsAtOnce is the number of rows between two lines of progress.
const lengthsAtOnce = 1 << 20

// lengthsOf reads the length of every row of a ragged field. Memory grows with the number
// of different lengths only.
func lengthsOf(ctx context.Context, src source.Source, field int, progress func(rows int64)) (lengthFacts, error) {
	counts, lengths := map[int64]int64{}, make([]int64, min(lengthsAtOnce, src.Len()))
	for from := int64(0); from < src.Len(); from += lengthsAtOnce {
		some := lengths[:min(lengthsAtOnce, src.Len()-from)]
		if err := source.Lengths(ctx, src, field, from, some); err != nil {
			return lengthFacts{}, err
		}
		for _, length := range some {
			counts[length]++
		}
		progress(int64(len(some)))
	}
	return summarize(counts), nil
}

// summarize describes lengths, given how many rows have each; -1 stands for null.
func summarize(counts map[int64]int64) lengthFacts {
	facts := lengthFacts{Nulls: counts[-1]}
	delete(counts, -1)
	sorted, rows := slices.Sorted(maps.Keys(counts)), int64(0)
	for _, n := range counts {
		rows += n
	}
	if rows == 0 {
		return facts
	}
	facts.Min, facts.Max = sorted[0], sorted[len(sorted)-1]
	facts.Median, facts.P99 = facts.Max, facts.Max
	seen := int64(0)
	for _, length := range sorted {
		seen += counts[length]
		if 2*seen >= rows {
			facts.Median = min(facts.Median, length)
		}
		if 100*seen >= 99*rows {
			facts.P99 = min(facts.P99, length)
		}
	}
	return facts
}

// addLengths adds the lengths of every ragged field.
func (i *inspection) addLengths(ctx context.Context, src source.Source, progress func(done, total int64)) error {
	var ragged []int
	for k := range i.Fields {
		if i.Fields[k].Ragged > 0 {
			ragged = append(ragged, k)
		}
	}
	done, total := int64(0), src.Len()*int64(len(ragged))
	for _, k := range ragged {
		facts, err := lengthsOf(ctx, src, k, func(rows int64) { done += rows; progress(done, total) })
		if err != nil {
			return err
		}
		i.Fields[k].Lengths = &facts
	}
	return nil
}

// printLengths prints the lengths of ragged fields, if they were read.
func (i *inspection) printLengths(out io.Writer) error {
	rows := [][]string{{"LENGTHS", "NULLS", "MIN", "MEDIAN", "P99", "MAX"}}
	for _, f := range i.Fields {
		if l := f.Lengths; l != nil {
			rows = append(rows, []string{f.Name, grouped(l.Nulls), grouped(l.Min), grouped(l.Median), grouped(l.P99), grouped(l.Max)})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(out)
	return table(out, rows)
}
