package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/internal/wording"
)

const head = `## The strategy planner

` + "`make bench-planner`" + ` measures this section. %s, %d cores, %s; %s, Node.js %s. Commit %s, measured %s.
A time is a whole answer, from a strategy document to the report as JSON and text: the median of %d rounds, with the range from the 10th to
the 90th percentile. *Go* is the package; *Node.js* runs the page's WebAssembly module. With a million devices, most of the time
is the layout of the best candidate.

| model and devices | candidates |%s
| --- | --: |%s
`

// page writes the measurements as a section of docs/benchmarks.md. Times are in milliseconds by
// question and way.
func page(ways []way, times [][][]float64, commit, node string, rounds int) string {
	var names, rules strings.Builder
	for _, w := range ways {
		names.WriteString(" " + w.name + ", ms |")
		rules.WriteString(" --: |")
	}
	var s strings.Builder
	fmt.Fprintf(&s, head, processor(), runtime.NumCPU(), runtime.GOOS, runtime.Version(), node,
		commit, time.Now().UTC().Format(time.DateOnly), rounds, names.String(), rules.String())
	for i, q := range questions {
		fmt.Fprintf(&s, "| %s on %s × %s | %s |", q.model, wording.Thousands(int64(q.devices)), q.device, wording.Thousands(q.candidates))
		for k := range ways {
			all := slices.Sorted(slices.Values(times[i][k]))
			fmt.Fprintf(&s, " %s (%s to %s) |", digits(quantile(all, 0.5)), digits(quantile(all, 0.1)), digits(quantile(all, 0.9)))
		}
		s.WriteString("\n")
	}
	return s.String()
}

// digits writes milliseconds with two digits at least.
func digits(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

func quantile(sorted []float64, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func processor() string {
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(info); found != nil {
			return string(found[1])
		}
	}
	return runtime.GOARCH
}
