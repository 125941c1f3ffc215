package certificate

import (
	"cmp"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// Coverage is what the runs of a certificate state about the positions between two
// cursors. It does not use the evidence, the digests of the rows.
type Coverage struct {
	First, Last Cursor

	// All positions of the certificate, also outside of First and Last.
	Delivered []Span // by any process
	Dropped   []Span // and not delivered
	Skipped   []Span // and neither delivered nor dropped

	Missing  []Span  // neither delivered nor dropped nor skipped
	Absent   []Fault // delivered by other processes of the mesh, but not by the processes of the fault
	Repeated []Fault // delivered more than once by the processes of the fault
}

// Fault names processes and the positions that they did not deliver, or delivered
// more than once.
type Fault struct {
	Processes Processes
	All       bool  // Processes are the whole mesh
	Of        int64 // the number of processes of the mesh
	Spans     []Span
}

// Coverage compares the runs with the positions from first to last. The error
// is ResourceExhausted for too many pieces that overlap.
func (c Certificate) Coverage(first, last Cursor) (Coverage, error) {
	wanted := through(first, last, c.Records)
	s := survey{runs: c.runs, reached: c.reached(wanted)}
	err := eachBand(s.collect(wanted), s.surveyEpochs)
	return Coverage{
		First: first, Last: last,
		Delivered: s.delivered.out, Dropped: s.dropped.out, Skipped: s.skipped.out,
		Missing: s.missing.out, Absent: s.absent.list(), Repeated: s.repeated.list(),
	}, err
}

// survey cuts the positions into pieces where any span begins or ends, and
// examines each piece.
type survey struct {
	runs                                 []Run
	reached                              []bool // by run; see reached
	delivered, dropped, skipped, missing merger
	absent, repeated                     faults
	work                                 int // comparisons so far
}

// kind is what a run did with the positions of a piece. For positions between the
// two cursors there are also pieces of kind asked.
type kind uint8

const (
	asked kind = iota
	delivered
	dropped
	skipped
	kinds // the number of kinds
)

// maxWork bounds the comparisons, so that a hostile certificate takes at most about
// a second. A thousand consecutive runs need a million.
const maxWork = 1 << 23

// collect lists the wanted spans and the spans of all runs.
func (s *survey) collect(wanted []Span) (pieces []piece) {
	add := func(k kind, run int, spans []Span) {
		for _, span := range spans {
			pieces = append(pieces, piece{span, k, run})
		}
	}
	add(asked, -1, wanted)
	for i, r := range s.runs {
		add(dropped, i, r.Dropped)
		add(skipped, i, r.Skipped)
		if len(r.Mesh.common(r.Processes)) > 0 { // processes outside the mesh hold nothing
			add(delivered, i, r.Delivered)
		}
	}
	return pieces
}

// surveyEpochs examines the epochs [from, to), which have the same spans.
func (s *survey) surveyEpochs(from, to int64, here []piece) error {
	var bounds []int64
	for _, p := range here {
		bounds = append(bounds, p.First, p.Last)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var over []piece // pieces of here that contain the span
	for i := 1; i < len(bounds); i++ {
		if s.work += len(here); s.work > maxWork {
			return fail(status.ResourceExhausted, "the runs overlap in too many pieces").
				WithHint("add the certificates of fewer runs at a time")
		}
		over = over[:0]
		for _, p := range here {
			if p.First <= bounds[i-1] && bounds[i] <= p.Last {
				over = append(over, p)
			}
		}
		if len(over) > 0 {
			s.examine(Span{from, to - from, bounds[i-1], bounds[i]}, over)
		}
	}
	return s.endBand()
}

func (s *survey) endBand() error {
	for _, m := range []*merger{&s.delivered, &s.dropped, &s.skipped, &s.missing} {
		if err := m.endBand(); err != nil {
			return err
		}
	}
	return cmp.Or(s.absent.endBand(), s.repeated.endBand())
}

// examine adds a span to the lists that it belongs to. over lists the pieces that
// contain it.
func (s *survey) examine(span Span, over []piece) {
	var runs []int
	var found [kinds]bool
	for _, p := range over {
		found[p.kind] = true
		if p.kind == delivered {
			runs = append(runs, p.run)
		}
	}
	switch {
	case found[delivered]:
		s.delivered.add(span)
		s.compare(span, runs, found[asked])
	case found[dropped]:
		s.dropped.add(span)
	case found[skipped]:
		s.skipped.add(span)
	default:
		s.missing.add(span)
	}
}

// compare checks that every process of one mesh delivered a span once. If a needed
// run lacks some processes, all positions of the run are checked, because its
// evidence cannot be divided.
func (s *survey) compare(span Span, runs []int, asked bool) {
	first := &s.runs[runs[0]]
	var once, twice Processes
	for _, i := range runs {
		r := &s.runs[i]
		s.work += 8 + len(r.Mesh) + len(r.Processes) + len(once)
		asked = asked || (s.reached[i] && !r.whole())
		mine := first.Mesh // a run on another mesh counts as if all these processes had delivered
		if r.sameKind(first) {
			mine = r.Processes.common(r.Mesh)
		}
		twice = twice.plus(once.common(mine))
		once = once.plus(mine)
	}
	if asked {
		s.absent.add(first.Mesh, first.Mesh.without(once), span)
		s.repeated.add(first.Mesh, twice, span)
	}
}

// faults has one fault for each set of processes.
type faults []collected

// collected is a fault while its spans are collected.
type collected struct {
	Fault
	merger
}

// maxFaults bounds the number of sets of processes. The first ones are enough to
// show that something is wrong.
const maxFaults = 64

func (f *faults) add(mesh, processes Processes, span Span) {
	if len(processes) == 0 {
		return
	}
	all := processes.equal(mesh)
	for i := range *f {
		if o := &(*f)[i]; o.All && all || o.Of == mesh.count() && o.Processes.equal(processes) {
			o.merger.add(span)
			return
		}
	}
	if len(*f) < maxFaults {
		*f = append(*f, collected{Fault{Processes: processes, All: all, Of: mesh.count()}, merger{here: []Span{span}}})
	}
}

func (f faults) endBand() error {
	for i := range f {
		if err := f[i].merger.endBand(); err != nil {
			return err
		}
	}
	return nil
}

func (f faults) list() (list []Fault) {
	for _, o := range f {
		o.Spans = o.out
		list = append(list, o.Fault)
	}
	return list
}

// reached reports for every run whether its evidence is needed for the wanted
// positions. It is if the run has any of them. If a needed run lacks some
// processes, all runs that may complete it are needed, too.
func (c Certificate) reached(wanted []Span) []bool {
	reached := make([]bool, len(c.runs))
	var next []int // runs with overlaps that have not been searched
	reach := func(spans []Span, of func(*Run) bool) {
		for i := range c.runs {
			if r := &c.runs[i]; !reached[i] && of(r) && overlap(r.Delivered, spans) {
				reached[i] = true
				next = append(next, i)
			}
		}
	}
	reach(wanted, func(*Run) bool { return true })
	for len(next) > 0 {
		r := &c.runs[next[0]]
		next = next[1:]
		if !r.whole() {
			reach(r.Delivered, func(o *Run) bool { return !o.whole() && o.sameKind(r) })
		}
	}
	return reached
}

// overlap reports whether two lists of spans have a position in common.
func overlap(spans, others []Span) bool {
	for _, a := range spans {
		for _, b := range others {
			if a.Epoch < b.Epoch+b.Epochs && b.Epoch < a.Epoch+a.Epochs && a.First < b.Last && b.First < a.Last {
				return true
			}
		}
	}
	return false
}
