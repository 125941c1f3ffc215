package strategy

import (
	"cmp"
	"errors"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/plan/transformer"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
)

// planner has the content of a document with all defaults, and the numbers that follow
// from it.
type planner struct {
	doc              *Document
	model            *model
	cluster          *hardware.Cluster
	precision        memory.Precision
	optimizer        memory.Optimizer
	batch            int64              // examples of the global batch
	peak             float64            // operations per second of a device; 0 if they are not known
	format           hardware.Precision // the number format of peak
	kinds            []pipeline.Kind    // schedules to try
	chunks           int                // per stage, of an interleaved schedule; 0 to try several
	sequenceParallel bool               // sequence parallelism
	attention        transformer.Attention
	overlap          [numAxes]bool // communication runs during computation
	chosen           [numAxes]bool // the document says whether it does
	efficiency       interval      // shares of the peak that matrix products reach
	linkEfficiency   interval      // shares of their bandwidth that links reach
	margin           int64         // thousandths of the memory that stay free
	keep             int           // candidates in the report
	fastest          int64         // nanoseconds of the fastest candidate that fits, set by rank; 0 if none is known
	capacity         int64         // bytes of a device that a candidate may take; 0 if it is not known
}

func newPlanner(d *Document) (*planner, error) {
	p := &planner{doc: d}
	for _, step := range []func() error{p.addCluster, p.addTraining, p.addModel, p.checkModel, p.addBatch, p.checkSearch} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	p.addNumbers()
	return p, nil
}

// within converts an error of another package into one of a document. If the error
// has no path, path is used.
func within(err error, path string) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok {
		return err
	}
	if own, _ := e.Attr("path").(string); own != "" {
		path = own
	}
	return form.Strategy.Invalid(path, "%s", strings.TrimPrefix(e.Msg, path+": ")).WithHint("%s", e.Hint)
}

func (p *planner) addCluster() error {
	d := &p.doc.Cluster
	c := &hardware.Cluster{FLOPs: map[hardware.Precision]int64{}, Devices: d.Devices, PerNode: cmp.Or(d.PerNode, d.Devices)}
	if d.Device != "" {
		kind, err := hardware.Find(d.Device)
		if err != nil {
			return within(err, "/cluster/device")
		}
		if c, err = kind.Cluster(d.Devices, d.PerNode); err != nil {
			return within(err, "/cluster")
		}
	}
	for _, n := range []struct {
		to  *int64
		own int64
	}{{&c.Memory, d.MemoryBytes}, {&c.HBM, d.HBMBytesPerSecond}, {&c.Node.BytesPerSecond, d.NodeBytesPerSecond}, {&c.Network.BytesPerSecond, d.NetworkBytesPerSecond}} {
		*n.to = cmp.Or(n.own, *n.to)
	}
	if d.Topology != "" {
		c.Topology, c.Torus, c.Wrap = hardware.Topology(d.Topology), nil, cmp.Or(c.Wrap, 4)
	}
	if err := c.Complete(); err != nil {
		return within(err, "/cluster")
	}
	if d.NodeLatencyNs != nil {
		c.Node.LatencyNs = *d.NodeLatencyNs
	}
	if d.NetworkLatencyNs != nil {
		c.Network.LatencyNs = *d.NetworkLatencyNs
	}
	p.cluster = c
	return nil
}

func (p *planner) addTraining() (err error) {
	t := &p.doc.Training
	if p.precision, err = t.Precision.resolve(); err != nil {
		return err
	}
	if p.optimizer, err = memory.ParseOptimizer(cmp.Or(t.Optimizer, memory.AdamW.String())); err != nil {
		return within(err, "/training/optimizer")
	}
	if err := p.addSchedules(); err != nil {
		return err
	}
	p.sequenceParallel = t.SequenceParallel == nil || *t.SequenceParallel
	p.attention = transformer.Attention(cmp.Or(t.Attention, Flash))
	p.overlap = defaultOverlap
	for _, o := range t.Overlap {
		p.overlap[axisOf(o.Axis)], p.chosen[axisOf(o.Axis)] = o.Overlap, true
	}
	p.linkEfficiency = newInterval(t.LinkEfficiency, defaultLinkEfficiency)
	return nil
}

