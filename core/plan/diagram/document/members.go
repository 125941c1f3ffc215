package document

import (
	"fmt"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/collective"
	"github.com/meshfeed/meshfeed/core/plan/diagram"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// count is an integer of at least 1. The schema also says the most, which method Draw of a
// diagram checks.
func count(to *int, want string, most int64) form.Value {
	return form.Described(fmt.Sprintf(`"type":"integer","minimum":1,"maximum":%d`, most), form.Integer(to, want, 1, layout.MaxInteger))
}

func tasks(to *int, want string) form.Value { return count(to, want, 1<<20) }

func bytes(to *int64) form.Value {
	return form.Defined("bytes", "", form.Integer(to, "a number of bytes", 0, 1<<50))
}

func deviceMesh(to *diagram.Spec) form.Value {
	d := &diagram.Mesh{}
	return specOf(to, d, axes(&d.Axes))
}

// axes is a mesh: {"axes":[["data",4]]}.
func axes(to *[]mesh.Axis) form.Value {
	return form.Object("a mesh", form.Key("axes", layouts.Axes(to), "[name, size] of every axis, in row-major order.").Required())
}

func matmul(to *diagram.Spec) form.Value {
	d := &diagram.Matmul{Type: dtype.BFloat16}
	return specOf(to, d, form.Object("a matmul",
		form.Key("mesh", axes(&d.Axes), "The devices.").Required(),
		form.Key("x", matrix(&d.X), "The left matrix.").Required(),
		form.Key("w", matrix(&d.W), "The right matrix.").Required(),
		form.Key("dtype", layouts.DType(&d.Type), "").Default(`"bfloat16"`),
	))
}

func matrix(m *diagram.Matrix) form.Value {
	m.Shape = make([]int, 2)
	side := func(to *int) form.Value { return count(to, "a size", 1<<28) }
	axis := func(to *string) form.Value { return form.Word(to, "the name of an axis") }
	return form.Object("a matrix",
		form.Key("shape", form.Tuple("a shape of 2 dimensions", side(&m.Shape[0]), side(&m.Shape[1])), "Rows and columns.").Required(),
		form.Key("spec", layouts.SpecOf(&m.Spec, 2, axis), "For each dimension null, an axis, or a list of axes with the most significant one first.").Required(),
	)
}

func pipelineSchedule(to *diagram.Spec) form.Value {
	p := &diagram.Pipeline{Chunks: 1}
	d := &p.Durations
	return specOf(to, p, form.Checked(form.Object("a pipeline",
		form.Key("schedule", schedule(&p.Kind), "The order of the tasks.").Required(),
		form.Key("stages", tasks(&p.Stages, "a number of stages"), "Stages of the pipeline.").Required(),
		form.Key("micro_batches", tasks(&p.MicroBatches, "a number of micro-batches"), "Micro-batches of a step.").Required(),
		form.Key("chunks", tasks(&p.Chunks, "a number of chunks"), "Chunks of layers per stage, with schedule interleaved.").Default("1"),
		form.Key("forward", ticks(&d.Forward), "Ticks of a forward task."),
		form.Key("backward", ticks(&d.Backward), "Ticks of a backward task."),
		form.Key("weight", ticks(&d.Weight), "Ticks of a task for the gradients of the weights, with schedule zero-bubble."),
	), func(r *jsontext.Reader) error { return spread(r, p) }))
}

// schedule is the name of a schedule.
func schedule(to *pipeline.Kind) form.Value {
	return form.Checked(form.Choice(to, "the name of a schedule", pipeline.Kinds()...), func(r *jsontext.Reader) error {
		_, err := pipeline.Find(string(*to))
		return r.At(err)
	})
}

// ticks is the duration of tasks: a number, or a list with a number for each part.
func ticks(to *[]int64) form.Value {
	tick := func(to *int64) form.Value { return form.Integer(to, "a number of ticks", 0, pipeline.MaxDuration) }
	list := form.OneOrList(to, "a list of ticks", pipeline.MaxForwards, tick, tick)
	return form.Checked(form.Defined("ticks", "A number for all parts, or a list of stages × chunks numbers. Parts are equal if no ticks are given.", list), func(r *jsontext.Reader) error {
		if len(*to) == 0 {
			return r.Fail("the list has no durations").WithHint("use one number for equal parts, or a list of stages × chunks")
		}
		return nil
	})
}

// spread extends the durations to all parts. Tasks without a duration take no time.
// Function pipeline.Build refuses this for forward and backward tasks.
func spread(r *jsontext.Reader, p *diagram.Pipeline) error {
	d := &p.Durations
	if d.Forward == nil && d.Backward == nil && d.Weight == nil {
		return nil
	}
	if err := pipeline.Check(p.Kind, p.Stages, p.MicroBatches, p.Chunks); err != nil {
		return below(r.Pointer(), err)
	}
	parts := p.Stages * p.Chunks
	for _, task := range []struct {
		key  string
		list *[]int64
	}{{"forward", &d.Forward}, {"backward", &d.Backward}, {"weight", &d.Weight}} {
		switch n := len(*task.list); n {
		case 0:
			*task.list = make([]int64, parts)
		case 1:
			*task.list = slices.Repeat(*task.list, parts)
		case parts:
		default:
			return r.FailAt(r.Pointer()+"/"+task.key, "the list has %d durations, but the pipeline has %d parts", n, parts).
				WithHint("use one number for equal parts, or a list of stages × chunks")
		}
	}
	return nil
}

func collectiveSteps(to *diagram.Spec) form.Value {
	d := &diagram.Collective{}
	algorithms := []collective.Algorithm{collective.Ring, collective.Bidirectional, collective.Tree, collective.Direct}
	return specOf(to, d, form.Object("a collective",
		form.Key("op", form.Choice(&d.Op, "the name of an operation", collective.Ops()...), "The operation.").Required(),
		form.Key("devices", count(&d.Devices, "a number of devices", 8), "Devices of the group.").Required(),
		form.Key("algorithm", form.Choice(&d.Algorithm, "the name of an algorithm", algorithms...), "How the operation is done; the usual way if left out."),
		form.Key("bytes", bytes(&d.Bytes), "Bytes of the whole array, for what the links carry; 0 for parts without sizes.").Default("0"),
		form.Key("device", form.Word(&d.Device, "the name of a kind of devices"), "Name of the kind of devices, such as h100-80, for the time over its links. It needs bytes."),
	))
}

func memoryBars(to *diagram.Spec) form.Value {
	d := &diagram.Memory{Title: "Memory of a device"}
	title := form.Checked(form.Word(&d.Title, "a title"), func(*jsontext.Reader) error {
		d.Title = wording.Plain(d.Title)
		return nil
	})
	return specOf(to, d, form.Object("a memory diagram",
		form.Key("bars", form.With(`"minItems":1`, form.List(&d.Bars, "a list of bars", diagram.MaxBars, bar)), "A bar for each device or candidate.").Required(),
		form.Key("title", title, "The title of the diagram.").Default(`"Memory of a device"`),
		form.Key("capacity", bytes(&d.Capacity), "The memory of a device; no line if left out."),
	))
}

func bar(b *diagram.MemoryBar) form.Value {
	m := &b.Memory
	return form.Object("a bar",
		form.Key("label", form.Word(&b.Label, "a label"), "The name of the bar.").Required(),
		form.Key("weights", bytes(&m.Weights), "Bytes of the weights."),
		form.Key("gradients", bytes(&m.Gradients), "Bytes of the gradients."),
		form.Key("optimizer", bytes(&m.Optimizer), "Bytes of the states of the optimizer."),
		form.Key("activations", bytes(&m.Activations), "Bytes of the activations."),
		form.Key("buffers", bytes(&m.Buffers), "Bytes of buffers, such as gathered weights."),
	)
}

func loading(to *diagram.Spec) form.Value { return &layoutValue{to: to} }

// layoutValue is a layout document.
type layoutValue struct {
	form.Value
	to *diagram.Spec
}

func (v *layoutValue) Read(r *jsontext.Reader) error {
	pointer := r.Pointer()
	l, err := layouts.Parse([]byte(r.Skip()))
	if err != nil {
		return below(pointer, err)
	}
	*v.to = diagram.Loading{Layout: l}
	return nil
}

func (v *layoutValue) Describe(s *form.Schema) { s.Include(form.Layout, layouts.Schema()) }
