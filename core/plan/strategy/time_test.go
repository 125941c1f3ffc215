package strategy_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/problem"
)

// close reports whether two times differ by rounding only.
func isClose(got int64, want float64) bool { return math.Abs(float64(got)-want) <= 2+want*1e-9 }

// TestTimeOfOneDevice computes the time of one device by hand.
func TestTimeOfOneDevice(t *testing.T) {
	r := advise(t, &strategy.Document{
		Model:    strategy.Model{Parameters: 1_000_000, FLOPsPerExample: new(int64(1_000_000_000)), ActivationBytesPerExample: new(int64(1000))},
		Training: strategy.Training{Batch: 100, MicroBatch: 100}, Cluster: devices(1, 1),
	})
	c := r.Candidates[0]
	if want := 3 * 1e9 * 100 / (0.575 * 1e14) * 1e9; !isClose(c.Time.Compute, want) {
		t.Errorf("computation takes %d ns, want %g", c.Time.Compute, want)
	}
	// The update reads and writes 2 bytes of weights and 12 of states, and reads 2 of
	// gradients. Reading weights for a micro-batch is shorter than computing.
	if want := (2*(2+12) + 2) * 1e6 / 1e12 * 1e9; !isClose(c.Time.HBM, want) {
		t.Errorf("memory takes %d ns, want %g", c.Time.HBM, want)
	}
	if c.Time.Step != c.Time.Compute+c.Time.HBM || c.Time.MFU != (575*c.Time.Compute+c.Time.Step/2)/c.Time.Step {
		t.Errorf("a step takes %d ns with utilization %d", c.Time.Step, c.Time.MFU)
	}
	if want := int64(1e9) * 100 / c.Time.Step; c.Time.TokensPerSecond != -1 || c.Time.ExamplesPerSecond/1000 != want {
		t.Errorf("%d tokens and %d thousandths of examples per second, want -1 and %d examples", c.Time.TokensPerSecond, c.Time.ExamplesPerSecond, want)
	}
	if c.Memory.Total != 16_000_000+100*1000 {
		t.Errorf("memory is %d bytes", c.Memory.Total)
	}
}

// TestStagesOfZeRO checks that stages 1 and 2 of ZeRO take the same time with one
// micro-batch, because both then scatter the gradients once. With two, stage 2 sends
// more, and is not faster.
func TestStagesOfZeRO(t *testing.T) {
	times := func(batch int64) (found [2]strategy.Time) {
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Preset: "gpt2-xl"}, Training: strategy.Training{Batch: batch, MicroBatch: 8, Recomputation: "none"},
			Cluster: strategy.Cluster{Device: "h100-80", Devices: 8, PerNode: 1},
			Search:  strategy.Search{ZeRO: []int{1, 2}, Axes: []strategy.AxisSizes{{Axis: "data", Sizes: []int{8}}}},
		})
		for _, c := range r.Candidates {
			found[c.ZeRO-1] = *c.Time
		}
		return found
	}
	if one := times(64); one[0] != one[1] {
		t.Errorf("with one micro-batch, stage 1 takes\n%+v, and stage 2\n%+v", one[0], one[1])
	}
	if two := times(128); two[0].Data >= two[1].Data || two[0].Step > two[1].Step {
		t.Errorf("with two micro-batches, stage 1 takes\n%+v, and stage 2\n%+v", two[0], two[1])
	}
}