// interval has the least and the most that a share may be.
type interval [2]float64

// newInterval converts thousandths. It uses others if all are zero.
func newInterval(thousandths, others [2]int) interval {
	if thousandths == [2]int{} {
		thousandths = others
	}
	return interval{float64(thousandths[0]) / 1000, float64(thousandths[1]) / 1000}
}

func (i interval) String() string {
	return percent(int64(i[0]*1000+0.5)) + " to " + percent(int64(i[1]*1000+0.5))
}

// middle returns the expected share.
func (i interval) middle() float64 { return (i[0] + i[1]) / 2 }

// resolve parses the element types of a training. Gradients have the type of the
// weights, and weights of 32 bits have no master copy, unless the document says so.
func (p Precision) resolve() (memory.Precision, error) {
	r := memory.MixedPrecision()
	for _, f := range []struct {
		key, name string
		to        *memory.Element
	}{{"compute", p.Compute, &r.Compute}, {"weights", p.Weights, &r.Weights}, {"master", p.Master, &r.Master}, {"gradients", p.Gradients, &r.Gradients}, {"moments", p.Moments, &r.Moments}} {
		if f.name == "" || f.to == &r.Master && f.name == NoMaster {
			continue
		}
		e, err := memory.ParseElement(f.name)
		if err != nil {
			return r, within(err, "/training/precision/"+f.key)
		}
		switch {
		case f.key == "compute" && !multiplies(e):
			return r, form.Strategy.Invalid("/training/precision/compute", "the planner knows no device that multiplies matrices of %s", e).WithHint(`use a type such as "bfloat16", "float32" or "float8_e4m3fn"`)
		case f.key == "compute":
		case strings.HasPrefix(e.String(), "complex"):
			return r, form.Strategy.Invalid("/training/precision/"+f.key, "%s is a type of no operation that the planner counts", e).WithHint(`use a type such as "bfloat16" or "float32"`)
		case f.key == "moments" && !e.StoresMoments():
			return r, form.Strategy.Invalid("/training/precision/moments", "%s cannot store moments", e).WithHint(`use a type such as "bfloat16", or "int8" if they are quantized`)
		case f.key != "moments" && !e.IsFloat():
			return r, form.Strategy.Invalid("/training/precision/"+f.key, "%s has no gradients", e).WithHint(`use a type such as "bfloat16" or "float32"`)
		}
		*f.to = e
	}
	if p.Gradients == "" {
		r.Gradients = r.Weights
	}
	if p.Master == NoMaster || p.Master == "" && r.Weights.Bits() >= 32 {
		r.Master = memory.Invalid
	}
	return r, nil
}

// multiplies reports whether devices multiply matrices of a type.
func multiplies(e memory.Element) bool {
	return e == memory.Int8 || e.IsFloat() && e.Bits() >= 8 && !strings.HasPrefix(e.String(), "complex")
}

// checkModel refuses settings that change nothing for this form of the model.
func (p *planner) checkModel() error {
	t := &p.doc.Training
	switch {
	case p.model.name == "tree" && t.Precision.Weights != "":
		return form.Strategy.Invalid("/training/precision/weights", "every array of a tree has a type of its own").WithHint("leave it out, and give the arrays another dtype")
	case p.model.shape == nil && (t.Recomputation == Selective || t.Recomputation == Full):
		return form.Strategy.Invalid("/training/recomputation", "only a transformer has layers to compute again").WithHint("leave it out, and give the activation_bytes_per_example that remain")
	}
	return nil
}

