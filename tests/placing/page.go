package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// page writes the measurements as a section of docs/benchmarks.md.
type page struct {
	backends []backend
	cells    []cell
	micros   [][]float64 // by cell and round
	rounds   int
	commit   string
	keeping  string // the time of a trainer's batch if malloc keeps freed memory
}

const head = `## GoMLX

` + "`make bench-go`" + ` measures this section. %s; %s; %s. Commit %s, measured %s.
A batch has 1.5 MiB in 8 shards on 8 devices. A time is the whole cost of a batch in µs, until it is returned. All cells run in one process and
take turns of %d ms, %d rounds of them; the range is from the 10th to the 90th percentile. Pulled batches are compared with their records. ✗ marks
ways that take longer than the program by hand: the gather, ` + "`tensors.FromRaw`" + ` for each shard, a dtensor and its ` + "`Finalize`" + `.
`

func (p page) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, head, machine(), versions(), p.plugins(), p.commit, time.Now().UTC().Format(time.DateOnly), stretch.Milliseconds(), p.rounds)
	fmt.Fprintf(&s, "On the host, memcpy takes %s, the plain gather %s, and a loader %s.\n", p.text(host, memcpy), p.text(host, plain), p.text(host, hostLoader))
	p.target(&s)
	if p.keeping != "" {
		fmt.Fprintf(&s, malloc, strings.Join(keep, " "), trainerRing, p.keeping)
	}
	s.WriteString("\n")
	s.WriteString(p.table())
	return s.String()
}

const malloc = `A trainer's batches are new memory, and glibc's malloc returns freed memory to the system: the next batch pays up to 384 page faults.
A program that sets ` + "`%s`" + ` keeps it: *%s* on shared XLA then takes %s.
`

// target reports whether the ring costs at most 1.3 × the plain gather.
func (p page) target(s *strings.Builder) {
	s.WriteString("If memory is shared, the target of gathering into the ring is 1.3 × the plain gather.\n")
	for _, b := range p.backends {
		if !b.devices.Shared() {
			continue
		}
		r := spreadOf(ratios(p.of(b.name, ringGather), p.of(host, plain)))
		verdict := "met"
		if r.median > 1.3 {
			verdict = "**missed**"
		}
		fmt.Fprintf(s, "%s: %s ×, %s.\n", b.name, r.text("%.2f"), verdict)
	}
}

// table writes a row for each way, with a column for each backend.
func (p page) table() string {
	var s strings.Builder
	s.WriteString("| way |")
	for _, b := range p.backends {
		fmt.Fprintf(&s, " %s |", b.name)
	}
	s.WriteString("\n| --- |" + strings.Repeat(" --: |", len(p.backends)) + "\n")
	for _, way := range []string{ringGather, pullRing, pullHeap, pullAhead, trainerRing, trainerHeap, trainerAhead, byHand} {
		fmt.Fprintf(&s, "| %s |", way)
		for _, b := range p.backends {
			text := p.text(b.name, way)
			if way != byHand && spreadOf(ratios(p.of(b.name, way), p.of(b.name, byHand))).median > 1 {
				text = "**" + text + " ✗**"
			}
			fmt.Fprintf(&s, " %s |", text)
		}
		s.WriteString("\n")
	}
	return s.String()
}

// text writes the microseconds of a cell.
func (p page) text(on, what string) string {
	return spreadOf(p.of(on, what)).text("%.0f")
}

func (p page) of(on, what string) []float64 {
	for i, c := range p.cells {
		if c.on == on && c.what == what {
			return p.micros[i]
		}
	}
	return nil
}

func (r spread) text(format string) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", r.median, r.low, r.high)
}

func (p page) plugins() string {
	for _, b := range p.backends {
		if f := b.devices.Facts(); f.API != "" {
			return "XLA's plugin for CPUs, " + f.API
		}
	}
	return "no plugin"
}

func machine() string {
	model := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`model name\s*: (.*)`).FindSubmatch(info); found != nil {
			model = string(found[1])
		}
	}
	return fmt.Sprintf("%s, %d cores, %s", model, runtime.NumCPU(), runtime.GOOS)
}

// versions lists the versions of Go and of GoMLX's modules.
func versions() string {
	text := runtime.Version()
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	for _, m := range info.Deps {
		if _, name, ours := strings.Cut(m.Path, "github.com/gomlx/"); ours {
			text += ", " + name + " " + m.Version
		}
	}
	return text
}