// TestTraffic computes the communication of single axes by hand: small has h 1024,
// s 2048, 4 layers, 4 key and value heads of 64, and activations of 2 bytes.
func TestTraffic(t *testing.T) {
	const stream = 2 * 2048 * 1024 * 2 // bytes of 2 examples
	const layer = 1024*1024*2 + 2*1024*256 + 3*1024*4096 + 2*1024
	const embedding = 32768 * 1024
	const all = 4*layer + 2*embedding + 1024
	const unsplit = (2*4 + 1) * 1024 * 2           // gradients of norms
	const inNode, between = 1e9 / 1e11, 1e9 / 1e10 // nanoseconds per byte
	for _, c := range []struct {
		name   string
		mesh   map[string]int
		nodes  int
		change func(*strategy.Training)
		axis   string
		want   float64
	}{
		{"tensor", map[string]int{"tensor": 2}, 1, nil, "tensor", (8*(4*4+2)*stream + unsplit) * 2 / 2. * inNode},
		{"tensor without sequence parallelism", map[string]int{"tensor": 4}, 1, func(x *strategy.Training) { x.SequenceParallel = new(false) }, "tensor", 8 * (4*4 + 2) * stream * 2 * 3 / 4. * inNode},
		{"tensor with full recomputation", map[string]int{"tensor": 2}, 1, func(x *strategy.Training) { x.Recomputation = "full" }, "tensor", (8*(6*4+2)*stream + unsplit) * inNode},
		{"tensor across nodes", map[string]int{"tensor": 2}, 2, nil, "tensor", (8*(4*4+2)*stream + unsplit) * between},
		{"key and value heads on several devices", map[string]int{"tensor": 8}, 1, nil, "tensor", (8*(4*4+2)*stream+unsplit)*2*7/8.*inNode + 4*2*1024*64*2*2/2.*inNode},
		{"fsdp", map[string]int{"fsdp": 4}, 1, nil, "fsdp", 2 * (3*2*all - 2*embedding) * 3 / 4. * inNode},
		{"fsdp and learned positions", map[string]int{"fsdp": 4}, 1, nil, "fsdp", 2 * (3*2*(all+2048*1024) - 2*(embedding+2048*1024)) * 3 / 4. * inNode},
		{"fsdp and a tied embedding", map[string]int{"fsdp": 4}, 1, nil, "fsdp", 2 * 3 * 2 * (all - embedding) * 3 / 4. * inNode},
		{"fsdp with products of 8 bits", map[string]int{"fsdp": 4}, 1, func(x *strategy.Training) { x.Precision.Compute = "float8_e4m3fn" }, "fsdp", 2 * (3*2*all - 2*embedding) * 3 / 4. * inNode},
		{"fsdp with products of 32 bits", map[string]int{"fsdp": 4}, 1, func(x *strategy.Training) { x.Precision.Compute = "float32" }, "fsdp", 2 * (3*2*all - 2*embedding) * 3 / 4. * inNode},
		{"fsdp with weights of 32 bits", map[string]int{"fsdp": 4}, 1, func(x *strategy.Training) { x.Precision.Weights = "float32" }, "fsdp", 2 * ((2*2+4)*all - 2*embedding) * 3 / 4. * inNode},
		{"data", map[string]int{"data": 4}, 1, nil, "data", 2 * 2 * all * 3 / 4. * inNode},
		{"data across nodes", map[string]int{"data": 4}, 4, nil, "data", 2 * 2 * all * 3 / 4. * between},
		{"context", map[string]int{"context": 4}, 1, nil, "context", 8 * 4 * 3 * 3 * 2 * (2 * 512 * 256 * 2) * inNode},
		{"context with full recomputation", map[string]int{"context": 4}, 1, func(x *strategy.Training) { x.Recomputation = "full" }, "context", 8 * 4 * 3 * 4 * 2 * (2 * 512 * 256 * 2) * inNode},
		{"pipe", map[string]int{"pipe": 2}, 1, nil, "pipe", 8 * 2 * stream * inNode},
		{"pipe and a tied embedding", map[string]int{"pipe": 2}, 1, nil, "pipe", (8*2*stream + 2*32768*1024) * inNode},
		{"pipe with two chunks", map[string]int{"pipe": 2}, 1, func(x *strategy.Training) { x.Schedule, x.Chunks = "interleaved", 2 }, "pipe", 2 * 8 * 2 * stream * inNode},
		{"pipe across nodes", map[string]int{"pipe": 2}, 2, nil, "pipe", 8 * 2 * stream * between},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 1
			for _, size := range c.mesh {
				n *= size
			}
			d := &strategy.Document{
				Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 16, MicroBatch: 2, Recomputation: "none", LinkEfficiency: sheet},
				Cluster: devices(n, n/c.nodes), Search: fixed(c.mesh),
			}
			d.Search.ZeRO = []int{0}
			if c.change != nil {
				c.change(&d.Training)
			}
			d.Model.Transformer.Tied = new(strings.HasSuffix(c.name, "tied embedding"))
			if strings.HasSuffix(c.name, "learned positions") {
				d.Model.Transformer.Positions = "learned"
			}
			r := advise(t, d)
			x := r.Candidates[0].Time
			got := parts(x)[c.axis]
			if !isClose(got, c.want) {
				t.Errorf("%s takes %d ns, want %.0f\n%+v", c.axis, got, c.want, r.Collectives)
			}
			sum := int64(0)
			for _, x := range r.Collectives {
				sum += x.Ns
			}
			if want := x.Tensor + x.FSDP + x.Data + x.Context + x.Expert + x.Pipe; math.Abs(float64(sum-want)) > float64(want)/1e4+1000 {
				t.Errorf("the collectives take %d ns, but the parts %d", sum, want)
			}
		})
	}
}

