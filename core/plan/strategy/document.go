package strategy

import (
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Document is the input of the planner: a model, its training, and the devices. Its
// JSON form has the same structure. The zero value of an optional field stands for the
// default. Decimal numbers of the JSON form are integers here, which count thousandths.
type Document struct {
	Model    Model
	Training Training
	Cluster  Cluster
	Search   Search
	Input    Input
}

// Model describes a model in one of three ways: as a transformer (Preset,
// Transformer or both), by its number of parameters, or by the tree of its arrays.
type Model struct {
	Preset      string             // the name of a known transformer, such as "llama3-8b"
	Transformer *Transformer       // the form of a transformer; with Preset, the fields to change
	Parameters  int64              // the number of parameters
	Tree        []Array            // the arrays, in the user's order
	Inputs      []layout.ArraySpec // arrays of a batch, without specs; nil for the tokens of a transformer

	// With Parameters or Tree: bytes of activations, and floating-point operations
	// of a forward pass, of one example. nil if they are not known.
	ActivationBytesPerExample *int64
	FLOPsPerExample           *int64
}

// Transformer has the sizes of a transformer. A nil or zero field is the default of
// package transformer, or the preset's value.
type Transformer struct {
	Layers, Hidden, Heads int
	KVHeads               int // 0 for Heads
	HeadDim               int // 0 for Hidden / Heads
	Latent                *Latent
	FFN                   int
	Gated                 *bool
	Vocab                 int
	Tied                  *bool
	Sequence              int
	Biases                *bool
	QKVBiases             *bool  // biases of query, key and value
	Norm                  string // "rms" or "layer"
	Positions             string // "rotary" or "learned"
	Dropout               *bool
	Causal                *bool // a causal mask; nil for true
	Experts               *Experts
}

// Latent describes multi-head latent attention, as transformer.Latent does.
type Latent struct{ Query, KeyValue, Rotary, Value int }

// Experts describes the mixture-of-experts layers of a transformer.
type Experts struct {
	Count    int // experts of a layer
	Active   int // experts that a token is sent to
	Every    int // every Every-th layer has experts; 0 for 1
	After    int // the first layers have none
	FFN      int // hidden size of an expert; 0 for the FFN of the transformer
	Shared   int // experts that every token is sent to
	Capacity int // thousandths of the even share of tokens; 0 for no limit
}

// Array is one array of a model's tree.
type Array struct {
	Name    string // the path in a nested tree, joined by "/"
	Shape   []int
	Element string                 // the name of the element type in JAX, such as "bfloat16"
	Spec    sharding.PartitionSpec // over the planner's axes; nil to let fsdp split any dimension
}

// The ways of recomputing activations in the backward pass.
const (
	Auto      = "auto"      // try all
	None      = "none"      // keep all activations
	Selective = "selective" // recompute the attention scores, as Megatron-LM does
	Dots      = "dots"      // keep the results of matrix products with weights only
	Full      = "full"      // keep the input of each layer only
)

// The ways of computing attention.
const (
	Flash = "flash" // no array of sequence × sequence exists
	Plain = "plain"
)

// Training describes how the model is trained.
type Training struct {
	Batch            int64  // examples of the global batch
	Tokens           int64  // tokens of the global batch, instead of Batch
	TotalTokens      int64  // tokens of the whole training, for its days and device-hours; 0 to leave these out
	MicroBatch       int    // examples of one micro-batch of one replica; 0 to try several
	Optimizer        string // "" for "adamw"
	Precision        Precision
	Recomputation    string // "" for Auto
	Attention        string // "" for Flash
	Schedule         string // schedule of the pipeline; "" for Auto, which tries "1f1b" and "interleaved"
	Chunks           int    // chunks of layers per pipeline stage, with schedule "interleaved"; 0 to try several
	SequenceParallel *bool  // split norms and dropout by the sequence over tensor; nil for true
	Overlap          []AxisOverlap
	Efficiency       [2]int // efficiency of matrix products, the least and the most, in thousandths; zero for hardware.EfficiencyOf
	LinkEfficiency   [2]int // efficiency of links, likewise; zero for 350, 1000
}

// Precision has the element types of training, by their names in JAX. "" is the
// default.
type Precision struct {
	Compute   string // "bfloat16"
	Weights   string // "bfloat16"
	Master    string // "float32"; NoMaster for no master copy
	Gradients string // "bfloat16"
	Moments   string // "float32"
}

// NoMaster is the master type of a training without a master copy of the weights. In
// JSON it is null.
const NoMaster = "none"

// AxisOverlap says whether the communication of an axis runs during computation.
type AxisOverlap struct {
	Axis    string
	Overlap bool
}

// Cluster describes the devices. A number that is not zero replaces the number of the
// kind Device.
type Cluster struct {
	Device                string // the name of a kind in package hardware; "" if the document gives all numbers
	Devices               int
	PerNode               int // devices of a node; 0 for the usual number of the kind
	MemoryBytes           int64
	FLOPsPerSecond        int64 // in the precision of Training
	HBMBytesPerSecond     int64
	NodeBytesPerSecond    int64 // one way, per device
	NetworkBytesPerSecond int64 // one way, per device
	NodeLatencyNs         *int64
	NetworkLatencyNs      *int64
	Topology              string // "" for the topology of the kind
	HostBytes             int64  // memory of a host; 0 if it is not known
}

// Search bounds the candidates.
type Search struct {
	Axes   []AxisSizes // an axis that is not named takes all sizes
	ZeRO   []int       // stages from 0 to 2; nil for all
	Margin *int        // thousandths of the memory that stay free; nil for DefaultMargin
	Keep   int         // candidates in the report; 0 for DefaultKeep
	Pruned bool        // list the pruned meshes instead of only counting them
}

// AxisSizes has the sizes that an axis may take.
type AxisSizes struct {
	Axis  string
	Sizes []int
}

// Input says what is known about the input of the training.
type Input struct {
	RowsPerSecond int64 // that the loaders of all processes deliver together; 0 if it is not known
	Processes     int   // 0 for one per node
}

// The axes of a mesh, outermost first. A mesh of a report has the axes with a
// size above 1 in this order, and devices in row-major order over them.
const (
	Pipe    = "pipe"    // splits the layers
	Data    = "data"    // splits the batch, and replicates the model
	FSDP    = "fsdp"    // splits the batch, and the weights with all that belongs to them
	Expert  = "expert"  // splits the batch, and the experts
	Context = "context" // splits the sequence
	Tensor  = "tensor"  // splits heads, hidden units and the vocabulary
)

// Axes lists the axes, outermost first.
func Axes() []string { return []string{Pipe, Data, FSDP, Expert, Context, Tensor} }

// Limits and defaults of a document.
const (
	MaxDevices    = mesh.MaxDevices
	MaxKeep       = 1 << 12 // candidates
	MaxLatencyNs  = 1_000_000_000
	DefaultKeep   = 20
	DefaultMargin = 100 // thousandths
	MaxMargin     = 900 // thousandths

	// LongSequence is the shortest sequence with context parallelism by
	// default.
	LongSequence = 32_768
)
