// Package layout plans a run before anything is read: which device holds what,
// which process reads what, what that costs, and what is wrong.
//
// A [Document] describes what is wanted: a mesh, the arrays of a batch with
// their partition specs, the size of the global batch, and facts about the
// dataset. [New] makes a [Layout] of it, or says what is wrong. [Draft] makes a
// layout of a document with faults, too. A layout has
//
//   - every array of the batch with its global shape and sharding
//     ([Layout.Arrays]): first the document's arrays in their order, then the
//     mask, which is false in padding, then the extras, such as record numbers;
//   - for every process the distinct blocks that it gathers, the devices that
//     hold them, and the rows of the global batch that it needs
//     ([Layout.Process]);
//   - bytes per batch, device and process ([Layout.Totals],
//     [Layout.ProcessCosts]);
//   - problems, each with a code, a JSON Pointer into the document, numbers and
//     a remedy ([Layout.Problems]).
//
// A layout depends on the document alone, never on devices or data, so it can
// be made anywhere, also in a browser. The rows of a device follow from its
// position in the mesh, and not from the rank of its process.
//
// Package document reads and writes documents and reports as JSON, and makes the
// layout of a text by one call. Package picture draws layouts.
package layout

import (
	"errors"
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// Layout is the plan that follows from a document. It is immutable and safe
// for concurrent use. What its methods return belongs to the layout unless
// their comments say otherwise, and must not be changed.
type Layout struct {
	reporter
	doc       *Document
	mesh      *mesh.Mesh
	arrays    []Array
	tilings   []sharding.Tiling // tilings of arrays, by number; the zero value if the spec does not fit
	delivered []sharding.Tiling // tilings of arrays as they are delivered: equal to tilings, except with LoadReshard
	processes []int             // processes of the mesh, ascending
	most      int               // the largest number of devices of one process
	costs     costs
}

// New makes the layout of a document, which it copies. It returns the error of
// [Document.Validate], or joins all faults of the arrays, the batch and the
// dataset: sizes that axes do not divide, unknown names, budgets that are exceeded.
func New(d *Document) (*Layout, error) {
	l, err := Draft(d)
	if err == nil {
		err = l.Err()
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Draft is New for programs that report faults. A fault in the arrays, the batch or
// the dataset becomes a problem of the layout, and Draft computes the rest of the
// layout. If the document violates the rules of [Document.Validate], Draft fails.
func Draft(d *Document) (*Layout, error) {
	if d == nil {
		return nil, status.New(status.InvalidArgument, "layout", "there is no document").WithHint("Parse reads one; look at its error")
	}
	if err := d.Validate(); err != nil {
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

// Document returns the document. If the order in the document given to New is
// [OrderLocal], the returned document has the full name of the order instead, such
// as "local.1:4:64".
func (l *Layout) Document() *Document { return l.doc }

// Mesh returns the mesh.
func (l *Layout) Mesh() *mesh.Mesh { return l.mesh }

// BatchSize returns the number of rows of the global batch: the product of
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

// BatchShape returns a copy of the batch dimensions, usually one.
func (l *Layout) BatchShape() []int {
	if l.doc.Batch == nil {
		return nil
	}
	return slices.Clone(l.doc.Batch.Size)
}

// Remainder returns "drop", "pad" or "error".
func (l *Layout) Remainder() string { return l.doc.remainder() }

// Prefetch returns the number of batches that are read ahead.
func (l *Layout) Prefetch() int { return l.doc.prefetch() }

// Arrays lists the arrays of a batch: the document's arrays in its order, then the mask,
// then the extras.
func (l *Layout) Arrays() []Array { return l.arrays }

// Tiling returns how the spec of an array partitions it. It is the zero value
// if the Sharding of the array is nil.
func (l *Layout) Tiling(array int) sharding.Tiling { return l.tilings[array] }

// DeliveredTiling returns how an array is partitioned as the loader delivers
// it. It is the zero value if Delivered of the array is nil.
func (l *Layout) DeliveredTiling(array int) sharding.Tiling { return l.delivered[array] }

// ShardBytes returns the size of the part of an array that a device holds. The
// Sharding of the array must not be nil.
func (l *Layout) ShardBytes(array int) int64 { return shardBytes(l.arrays[array], l.tilings[array]) }

// Problems lists the errors, then the warnings, then the remarks ("info").
func (l *Layout) Problems() []problem.Problem { return l.problems }

// Err returns the problems of severity "error" as one error, or nil. Each is a
// [*status.Error] with the facts and the path as attributes.
func (l *Layout) Err() error {
	var errs []error
	for _, p := range l.problems {
		if p.Severity == problem.Error {
			errs = append(errs, p.Err("layout"))
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