// TestUndividedGradients computes the time of an fsdp axis that divides no array: the
// gradients of whole arrays are summed once per step.
func TestUndividedGradients(t *testing.T) {
	const all = 4*(1024*1024*2+2*1024*256+3*1024*4096+2*1024) + 2*32768*1024 + 1024
	r := advise(t, &strategy.Document{
		Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 12, MicroBatch: 2, Recomputation: "none", LinkEfficiency: sheet},
		Cluster: devices(3, 3), Search: fixed(map[string]int{"fsdp": 3}),
	})
	x := r.Candidates[0].Time
	if want := 2 * 2 * all * 2 / 3. / 1e11 * 1e9; x.FSDP != 0 || !isClose(x.Data, want) {
		t.Errorf("fsdp takes %d ns and gradients %d ns, want 0 and %.0f", x.FSDP, x.Data, want)
	}
}

// TestExchange computes the exchange of tokens by hand: 4 experts, 2 active, in every
// second layer, with capacity 1.25. With sequence parallelism, each tensor device sends
// its part of the tokens.
func TestExchange(t *testing.T) {
	m := small()
	m.Experts = &strategy.Experts{Count: 4, Active: 2, Every: 2, Capacity: 1250}
	const stream = 2 * 2048 * 1024 * 2
	for _, c := range []struct {
		tensor   int
		sequence bool
		rows     float64
	}{{1, true, stream}, {2, true, stream / 2}, {2, false, stream}} {
		r := advise(t, &strategy.Document{
			Model:    strategy.Model{Transformer: m},
			Training: strategy.Training{Batch: 16, MicroBatch: 2, Recomputation: "none", SequenceParallel: &c.sequence, LinkEfficiency: sheet},
			Cluster:  devices(4*c.tensor, 4*c.tensor), Search: fixed(map[string]int{"expert": 4, "tensor": c.tensor}),
		})
		if got, want := r.Candidates[0].Time.Expert, 2*2*4*(c.rows*2*1.25)*3/4/1e11*1e9; !isClose(got, want) {
			t.Errorf("tensor %d, sequence parallelism %t: the exchange takes %d ns, want %.0f", c.tensor, c.sequence, got, want)
		}
	}
}

// TestRecomputation computes the operations by hand: selective recomputation adds the
// scores of each layer once more, and full recomputation the forward pass of each layer.
func TestRecomputation(t *testing.T) {
	const matrices = 2 * (2*1024*1024 + 2*1024*256 + 3*1024*4096) // operations of a layer, for one token
	const scores, head = 4 * 2048 * 1024, 2 * 1024 * 32768
	for kind, again := range map[string]float64{"none": 0, "selective": scores, "full": matrices + scores} {
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: small()}, Cluster: devices(1, 1),
			Training: strategy.Training{Batch: 16, MicroBatch: 1, Recomputation: kind, Attention: "plain"},
		})
		want := 16 * 2048 * (3*(4*(matrices+scores)+head) + 4*again) / (0.575 * 1e14) * 1e9
		if got := r.Candidates[0].Time.Compute; !isClose(got, want) {
			t.Errorf("%s: computation takes %d ns, want %.0f", kind, got, want)
		}
	}
}

