package gomlxfeed

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/status"
)

// plan maps the blocks of a batch to devices. It depends only on the layout and
// the devices, so it is computed once.
type plan struct {
	lay        *layout.Layout
	process    int // the only process of the mesh; Mesh rejects more
	mesh       *distributed.DeviceMesh
	assignment []compute.DeviceNum // by mesh position
	blocks     []batch.Block       // the blocks for which a loader requests memory
	arrays     []array             // in the layout's order
	bytes      int64               // bytes of all shards of a batch
}

// array is one array of a batch on the mesh.
type array struct {
	name  string
	spec  *distributed.ShardingSpec
	shape shapes.Shape // shape of a shard
	bytes int          // bytes of a shard
	block []int        // by mesh position: the block that is its shard
	first []int        // by mesh position: the first position that holds the same block
}

// newPlan returns the plan of a layout. It fails if the layout has errors, if GoMLX
// cannot express it, or if a batch is too large.
func newPlan(lay *layout.Layout, d *Devices) (*plan, error) {
	if lay == nil {
		return nil, fail("there is no layout")
	}
	if err := lay.Err(); err != nil {
		return nil, err
	}
	p := &plan{lay: lay}
	var err error
	if p.mesh, p.assignment, err = Mesh(lay.Mesh(), d); err != nil {
		return nil, err
	}
	p.process = lay.Mesh().Processes()[0]
	blocks := lay.Process(p.process).Blocks
	for len(blocks) > 0 { // the blocks of one array are adjacent
		n := slices.IndexFunc(blocks, func(b layout.Block) bool { return b.Array != blocks[0].Array })
		if n < 0 {
			n = len(blocks)
		}
		if err := p.addArray(blocks[:n]); err != nil {
			return nil, err
		}
		blocks = blocks[n:]
	}
	return p, p.checkSize(d)
}

// addArray adds the array that consists of these blocks.
func (p *plan) addArray(blocks []layout.Block) error {
	a, number := p.lay.Arrays()[blocks[0].Array], blocks[0].Array
	spec, err := ShardingSpec(p.mesh, a.Delivered.Spec(), len(a.Shape))
	if err != nil {
		return err
	}
	dims := blocks[0].Index.Shape()
	placed := array{name: a.Name, spec: spec, shape: shapeOf(a.Type, dims)}
	placed.bytes = int(placed.shape.ByteSize())
	placed.block, placed.first = make([]int, len(p.assignment)), make([]int, len(p.assignment))
	for _, b := range blocks {
		for _, position := range b.Holders {
			placed.block[position], placed.first[position] = len(p.blocks), b.Holders[0]
		}
		p.blocks = append(p.blocks, batch.Block{Name: a.Name, Array: number, Type: a.Type, Shape: dims, Bytes: placed.bytes, Holders: b.Holders})
	}
	p.arrays = append(p.arrays, placed)
	p.bytes += int64(placed.bytes) * int64(len(p.assignment))
	return nil
}

// checkSize rejects a batch in shared memory that exceeds batch.MaxSlab, because a
// failed allocation would end the process.
func (p *plan) checkSize(d *Devices) error {
	if d.Shared() && p.bytes > batch.MaxSlab {
		return status.Errorf(status.ResourceExhausted, "gomlxfeed", "one batch takes %d bytes on the %d devices of the mesh, but may take %d of shared memory", p.bytes, len(p.assignment), int64(batch.MaxSlab)).
			WithHint("use a smaller batch, or partition the replicated arrays").With("bytes", p.bytes)
	}
	return nil
}

// fits reports whether blocks equal the plan's blocks. Array numbers are not compared: each
// position holds one block per array, so the holders show where an array ends.
func (p *plan) fits(blocks []batch.Block) bool {
	return slices.EqualFunc(p.blocks, blocks, func(a, b batch.Block) bool {
		return a.Type == b.Type && a.Bytes == b.Bytes && slices.Equal(a.Shape, b.Shape) && slices.Equal(a.Holders, b.Holders)
	})
}

// same reports whether both plans have the same arrays on the same devices.
func (p *plan) same(o *plan) bool {
	return p.lay == o.lay || (p.mesh == o.mesh && slices.Equal(p.assignment, o.assignment) && p.fits(o.blocks) &&
		slices.EqualFunc(p.arrays, o.arrays, func(a, b array) bool {
			return a.name == b.name && slices.EqualFunc(a.spec.Axes, b.spec.Axes, slices.Equal)
		}))
}

// replicated returns how many bytes of a batch are copied from one device to others
// that hold the same block.
func (p *plan) replicated() int64 {
	n := p.bytes
	for _, b := range p.blocks {
		n -= int64(b.Bytes)
	}
	return n
}

// find returns the number of the array with a name.
func (p *plan) find(name string) (int, bool) {
	i := slices.IndexFunc(p.arrays, func(a array) bool { return a.name == name })
	return i, i >= 0
}

// all returns the numbers of all arrays.
func (p *plan) all() []int {
	list := make([]int, len(p.arrays))
	for i := range list {
		list[i] = i
	}
	return list
}

// names lists the arrays.
func (p *plan) names() []string {
	list := make([]string, len(p.arrays))
	for i, a := range p.arrays {
		list[i] = a.name
	}
	return list
}
