package strategy

import (
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/plan/hardware"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/problem"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// The codes of problems.
const (
	NoCandidate        = "no-candidate"        // error: every mesh breaks a rule
	NothingFits        = "nothing-fits"        // error: no candidate fits into the memory
	NotPlanned         = "not-planned"         // info: what takes less memory, but the planner does not have
	NarrowExperts      = "narrow-experts"      // warning: experts are narrow, so times are less certain
	Tight              = "tight"               // warning: the best candidate fits by the published formula, but not by the upper bound
	UnknownNumber      = "unknown-number"      // warning: a number is missing, so a time or the fit is not known
	ActivationsUnknown = "activations-unknown" // warning: the memory is without activations
	InputSlow          = "input-slow"          // warning: the input delivers fewer rows than the step needs
	HostMemory         = "host-memory"         // warning: the batches of a process exceed its host
	NoInputs           = "no-inputs"           // info: a layout needs the arrays of a batch
	NoLayout           = "no-layout"           // warning: the layout of the best candidate cannot be loaded
)

// severities orders problems: errors first.
var severities = map[problem.Severity]int{problem.Error: 0, problem.Warning: 1, problem.Info: 2}

func (r *Report) problem(severity problem.Severity, code problem.Code, path, message, hint string) {
	r.Problems = append(r.Problems, problem.Problem{Severity: severity, Code: code, Path: path, Message: message, Hint: hint})
}

// check adds problems: no candidate, no fit, or a missing number.
func (r *Report) check(p *planner) {
	switch {
	case len(r.Candidates) == 0:
		r.problem(problem.Error, NoCandidate, "/search", "every mesh of "+wording.Count(int64(r.Devices), "device", "devices")+" breaks a rule", r.widest())
	case r.Best < 0:
		c, near := &r.Candidates[0], ""
		if p.misses(&c.Memory) {
			near = ", but one is near"
		}
		r.problem(problem.Error, NothingFits, "/cluster/devices",
			fmt.Sprintf("no candidate fits%s: %s needs the least, %s, but a device has %s, of which %s stay free", near, MeshText(c.Mesh), gigabytes(c.Memory.Total), gigabytes(c.Memory.Capacity), gigabytes(c.Memory.Capacity-p.capacity)),
			r.remedy(p, c))
		r.problem(problem.Info, NotPlanned, "/training", "LoRA, frozen parameters, and states of the optimizer in the memory of the host are not planned; they take less memory of a device", "")
	case p.exceeds(&r.Candidates[r.Best].Memory):
		c := &r.Candidates[r.Best]
		message := fmt.Sprintf("the best candidate fits with fused kernels, but needs up to %s without them", gigabytes(c.Memory.Most()))
		if c.Recomputation == None {
			message += ", as JAX does without jax.checkpoint"
		}
		r.problem(problem.Warning, Tight, "/training/recomputation", message, safer(c))
	}
	if p.narrow() && p.doc.Training.Efficiency == [2]int{} && len(r.Candidates) > 0 && r.Candidates[0].Time != nil {
		r.problem(problem.Warning, NarrowExperts, "/model/transformer/experts",
			fmt.Sprintf("experts of width %s are narrow, and published runs with experts below %s reached %s of the peak, so times are less certain than for other models",
				wording.Thousands(int64(p.model.shape.Experts.FFN)), wording.Thousands(hardware.NarrowExpert), p.efficiency),
			"measure a step, and write what it reaches as training.efficiency")
	}
	if p.cluster.Memory == 0 {
		r.problem(problem.Warning, UnknownNumber, "/cluster/memory_bytes", "the memory of a device is missing, so every candidate counts as fitting", "give memory_bytes")
	}
	if p.cluster.HBM == 0 && p.peak > 0 {
		r.problem(problem.Warning, UnknownNumber, "/cluster/hbm_bytes_per_second", "the bandwidth of a device's memory is missing, so the times are without it", "give hbm_bytes_per_second")
	}
	if p.model.shape == nil && p.model.activationBytes < 0 {
		r.problem(problem.Warning, ActivationsUnknown, "/model/activation_bytes_per_example", "the activations of an example are not known, so the memory is without them",
			"give activation_bytes_per_example, or describe the model as a transformer")
	}
}

// safer says what fits for certain if the best candidate fits with fused kernels only.
// Then no other candidate fits without them.
func safer(best *Candidate) string {
	switch {
	case best.Recomputation == None || best.Recomputation == Selective:
		return fmt.Sprintf("apply jax.checkpoint to each layer with the policy dots_with_no_batch_dims_saveable, which is recomputation %q and needs about %s", Dots, gigabytes(best.Memory.least()))
	case best.MicroBatch > 1:
		return "use smaller micro-batches, or more devices"
	}
	return "use more devices"
}

// widest returns the rule that excludes the most meshes, as a hint.
func (r *Report) widest() string {
	most := Pruned{Message: fmt.Sprintf("let the sizes in search.axes multiply to %d devices", r.Devices)}
	for _, p := range r.Pruned {
		if p.Count > most.Count {
			most = p
		}
	}
	return most.Message
}

// unknownTimes reports every number that times need and that is missing.
func (r *Report) unknownTimes(missing map[string]string, order []string, p *planner) {
	for _, path := range order {
		hint := "give " + path[strings.LastIndex(path, "/")+1:]
		if path == "/cluster/flops_per_second" {
			hint = p.otherCompute() + hint
		}
		if path == "/cluster/network_bytes_per_second" {
			hint += ", the bytes that the network adapters of a host send, divided by its devices"
		}
		if path == "/model/tree" {
			hint = "describe the model as a transformer, or leave the axis out of the specs"
		} else if p.doc.Cluster.Device == "" && strings.HasPrefix(path, "/cluster/") {
			hint += ", or name a device that the planner knows"
		}
		r.problem(problem.Warning, UnknownNumber, path, missing[path]+", so candidates that need it have no time", hint)
	}
}

// otherCompute returns the beginning of a hint: a type of 16 bits that the device can
// compute in, if there is one.
func (p *planner) otherCompute() string {
	for _, t := range [...]memory.Element{memory.BFloat16, memory.Float16} {
		if p.cluster.FLOPs[formatOf(t)] > 0 {
			return fmt.Sprintf("compute in %s, with precision.compute, or ", t)
		}
	}
	return ""
}

func (r *Report) checkInput(n *InputNeeds) {
	if n.Available > 0 && n.RowsPerSecond > 0 && !n.KeepsUp {
		r.problem(problem.Warning, InputSlow, "/input/rows_per_second",
			fmt.Sprintf("the step needs %s rows per second, but the input delivers %d", thousandths(int(n.RowsPerSecond)), n.Available),
			"use more processes, faster storage, or smaller rows")
	}
	if n.HostCapacity > 0 && n.HostBytes > n.HostCapacity {
		r.problem(problem.Warning, HostMemory, "/cluster/host_bytes",
			fmt.Sprintf("a process needs %s for its batches, but a host has %s", gigabytes(n.HostBytes), gigabytes(n.HostCapacity)), "lower prefetch, or use more processes")
	}
}