// TestNoTime checks that a step without work takes the smallest time, because rates
// divide by it.
func TestNoTime(t *testing.T) {
	cluster := devices(1, 1)
	cluster.HBMBytesPerSecond = 0
	r := advise(t, &strategy.Document{Model: strategy.Model{Parameters: 1, FLOPsPerExample: new(int64(0))}, Training: strategy.Training{Batch: 1}, Cluster: cluster})
	if x := r.Candidates[0].Time; x.Step != 1 || x.ExamplesPerSecond != 1e12 {
		t.Errorf("a step takes %d ns, with %d thousandths of examples per second", x.Step, x.ExamplesPerSecond)
	}
}

// parts returns the parts of a time by their names.
func parts(t *strategy.Time) map[string]int64 {
	return map[string]int64{
		"compute": t.Compute, "hbm": t.HBM, "tensor": t.Tensor, "fsdp": t.FSDP, "data": t.Data, "context": t.Context, "expert": t.Expert,
		"pipe": t.Pipe, "bubble": t.Bubble,
	}
}

// TestBubble compares the idle time of equal stages with the closed forms: the time of
// the micro-batches times the bubble over them.
func TestBubble(t *testing.T) {
	for _, c := range []struct {
		schedule string
		pipe     int
		chunks   int
		batch    int64
		want     float64
	}{
		{"1f1b", 4, 0, 8, 3. / 8},                                      // Narayanan et al., arXiv 2104.04473, section 2.2.1
		{"gpipe", 4, 0, 8, 3. / 8},                                     // Huang et al., arXiv 1811.06965
		{"interleaved", 4, 2, 8, 3. / (2 * 8)},                         // Narayanan et al., section 2.2.2
		{"zero-bubble", 4, 0, 8, 3. / (3 * 8)},                         // Qi et al., arXiv 2401.10241, table 2
		{"zero-bubble", 4, 0, 2, 5. / (3 * 2)},                         // pipeline.BubbleShare
		{"1f1b", 16, 0, 192, 15. / 192}, {"1f1b", 16, 0, 24, 15. / 24}, // GPT-3 on 1,024 and on 8,192 devices
	} {
		testBubble(t, c.schedule, "none", c.pipe, c.chunks, c.batch, c.want)
	}
	// With full recomputation, a backward pass has a forward pass in it: F 1, B 2 and W 1.
	testBubble(t, "zero-bubble", "full", 4, 0, 8, 3*(1+2-1)/(4.*8))
	testBubble(t, "zero-bubble", "full", 4, 0, 2, (3*(1+2-1)+2)/(4.*2)) // 2 micro-batches too few
	testBubble(t, "1f1b", "full", 4, 0, 8, 3./8)
}

func testBubble(t *testing.T, schedule, recomputation string, pipe, chunks int, batch int64, want float64) {
	t.Helper()
	m := small()
	m.Layers, m.Vocab = 96, 1
	r := advise(t, &strategy.Document{
		Model: strategy.Model{Transformer: m}, Cluster: devices(pipe, pipe), Search: fixed(map[string]int{"pipe": pipe}),
		Training: strategy.Training{Batch: batch, MicroBatch: 1, Schedule: schedule, Chunks: chunks, Recomputation: recomputation, Overlap: []strategy.AxisOverlap{{Axis: "pipe", Overlap: true}}},
	})
	x := r.Candidates[0].Time
	if got := float64(x.Bubble) / float64(x.Compute); math.Abs(got-want) > want*1e-4 {
		t.Errorf("%s, %s, with %d stages and %d micro-batches: bubble over ideal time %.5f, want %.5f", schedule, recomputation, pipe, batch, got, want)
	}
}

