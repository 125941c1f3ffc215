// Package memory computes how many bytes the arrays of a model occupy on a device.
//
// A [Tree] has the arrays of a training step: parameters, states of an optimizer,
// and a batch. Each has a shape, an element type and a partition spec over one mesh.
// JAX partitions evenly, so all devices hold parts of the same size. [Measure] returns the
// [Usage]: for every array the part of a device and its bytes, and the sums.
//
// The sizes of stored arrays are exact: they equal the sizes of the arguments of a compiled
// step that takes the whole tree. Gradients and activations exist within the step only, and
// the compiler chooses how many of them exist at a time. The sum with them is therefore an
// [Interval].
//
// [Precision.Of] returns the sizes for one parameter and needs no mesh.
package memory

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Array is an array of a tree.
type Array struct {
	Name    string // the path in a nested tree, joined by "/"
	Shape   []int
	Element Element
	Spec    sharding.PartitionSpec
	Shard   []int  // the shape of one device's part instead of a Spec; nil if there is a Spec
	Host    string // the memory kind of JAX in the memory of the host, such as "pinned_host"; "" for a device
}

// Tree has the arrays of a training step.
type Tree struct {
	Mesh       *mesh.Mesh
	Parameters []Array
	Batch      []Array

	// The states of the optimizer follow from Optimizer, or States lists them. Without
	// Optimizer, States and Activations, the tree is not trained and has no gradients.
	Optimizer Optimizer
	States    []Array

	// The types of the gradient, the moments and the master copy of a parameter. Invalid
	// means the type of the parameter, and for Master that the copy is absent.
	Gradients Element
	Moments   Element
	Master    Element

	Activations *Interval // activations of a training step, per device; nil if not known
	Capacity    int64     // bytes of a device's memory; 0 if not known
}

// Interval is a range of bytes.
type Interval struct{ Low, High int64 }

// Row is an array with the part of it that a device holds.
type Row struct {
	Array
	Part       []int    // the shape of the part; nil if the spec does not fit
	Bytes      int64    // bytes of the part; 0 if the spec does not fit
	Global     int64    // bytes of the whole array
	Gradient   int64    // bytes of the gradient of the part, if this is a parameter
	States     int64    // bytes of the states that follow from Tree.Optimizer, and of the master copy
	Copies     int64    // the number of devices that hold the same part
	Replicated []string // the axes with several devices that hold the same part
}

// Usage has the sizes of a tree. Numbers are bytes per device.
type Usage struct {
	Tree       *Tree
	Parameters []Row
	States     []Row
	Batch      []Row
	Totals     Totals
	Problems   []problem.Problem // errors first
}

// Totals are sums of bytes per device.
type Totals struct {
	Parameters int64
	States     int64
	Batch      int64
	Stored     int64 // the sum of Parameters, States and Batch: exact
	Gradients  int64
	Host       int64 // bytes of arrays in the memory of the host; no other sum has them
	Count      int64 // not bytes: elements of all parameters, each counted once

	// Peak is the memory of a step, or nil if the activations are not known. Low is
	// the sum of Stored and the low end of the activations. High is the sum of Stored,
	// Gradients and the high end.
	Peak *Interval
}

// trained reports whether there are gradients.
func (t *Tree) trained() bool {
	return t.Optimizer != NoOptimizer || t.States != nil || t.Activations != nil
}

// statesOf lists the master copy of a parameter and the states that the optimizer keeps
// for it.
func (t *Tree) statesOf(p Array) []Array {
	if !p.Element.IsFloat() {
		return nil
	}
	var list []Array
	if t.Master.Valid() {
		list = append(list, Array{Name: "master/" + p.Name, Shape: p.Shape, Element: t.Master, Spec: p.Spec, Shard: p.Shard, Host: p.Host})
	}
	for _, s := range t.Optimizer.States(p.Shape) {
		s.Element = p.Element
		if t.Moments.Valid() {
			s.Element = t.Moments
		}
		list = append(list, s.array(p))
	}
	return list
}

// array returns the state of parameter p as an array. It is partitioned like p.
func (s State) array(p Array) Array {
	a := Array{Name: s.Name, Shape: s.Shape, Element: s.Element, Spec: make(sharding.PartitionSpec, len(s.Dims)), Host: p.Host}
	if p.Name != "" {
		a.Name += "/" + p.Name
	}
	if p.Shard != nil {
		a.Spec, a.Shard = nil, slices.Clone(s.Shape)
	}
	for i, d := range s.Dims {
		switch {
		case d < 0:
		case p.Shard != nil:
			a.Shard[i] = p.Shard[d]
		case d < len(p.Spec):
			a.Spec[i] = p.Spec[d]
		}
	}
	return a
}
