package layout

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/form"
)

// Limits of a document, in addition to the limits of package mesh. They are checked before
// memory of that size is allocated.
const (
	MaxName     = form.MaxName // bytes of a name, and of any other string
	MaxArrays   = 1024         // in a document
	MaxRank     = 32           // rank of an array, and entries of a spec
	MaxInteger  = 1 << 53      // the largest integer; the smallest is its negative
	MaxRanges   = 1 << 22      // separate row ranges of one array in a process
	MaxBlocks   = 1 << 20      // blocks of one process
	MaxPrefetch = 1 << 16      // batches
	MaxCommits  = 1024         // in a dataset
	MaxRecords  = sampler.MaxRecords

	// MaxProcesses bounds the processes of a mesh, so that the validator needs
	// at most the memory that a browser allows it.
	MaxProcesses = 1 << 17
)

// Defaults of a document.
const (
	DefaultPrefetch = 2
	DefaultMask     = "valid"
)

// What a loader does with the records that do not fill the last step.
const (
	Drop   = "drop"  // leave them out of the epoch; the default
	Pad    = "pad"   // fill the last batch with zeros, which a mask marks
	Refuse = "error" // accept only a number of records that the batch size divides
)

// The extras: arrays that the loader computes.
const (
	ExtraKey    = "key"    // uint32 [batch..., 2]: a hash of seed, epoch and record
	ExtraRecord = "record" // uint32 [batch..., 2]: the record number, low and high half
)

// Document describes a layout as the user wrote it. Its JSON form has the same
// structure. The zero value of an optional field stands for the default.
type Document struct {
	Mesh     MeshSpec
	Arrays   []ArraySpec  // in the user's order
	Batch    *BatchSpec   // needed unless every array is Static
	Dataset  *DatasetSpec // optional
	Loading  string       // LoadProcess, LoadGlobal, LoadDevice or LoadReshard; "" for LoadProcess
	Prefetch *int         // batches read ahead; nil for DefaultPrefetch
	Budget   BudgetSpec
}

// MeshSpec describes a mesh by its sizes, or device by device.
type MeshSpec struct {
	Axes      []mesh.Axis
	Processes int           // 0 for 1; must be 0 if Devices is not nil
	Devices   []mesh.Device // in mesh order; nil for ids 0…n-1 in Processes equal parts
}

// ArraySpec describes an array of the batch.
type ArraySpec struct {
	Name     string   // the path in a nested tree, joined by "/"
	Field    string   // name in the dataset; "" for Name
	Columns  [][2]int // [start, stop) ranges of the row's first dimension, gathered in this order; nil for the whole row
	RowShape []int    // shape of one row as delivered, without the batch dimensions
	Static   bool     // no batch dimensions, as for a weight: the array takes memory on devices and is never read
	Type     dtype.Type
	Spec     sharding.PartitionSpec // its first entries partition the batch dimensions
}

// BatchSpec describes the global batch.
type BatchSpec struct {
	Size      []int                  // the batch dimensions, usually one; each at least 1
	Remainder string                 // Drop, Pad or Refuse; "" for Drop
	Mask      string                 // with Pad: the name of the mask; "" for DefaultMask
	MaskSpec  sharding.PartitionSpec // with Pad: the spec of the mask; nil for SharedSpec
	Extras    []string               // some of ExtraKey and ExtraRecord, in the order wanted
}

// DatasetSpec holds what is known about the dataset.
type DatasetSpec struct {
	Records     int64
	Fields      []FieldSpec // nil if they are not known
	Fingerprint string      // 32 hexadecimal digits, or ""
	FarBytes    int64       // size of the files on other machines; 0 if all are on disks
	Commits     []string    // names with the commits of the hub that are read; nil if the files have none
	Order       string      // "" for "sequential.1"; a full name, or a short one that sampler.Full or sampler.IsDerived knows
	Seed        int64
}

// FieldSpec describes a field of the dataset.
type FieldSpec struct {
	Name  string
	Shape []int // shape of one row
	Type  dtype.Type
}

// BudgetSpec bounds the memory of a batch. Zero means unbounded.
type BudgetSpec struct {
	DeviceBytes int64 // per device, one batch
	HostBytes   int64 // per process, all batches read ahead
}

func (s MeshSpec) processes() int { return max(s.Processes, 1) }

// Build makes the mesh. For a mesh that breaks a rule, the error is as in
// [Document.Validate].
func (s MeshSpec) Build() (*mesh.Mesh, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	return s.build()
}

func (s MeshSpec) build() (*mesh.Mesh, error) {
	if s.Devices != nil {
		return mesh.New(s.Axes, s.Devices)
	}
	return mesh.Uniform(s.Axes, s.processes())
}

func (d *Document) prefetch() int {
	if d.Prefetch == nil {
		return DefaultPrefetch
	}
	return *d.Prefetch
}

func (d *Document) remainder() string {
	if d.Batch == nil || d.Batch.Remainder == "" {
		return Drop
	}
	return d.Batch.Remainder
}

func (a *ArraySpec) field() string {
	if a.Field == "" && !a.Static {
		return a.Name
	}
	return a.Field
}

func (b *BatchSpec) mask() string {
	if b.Mask == "" {
		return DefaultMask
	}
	return b.Mask
}

func (s *DatasetSpec) order() string {
	if s.Order == "" {
		return sampler.Sequential
	}
	return s.Order
}

// SharedSpec returns one entry for every batch dimension: the entry that the specs
// of all batch arrays share, or an empty entry if they differ. It is the default spec
// of the mask and the extras.
func (d *Document) SharedSpec() sharding.PartitionSpec {
	shared := make(sharding.PartitionSpec, len(d.Batch.Size))
	for i := range shared {
		shared[i] = d.sharedEntry(i)
	}
	return shared
}

func (d *Document) sharedEntry(dim int) []string {
	var entry []string
	first := true
	for _, a := range d.Arrays {
		if a.Static {
			continue
		}
		var e []string
		if dim < len(a.Spec) {
			e = a.Spec[dim]
		}
		if !first && !slices.Equal(e, entry) {
			return nil
		}
		entry, first = e, false
	}
	return slices.Clone(entry)
}

func (d *Document) clone() *Document {
	c := *d
	c.Mesh.Axes = slices.Clone(d.Mesh.Axes)
	c.Mesh.Devices = slices.Clone(d.Mesh.Devices)
	c.Arrays = slices.Clone(d.Arrays)
	for i := range c.Arrays {
		a := &c.Arrays[i]
		a.Columns, a.RowShape, a.Spec = slices.Clone(a.Columns), slices.Clone(a.RowShape), a.Spec.Clone()
	}
	if d.Batch != nil {
		c.Batch = d.Batch.clone()
	}
	if d.Dataset != nil {
		c.Dataset = d.Dataset.clone()
	}
	if d.Prefetch != nil {
		c.Prefetch = new(*d.Prefetch)
	}
	return &c
}

func (b *BatchSpec) clone() *BatchSpec {
	c := *b
	c.Size, c.Extras = slices.Clone(b.Size), slices.Clone(b.Extras)
	if b.MaskSpec != nil {
		c.MaskSpec = b.MaskSpec.Clone()
	}
	return &c
}

func (s *DatasetSpec) clone() *DatasetSpec {
	c := *s
	c.Fields = slices.Clone(s.Fields)
	for i := range c.Fields {
		c.Fields[i].Shape = slices.Clone(c.Fields[i].Shape)
	}
	return &c
}