// TestUnknownNumbers checks that a missing number leaves the time open, and is named.
func TestUnknownNumbers(t *testing.T) {
	d := &strategy.Document{Model: strategy.Model{Transformer: small()}, Training: strategy.Training{Batch: 16}, Cluster: devices(4, 2), Search: fixed(map[string]int{"data": 2, "tensor": 2})}
	for _, c := range []struct {
		path, message string
		number        *int64
	}{
		{"/cluster/flops_per_second", "the number of floating-point operations per second in bf16 is missing, so candidates that need it have no time", &d.Cluster.FLOPsPerSecond},
		{"/cluster/node_bytes_per_second", "the bandwidth inside a node is missing, so candidates that need it have no time", &d.Cluster.NodeBytesPerSecond},
		{"/cluster/network_bytes_per_second", "the bandwidth of the network is missing, so candidates that need it have no time", &d.Cluster.NetworkBytesPerSecond},
	} {
		known := *c.number
		*c.number = 0
		r := advise(t, d)
		*c.number = known
		if r.Candidates[0].Time != nil || r.Best != 0 || r.Layout == nil {
			t.Errorf("%s: the time is %v, the best candidate %d", c.path, r.Candidates[0].Time, r.Best)
		}
		if len(r.Problems) != 1 || r.Problems[0].Path != c.path || r.Problems[0].Message != c.message || r.Problems[0].Code != strategy.UnknownNumber {
			t.Errorf("%s: the problems are %+v", c.path, r.Problems)
		}
	}
	d.Cluster.MemoryBytes, d.Cluster.HBMBytesPerSecond = 0, 0
	r := advise(t, d)
	if c := r.Candidates[0]; c.Time == nil || !c.Fits || len(r.Problems) != 2 {
		t.Errorf("without memory and its bandwidth: %+v, problems %+v", c, r.Problems)
	}
}

// TestGradients computes the sum of gradients over several axes by hand. Arrays outside of
// experts are replicated over context, expert and data, and arrays of experts over context
// and data.
func TestGradients(t *testing.T) {
	m := small()
	m.Experts = &strategy.Experts{Count: 4, Active: 1}
	const shared = 2 * (4*(1024*1024*2+2*1024*256+2*1024+1024*4) + 2*32768*1024 + 1024) // bytes
	const experts = 2 * 4 * (4 / 2) * 3 * 1024 * 4096                                   // bytes on a device
	const inNode = 1e9 / 1e11                                                           // nanoseconds per byte
	half := func(bytes float64) float64 { return bytes / 2 * inNode }                   // an all-gather or a reduce-scatter over 2 devices
	for _, c := range []struct {
		zero   int
		micros float64
		want   float64
	}{
		{0, 1, 2*half(shared+experts) + 2*half(shared/2) + 2*half(shared/4+experts/2)},
		{1, 1, 2*half(shared+experts) + 2*half(shared/2) + 2*half(shared/4+experts/2)},
		{2, 4, 5 * (half(shared+experts) + half(shared/2) + half(shared/4+experts/2))}, // reduce-scatter for every micro-batch
	} {
		d := &strategy.Document{
			Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16, MicroBatch: int(4 / c.micros), Recomputation: "none", LinkEfficiency: sheet}, Cluster: devices(8, 8),
			Search: fixed(map[string]int{"data": 2, "expert": 2, "context": 2}),
		}
		d.Search.ZeRO = []int{c.zero}
		r := advise(t, d)
		if got := r.Candidates[0].Time.Data; !isClose(got, c.want) {
			t.Errorf("ZeRO %d: gradients take %d ns, want %.0f\n%+v", c.zero, got, c.want, r.Collectives)
		}
		states, gradients := int64(6*shared/8+6*experts/4), int64(shared+experts)
		if c.zero == 0 {
			states = 6 * (shared + experts)
		}
		if c.zero == 2 {
			gradients = shared/8 + experts/4
		}
		if m := r.Candidates[0].Memory; m.Optimizer != states || m.Gradients != gradients || m.Weights != shared+experts {
			t.Errorf("ZeRO %d: memory is %+v, want states of %d and gradients of %d bytes", c.zero, m, states, gradients)
		}
	}
}

// TestOutermostAxis checks that the gradients have an all-reduce over the outermost axis of
// replicas, which may be another one than data. Over every inner axis, they have a
// reduce-scatter and an all-gather.
func TestOutermostAxis(t *testing.T) {
	m := small()
	m.Experts = &strategy.Experts{Count: 4, Active: 1}
	for _, c := range []struct {
		mesh map[string]int
		want string
	}{
		{map[string]int{"context": 4}, "all-reduce context"},
		{map[string]int{"expert": 4}, "all-reduce expert"},
		{map[string]int{"context": 2, "expert": 2}, "reduce-scatter context, all-gather context, all-reduce expert"},
		{map[string]int{"context": 2, "data": 2}, "reduce-scatter context, all-gather context, all-reduce data"},
	} {
		d := &strategy.Document{
			Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16, MicroBatch: 1, Recomputation: "none"}, Cluster: devices(4, 4), Search: fixed(c.mesh),
		}
		d.Search.ZeRO = []int{0}
		var got []string
		for _, x := range advise(t, d).Collectives {
			if x.What == "gradients" {
				got = append(got, x.Op+" "+x.Axis)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%v: the gradients have %q, want %s", c.mesh, got, c.want)
		}
	}
}

