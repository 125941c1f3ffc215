// Package layout answers, before anything is read, the static question of a
// run: who holds what, who reads what, what it costs, and what is wrong.
//
// A [Document] says what is wanted: a mesh, the arrays of a batch with their
// partition specs, the size of the global batch, and facts about the dataset.
// It has one JSON form ([Parse], [Document.Canonical]) that Go, Python, the
// command and the browser share. [New] works it out as a [Layout]:
//
//   - every array of the batch with its global shape and sharding: first those
//     of the document in their order, then the mask, then the extras;
//   - for every process the distinct blocks it gathers, the devices that hold
//     them, and the rows of the global batch it needs ([Layout.Process]), as
//     the way of loading has it ([LoadProcess] and the others);
//   - bytes per batch, device and process ([Layout.Totals]);
//   - problems, each with a code, a place in the document, numbers and a
//     remedy ([Layout.Problems]);
//   - a report for programs ([Layout.Report]) and a picture for people
//     ([Layout.Text], [Layout.SVG]).
//
// A layout depends on the document alone, never on devices or data, so it can
// be made anywhere, also in a browser. Rows follow from a device's place in
// the mesh; the rank of a process decides nothing.
package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// Layout is the static answer to a document. It is immutable and safe for
// concurrent use. What its methods return belongs to the layout unless said
// otherwise, and must not be changed.
type Layout struct {
	doc       *Document
	mesh      *mesh.Mesh
	arrays    []Array
	tilings   []sharding.Tiling // of arrays, by number; the zero value for a broken array
	delivered []sharding.Tiling // of arrays as they are delivered: tilings, but with LoadReshard
	processes []int             // of the mesh, ascending
	most      int               // devices of the process that has most
	costs     costs
	problems  []Problem
}

// New works out the layout of a document, which is copied. Whatever is wrong
// with the arrays, the batch or the dataset becomes a problem of the layout,
// and the rest is still worked out. The error is for a document of which
// nothing can be worked out: one that breaks the rules of [Document].
func New(d *Document) (*Layout, error) {
	if d == nil {
		return nil, status.New(status.InvalidArgument, "layout", "there is no document").WithHint("Parse reads one; look at its error")
	}
	if err := d.validate(); err != nil {
		return nil, err
	}
	d = d.clone()
	m, err := d.Mesh.build()
	if err != nil {
		return nil, err
	}
	l := &Layout{doc: d, mesh: m, processes: m.Processes()}
	for n := range l.processes {
		l.most = max(l.most, len(m.Owned(n)))
	}
	l.addArrays()
	l.addDelivered()
	l.costs = l.count()
	l.nameOrder()
	l.check()
	return l, nil
}

// Document gives a copy of the document.
func (l *Layout) Document() *Document { return l.doc.clone() }

// Mesh gives the mesh.
func (l *Layout) Mesh() *mesh.Mesh { return l.mesh }

// BatchSize gives the number of rows of the global batch: the product of
// BatchShape, or 0 for a document without a batch.
func (l *Layout) BatchSize() int64 {
	if l.doc.Batch == nil {
		return 0
	}
	n := int64(1)
	for _, b := range l.doc.Batch.Size {
		n *= int64(b)
	}
	return n
}

// BatchShape gives a copy of the batch dimensions, usually one.
func (l *Layout) BatchShape() []int {
	if l.doc.Batch == nil {
		return nil
	}
	return slices.Clone(l.doc.Batch.Size)
}

// Remainder gives "drop", "pad" or "error".
func (l *Layout) Remainder() string { return l.doc.remainder() }

// Prefetch gives the number of batches that may wait undelivered.
func (l *Layout) Prefetch() int { return l.doc.prefetch() }

// Arrays lists the arrays of a batch: those of the document in its order, then
// the mask, then the extras.
func (l *Layout) Arrays() []Array { return l.arrays }

// Problems lists what is wrong or worth knowing, errors first.
func (l *Layout) Problems() []Problem { return l.problems }

// Err gives the first problem of severity "error" as a [*status.Error], with
// the facts and the path as attributes, or nil.
func (l *Layout) Err() error {
	for _, p := range l.problems {
		if p.Severity == Error {
			return p.err()
		}
	}
	return nil
}
