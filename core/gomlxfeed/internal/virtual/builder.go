package virtual

import (
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/status"
)

// Builder returns a builder of a program for one device, or for the devices of a
// mesh.
func (b *Backend) Builder(name string) compute.Builder {
	return &builder{Builder: b.Backend.Builder(name), on: b, positions: 1}
}

// builder builds the unsharded program with the engine and records how its
// inputs and outputs are sharded.
//
// An error of Parameter, Return or the like makes GoMLX panic, and the next call of
// the same graph.Exec hangs. So these methods record their error, and Compile
// returns the first one.
type builder struct {
	compute.Builder
	on        *Backend
	main      *function
	meshes    map[string]*mesh.Mesh // by name; nil for a program of one device
	positions int                   // number of devices of the program
	assigned  []compute.DeviceNum   // by mesh position; nil for the default
	refused   error                 // the first recorded error
}

// refuse records an error for Compile.
func (v *builder) refuse(err error) {
	if v.refused == nil {
		v.refused = err
	}
}

func (v *builder) Main() compute.Function {
	if v.main == nil {
		v.main = &function{Function: v.Builder.Main(), of: v}
	}
	return v.main
}

func (v *builder) DistributedSPMD(int) error {
	v.refuse(errSPMD())
	return nil
}

func errSPMD() error {
	return status.New(status.Unsupported, "virtual", "a program of strategy SPMD needs collectives, which virtual devices do not have").
		WithHint("use AutoSharding, or the XLA CPU plugin")
}

func (v *builder) DistributedAutoSharding(meshes ...compute.Mesh) error {
	if err := v.addMeshes(meshes); err != nil {
		v.refuse(err)
	}
	return nil
}

func (v *builder) addMeshes(meshes []compute.Mesh) error {
	if len(meshes) == 0 {
		return fail("a sharded program needs a mesh")
	}
	v.meshes = map[string]*mesh.Mesh{}
	for i, g := range meshes {
		m, err := meshOf(g)
		if err != nil {
			return err
		}
		n := m.Size()
		if i > 0 && n != v.positions {
			return fail("mesh %q has %d devices, but mesh %q has %d: the meshes of a program need equally many", g.Name, n, meshes[0].Name, v.positions)
		}
		v.positions, v.meshes[g.Name] = n, m
	}
	if v.positions > v.on.n {
		return fail("a mesh of %d devices does not fit the backend's %d", v.positions, v.on.n)
	}
	return nil
}

func meshOf(g compute.Mesh) (*mesh.Mesh, error) {
	for i, d := range g.LogicalDeviceAssignment {
		if i != d {
			return nil, status.Errorf(status.Unsupported, "virtual", "mesh %q has a logical device assignment, which GoMLX's distributed tensors ignore", g.Name).
				WithHint("keep the mesh in order and permute the devices by the device assignment")
		}
	}
	if len(g.AxesNames) != len(g.AxesSizes) {
		return nil, fail("mesh %q has %d axis names for %d sizes", g.Name, len(g.AxesNames), len(g.AxesSizes))
	}
	axes := make([]mesh.Axis, len(g.AxesSizes))
	for i, size := range g.AxesSizes {
		axes[i] = mesh.Axis{Name: g.AxesNames[i], Size: size}
	}
	return mesh.Uniform(axes, 1)
}

func (v *builder) DeviceAssignment(devices ...compute.DeviceNum) error {
	v.assigned = slices.Clone(devices)
	return nil
}

// checkAssigned checks the device assignment, after the meshes are known. The
// default is position i on device i.
func (v *builder) checkAssigned() error {
	if v.assigned == nil && v.positions > 1 {
		for i := range v.positions {
			v.assigned = append(v.assigned, compute.DeviceNum(i))
		}
	}
	if v.assigned != nil && len(v.assigned) != v.positions {
		return fail("the device assignment names %d devices, but the program has %d", len(v.assigned), v.positions)
	}
	seen := map[compute.DeviceNum]bool{}
	for _, d := range v.assigned {
		if err := v.on.checkDevice(d); err != nil {
			return err
		}
		if seen[d] {
			return fail("the device assignment names device %d twice", d)
		}
		seen[d] = true
	}
	return nil
}

func (v *builder) Compile() (compute.Executable, error) {
	if v.refused != nil {
		return nil, v.refused
	}
	if err := v.checkAssigned(); err != nil {
		return nil, err
	}
	engine, err := v.Builder.Compile()
	if err != nil {
		return nil, err
	}
	x := &executable{Executable: engine, on: v.on, assigned: v.assigned}
	if v.meshes == nil {
		return x, nil
	}
	names, inputs := engine.Inputs()
	x.in, err = v.plans(inputs, v.main.in, func(i int) string { return "parameter " + names[i] })
	if err != nil {
		return nil, err
	}
	x.out, err = v.plans(engine.Outputs(), v.main.out, outputText)
	x.sharded = true
	return x, err
}

// plans returns the distribution of each array over the devices. An array without
// a spec is replicated. An error names the array by what.
func (v *builder) plans(arrays []shapes.Shape, specs []*compute.ShardingSpec, what func(int) string) ([]plan, error) {
	list := make([]plan, len(arrays))
	for i, shape := range arrays {
		var spec *compute.ShardingSpec
		if i < len(specs) {
			spec = specs[i]
		}
		var err error
		if list[i], err = v.plan(what(i), shape, spec); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// function is the main function. It records shardings and does not pass them to
// the engine.
type function struct {
	compute.Function
	of      *builder
	in, out []*compute.ShardingSpec
}

// Parameter declares a parameter. If the engine rejects its type, Parameter uses a
// float32 parameter instead, and Compile returns the error.
func (f *function) Parameter(name string, s shapes.Shape, spec *compute.ShardingSpec) (compute.Value, error) {
	f.in = append(f.in, spec)
	v, err := f.Function.Parameter(name, s, nil)
	if err == nil {
		return v, nil
	}
	f.of.refuse(status.Errorf(status.Unsupported, "virtual", "the pure-Go engine rejects parameter %s of shape %s", name, s).
		WithHint("its programs compute with %s", engineTypes(f.of.on)))
	s.DType = dtypes.Float32
	return f.Function.Parameter(name, s, nil)
}

// engineTypes lists the element types that the engine can compute with.
func engineTypes(b *Backend) string {
	var names []string
	for t, known := range b.Capabilities().DTypes {
		if known {
			names = append(names, t.String())
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (f *function) Return(outputs []compute.Value, specs []*compute.ShardingSpec) error {
	f.out = slices.Clone(specs)
	if err := f.Function.Return(outputs, nil); err != nil {
		f.of.refuse(err)
	}
	return nil
}

func (f *function) AllReduce([]compute.Value, compute.ReduceOpType, [][]int) ([]compute.Value, error) {
	return nil, errSPMD()
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "virtual", format, args...)
}