// TestMemoryTraffic computes the traffic of a device's memory by hand: without operations,
// all of it counts. There are 4 million bytes of weights and gradients, and 24 of states.
func TestMemoryTraffic(t *testing.T) {
	for _, c := range []struct {
		axis string
		zero int
		want float64 // million bytes
	}{
		// Each of 2 micro-batches reads the weights twice, and reads and writes the
		// gradients. The update reads and writes weights and states, and reads gradients.
		{"data", 0, 2*(2*4+2*4) + 2*(24+4) + 4},
		{"data", 1, 2*(2*4+2*4) + 2*(6+1) + 1},
		{"data", 2, 2*(2*4+2*4) + 2*(6+1) + 1},
		{"fsdp", 0, 2*(2*4+2*1) + 2*(6+1) + 1},
	} {
		d := &strategy.Document{
			Model:    strategy.Model{Parameters: 2_000_000, FLOPsPerExample: new(int64(0)), ActivationBytesPerExample: new(int64(0))},
			Training: strategy.Training{Batch: 8, MicroBatch: 1}, Cluster: devices(4, 4), Search: fixed(map[string]int{c.axis: 4}),
		}
		d.Search.ZeRO = []int{c.zero}
		if got := advise(t, d).Candidates[0].Time.HBM; !isClose(got, c.want*1e6/1e12*1e9) {
			t.Errorf("%s, ZeRO %d: memory takes %d ns, want %.0f", c.axis, c.zero, got, c.want*1000)
		}
	}
}

// TestUpdateOfExperts checks that ZeRO divides the update of a mixture by all replicas: two
// devices hold other experts, and two hold the same ones. For every 4 parameters, a device
// reads and writes 2 bytes of weights and 12 of states, and reads 2 of gradients.
func TestUpdateOfExperts(t *testing.T) {
	m := small()
	m.Experts = &strategy.Experts{Count: 4, Active: 2}
	d := &strategy.Document{
		Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16, MicroBatch: 4, Recomputation: strategy.None},
		Cluster: devices(4, 4), Search: fixed(map[string]int{"data": 2, "expert": 2}),
	}
	d.Search.ZeRO = []int{1}
	r := advise(t, d)
	if got, want := r.Candidates[0].Time.HBM, float64(r.Model.Parameters)/4*(2*(12+2)+2)/1e12*1e9; !isClose(got, want) {
		t.Errorf("the update takes %d ns, want %.0f", got, want)
	}
}

// TestComputedForNothing computes the time of operations that do not change the result by
// hand. They take time, but do not count as utilization: experts with a capacity of 1.5
// compute half as much again, and 8 devices compute 4 key and value heads of 64 twice.
func TestComputedForNothing(t *testing.T) {
	const attention = 2*(2*1024*1024+2*1024*256) + 4*2048*1024/2*7/6 // flash attention skips masked scores, and computes the others 7 times instead of 6
	const masked = 4*2048*1024 - 4*2048*1024/2*7/6                   // counts as utilization
	const ffn, router, head = 2 * 3 * 1024 * 4096, 2 * 1024 * 4, 2 * 1024 * 32768
	for _, c := range []struct {
		experts      *strategy.Experts
		tensor       int
		needed, more float64 // operations of a layer
		codes        []string
	}{
		{nil, 4, attention + ffn, 0, nil},
		{nil, 8, attention + ffn, 2 * 2 * 1024 * 256, []string{"heads"}},
		{&strategy.Experts{Count: 4, Active: 2}, 1, attention + 2*ffn + router, 0, []string{"routing"}},
		{&strategy.Experts{Count: 4, Active: 2, Capacity: 1500}, 1, attention + 2*ffn + router, ffn, []string{"routing", "capacity"}},
	} {
		m := small()
		m.Experts = c.experts
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 16, Recomputation: strategy.None},
			Cluster: devices(c.tensor, c.tensor), Search: fixed(map[string]int{"tensor": c.tensor}),
		})
		x := r.Candidates[0].Time
		ns := 3 * 16 * 2048 / float64(c.tensor) / 1e14 * 1e9
		if want := ns * (4*(c.needed+c.more) + head) / 0.575; !isClose(x.Compute, want) {
			t.Errorf("%+v, tensor %d: computing takes %d ns, want %.0f", c.experts, c.tensor, x.Compute, want)
		}
		if want := 1000 * ns * (4*(c.needed+masked) + head) / float64(x.Step); math.Abs(float64(x.MFU)-want) > 1 {
			t.Errorf("%+v, tensor %d: utilization %d, want %.0f", c.experts, c.tensor, x.MFU, want)
		}
		var codes []string
		for _, a := range r.Assumptions {
			if slices.Contains([]string{"routing", "capacity", "heads"}, a.Code) {
				codes = append(codes, a.Code)
			}
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%+v, tensor %d: assumptions %q, want %q", c.experts, c.tensor, codes, c.codes)
		}
	}
}

