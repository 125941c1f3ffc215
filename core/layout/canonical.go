package layout

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/sha256"
)

// Canonical gives the one text of the document: keys in the order of the
// format, arrays in the user's order, whatever equals its default left out, no
// spaces, no escapes but JSON's own. Documents that mean the same mesh, arrays
// and batch have the same text: devices that are numbered as they would be
// without a list are not listed, and a batch size of one dimension is a number.
func (d *Document) Canonical() []byte {
	w := writer{text: make([]byte, 0, 1<<10+16*len(d.Mesh.Devices))}
	w.open('{')
	w.key("meshfeed").int(Version)
	w.key("mesh").mesh(d.Mesh)
	w.key("arrays").open('{')
	for i := range d.Arrays {
		w.key(d.Arrays[i].Name).array(d, &d.Arrays[i])
	}
	w.close('}')
	if d.Batch != nil {
		w.key("batch").batch(d)
	}
	if d.Dataset != nil {
		w.key("dataset").dataset(d.Dataset)
	}
	if d.loading() != LoadProcess {
		w.key("loading").str(d.Loading)
	}
	if d.prefetch() != 2 {
		w.key("prefetch").int(int64(d.prefetch()))
	}
	if d.Budget != (BudgetSpec{}) {
		w.key("budget").budget(d.Budget)
	}
	w.close('}')
	return w.text
}

// Digest gives the SHA-256 of the canonical text in hexadecimal digits.
func (d *Document) Digest() string { return Digest(d.Canonical()) }

// Digest gives the digest of the document that has a canonical text.
func Digest(canonical []byte) string { return fmt.Sprintf("%x", sha256.Sum256(canonical)) }

// writer appends JSON without spaces.
type writer struct {
	text  []byte
	after bool // a value was written: a comma comes before the next
}

func (w *writer) comma() {
	if w.after {
		w.text = append(w.text, ',')
	}
	w.after = false
}

func (w *writer) open(c byte) {
	w.comma()
	w.text = append(w.text, c)
}

func (w *writer) close(c byte) {
	w.text = append(w.text, c)
	w.after = true
}

func (w *writer) key(k string) *writer {
	w.comma()
	w.text = append(jsontext.AppendString(w.text, k), ':')
	return w
}

func (w *writer) str(s string) {
	w.comma()
	w.text = jsontext.AppendString(w.text, s)
	w.after = true
}

func (w *writer) int(n int64) {
	w.comma()
	w.text = strconv.AppendInt(w.text, n, 10)
	w.after = true
}

// word writes null, true, false.
func (w *writer) word(s string) {
	w.comma()
	w.text = append(w.text, s...)
	w.after = true
}

func (w *writer) ints(list ...int) {
	w.open('[')
	for _, n := range list {
		w.int(int64(n))
	}
	w.close(']')
}

func (w *writer) pairs(list [][2]int) {
	w.open('[')
	for _, p := range list {
		w.pair(p[0], p[1])
	}
	w.close(']')
}

func (w *writer) pair(a, b int) {
	w.comma()
	w.text = strconv.AppendInt(append(w.text, '['), int64(a), 10)
	w.text = append(strconv.AppendInt(append(w.text, ','), int64(b), 10), ']')
	w.after = true
}

func (w *writer) mesh(s MeshSpec) {
	w.open('{')
	w.key("axes").open('[')
	for _, a := range s.Axes {
		w.open('[')
		w.str(a.Name)
		w.int(int64(a.Size))
		w.close(']')
	}
	w.close(']')
	processes, usual := s.usual()
	if processes != 1 {
		w.key("processes").int(int64(processes))
	}
	if !usual {
		w.key("devices").open('[')
		for _, d := range s.Devices {
			w.pair(d.Process, d.ID)
		}
		w.close(']')
	}
	w.close('}')
}

// usual gives the number of processes that makes listed devices what they
// would be without a list, if there is one.
func (s MeshSpec) usual() (processes int, ok bool) {
	if s.Devices == nil {
		return s.processes(), true
	}
	n := len(s.Devices)
	if n == 0 {
		return 1, false
	}
	each := 0
	for each < n && s.Devices[each].Process == 0 {
		each++
	}
	if each == 0 || n%each != 0 {
		return 1, false
	}
	for i, d := range s.Devices {
		if d != (mesh.Device{Process: i / each, ID: i}) {
			return 1, false
		}
	}
	return n / each, true
}

func (w *writer) array(d *Document, a *ArraySpec) {
	w.open('{')
	if a.field() != a.Name && !a.Static {
		w.key("field").str(a.field())
	}
	if a.Columns != nil {
		w.key("columns").pairs(a.Columns)
	}
	w.key("shape").open('[')
	if !a.Static && d.Batch != nil {
		for i := range d.Batch.Size {
			w.str(batchDim(i, len(d.Batch.Size)))
		}
	}
	for _, n := range a.RowShape {
		w.int(int64(n))
	}
	w.close(']')
	w.key("dtype").str(a.Type.String())
	if len(a.Spec) > 0 {
		w.key("spec").spec(a.Spec)
	}
	w.close('}')
}

// batchDim names a batch dimension in a shape.
func batchDim(i, dims int) string {
	if dims == 1 {
		return "B"
	}
	return "B" + strconv.Itoa(i)
}

func (w *writer) spec(spec sharding.PartitionSpec) {
	w.open('[')
	for _, entry := range spec {
		switch len(entry) {
		case 0:
			w.word("null")
		case 1:
			w.str(entry[0])
		default:
			w.open('[')
			for _, axis := range entry {
				w.str(axis)
			}
			w.close(']')
		}
	}
	w.close(']')
}

func (w *writer) batch(d *Document) {
	b := d.Batch
	w.open('{')
	w.key("size")
	if len(b.Size) == 1 {
		w.int(int64(b.Size[0]))
	} else {
		w.ints(b.Size...)
	}
	if d.remainder() != Drop {
		w.key("remainder").str(b.Remainder)
	}
	if b.mask() != "valid" {
		w.key("mask").str(b.Mask)
	}
	if b.MaskSpec != nil && !slices.EqualFunc(b.MaskSpec, d.sharedSpec(), slices.Equal) {
		w.key("mask_spec").spec(b.MaskSpec)
	}
	if len(b.Extras) > 0 {
		w.key("extras").open('[')
		for _, name := range b.Extras {
			w.str(name)
		}
		w.close(']')
	}
	w.close('}')
}

func (w *writer) dataset(s *DatasetSpec) {
	w.open('{')
	w.key("records").int(s.Records)
	if s.Fields != nil {
		w.key("fields").open('{')
		for _, f := range s.Fields {
			w.key(f.Name).open('{')
			w.key("shape").ints(f.Shape...)
			w.key("dtype").str(f.Type.String())
			w.close('}')
		}
		w.close('}')
	}
	if s.Fingerprint != "" {
		w.key("fingerprint").str(s.Fingerprint)
	}
	if s.order() != sampler.Sequential {
		w.key("order").str(s.Order)
	}
	if s.Seed != 0 {
		w.key("seed").int(s.Seed)
	}
	w.close('}')
}

func (w *writer) budget(b BudgetSpec) {
	w.open('{')
	if b.DeviceBytes > 0 {
		w.key("device_bytes").int(b.DeviceBytes)
	}
	if b.HostBytes > 0 {
		w.key("host_bytes").int(b.HostBytes)
	}
	w.close('}')
}
