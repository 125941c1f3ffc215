package selfcheck

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed"
)

// Verdict summarizes the report in a few sentences about correctness, speed, and
// overlap of input and step.
func (r *Report) Verdict() string {
	return strings.TrimSpace(r.correctness() + " " + r.speed() + " " + r.overlap())
}

func (r *Report) correctness() string {
	var failed []string
	for _, c := range r.Checks {
		if !c.Passed {
			failed = append(failed, c.Name)
		}
	}
	on := fmt.Sprintf("%d devices of %s", len(r.Facts.Devices), r.Facts.Name)
	if len(failed) == 0 {
		return fmt.Sprintf("All %d checks passed on %s.", len(r.Checks), on)
	}
	return fmt.Sprintf("%d of %d checks FAILED on %s (%s): do not train on these batches, and report this page.", len(failed), len(r.Checks), on, strings.Join(failed, ", "))
}

func (r *Report) speed() string {
	if len(r.Rates) == 0 {
		return "Nothing was measured: " + r.Untimed + "."
	}
	b := r.Rates[0] // the largest batch
	return fmt.Sprintf("A batch of %.1f MiB takes %s (median; 99th percentile %s) with a prefetch of 2, %.1f GB/s. Without prefetch it runs at %.2f times the speed of the same work by hand. A transfer alone reaches %.1f GB/s.",
		float64(b.BatchBytes)/(1<<20), millis(b.P50), millis(b.P99), b.bandwidth(b.Meshfeed), b.Single/b.ByHand, b.bandwidth(b.Put))
}

func (r *Report) overlap() string {
	if len(r.Steps) == 0 {
		return ""
	}
	s := r.Steps[len(r.Steps)-1]
	return fmt.Sprintf("The input adds %[2]s to a step of %[1]s with a prefetch of 2, and %[3]s without prefetch.",
		millis(s.Alone), millis(max(0, s.Ahead[maxPrefetch]-s.Alone)), millis(max(0, s.Ahead[0]-s.Alone)))
}

// bandwidth converts a rate in batches per second to GB/s.
func (b Rates) bandwidth(rate float64) float64 { return rate * float64(b.BatchBytes) / 1e9 }

// Markdown formats the report as a page to paste into an issue.
func (r *Report) Markdown() string {
	var s strings.Builder
	outcome := "passed"
	if !r.Passed() {
		outcome = "FAILED"
	}
	fmt.Fprintf(&s, "# meshfeed devices --check: %s\n\n%s\n\n", outcome, r.Verdict())
	r.machine(&s)
	s.WriteString("## Checks\n\nEvery shard is read back and compared with the source.\n\n| check | outcome | facts | seconds |\n| --- | --- | --- | --: |\n")
	for _, c := range r.Checks {
		outcome := "ok"
		if !c.Passed {
			outcome = "**FAILED**"
		}
		fmt.Fprintf(&s, "| %s | %s | %s | %.1f |\n", cell(c.Name), outcome, cell(c.Text), c.Seconds)
	}
	r.rates(&s)
	r.steps(&s)
	return s.String()
}

func (r *Report) machine(s *strings.Builder) {
	s.WriteString("| what | value |\n| --- | --- |\n")
	memory := "separate, reached by transfers"
	if r.Facts.Shared {
		memory = "shared with the host"
	}
	device := ""
	if len(r.Facts.Devices) > 0 {
		device = ": " + r.Facts.Devices[0]
	}
	rows := [][2]string{
		{"devices", fmt.Sprintf("%d of %s (%s)%s", len(r.Facts.Devices), r.Facts.Name, r.Facts.Platform, device)},
		{"plugin", r.Facts.API}, {"device memory", memory}, {"seed", fmt.Sprint(r.Seed)},
	}
	for _, key := range []string{"meshfeed", "modules", "system", "processor", "date"} {
		rows = append(rows, [2]string{key, r.Machine[key]})
	}
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(s, "| %s | %s |\n", row[0], cell(row[1]))
		}
	}
	s.WriteString("\n")
}

const speedText = `
## Speed

Shuffled rows, split over all devices. Each batch is released before the next one is requested. *meshfeed* has a prefetch of 2,
*single* has none. *by hand* does the work of *single* without meshfeed: gather, ` + "`tensors.FromRaw`" + ` per device, a dtensor,
` + "`Finalize`" + `. *put* is *by hand* without the gather. *copy* copies the bytes on the host. Medians of %d rounds.

| data | batch | p50, p99 | rows/s | meshfeed GB/s | single | by hand | put | copy | single, times by hand |
| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |
`

func (r *Report) rates(s *strings.Builder) {
	if len(r.Rates) == 0 {
		return
	}
	fmt.Fprintf(s, speedText, rounds)
	for _, b := range r.Rates {
		fmt.Fprintf(s, "| %s | %.2f MiB | %s, %s | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", b.Case, float64(b.BatchBytes)/(1<<20),
			millis(b.P50), millis(b.P99), b.Meshfeed*float64(b.BatchRows), b.bandwidth(b.Meshfeed), b.bandwidth(b.Single),
			b.bandwidth(b.ByHand), b.bandwidth(b.Put), b.bandwidth(b.Copy), b.Single/b.ByHand)
	}
}

const stepsText = `
## Transfer during a step

A step is a pause of the caller, as while a device computes. *alone* is the measured pause without input. The other columns
are steps with input, by prefetch.

| data | pause | alone | prefetch 0 | prefetch 1 | prefetch 2 |
| --- | --: | --: | --: | --: | --: |
`

func (r *Report) steps(s *strings.Builder) {
	if len(r.Steps) == 0 {
		return
	}
	s.WriteString(stepsText)
	for _, step := range r.Steps {
		fmt.Fprintf(s, "| %s | %g ms | %s |", step.Case, step.Pause*1e3, millis(step.Alone))
		for _, t := range step.Ahead {
			fmt.Fprintf(s, " %s |", millis(t))
		}
		s.WriteString("\n")
	}
}

func millis(seconds float64) string {
	digits := 3
	if seconds >= 0.1 {
		digits = 1
	} else if seconds >= 0.001 {
		digits = 2
	}
	return fmt.Sprintf("%.*f ms", digits, seconds*1e3)
}

// cell escapes a text for a cell of a Markdown table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// machine returns the versions of the software, the processor and the date.
func machine() map[string]string {
	facts := map[string]string{
		"meshfeed":  meshfeed.Version(),
		"modules":   modules(),
		"system":    runtime.GOOS + " " + runtime.GOARCH + ", " + runtime.Version(),
		"processor": fmt.Sprintf("%d cores usable", runtime.GOMAXPROCS(0)),
		"date":      time.Now().UTC().Format(time.DateOnly),
	}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(info); found != nil {
			facts["processor"] = string(found[1]) + ", " + facts["processor"]
		}
	}
	return facts
}

// modules lists GoMLX's modules and their versions.
func modules() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var list []string
	for _, m := range info.Deps {
		if _, name, found := strings.Cut(m.Path, "github.com/gomlx/"); found {
			list = append(list, name+" "+m.Version)
		}
	}
	return strings.Join(list, ", ")
}