// TestSlices checks the report of two slices of a TPU with an unpublished network
// bandwidth. With this number in the document, the candidate has a time.
func TestSlices(t *testing.T) {
	d := palmRuns()[0].doc
	known := d.Cluster.NetworkBytesPerSecond
	d.Cluster.NetworkBytesPerSecond = 0
	want := problem.Problem{
		Severity: problem.Warning, Code: strategy.UnknownNumber, Path: "/cluster/network_bytes_per_second",
		Message: "the bandwidth of the network is missing, so candidates that need it have no time",
		Hint:    "give network_bytes_per_second, the bytes that the network adapters of a host send, divided by its devices",
	}
	if r := advise(t, d); r.Candidates[0].Time != nil || len(r.Problems) == 0 || r.Problems[0].String() != want.String() {
		t.Errorf("time %v, problems %+v", r.Candidates[0].Time, r.Problems)
	}
	d.Cluster.NetworkBytesPerSecond = known
	if r := advise(t, d); r.Candidates[0].Time == nil || slices.ContainsFunc(r.Problems, func(p problem.Problem) bool { return p.Code == strategy.UnknownNumber }) {
		t.Errorf("time %v, problems %+v", r.Candidates[0].Time, r.Problems)
	}
}

// TestLatency computes the latencies of an axis of 4 devices by hand, with 1 µs in a node
// and 5 µs between nodes: a ring has 3 steps, and a message 1.
func TestLatency(t *testing.T) {
	const micros, layers = 8, 4
	for _, c := range []struct {
		axis    string
		perNode int
		steps   float64
	}{
		{"tensor", 4, micros*(4*layers+2)*(3+3) + 2*3}, // all-gathers and reduce-scatters of 4 sums per layer, the embedding and the head; once the norms
		{"tensor", 1, 5 * (micros*(4*layers+2)*(3+3) + 2*3)},
		{"fsdp", 4, micros * (2*(layers+1) + 1 + (layers + 2)) * 3}, // gathers of layers and head in both passes, of the embedding once; scatters of all
		{"context", 4, micros * layers * (3 + 3)},                   // keys and values, then with gradients
		{"pipe", 4, micros * 2},
		{"data", 1, 5 * 2 * 3},
	} {
		d := &strategy.Document{
			Model: strategy.Model{Transformer: small()}, Cluster: devices(4, c.perNode), Search: fixed(map[string]int{c.axis: 4}),
			Training: strategy.Training{Batch: 16, MicroBatch: 2, Recomputation: "none"},
		}
		d.Search.ZeRO = []int{0}
		if c.axis == "data" || c.axis == "fsdp" {
			d.Training.Batch *= 4
		}
		without := parts(advise(t, d).Candidates[0].Time)[c.axis]
		d.Cluster.NodeLatencyNs, d.Cluster.NetworkLatencyNs = new(int64(1000)), new(int64(5000))
		if got := parts(advise(t, d).Candidates[0].Time)[c.axis] - without; !isClose(got, 1000*c.steps) {
			t.Errorf("%s: latencies take %d ns, want %.0f", c.axis, got, 1000*c.steps)
		}
	}
}
