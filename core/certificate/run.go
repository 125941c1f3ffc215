package certificate

import (
	"cmp"
	"slices"
)

// Run is what processes of one mesh say of a stretch of batches that followed
// each other. A restore, a seek and a remesh begin another run.
type Run struct {
	// Mesh is the processes of the mesh, all of which deliver every batch.
	Mesh Processes

	// Processes is those whose certificates are in this one.
	Processes Processes

	// Parts is in how many distinct blocks every row is delivered: for each
	// array one, or as many as its row is cut into.
	Parts int64

	Delivered []Span // positions that were delivered
	Dropped   []Span // ends of epochs that fill no step
	Skipped   []Span // steps that were left out on request

	// Evidence is the evidence: the rows of Delivered, counted by these processes.
	Evidence
}

// Deliver adds the positions [first, last) of an epoch, and what was counted of
// them.
func (r *Run) Deliver(epoch, first, last int64, t Evidence) {
	r.Evidence = r.Plus(t)
	r.Delivered = appendSpan(r.Delivered, Span{epoch, 1, first, last})
}

// Drop notes that an end of epochs fills no step.
func (r *Run) Drop(s Span) { r.Dropped = appendSpan(r.Dropped, s) }

// Skip notes steps that are left out on request.
func (r *Run) Skip(s Span) { r.Skipped = appendSpan(r.Skipped, s) }

// Empty says whether the run has nothing to say.
func (r *Run) Empty() bool { return len(r.Delivered)+len(r.Dropped)+len(r.Skipped) == 0 }

func (r *Run) pieces() int {
	return len(r.Mesh) + len(r.Processes) + len(r.Delivered) + len(r.Dropped) + len(r.Skipped)
}

// Afresh gives a run of the same processes that has nothing to say yet.
func (r *Run) Afresh() Run { return Run{Mesh: r.Mesh, Processes: r.Processes, Parts: r.Parts} }

// Clone gives a run of its own.
func (r Run) Clone() Run {
	r.Mesh, r.Processes = slices.Clone(r.Mesh), slices.Clone(r.Processes)
	r.Delivered, r.Dropped, r.Skipped = slices.Clone(r.Delivered), slices.Clone(r.Dropped), slices.Clone(r.Skipped)
	return r
}

// canonical gives the run with its spans in canonical form.
func (r Run) canonical() (out Run, err error) {
	for _, spans := range []*[]Span{&r.Delivered, &r.Dropped, &r.Skipped} {
		if *spans, err = union(*spans); err != nil {
			return r, err
		}
	}
	return r, nil
}

// last gives the place behind the last position delivered.
func (r *Run) last() (p Cursor) {
	for _, s := range r.Delivered {
		if at := (Cursor{s.Epoch + s.Epochs - 1, s.Last}); at.compare(p) > 0 {
			p = at
		}
	}
	return p
}

// whole says whether all processes of the mesh are in it.
func (r *Run) whole() bool { return len(r.Mesh.without(r.Processes)) == 0 }

// sameKind says whether both are of one mesh, with rows in as many parts.
func (r *Run) sameKind(o *Run) bool { return r.Parts == o.Parts && r.Mesh.equal(o.Mesh) }

// alike says whether both are of one mesh and of the same positions: then they
// are taken for two processes' word of one run.
func (r *Run) alike(o *Run) bool { return r.sameKind(o) && r.compareSpans(o) == 0 }

func (r *Run) compareSpans(o *Run) int {
	return cmp.Or(compareSpans(r.Delivered, o.Delivered), compareSpans(r.Dropped, o.Dropped), compareSpans(r.Skipped, o.Skipped))
}

func compareSpans(a, b []Span) int {
	return slices.CompareFunc(a, b, func(a, b Span) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Epochs, b.Epochs))
	})
}

// first gives the place of the first position.
func (r *Run) first() (p Cursor) {
	p.Epoch = maxCount + 1
	for _, spans := range [][]Span{r.Delivered, r.Dropped, r.Skipped} {
		for _, s := range spans {
			if at := (Cursor{s.Epoch, s.First}); at.compare(p) < 0 {
				p = at
			}
		}
	}
	return p
}

// compare orders runs: by their positions, and then by everything else.
func (r *Run) compare(o *Run) int {
	return cmp.Or(r.first().compare(o.first()), r.compareSpans(o), r.Mesh.compare(o.Mesh), cmp.Compare(r.Parts, o.Parts), r.Processes.compare(o.Processes),
		cmp.Compare(r.Rows, o.Rows), cmp.Compare(r.Digest.High, o.Digest.High), cmp.Compare(r.Digest.Low, o.Digest.Low))
}

// joined puts together what different processes say of the same run, and
// orders the runs. A process that says the same twice stays apart.
func joined(runs []Run) []Run {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b Run) int { return a.compare(&b) })
	var out []Run
	for _, r := range runs {
		first := len(out) // of the runs like this one
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
	slices.SortFunc(out, func(a, b Run) int { return a.compare(&b) })
	return out
}
