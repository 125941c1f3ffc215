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

// page writes the measurements as Markdown.
type page struct {
	backends []backend
	cells    []cell
	micros   [][]float64 // by cell and round
	faults   [][]float64 // page faults, by cell and round
	rounds   int
	commit   string
	keeping  string // the tables of a process whose malloc keeps freed memory
}

const head = `# Benchmarks of placing, with GoMLX

` + "`make bench-go`" + ` writes this page. [benchmarks.md](benchmarks.md) has the numbers for JAX.

**Machine.** %s; %s; %s.
Commit %s, measured %s. Eight devices share these cores, so **the numbers show what placing
costs, never scaling**; nothing here was measured on GPU or TPU.

**A batch** is 128 × 32 × 32 × 3 float32, 1.5 MiB, in 8 shards of 16 rows on 8 devices, shuffled over 4,096 rows in memory
(48 MiB). Loaders have one worker and, except in the rows that say so, read nothing ahead. A time is the whole cost of a batch,
from the request to its return (released or finalized).

**Turns.** All cells run in one process and take turns of %d ms, %d rounds of them, and each round begins with another cell. The
first round, and the first four batches of a turn, do not count. A number is the median of the turns' medians (of their means, if
batches are read ahead), with the range from the 10th to the 90th percentile. Ratios are taken round by round. Before it is
measured, the first three batches of a pulling cell are compared byte by byte with their records. Afterwards no buffer may be
live.

**Copies** are of a batch's bytes, the gather included. A test on a backend that counts copies shows that nothing else is copied
if memory is shared (` + "`core/gomlxfeed`" + `).

`

func (p *page) take(turns [][]measured) {
	for _, rounds := range turns {
		var micros, faults []float64
		for _, m := range rounds {
			micros, faults = append(micros, m.micros), append(faults, m.faults)
		}
		p.micros, p.faults = append(p.micros, micros), append(p.faults, faults)
	}
}

func (p page) markdown() string {
	var s strings.Builder
	fmt.Fprintf(&s, head, machine(), versions(), p.plugins(), p.commit, time.Now().UTC().Format(time.DateOnly), stretch.Milliseconds(), p.rounds)
	p.target(&s)
	p.table(&s, "On the host, to compare with", host)
	s.WriteString(p.tables())
	p.losing(&s)
	if p.keeping != "" {
		fmt.Fprintf(&s, malloc, strings.Join(keep, " "), strings.ReplaceAll(p.keeping, "## ", "### "))
	}
	s.WriteString(legend)
	return s.String()
}

// tables writes the tables of all backends.
func (p page) tables() string {
	var s strings.Builder
	for _, b := range p.backends {
		p.table(&s, b.name, b.name)
	}
	return s.String()
}

const malloc = `## If malloc keeps its memory

XLA's plugin takes new buffers from the C library's malloc. glibc's malloc returns freed memory at the end of its heap to the
system, and the next batch pays a page fault for each of its 384 pages. How often that happens depends on the rest of the heap,
hence the wide ranges. It is most of the time in the trainer's rows of shared XLA above. If memory is not shared, most of the rest
is XLA's transfer, by hand too. A program that sets
` + "`%s`" + `
in its environment keeps the memory. Meshfeed does not set it, because malloc belongs to the program. The same cells in such a
process:

%s`

const legend = `## What the rows are

- *memcpy*: a copy of as many bytes, with both pieces of memory warm. *plain gather*: the source alone gathers shuffled rows to
  one piece of memory. *loader*: a loader does the same, to host memory that is reused.
- *gather into the ring*: the source alone, 8 jobs that write to the shards of a ` + "`Ring`" + `, and ` + "`Commit`" + `.
- *pull*: ` + "`gomlxfeed.Placed`" + ` and ` + "`Release`" + `, with a loader that gathers into a ring, and with one that has host memory.
- *trainer*: ` + "`NewDistributedDataset`" + `, whose batches belong to the trainer: every batch is new memory, finalized at once. No
  target. GoMLX clears new shared memory (` + "`tensors.FromShapeForBackend`" + `) before the gather overwrites it, and offers no way to avoid it.
- *reading ahead*: two batches ahead, and each batch is held until the next one arrives, as in training. The caller does nothing
  else, so this is the time between batches at full speed.
- *page faults*: those of the whole process, per batch; a batch has 384 pages.
- *by hand*: a program without meshfeed: the plain gather, ` + "`tensors.FromRaw`" + ` for each shard, one after the
  other, a dtensor of them all, and its ` + "`Finalize`" + `. It has no order, cursor or state.
`

// target reports whether the ring costs at most 1.3 × the plain gather.
func (p page) target(s *strings.Builder) {
	s.WriteString("**Target**: if memory is shared, gathering into the ring takes at most 1.3 × the plain gather of the same rows.\n")
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
	s.WriteString("\n")
}

func (p page) table(s *strings.Builder, title, on string) {
	fmt.Fprintf(s, "## %s\n\n| way | copies | µs per batch | × plain gather | × memcpy | page faults |\n| --- | --: | --: | --: | --: | --: |\n", title)
	for i, c := range p.cells {
		if c.on == on {
			fmt.Fprintf(s, "| %s | %s | %s | %s | %s | %.0f |\n", c.what, c.copies, spreadOf(p.micros[i]).text("%.0f"),
				spreadOf(ratios(p.micros[i], p.of(host, plain))).text("%.2f"), spreadOf(ratios(p.micros[i], p.of(host, memcpy))).text("%.1f"), quantile(p.faults[i], 0.5))
		}
	}
	s.WriteString("\n")
}

// losing lists the cells that take longer than the program without meshfeed.
func (p page) losing(s *strings.Builder) {
	s.WriteString("## Rows that lose\n\n")
	lost := 0
	for i, c := range p.cells {
		if c.on == host || c.what == byHand {
			continue
		}
		if r := spreadOf(ratios(p.micros[i], p.of(c.on, byHand))); r.median > 1 {
			fmt.Fprintf(s, "- %s, %s: %s × the time by hand.\n", c.on, c.what, r.text("%.2f"))
			lost++
		}
	}
	if lost == 0 {
		s.WriteString("No row takes longer than the same by hand.\n")
	}
	s.WriteString("\n")
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
