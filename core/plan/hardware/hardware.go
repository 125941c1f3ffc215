// Package hardware has the numbers of accelerators and of the links between
// them: how much memory a device has, how fast it computes, and how fast its
// links are inside a node and between nodes.
//
// A [Kind] is a row of the table, such as "h100-80". Every number of it is a
// [Cell] with its source and date. A number that no source publishes stays
// unknown: its cell is zero, and results that need it are left out.
//
// A [Cluster] is a number of devices of one kind, grouped into nodes. Its
// numbers come from the kind or from the user. [Cluster.Axis] returns the links that
// a mesh axis crosses, as a [Path]:
//
//	2 nodes of 4 devices, mesh (data 4, tensor 2)
//
//	node 0: device 0 1 2 3     tensor {0 1} {2 3} {4 5} {6 7}: inside a node
//	node 1: device 4 5 6 7     data   {0 2 4 6} {1 3 5 7}:     2 devices of each node
//
// Units: bytes per second count one direction, per device. Data sheets often
// add both directions, and count operations with sparsity: the table has half
// of such numbers. A GB of a data sheet is 10^9 bytes.
package hardware

import (
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Cell is a number of the table. The zero value is a number that is not known.
type Cell struct {
	Value  int64
	Source string // where the number is published, and how it follows from there
	Date   string // date of the source, as year-month; for a page without a date, when it was read: "read 2026-11"
}

// Known reports whether the number is known.
func (c Cell) Known() bool { return c.Value > 0 }

// NamedCell is a number of a kind with its name.
type NamedCell struct {
	Name string // "memory", "hbm", a precision, "node" or "network"
	Unit string // "B", "B/s" or "FLOP/s"
	Cell
}

// Precision names the number format of a matrix multiplication.
type Precision string

// The precisions of the table.
const (
	BF16 Precision = "bf16"
	FP16 Precision = "fp16"
	FP8  Precision = "fp8"
	INT8 Precision = "int8"
	TF32 Precision = "tf32" // float32 arrays, multiplied by tensor cores with 10 bits of mantissa
	FP32 Precision = "fp32"
)

// Topology is how the devices of a node, or of a slice, are connected.
type Topology string

// The topologies.
const (
	Unconnected Topology = "none"   // devices of a node use the network
	Switch      Topology = "switch" // every device reaches every other at full speed
	PCIe        Topology = "pcie"   // through the host
	Torus2      Topology = "torus2" // rings in two dimensions; a node is a whole slice
	Torus3      Topology = "torus3" // rings in three dimensions; a node is a whole slice
)

var topologies = []Topology{Unconnected, Switch, PCIe, Torus2, Torus3}

// precisions lists the precisions in the order of tables.
var precisions = []Precision{BF16, FP16, FP8, INT8, TF32, FP32}

// Dimensions returns the number of dimensions of a torus, or 0.
func (t Topology) Dimensions() int {
	switch t {
	case Torus2:
		return 2
	case Torus3:
		return 3
	}
	return 0
}

// Kind is a kind of device. All bandwidths are bytes per second in one
// direction, per device.
type Kind struct {
	Name     string // name in documents, such as "h100-80"
	Title    string // name in texts, such as "NVIDIA H100 80 GB SXM"
	Vendor   string
	JAX      []string           // values of device_kind of a device in JAX
	Memory   Cell               // bytes
	HBM      Cell               // bytes per second between the device and its memory
	FLOPs    map[Precision]Cell // operations per second of dense matrix multiplications
	Topology Topology           // inside a node
	Node     Cell               // to other devices of the node, over all links of the device together
	Network  Cell               // to other nodes: the share of one device
	PerNode  int                // devices of a node, or of the largest slice of TPUs
	Host     int                // devices of one host of a slice, which are four chips; 0 unless the topology is a torus
	Wrap     int                // a dimension of a torus is a ring if its size is a multiple of Wrap; in three dimensions, if all sizes are
}

// Cells lists all numbers of the kind, also unknown ones, in the order of tables.
func (k *Kind) Cells() []NamedCell {
	list := []NamedCell{{"memory", "B", k.Memory}, {"hbm", "B/s", k.HBM}}
	for _, p := range precisions {
		list = append(list, NamedCell{string(p), "FLOP/s", k.FLOPs[p]})
	}
	return append(list, NamedCell{"node", "B/s", k.Node}, NamedCell{"network", "B/s", k.Network})
}

// All returns the table, in its order. The caller owns the list.
func All() []Kind { return slices.Clone(table) }

// Names lists the names of all kinds.
func Names() []string {
	names := make([]string, len(table))
	for i, k := range table {
		names[i] = k.Name
	}
	return names
}

// Find returns the kind with a name. The name may also be the device_kind of a device in
// JAX. The error names similar kinds.
func Find(name string) (Kind, error) {
	for _, k := range table {
		if k.Name == name || slices.Contains(k.JAX, name) {
			return k, nil
		}
	}
	e := status.Errorf(status.InvalidArgument, "hardware", "there is no device kind %s", wording.Quote(name)).With("name", name)
	return Kind{}, e.WithHint("use %s, or give the numbers of the device", wording.QuotedList(Similar(name)))
}

// Similar returns the names that an unknown name may mean: all of them if none is similar.
func Similar(name string) []string {
	if near := nearest(name); near != nil {
		return near
	}
	return Names()
}

// generic has the words that occur in the names of many kinds.
var generic = []string{"tpu", "gpu", "nvidia", "google", "pcie", "sxm"}

// nearest lists the kinds that have a word of the name, also with another ending, such as
// "v5" and "v5p". If no kind matches, it lists the kind with the most similar name.
func nearest(name string) []string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 2 || slices.Contains(generic, w) })
	var near []string
	for _, k := range table {
		parts := strings.Split(k.Name, "-")
		if slices.ContainsFunc(parts, func(part string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return alike(part, w) })
		}) {
			near = append(near, k.Name)
		}
	}
	if one := wording.Nearest(name, Names()); near == nil && one != "" {
		return []string{one}
	}
	return near
}

// alike reports whether one word begins with the other.
func alike(part, word string) bool {
	size := strings.Trim(part, "0123456789") == "" // a number of GB is not compared: an RTX 4090 is not alike a100-40
	return !size && !slices.Contains(generic, part) && (strings.HasPrefix(part, word) || strings.HasPrefix(word, part))
}
