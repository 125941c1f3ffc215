package virtual

import (
	"cmp"

	"github.com/gomlx/compute"
)

// executable is a compiled program. A sharded program runs once on whole arrays:
// the shards of each input are merged, the engine runs the unsharded program, and
// its outputs are split.
type executable struct {
	compute.Executable
	on       *Backend
	assigned []compute.DeviceNum // by mesh position; nil if the caller of Execute names the device
	sharded  bool
	in, out  []plan // nil unless sharded
}

// Execute runs the program. Inputs and outputs are device-major: parameter i of
// position j is inputs[j*parameters+i]. Once the program has started, donated
// inputs are freed, even if it fails.
func (x *executable) Execute(inputs []compute.Buffer, donate []bool, dev compute.DeviceNum) ([]compute.Buffer, error) {
	devices := x.assigned
	if devices == nil {
		devices = []compute.DeviceNum{dev}
	}
	raw, err := x.unwrap(inputs, donate, devices)
	if err != nil {
		return nil, err
	}
	if !x.sharded {
		out, err := x.Executable.Execute(raw, donate, 0)
		if err != nil {
			return nil, err
		}
		return x.wrap(out, devices[0]), nil
	}
	out, err := x.run(raw, devices)
	for i, d := range donate {
		if d {
			err = cmp.Or(err, raw[i].Finalize())
		}
	}
	if err != nil {
		return nil, cmp.Or(err, discard(out))
	}
	return out, nil
}

// unwrap checks the inputs and returns their engine buffers.
func (x *executable) unwrap(inputs []compute.Buffer, donate []bool, devices []compute.DeviceNum) ([]compute.Buffer, error) {
	names, wanted := x.Inputs()
	if len(inputs) != len(names)*len(devices) {
		return nil, fail("the program takes %d inputs on each of %d devices, but got %d", len(names), len(devices), len(inputs))
	}
	if len(donate) != 0 && len(donate) != len(inputs) {
		return nil, fail("%d inputs need as many donate flags, got %d", len(inputs), len(donate))
	}
	raw := make([]compute.Buffer, len(inputs))
	for i, in := range inputs {
		p, dev := i%len(names), devices[i/len(names)]
		b, err := x.engineBuffer(in, names[p], dev)
		if err != nil {
			return nil, err
		}
		raw[i] = b
		if !x.sharded {
			continue // the engine checks shapes itself
		}
		if shape, err := b.Shape(); err != nil || !sameShape(shape, x.in[p].shard) {
			return nil, fail("%s of shape %s needs a shard of %s on device %d, but got %s", x.in[p].what, wanted[p], x.in[p].shard, dev, shape)
		}
	}
	return raw, nil
}

func (x *executable) engineBuffer(in compute.Buffer, name string, dev compute.DeviceNum) (compute.Buffer, error) {
	b, ours := in.(*buffer)
	if !ours || b.on != x.on {
		return nil, fail("parameter %s is not a buffer of this backend", name)
	}
	if b.dev != dev {
		return nil, fail("parameter %s is on device %d, but the program needs it on device %d", name, b.dev, dev)
	}
	return b.Buffer, nil
}

// wrap assigns engine buffers to dev.
func (x *executable) wrap(list []compute.Buffer, dev compute.DeviceNum) []compute.Buffer {
	wrapped := make([]compute.Buffer, len(list))
	for i, b := range list {
		wrapped[i] = &buffer{b, x.on, dev}
	}
	return wrapped
}

// run merges the shards of each input, executes the program, and splits its
// outputs. If it fails, out holds the shards that were already made.
func (x *executable) run(shards []compute.Buffer, devices []compute.DeviceNum) (out []compute.Buffer, err error) {
	var temporary []compute.Buffer
	defer func() { err = cmp.Or(err, discard(temporary)) }()
	whole := make([]compute.Buffer, len(x.in))
	for i, p := range x.in {
		if p.replicated() {
			whole[i] = shards[i]
			continue
		}
		if whole[i], err = x.merged(p, shards[i:]); err != nil {
			return nil, err
		}
		temporary = append(temporary, whole[i])
	}
	results, err := x.Executable.Execute(whole, nil, 0)
	if err != nil {
		return nil, err
	}
	temporary = append(temporary, results...)
	out = make([]compute.Buffer, len(results)*len(devices))
	for i, p := range x.out {
		for j, dev := range devices {
			part, err := x.part(p, results[i], j)
			if err != nil {
				return out, err
			}
			out[j*len(results)+i] = &buffer{part, x.on, dev}
		}
	}
	return out, nil
}

// merged copies the shards of one input into a new engine buffer. The shard of mesh
// position j is shards[j*len(x.in)].
func (x *executable) merged(p plan, shards []compute.Buffer) (compute.Buffer, error) {
	whole, _, err := x.on.Backend.NewSharedBuffer(0, p.whole)
	if err != nil {
		return nil, err
	}
	if err := x.mergeInto(whole, p, shards); err != nil {
		return nil, cmp.Or(err, whole.Finalize())
	}
	return whole, nil
}

func (x *executable) mergeInto(whole compute.Buffer, p plan, shards []compute.Buffer) error {
	array, err := bytesOf(whole)
	if err != nil {
		return err
	}
	for j, replica := range p.replicas {
		if replica > 0 {
			continue // an earlier position has the same part
		}
		part, err := bytesOf(shards[j*len(x.in)])
		if err != nil {
			return err
		}
		p.merge(array, part, j)
	}
	return nil
}

// part copies the shard of one mesh position from an output to a new engine buffer.
func (x *executable) part(p plan, result compute.Buffer, position int) (compute.Buffer, error) {
	array, err := bytesOf(result)
	if err != nil {
		return nil, err
	}
	shard, _, err := x.on.Backend.NewSharedBuffer(0, p.shard)
	if err != nil {
		return nil, err
	}
	part, err := bytesOf(shard)
	if err != nil {
		return nil, cmp.Or(err, shard.Finalize())
	}
	p.split(part, array, position)
	return shard, nil
}

// discard frees the buffers that are not nil.
func discard(list []compute.Buffer) (err error) {
	for _, b := range list {
		if b != nil {
			err = cmp.Or(err, b.Finalize())
		}
	}
	return err
}
