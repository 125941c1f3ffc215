package strategy_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/strategy"
	"github.com/meshfeed/meshfeed/core/problem"
)

// size returns the size of an axis of a candidate.
func size(c *strategy.Candidate, axis string) int {
	if i := slices.IndexFunc(c.Mesh, func(a mesh.Axis) bool { return a.Name == axis }); i >= 0 {
		return c.Mesh[i].Size
	}
	return 1
}

// TestPlanOfLlama3 asks for Llama 3 405B on 8,192 devices without a hint. The published
// plan has 16 stages and 8-way tensor parallelism, and takes 12.0 s to 12.6 s [arXiv
// 2407.21783, table 4]. A plan of that kind comes first, and all without a pipeline follow.
func TestPlanOfLlama3(t *testing.T) {
	r := advise(t, &strategy.Document{
		Model: strategy.Model{Preset: "llama3-405b"}, Training: strategy.Training{Batch: 2048}, Cluster: strategy.Cluster{Device: "h100-80", Devices: 8192},
	})
	best, published, sharded := &r.Candidates[0], -1, -1
	for i := range r.Candidates {
		c := &r.Candidates[i]
		if published < 0 && size(c, "pipe") == 16 && size(c, "tensor") == 8 && size(c, "data") == 64 && c.Schedule == "interleaved" {
			published = i
		}
		if sharded < 0 && size(c, "pipe") == 1 {
			sharded = i
		}
	}
	if best.Time.Step > 12_700_000_000 || best.Chunks < 2 || best.Recomputation != strategy.Dots {
		t.Errorf("the best takes %.2f s: %+v", float64(best.Time.Step)/1e9, best)
	}
	if published < 0 || sharded >= 0 && sharded < published {
		t.Errorf("the published plan has rank %d, and the first without a pipeline %d", published, sharded)
	}
}

// TestWideFSDP compares the order of ZeRO stage 3 and of pipelines with tensor parallelism
// with published runs of GPT-3: on all numbers of devices, the pipeline is faster
// [Narayanan et al., arXiv 2104.04473, table 2].
func TestWideFSDP(t *testing.T) {
	for _, devices := range []int{384, 768, 1536} {
		x := megatron(1536, 0)
		x.Schedule = "1f1b"
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Preset: "megatron-175b"}, Training: x, Cluster: strategy.Cluster{Device: "a100-80", Devices: devices},
			Search: strategy.Search{ZeRO: []int{0}, Axes: []strategy.AxisSizes{
				{Axis: "tensor", Sizes: []int{1, 8}}, {Axis: "pipe", Sizes: []int{1, 12}}, {Axis: "data", Sizes: []int{1, devices / 96}}, {Axis: "fsdp", Sizes: []int{1, devices}},
			}},
		})
		sharded := slices.IndexFunc(r.Candidates, func(c strategy.Candidate) bool { return size(&c, "fsdp") == devices && c.Fits })
		if size(&r.Candidates[0], "pipe") != 12 || sharded < 1 {
			t.Errorf("%d devices: the first is %+v, ZeRO stage 3 has rank %d", devices, r.Candidates[0], sharded)
		}
		if !slices.ContainsFunc(r.Assumptions, func(a strategy.Assumption) bool {
			return a.Code == "overlap" && strings.Contains(a.Text, "over more than 32 nodes")
		}) {
			t.Errorf("%d devices: the assumptions do not say why: %+v", devices, r.Assumptions)
		}
	}
	// A document that says so has its way.
	d := &strategy.Document{
		Model: strategy.Model{Preset: "megatron-175b"}, Training: megatron(1536, 1), Cluster: strategy.Cluster{Device: "a100-80", Devices: 1536}, Search: fixed(map[string]int{"fsdp": 1536}),
	}
	waits := advise(t, d).Candidates[0].Time
	d.Training.Overlap = []strategy.AxisOverlap{{Axis: "fsdp", Overlap: true}}
	if hides := advise(t, d).Candidates[0].Time; waits.Hidden != 0 || hides.Hidden == 0 || hides.FSDP*2 > waits.FSDP+waits.FSDP/10 {
		t.Errorf("%+v, and with overlap %+v", waits, hides)
	}
}

