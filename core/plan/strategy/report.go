package strategy

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/plan/pipeline"
	"github.com/meshfeed/meshfeed/core/problem"
)

// Report is the planner's result. Its JSON form has the same structure. Memory is in
// bytes, time in nanoseconds.
type Report struct {
	Model       ModelSummary
	Devices     int
	Evaluated   int64    // candidates: meshes with their settings
	Meshes      int64    // distinct meshes among them
	Pruned      []Pruned // meshes that the planner did not evaluate, by reason
	Candidates  []Candidate
	Best        int          // in Candidates; -1 if none fits
	Stages      []Stage      // stages of the best candidate's pipeline
	Pipeline    *Pipeline    // pipeline of the best candidate; nil without one
	Collectives []Collective // collectives of the best candidate
	Layout      *layout.Document
	Input       *InputNeeds
	Assumptions []Assumption
	Problems    []problem.Problem
}

// ModelSummary has the sizes of the model.
type ModelSummary struct {
	Name             string // name of the preset; else "transformer", "parameters" or "tree"
	Parameters       int64
	ActiveParameters int64 // that compute a token; Parameters without experts
	GigaFLOPsPerStep int64 // operations of the model, without recomputation; -1 if it is not known
}

// Candidate is one way of splitting the model.
type Candidate struct {
	Mesh          []mesh.Axis // axes of a size above 1; empty for one device
	ZeRO          int         // stage, 0 to 2, over the replicas of the weights; fsdp is stage 3
	Recomputation string      // None, Selective or Full
	MicroBatch    int         // examples of one replica
	MicroBatches  int         // per step
	Schedule      string      // schedule of the pipeline; "" without one
	Chunks        int         // chunks of layers per stage; 1 unless the schedule is interleaved
	Memory        Memory
	Time          *Time // nil if a number of the hardware is not known
	Fits          bool
	Reasons       []string
}

// Memory is the memory of a device, in bytes. Total is the sum of Weights,
// Gradients, Optimizer, Activations and Buffers.
type Memory struct {
	Weights, Gradients, Optimizer int64
	Activations                   int64 // by the published formula
	ActivationsLow                int64 // if the compiler fuses and frees all that it can, also of Buffers
	ActivationsHigh               int64 // if it keeps what the formula leaves out
	Buffers                       int64 // gathered weights, and the arrays of one layer's recomputation
	Total, Capacity               int64 // Capacity is 0 if it is not known
	Free                          int64 // Capacity less the margin less Total; negative if the candidate does not fit
}

// Time is the time of one step in nanoseconds. The parts, Compute to Bubble, are times
// without overlap. Step is their sum minus Hidden.
type Time struct {
	Step      int64 // expected
	Low, High int64 // best efficiencies and full overlap; least efficiencies and no overlap
	Compute   int64
	HBM       int64 // the update of the weights, and how much longer than Compute reading the weights takes
	Tensor    int64 // communication over the axis; so are FSDP to Pipe
	FSDP      int64
	Data      int64
	Context   int64
	Expert    int64
	Pipe      int64
	Bubble    int64 // idle time of the pipeline
	Hidden    int64 // communication that overlaps with computation

	Bound  string // the largest part, by its name in JSON
	Next   string // the second largest; "" without one
	Behind int64  // by how much Next is smaller

	TokensPerSecond   int64 // -1 if the model is not a transformer
	ExamplesPerSecond int64 // thousandths
	MFU               int64 // model FLOPs over peak FLOPs, in thousandths
	Days              int64 // days of the whole training, in thousandths; -1 unless the document has total_tokens
	DeviceHours       int64 // device-hours of the whole training, in thousandths; -1 likewise
}

// Stage is one pipeline stage of the best candidate.
type Stage struct {
	Number     int
	FirstLayer int // layers FirstLayer … FirstLayer+Layers-1; with chunks, of the first chunk
	Layers     int // layers of all chunks
	Embedding  bool
	Head       bool
	Parameters int64 // parameters of the whole stage, over all its devices
	Live       int   // micro-batches (with chunks: chunks of them) with activations kept at the peak
	Memory     Memory
	Compute    int64 // nanoseconds per step; -1 if it is not known
}

// Pipeline is the schedule of a pipeline, in the form that package diagram draws.
type Pipeline struct {
	Kind                         pipeline.Kind
	Stages, MicroBatches, Chunks int
	Durations                    pipeline.Durations // durations of computation; the longest is MaxTicks
}

// Collective is a communication of the best candidate in one step of one device.
type Collective struct {
	Op         string // "all-gather", "reduce-scatter", "all-reduce", "all-to-all" or "permute"
	Axis       string
	What       string // what is communicated, such as "gradients"
	Link       string // "node", "network" or "mixed"
	Count      int64  // calls per step
	Bytes      int64  // bytes of one call, by the convention of package collective
	Sent       int64  // per device and step
	Ns         int64  // time of all calls; -1 if a number of the hardware is not known
	Overlapped bool
}

// InputNeeds has the rates and sizes that the input must provide for the best candidate.
type InputNeeds struct {
	RowsPerStep   int64
	RowsPerSecond int64 // at the expected time, in thousandths; -1 if the time is not known
	BytesPerStep  int64 // bytes of one global batch
	ReadBytes     int64 // that all processes read per step
	Processes     int
	ProcessRows   int64 // that the process with the most rows reads per step
	ProcessBytes  int64 // that the process with the most bytes reads per step
	HostBytes     int64 // memory of the fullest process, with the batches read ahead
	HostCapacity  int64 // 0 if it is not known
	Sharing       int   // the largest number of processes that read the same rows
	Groups        int   // groups of processes with the same rows
	Available     int64 // rows per second that the document names; 0 if it names none
	KeepsUp       bool  // Available suffices
	Margin        int64 // Available / RowsPerSecond in thousandths; 0 if either is not known
}

// Assumption is a convention or a simplification that the numbers depend on.
type Assumption struct {
	Code string
	Text string // what is assumed, and its source
}

// Pruned counts the meshes that break a rule.
type Pruned struct {
	Code    string
	Count   int64
	Message string
	Meshes  [][]mesh.Axis // up to MaxKeep of them, with Search.Pruned
}
