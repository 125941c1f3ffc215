package random

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// One returns one of the values.
func One[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// Some returns about a third of the values, in their order.
func Some[T any](r *rand.Rand, of ...T) []T {
	var some []T
	for _, v := range of {
		if r.IntN(3) == 0 {
			some = append(some, v)
		}
	}
	return some
}

// Axes returns up to three axes, x, y and z, and the number of devices of their
// mesh. The number is at most 64 and at most the given number.
func Axes(r *rand.Rand, devices int) (axes []mesh.Axis, size int) {
	size = 1
	for _, name := range []string{"x", "y", "z"}[:r.IntN(4)] {
		if n := One(r, 1, 2, 2, 3, 4); size*n <= devices {
			axes = append(axes, mesh.Axis{Name: name, Size: n})
			size *= n
		}
	}
	return axes, size
}

// Spec assigns some of the axes to dimensions of the shape that they divide.
func Spec(r *rand.Rand, axes []mesh.Axis, shape []int) sharding.PartitionSpec {
	spec, left := make(sharding.PartitionSpec, len(shape)), slices.Clone(shape)
	for _, i := range r.Perm(len(axes)) {
		if d := r.IntN(len(shape)); left[d]%axes[i].Size == 0 && r.IntN(5) > 0 {
			left[d] /= axes[i].Size
			spec[d] = append(spec[d], axes[i].Name)
		}
	}
	return spec
}

// Type returns an element type.
func Type(r *rand.Rand) dtype.Type { return One(r, dtype.All()...) }

// Fields returns one to three fields, f0, f1 and f2, of any type. Their rows
// have up to two dimensions of these sizes.
func Fields(r *rand.Rand, sizes ...int) []source.Field {
	fields := make([]source.Field, 1+r.IntN(3))
	for i := range fields {
		fields[i] = source.Field{Name: fmt.Sprintf("f%d", i), Type: Type(r)}
		for range r.IntN(3) {
			fields[i].Shape = append(fields[i].Shape, One(r, sizes...))
		}
	}
	return fields
}
