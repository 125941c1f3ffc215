package certificate

import (
	"cmp"
	"slices"
)

// Run records the positions that processes of one mesh delivered in consecutive
// batches. A restore, a seek or a change of the mesh begins another run.
type Run struct {
	// Mesh lists the processes of the mesh. All of them deliver every batch.
	Mesh Processes

	// Processes lists the processes that contributed evidence to this run.
	Processes Processes

	// Parts is the number of distinct blocks, over all arrays, that hold a part of
	// one row. An array counts once, or more often if its rows are cut.
	Parts int64

	Delivered []Span // positions that were delivered
	Dropped   []Span // ends of epochs that do not fill a step
	Skipped   []Span // steps that were left out on request

	// Evidence has the number and the digest of the Delivered rows in Processes.
	Evidence
}

// Deliver adds the positions [first, last) of an epoch and their evidence.
func (r *Run) Deliver(epoch, first, last int64, e Evidence) {
	r.Evidence = r.Plus(e)
	r.Delivered = appendSpan(r.Delivered, Span{epoch, 1, first, last})
}

// Drop adds an end of epochs that does not fill a step.
func (r *Run) Drop(s Span) { r.Dropped = appendSpan(r.Dropped, s) }

// Skip adds steps that are left out on request.
func (r *Run) Skip(s Span) { r.Skipped = appendSpan(r.Skipped, s) }

// Empty reports whether the run has no positions.
func (r *Run) Empty() bool { return len(r.Delivered)+len(r.Dropped)+len(r.Skipped) == 0 }

// pieces returns the number of list elements, which are limited by maxPieces.
func (r *Run) pieces() int {
	return len(r.Mesh) + len(r.Processes) + len(r.Delivered) + len(r.Dropped) + len(r.Skipped)
}

// Afresh returns an empty run of the same mesh, processes and parts.
func (r *Run) Afresh() Run { return Run{Mesh: r.Mesh, Processes: r.Processes, Parts: r.Parts} }

// Clone returns a deep copy.
func (r Run) Clone() Run {
	r.Mesh, r.Processes = slices.Clone(r.Mesh), slices.Clone(r.Processes)
	r.Delivered, r.Dropped, r.Skipped = slices.Clone(r.Delivered), slices.Clone(r.Dropped), slices.Clone(r.Skipped)
	return r
}

// canonical returns the run with its spans in canonical form.
func (r Run) canonical() (out Run, err error) {
	for _, spans := range []*[]Span{&r.Delivered, &r.Dropped, &r.Skipped} {
		if *spans, err = union(*spans); err != nil {
			return r, err
		}
	}
	return r, nil
}

// last returns the cursor after the last position that was delivered. The spans are
// in canonical form.
func (r *Run) last() Cursor {
	if len(r.Delivered) == 0 {
		return Cursor{}
	}
	s := r.Delivered[len(r.Delivered)-1]
	return Cursor{s.Epoch + s.Epochs - 1, s.Last}
}

// whole reports whether all processes of the mesh are in the run.
func (r *Run) whole() bool { return len(r.Mesh.without(r.Processes)) == 0 }

// sameKind reports whether both have the same mesh and the same number of parts.
func (r *Run) sameKind(o *Run) bool { return r.Parts == o.Parts && r.Mesh.equal(o.Mesh) }

// alike reports whether both have the same mesh and the same positions. They can
// then describe one run by different processes.
func (r *Run) alike(o *Run) bool { return r.sameKind(o) && r.compareSpans(o) == 0 }

func (r *Run) compareSpans(o *Run) int {
	return cmp.Or(compareSpans(r.Delivered, o.Delivered), compareSpans(r.Dropped, o.Dropped), compareSpans(r.Skipped, o.Skipped))
}

func compareSpans(a, b []Span) int {
	return slices.CompareFunc(a, b, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Epochs, b.Epochs))
	})
}

// first returns the cursor of the first position. The spans are in canonical form.
func (r *Run) first() Cursor {
	c := Cursor{Epoch: maxCount + 1}
	for _, spans := range [][]Span{r.Delivered, r.Dropped, r.Skipped} {
		if len(spans) > 0 && (Cursor{spans[0].Epoch, spans[0].First}).compare(c) < 0 {
			c = Cursor{spans[0].Epoch, spans[0].First}
		}
	}
	return c
}

// compare orders runs by their positions, and then by everything else.
func (r Run) compare(o Run) int {
	return cmp.Or(r.first().compare(o.first()), r.compareSpans(&o), r.Mesh.compare(o.Mesh), cmp.Compare(r.Parts, o.Parts), r.Processes.compare(o.Processes),
		cmp.Compare(r.Rows, o.Rows), cmp.Compare(r.Digest.High, o.Digest.High), cmp.Compare(r.Digest.Low, o.Digest.Low))
}

// joined joins runs that are alike and are of different processes, and sorts the
// runs. If two runs that are alike have a process in common, they stay separate.
func joined(runs []Run) (out []Run) {
	slices.SortFunc(runs, Run.compare)
	for _, r := range runs {
		first := len(out) // index of the first run that is alike
		for first > 0 && out[first-1].alike(&r) {
			first--
		}
		n := slices.IndexFunc(out[first:], func(o Run) bool { return len(o.Processes.common(r.Processes)) == 0 })
		if n < 0 {
			out = append(out, r)
			continue
		}
		o := &out[first+n]
		o.Processes, o.Evidence = o.Processes.plus(r.Processes), o.Plus(r.Evidence)
	}
	slices.SortFunc(out, Run.compare)
	return out
}
