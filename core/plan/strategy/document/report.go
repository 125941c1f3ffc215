package document

import (
	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Report writes a report as JSON, for programs:
//
//	{"meshfeed":1,"model":{…},"devices":8,"meshes":…,"evaluated":…,"pruned":[…],"candidates":[…],"best":0,
//	 "stages":[…],"pipeline":{…},"collectives":[…],"layout":{…},"input":{…},"assumptions":[…],"problems":[…]}
//
// Memory is in bytes and time in nanoseconds, as integers. Rates and shares have at most
// three decimals. A number that is not known is null. The pipeline is a diagram, as package
// core/plan/diagram/document reads it. [ReportSchema] says what each field means.
func Report(r *strategy.Report) []byte {
	w := &jsontext.Writer{}
	w.Open('{')
	w.Key("meshfeed").Int(Version)
	object(w, "model", &r.Model, reportModel)
	w.Field("devices", int64(r.Devices)).Field("meshes", r.Meshes).Field("evaluated", r.Evaluated)
	list(w, "pruned", r.Pruned, reportPruned)
	list(w, "candidates", r.Candidates, reportCandidate)
	w.Key("best")
	if r.Best < 0 {
		w.Null()
	} else {
		w.Int(int64(r.Best))
	}
	list(w, "stages", r.Stages, reportStage)
	object(w, "pipeline", r.Pipeline, reportPipeline)
	list(w, "collectives", r.Collectives, reportCollective)
	object(w, "layout", r.Layout, func(w *jsontext.Writer, d *layout.Document) { w.Raw(string(layouts.Canonical(d))) })
	object(w, "input", r.Input, reportInput)
	list(w, "assumptions", r.Assumptions, func(w *jsontext.Writer, a *strategy.Assumption) {
		words(w, []word{{"code", a.Code}, {"text", a.Text}})
	})
	list(w, "problems", r.Problems, func(w *jsontext.Writer, p *problem.Problem) {
		words(w, []word{{"severity", string(p.Severity)}, {"code", string(p.Code)}, {"path", p.Path}, {"message", p.Message}, {"hint", p.Hint}})
	})
	w.Close('}')
	return w.Text
}

// list writes a list of objects as a member.
func list[T any](w *jsontext.Writer, key string, elements []T, write func(*jsontext.Writer, *T)) {
	w.Key(key).Open('[')
	for i := range elements {
		w.Open('{')
		write(w, &elements[i])
		w.Close('}')
	}
	w.Close(']')
}

// object writes an object as a member, or null for a nil pointer.
func object[T any](w *jsontext.Writer, key string, v *T, write func(*jsontext.Writer, *T)) {
	if w.Key(key); v == nil {
		w.Null()
	} else {
		write(w, v)
	}
}

func reportModel(w *jsontext.Writer, m *strategy.ModelSummary) {
	w.Open('{')
	w.Key("name").String(m.Name)
	w.Field("parameters", m.Parameters).Field("active_parameters", m.ActiveParameters).Field("gigaflops_per_step", m.GigaFLOPsPerStep)
	w.Close('}')
}

type word struct{ key, value string }

// words writes strings as members.
func words(w *jsontext.Writer, list []word) {
	for _, s := range list {
		w.Key(s.key).String(s.value)
	}
}

func reportPruned(w *jsontext.Writer, p *strategy.Pruned) {
	w.Key("code").String(p.Code)
	w.Key("count").Int(p.Count)
	w.Key("message").String(p.Message)
	if p.Meshes == nil {
		return
	}
	w.Key("meshes").Open('[')
	for _, m := range p.Meshes {
		layouts.Axes(&m).Write(w)
	}
	w.Close(']')
}

func reportCandidate(w *jsontext.Writer, c *strategy.Candidate) {
	w.Key("mesh")
	layouts.Axes(&c.Mesh).Write(w)
	w.Key("zero").Int(int64(c.ZeRO))
	w.Key("recomputation").String(c.Recomputation)
	w.Field("micro_batch", int64(c.MicroBatch)).Field("micro_batches", int64(c.MicroBatches))
	w.Key("schedule")
	nullable(w, c.Schedule)
	w.Key("chunks").Int(int64(c.Chunks))
	reportMemory(w, c.Memory)
	rates := strategy.Time{TokensPerSecond: -1, ExamplesPerSecond: -1, MFU: -1, Days: -1, DeviceHours: -1}
	object(w, "time", c.Time, reportTime)
	if c.Time != nil {
		rates = *c.Time
	}
	w.Field("tokens_per_second", rates.TokensPerSecond)
	w.FixedField("examples_per_second", rates.ExamplesPerSecond).FixedField("mfu", rates.MFU).FixedField("days", rates.Days).FixedField("device_hours", rates.DeviceHours)
	w.Key("fits").Bool(c.Fits)
	w.Key("reasons").Strings(c.Reasons...)
}

// nullable writes a string, or null for an empty one.
func nullable(w *jsontext.Writer, s string) {
	if s == "" {
		w.Null()
	} else {
		w.String(s)
	}
}

func reportMemory(w *jsontext.Writer, m strategy.Memory) {
	w.Key("memory").Open('{')
	w.Field("weights", m.Weights).Field("gradients", m.Gradients).Field("optimizer", m.Optimizer).
		Field("activations", m.Activations).Field("activations_low", m.ActivationsLow).Field("activations_high", m.ActivationsHigh).
		Field("buffers", m.Buffers).Field("total", m.Total)
	if m.Capacity == 0 {
		w.Key("capacity").Null()
		w.Key("free").Null()
	} else {
		w.Key("capacity").Int(m.Capacity)
		w.Key("free").Int(m.Free)
	}
	w.Close('}')
}

func reportTime(w *jsontext.Writer, t *strategy.Time) {
	w.Open('{')
	w.Field("step", t.Step).Field("low", t.Low).Field("high", t.High)
	for _, p := range parts(t) {
		w.Field(p.key, p.value)
	}
	w.Key("hidden").Int(t.Hidden)
	w.Key("bound").String(t.Bound)
	w.Key("next")
	nullable(w, t.Next)
	w.Key("behind").Int(t.Behind)
	w.Close('}')
}

type part struct {
	key   string
	value int64
}

// parts lists the parts of a step by their keys.
func parts(t *strategy.Time) []part {
	return []part{
		{"compute", t.Compute}, {"hbm", t.HBM}, {"tensor", t.Tensor}, {"fsdp", t.FSDP}, {"data", t.Data},
		{"context", t.Context}, {"expert", t.Expert}, {"pipe", t.Pipe}, {"bubble", t.Bubble},
	}
}

func reportStage(w *jsontext.Writer, s *strategy.Stage) {
	w.Field("number", int64(s.Number)).Field("first_layer", int64(s.FirstLayer)).Field("layers", int64(s.Layers))
	w.Key("embedding").Bool(s.Embedding)
	w.Key("head").Bool(s.Head)
	w.Field("parameters", s.Parameters).Field("live", int64(s.Live))
	reportMemory(w, s.Memory)
	w.Field("compute", s.Compute)
}

func reportPipeline(w *jsontext.Writer, p *strategy.Pipeline) {
	w.Open('{')
	w.Key("schedule").String(string(p.Kind))
	w.Field("stages", int64(p.Stages)).Field("micro_batches", int64(p.MicroBatches)).Field("chunks", int64(p.Chunks))
	ticks(w, "forward", p.Durations.Forward)
	ticks(w, "backward", p.Durations.Backward)
	ticks(w, "weight", p.Durations.Weight)
	w.Close('}')
}

// ticks writes durations as a member.
func ticks(w *jsontext.Writer, key string, list []int64) {
	w.Key(key).Open('[')
	for _, n := range list {
		w.Int(n)
	}
	w.Close(']')
}

func reportCollective(w *jsontext.Writer, c *strategy.Collective) {
	words(w, []word{{"op", c.Op}, {"axis", c.Axis}, {"what", c.What}, {"link", c.Link}})
	w.Field("count", c.Count).Field("bytes", c.Bytes).Field("sent", c.Sent).Field("ns", c.Ns)
	w.Key("overlapped").Bool(c.Overlapped)
}

func reportInput(w *jsontext.Writer, i *strategy.InputNeeds) {
	w.Open('{')
	w.Field("rows_per_step", i.RowsPerStep)
	w.FixedField("rows_per_second", i.RowsPerSecond)
	w.Field("bytes_per_step", i.BytesPerStep).Field("read_bytes", i.ReadBytes).
		Field("processes", int64(i.Processes)).Field("process_rows", i.ProcessRows).Field("process_bytes", i.ProcessBytes).Field("host_bytes", i.HostBytes).
		Field("host_capacity", known(i.HostCapacity)).Field("sharing", int64(i.Sharing)).Field("groups", int64(i.Groups)).
		Field("available", known(i.Available))
	if w.Key("keeps_up"); i.Available == 0 || i.RowsPerSecond < 0 {
		w.Null()
	} else {
		w.Bool(i.KeepsUp)
	}
	w.FixedField("margin", known(i.Margin))
	w.Close('}')
}

// known converts 0, which stands for an unknown number, to -1, which Field writes as
// null.
func known(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}