func (p *planner) addBatch() error {
	t := &p.doc.Training
	p.batch = t.Batch
	if t.TotalTokens > 0 && p.model.shape == nil {
		return form.Strategy.Invalid("/training/total_tokens", "only a transformer has tokens").WithHint("leave it out")
	}
	if t.Tokens == 0 {
		return nil
	}
	s := p.model.sequence
	switch {
	case p.model.shape == nil:
		return form.Strategy.Invalid("/training/tokens", "only a transformer has tokens").WithHint(`give "batch", a number of examples`)
	case t.Tokens%s != 0:
		e := form.Strategy.Invalid("/training/tokens", "%d tokens are not a whole number of sequences of %d: %d %% %d = %d", t.Tokens, s, t.Tokens, s, t.Tokens%s)
		if t.Tokens < s {
			return e.WithHint("use %d", s)
		}
		return e.WithHint("use %d or %d", t.Tokens/s*s, (t.Tokens/s+1)*s)
	}
	p.batch = t.Tokens / s
	return nil
}

// addNumbers sets the fields that the computation of time and memory uses.
func (p *planner) addNumbers() {
	p.format = formatOf(p.precision.Compute)
	flops := p.cluster.FLOPs[p.format]
	if p.format == hardware.TF32 && flops == 0 {
		p.format = hardware.FP32
		flops = p.cluster.FLOPs[p.format]
	}
	p.peak = float64(cmp.Or(p.doc.Cluster.FLOPsPerSecond, flops))
	published := p.published()
	p.efficiency = newInterval(p.doc.Training.Efficiency, [2]int{published.Least, published.Most})
	p.margin = DefaultMargin
	if m := p.doc.Search.Margin; m != nil {
		p.margin = int64(*m)
	}
	p.keep = cmp.Or(p.doc.Search.Keep, DefaultKeep)
	p.capacity = p.cluster.Memory - share(p.cluster.Memory, p.margin, 1000)
}

// published returns the efficiency of published runs.
func (p *planner) published() hardware.Efficiency {
	if p.narrow() {
		return hardware.NarrowEfficiency(p.format)
	}
	return hardware.EfficiencyOf(p.cluster.Kind, p.format)
}

// narrow reports whether the model has experts with matrices too narrow for the usual share
// of the peak.
func (p *planner) narrow() bool {
	return p.model.shape != nil && p.model.shape.Experts != nil && p.model.shape.Experts.FFN < hardware.NarrowExpert
}

// formatOf returns the number format of matrix products of an element type. Products of
// float32 arrays run in TF32 if the device has it.
func formatOf(e memory.Element) hardware.Precision {
	switch name := e.String(); {
	case name == "float16":
		return hardware.FP16
	case strings.HasPrefix(name, "float8"):
		return hardware.FP8
	case name == "int8":
		return hardware.INT8
	case name == "float32":
		return hardware.TF32
	case name == "float64":
		return "fp64"
	}
	return hardware.BF16
}

// defaultLinkEfficiency has the least and the largest share of their bandwidth that links
// reach, in thousandths. The least is near the lowest published share for an array as
// large as training sends: 33 % for 58 MB in a node of H100. Between them are 80 % to
// 82 % of NVLink, the assumption of NCCL (topo.h), and 82 % for arrays of 10 GB. Links
// of TPUs reach 90 % [Austin et al., "How to Scale Your Model", 2025, parts 2 and 12].
var defaultLinkEfficiency = [2]int{350, 1000}

// wideNodes is the most nodes in a published run that hides the communication of fsdp:
// MaxText on 256 H100. On 48 to 192 nodes, runs with ZeRO stage 3 did not, and reached 10 %
// to 30 % of the links [Narayanan et al., arXiv 2104.04473, table 2]. So fsdp is expected
// to take wideSlowdown times as long there.
const (
	wideNodes    = 32
	wideSlowdown = 2
)

// defaultOverlap has the axes that communicate during computation, unless the document says
// otherwise. The axis fsdp does so up to wideNodes.
var defaultOverlap = [numAxes]bool{pipeAxis: true, dataAxis: true, fsdpAxis: true, contextAxis: true}
