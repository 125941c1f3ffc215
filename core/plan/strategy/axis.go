package strategy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/mesh"
)

// axis is the index of an axis in Axes.
type axis int

const (
	pipeAxis axis = iota
	dataAxis
	fsdpAxis
	expertAxis
	contextAxis
	tensorAxis
	numAxes
)

// headGroup is the index of the groups of tensor devices that hold the same key and value
// heads. It follows the indexes of the axes.
const headGroup = numAxes

func axisOf(name string) axis { return axis(slices.Index(Axes(), name)) }

func (a axis) String() string {
	if a == headGroup {
		return Tensor
	}
	return Axes()[a]
}

// sizes has the size of every axis.
type sizes [numAxes]int

// product returns the number of devices along some axes.
func (s sizes) product(axes ...axis) int64 {
	n := int64(1)
	for _, a := range axes {
		n *= int64(s[a])
	}
	return n
}

// batchParts returns the number of parts of the batch.
func (s sizes) batchParts() int64 { return s.product(dataAxis, fsdpAxis, expertAxis) }

// replicas returns the number of devices that hold the same weights outside of experts.
// ZeRO divides over them.
func (s sizes) replicas() int64 { return s.product(dataAxis, contextAxis, expertAxis) }

// expertReplicas returns the number of devices that hold the same weights of experts.
func (s sizes) expertReplicas() int64 { return s.product(dataAxis, contextAxis) }

// used counts the axes that split something.
func (s sizes) used() int {
	n := 0
	for _, size := range s {
		if size > 1 {
			n++
		}
	}
	return n
}

// mesh lists the axes of a size above 1.
func (s sizes) mesh() []mesh.Axis {
	axes := []mesh.Axis{}
	for a, size := range s {
		if size > 1 {
			axes = append(axes, mesh.Axis{Name: axis(a).String(), Size: size})
		}
	}
	return axes
}

// MeshText lists the axes of a mesh with their sizes.
func MeshText(list []mesh.Axis) string {
	if len(list) == 0 {
		return "one device"
	}
	axes := make([]string, len(list))
	for i, a := range list {
		axes[i] = a.Name + " " + strconv.Itoa(a.Size)
	}
	return strings.Join(axes, ", ")
}
