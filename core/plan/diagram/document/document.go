// Package document reads diagrams as JSON, in the form that Go, C, Python and the
// command share:
//
//	{"meshfeed":1,"diagram":{KIND:{…}}}
//
// These are the kinds with their members. Members with a question mark are optional:
//
//	data_parallel  rows, devices
//	mesh           axes: [["data",4],["model",2]]
//	matmul         mesh: {axes}, x and w: {shape, spec}, dtype?
//	tensor_pair    devices, rows, hidden, inner, dtype?, sequence_parallel?
//	pipeline       schedule, stages, micro_batches, chunks?, and durations in ticks:
//	               forward?, backward?, weight?, each a number or a list of all parts
//	collective     op, devices, algorithm?, bytes? of the array, device? for the time
//	memory         bars: [{label, weights?, gradients?, optimizer?, activations?,
//	               buffers?}], title?, capacity?; sizes in bytes
//	loading        the members of a layout document
//
// [Draw] parses and draws. [DrawOf] accepts only some kinds.
package document

import (
	"errors"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	layoutdocument "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/diagram"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// MaxBytes limits the text of a document.
const MaxBytes = form.MaxBytes

// Kind is a kind of diagram.
type Kind struct {
	name string
	read func(p parser) (diagram.Spec, error)
}

// The kinds of diagrams.
var (
	DataParallel = Kind{"data_parallel", parser.dataParallel}
	Mesh         = Kind{"mesh", parser.mesh}
	Matmul       = Kind{"matmul", parser.matmul}
	TensorPair   = Kind{"tensor_pair", parser.tensorPair}
	Pipeline     = Kind{"pipeline", parser.pipeline}
	Collective   = Kind{"collective", parser.collective}
	Memory       = Kind{"memory", parser.memory}
	Loading      = Kind{"loading", parser.loading}
)

// Draw parses a document and draws its diagram. Text that is not JSON in UTF-8, keys that
// repeat, are unknown or differ in case, and integers in other spellings, such as 1e3, are
// errors. An error is InvalidArgument, with a JSON Pointer in its attribute "path".
func Draw(text []byte) (*diagram.Diagram, error) {
	return DrawOf(text, DataParallel, Mesh, Matmul, TensorPair, Pipeline, Collective, Memory, Loading)
}

// DrawOf is Draw for a document of one of the given kinds. A program that calls DrawOf
// but not Draw contains only the code of those kinds.
func DrawOf(text []byte, kinds ...Kind) (*diagram.Diagram, error) {
	kind, spec, err := parse(text, kinds)
	if err != nil {
		return nil, err
	}
	d, err := spec.Draw()
	if err != nil {
		return nil, below("/diagram/"+kind, err)
	}
	return d, nil
}

// below returns a copy of err with pointer before its path.
func below(pointer string, err error) error {
	var e *status.Error
	if !errors.As(err, &e) {
		return err
	}
	path, _ := e.Attr("path").(string)
	found := form.Diagram.Invalid(pointer+path, "%s", strings.TrimPrefix(e.Msg, path+": "))
	found.Hint = e.Hint
	return found
}

// parse reads a document. It returns the name of the kind and the diagram. If sizes do
// not fit each other, method Draw of the diagram returns the error.
func parse(text []byte, kinds []Kind) (kind string, spec diagram.Spec, err error) {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	err = form.Diagram.Read(text, func(r *jsontext.Reader, _ string) error {
		p := parser{r}
		return p.Members("a diagram", 0, names, func(key string) error {
			if spec != nil {
				return p.Fail("the diagram is already %s", wording.Quote(kind)).WithHint("use a document for each diagram")
			}
			kind = key
			for _, k := range kinds {
				if k.name == key {
					spec, err = k.read(p)
				}
			}
			return err
		})
	})
	if err == nil && spec == nil {
		err = form.Diagram.Invalid("/diagram", "the diagram is empty").WithHint("name its kind: %s", strings.Join(names, ", "))
	}
	return kind, spec, err
}

// parser reads the values of a document.
type parser struct{ *jsontext.Reader }

// count reads an integer of at least 1. want names it in an error.
func (p parser) count(to *int, want string) (err error) {
	*to, err = p.Int(want, 1, layout.MaxInteger)
	return err
}

func (p parser) dataParallel() (diagram.Spec, error) {
	var d diagram.DataParallel
	err := p.Members("a data parallel diagram", 2, []string{"rows", "devices"}, func(key string) error {
		if key == "rows" {
			return p.count(&d.Rows, "a number of rows")
		}
		return p.count(&d.Devices, "a number of devices")
	})
	return d, err
}

func (p parser) mesh() (diagram.Spec, error) {
	var d diagram.Mesh
	err := p.axes(&d.Axes)
	return d, err
}

// axes reads a mesh: {"axes":[["data",4]]}.
func (p parser) axes(to *[]mesh.Axis) error {
	return p.Members("a mesh", 1, []string{"axes"}, func(string) error {
		return p.List("a list of axes", mesh.MaxAxes, func(int) error {
			var a mesh.Axis
			err := p.Tuple("an axis as [name, size]", 2, func(i int) (err error) {
				if i == 0 {
					a.Name, err = p.Word("the name of an axis")
					return err
				}
				return p.count(&a.Size, "a size")
			})
			*to = append(*to, a)
			return err
		})
	})
}

func (p parser) matmul() (diagram.Spec, error) {
	d := diagram.Matmul{Type: dtype.BFloat16}
	err := p.Members("a matmul", 3, []string{"mesh", "x", "w", "dtype"}, func(key string) error {
		switch key {
		case "mesh":
			return p.axes(&d.Axes)
		case "x":
			return p.matrix(&d.X)
		case "w":
			return p.matrix(&d.W)
		}
		return p.dtype(&d.Type)
	})
	return d, err
}

func (p parser) matrix(to *diagram.Matrix) error {
	return p.Members("a matrix", 2, []string{"shape", "spec"}, func(key string) error {
		if key == "spec" {
			return p.spec(&to.Spec)
		}
		return p.Tuple("a shape of 2 dimensions", 2, func(int) error {
			var n int
			err := p.count(&n, "a size")
			to.Shape = append(to.Shape, n)
			return err
		})
	})
}

// spec reads a partition spec. Its entries are null, an axis, or a list of axes.
func (p parser) spec(to *sharding.PartitionSpec) error {
	*to = sharding.PartitionSpec{}
	return p.List("a spec as a list", 2, func(int) error {
		var entry []string
		var err error
		axis := func() error {
			name, err := p.Word("the name of an axis")
			entry = append(entry, name)
			return err
		}
		switch {
		case p.Null():
		case p.Kind() == jsontext.String:
			err = axis()
		default:
			err = p.List("an axis, a list of axes or null", mesh.MaxAxes, func(int) error { return axis() })
		}
		*to = append(*to, entry)
		return err
	})
}

func (p parser) dtype(to *dtype.Type) error {
	name, err := p.Word("an element type")
	if err != nil {
		return err
	}
	if *to, err = dtype.Parse(name); err != nil {
		return p.Fail("%s is not an element type", wording.Quote(name)).WithHint("use a name such as \"float32\", as NumPy spells it")
	}
	return nil
}

func (p parser) tensorPair() (diagram.Spec, error) {
	d := diagram.TensorPair{Type: dtype.BFloat16}
	err := p.Members("a tensor parallel pair", 4, []string{"devices", "rows", "hidden", "inner", "dtype", "sequence_parallel"}, func(key string) (err error) {
		switch key {
		case "devices":
			return p.count(&d.Devices, "a number of devices")
		case "rows":
			return p.count(&d.Rows, "a number of rows")
		case "hidden":
			return p.count(&d.Hidden, "a size")
		case "inner":
			return p.count(&d.Inner, "a size")
		case "dtype":
			return p.dtype(&d.Type)
		}
		d.SequenceParallel, err = p.Bool("whether the sequence is split")
		return err
	})
	return d, err
}

func (p parser) pipeline() (diagram.Spec, error) {
	d := diagram.Pipeline{Chunks: 1}
	ticks := map[string][]int64{}
	err := p.Members("a pipeline", 3, []string{"schedule", "stages", "micro_batches", "chunks", "forward", "backward", "weight"}, func(key string) error {
		switch key {
		case "schedule":
			name, err := p.Word("the name of a schedule")
			if err != nil {
				return err
			}
			d.Kind, err = pipeline.Find(name)
			if err != nil {
				return below(p.Pointer(), err)
			}
			return nil
		case "stages":
			return p.count(&d.Stages, "a number of stages")
		case "micro_batches":
			return p.count(&d.MicroBatches, "a number of micro-batches")
		case "chunks":
			return p.count(&d.Chunks, "a number of chunks")
		}
		return p.ticks(key, ticks)
	})
	if err == nil && len(ticks) > 0 {
		d.Durations, err = durations(d, ticks)
	}
	return d, err
}

// ticks reads the duration of tasks: a number, or a list with a number for each part.
func (p parser) ticks(key string, to map[string][]int64) error {
	read := func() error {
		n, err := p.Integer("a number of ticks", 0, pipeline.MaxDuration)
		to[key] = append(to[key], n)
		return err
	}
	if p.Kind() != jsontext.List {
		return read()
	}
	err := p.List("a list of ticks", pipeline.MaxForwards, func(int) error { return read() })
	if err == nil && len(to[key]) == 0 {
		return p.Fail("the list has no durations").WithHint("use one number for equal parts, or a list of stages × chunks")
	}
	return err
}

// durations returns the durations of all parts. Tasks without a duration take no time.
// Function pipeline.Build refuses this for forward and backward tasks.
func durations(d diagram.Pipeline, ticks map[string][]int64) (pipeline.Durations, error) {
	const path = "/diagram/pipeline"
	if err := pipeline.Check(d.Kind, d.Stages, d.MicroBatches, d.Chunks); err != nil {
		return pipeline.Durations{}, below(path, err)
	}
	parts := d.Stages * d.Chunks
	lists := map[string][]int64{}
	for _, key := range []string{"forward", "backward", "weight"} {
		list := ticks[key]
		switch len(list) {
		case 0:
			lists[key] = make([]int64, parts)
		case 1:
			lists[key] = slices.Repeat(list, parts)
		case parts:
			lists[key] = list
		default:
			return pipeline.Durations{}, form.Diagram.Invalid(path+"/"+key, "the list has %d durations, but the pipeline has %d parts", len(list), parts).WithHint("use one number for equal parts, or a list of stages × chunks")
		}
	}
	return pipeline.Durations{Forward: lists["forward"], Backward: lists["backward"], Weight: lists["weight"]}, nil
}

func (p parser) collective() (diagram.Spec, error) {
	var d diagram.Collective
	err := p.Members("a collective", 2, []string{"op", "devices", "algorithm", "bytes", "device"}, func(key string) (err error) {
		switch key {
		case "op":
			name, err := p.Word("the name of an operation")
			d.Op = collective.Op(name)
			return err
		case "algorithm":
			name, err := p.Word("the name of an algorithm")
			d.Algorithm = collective.Algorithm(name)
			return err
		case "bytes":
			d.Bytes, err = p.bytes()
			return err
		case "device":
			d.Device, err = p.Word("the name of a kind of devices")
			return err
		}
		return p.count(&d.Devices, "a number of devices")
	})
	return d, err
}

func (p parser) memory() (diagram.Spec, error) {
	d := diagram.Memory{Title: "Memory of a device"}
	err := p.Members("a memory diagram", 1, []string{"bars", "title", "capacity"}, func(key string) (err error) {
		switch key {
		case "title":
			d.Title, err = p.Word("a title")
			d.Title = wording.Plain(d.Title)
		case "capacity":
			d.Capacity, err = p.bytes()
		case "bars":
			err = p.List("a list of bars", diagram.MaxBars, func(int) error { return p.bar(&d) })
		}
		return err
	})
	return d, err
}

func (p parser) bytes() (int64, error) {
	return p.Integer("a number of bytes", 0, 1<<50)
}

func (p parser) bar(d *diagram.Memory) error {
	var b diagram.MemoryBar
	err := p.Members("a bar", 1, []string{"label", "weights", "gradients", "optimizer", "activations", "buffers"}, func(key string) (err error) {
		m := &b.Memory
		switch key {
		case "label":
			b.Label, err = p.Word("a label")
		case "weights":
			m.Weights, err = p.bytes()
		case "gradients":
			m.Gradients, err = p.bytes()
		case "optimizer":
			m.Optimizer, err = p.bytes()
		case "activations":
			m.Activations, err = p.bytes()
		case "buffers":
			m.Buffers, err = p.bytes()
		}
		return err
	})
	d.Bars = append(d.Bars, b)
	return err
}

func (p parser) loading() (diagram.Spec, error) {
	pointer := p.Pointer()
	l, err := layoutdocument.Parse([]byte(p.Skip()))
	if err != nil {
		return nil, below(pointer, err)
	}
	return diagram.Loading{Layout: l}, nil
}