// TestCausal compares times with and without a causal mask. Flash attention skips half of
// the scores, plain attention computes all. The utilization counts all.
func TestCausal(t *testing.T) {
	for _, attention := range []string{strategy.Flash, strategy.Plain} {
		times := map[bool]*strategy.Time{}
		for _, causal := range []bool{false, true} {
			m := small()
			m.Causal = &causal
			r := advise(t, &strategy.Document{
				Model: strategy.Model{Transformer: m}, Training: strategy.Training{Batch: 1, Recomputation: strategy.None, Attention: attention}, Cluster: devices(1, 1),
			})
			times[causal] = r.Candidates[0].Time
			if got, want := r.Candidates[0].Time.MFU, float64(r.Model.GigaFLOPsPerStep)*1e9/float64(r.Candidates[0].Time.Step)*1e9/1e14*1000; float64(got) < want-1 || float64(got) > want+1 {
				t.Errorf("the utilization is %d, want %.0f", got, want)
			}
		}
		// 4 layers, 2,048 tokens, 4·2048·1024 operations of scores, of which half are skipped
		saved := 0.0
		if attention == strategy.Flash {
			saved = 3 * 4 * 2048 * 4 * 2048 * 1024 / 2 * 7. / 6 / 0.575 / 1e14 * 1e9
		}
		if got := float64(times[false].Compute - times[true].Compute); got < saved*0.999 || got > saved*1.001 {
			t.Errorf("with %s attention, a causal mask saves %.0f ns, want %.0f", attention, got, saved)
		}
	}
}

// TestNarrowExperts checks that a report warns of narrow experts, and widens its times.
func TestNarrowExperts(t *testing.T) {
	d := &strategy.Document{
		Model: strategy.Model{Transformer: gptOSS(4096)}, Training: strategy.Training{Batch: 512}, Cluster: strategy.Cluster{Device: "tpu-v5p", Devices: 64},
	}
	warned := func() bool {
		return slices.ContainsFunc(advise(t, d).Problems, func(p problem.Problem) bool {
			return p.Code == strategy.NarrowExperts && strings.Contains(p.Message, "experts of width 2,880")
		})
	}
	if x := advise(t, d).Candidates[0].Time; !warned() || x.High < 4*x.Low {
		t.Errorf("without a warning, or with a short range: %+v", x)
	}
	d.Training.Efficiency = [2]int{300, 400}
	if warned() {
		t.Error("with an efficiency of the document, the report warns too")
	}
	d.Training.Efficiency, d.Model.Transformer.Experts.FFN = [2]int{}, 4096
	if warned() {
		t.Error("the report warns of wide experts")
	}
}

// TestNear checks that a candidate that misses by less than 10 % reads so.
func TestNear(t *testing.T) {
	for memory, want := range map[int64]bool{16_200_000_000: true, 15_900_000_000: true, 14_000_000_000: false} {
		r := advise(t, &strategy.Document{
			Model: strategy.Model{Parameters: 1e9}, Training: strategy.Training{Batch: 1}, Cluster: strategy.Cluster{Devices: 1, MemoryBytes: memory},
			Search: strategy.Search{Margin: new(50)},
		})
		if got := strings.HasPrefix(r.Candidates[0].Reasons[0], "near: needs 16 GB"); got != want || got != strings.Contains(r.Problems[0].Message, "one is near") {
			t.Errorf("%d bytes: %q, %q", memory, r.Candidates[0].Reasons, r.Problems[0].Message)
		}
	}
}

// TestWholeTraining computes days and device-hours of Llama 3 8B by hand.
func TestWholeTraining(t *testing.T) {
	d := &strategy.Document{
		Model: strategy.Model{Preset: "llama3-8b"}, Training: strategy.Training{Batch: 128, TotalTokens: 15_000_000_000_000}, Cluster: strategy.Cluster{Device: "h100-80", Devices: 8},
	}
	x := advise(t, d).Candidates[0].Time
	seconds := 15e12 / (128 * 8192) * float64(x.Step) / 1e9
	if days, hours := float64(x.Days)/1000, float64(x.DeviceHours)/1000; math.Abs(days-seconds/86400) > 0.002 || math.Abs(hours-seconds/3600*8) > 0.3 {
		t.Errorf("%.3f days and %.3f device-hours, want %.3f and %.3f", days, hours, seconds/86400, seconds/3600*8)
	}
	d.Training.TotalTokens = 0
	if x := advise(t, d).Candidates[0].Time; x.Days != -1 || x.DeviceHours != -1 {
		t.Errorf("without total_tokens, %d days and %d device-hours", x.Days, x.DeviceHours)
	}
}
