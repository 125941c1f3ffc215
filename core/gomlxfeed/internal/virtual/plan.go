package virtual

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
)

// plan is the distribution of one parameter or output of a program over devices.
type plan struct {
	what     string           // "parameter x", for errors
	whole    shapes.Shape     // shape of the array
	shard    shapes.Shape     // shape of each device's part
	parts    []sharding.Index // by mesh position
	replicas []int            // by mesh position: number of earlier positions with the same part
}

func outputText(i int) string { return fmt.Sprintf("output %d", i) }

func (v *builder) plan(what string, shape shapes.Shape, spec *compute.ShardingSpec) (plan, error) {
	if shape.IsDynamic() {
		return plan{}, status.Errorf(status.Unsupported, "virtual", "%s has the dynamic shape %s, which cannot be sharded", what, shape)
	}
	s, err := v.sharding(what, spec)
	if err != nil {
		return plan{}, err
	}
	p := plan{what: what, whole: shape}
	p.parts, p.replicas, err = s.Map(shape.Dimensions)
	if err != nil {
		return plan{}, status.Errorf(status.InvalidArgument, "virtual", "%s: %w", what, err)
	}
	p.shard = shapes.Make(shape.DType, p.parts[0].Shape()...)
	return p, nil
}

// sharding returns the sharding of a spec. Nil stands for a replicated array.
func (v *builder) sharding(what string, spec *compute.ShardingSpec) (*sharding.NamedSharding, error) {
	if spec == nil {
		for _, m := range v.meshes {
			return sharding.New(m, nil) // any mesh: all have the same number of devices
		}
	}
	if spec == nil || v.meshes[spec.Mesh] == nil {
		return nil, fail("%s is sharded over mesh %q, which the program does not declare", what, spec.Mesh)
	}
	s, err := sharding.New(v.meshes[spec.Mesh], sharding.PartitionSpec(spec.Axes))
	if err != nil {
		return nil, status.Errorf(status.InvalidArgument, "virtual", "%s: %w", what, err)
	}
	return s, nil
}

// replicated reports whether every device holds the whole array.
func (p plan) replicated() bool { return p.whole.Equal(p.shard) }

// merge copies the part of a mesh position into the array.
func (p plan) merge(array, part []byte, position int) {
	bits := p.whole.DType.Bits()
	p.runs(position, func(whole, shard, n int) { copyElements(array, whole, part, shard, n, bits) })
}

// split copies the part of a mesh position out of the array.
func (p plan) split(part, array []byte, position int) {
	bits := p.whole.DType.Bits()
	p.runs(position, func(whole, shard, n int) { copyElements(part, shard, array, whole, n, bits) })
}

// runs visits a part in pieces that are contiguous in the array too. It calls fn
// with the start of the piece in the array and in the part, and its length, in
// elements.
func (p plan) runs(position int, fn func(whole, shard, n int)) {
	at := 0
	for start, n := range p.parts[position].Runs(p.whole.Dimensions) {
		fn(start, at, n)
		at += n
	}
}

// copyElements copies n elements of the given number of bits. to and from count
// elements from the start of dst and src. Elements smaller than a byte are packed,
// lowest bits first.
func copyElements(dst []byte, to int, src []byte, from, n, bits int) {
	if bits*to%8 == 0 && bits*from%8 == 0 && bits*n%8 == 0 {
		copy(dst[bits*to/8:][:bits*n/8], src[bits*from/8:])
		return
	}
	mask := byte(1)<<bits - 1
	for i := range n {
		s, d := bits*(from+i), bits*(to+i)
		value := src[s/8] >> (s % 8) & mask
		dst[d/8] = dst[d/8]&^(mask<<(d%8)) | value<<(d%8)
	}
}

// bytesOf returns the memory of an engine buffer.
func bytesOf(b compute.Buffer) ([]byte, error) {
	flat, err := b.Data()
	if err != nil {
		return nil, err
	}
	return dtypes.UnsafeByteSliceFromAny(flat), nil
}

// sameShape compares element type and dimensions, but not axis names.
func sameShape(a, b shapes.Shape) bool {
	return a.DType == b.DType && slices.Equal(a.Dimensions, b.Dimensions)
}
