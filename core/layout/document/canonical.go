package document

import (
	"strconv"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/jsontext"
)

// Canonical returns the canonical text of a document. Documents with the same
// meaning have the same text.
//
// Keys are in the order of the format, and arrays in the order of the user. Values that
// equal their defaults, spaces, and escapes that JSON does not need are left out. A list of
// devices is left out if a mesh without it has the same devices and numbers. A batch size
// of one dimension is a number, not a list.
func Canonical(d *layout.Document) []byte {
	w := &jsontext.Writer{Text: make([]byte, 0, 1<<10+16*len(d.Mesh.Devices))}
	w.Open('{')
	w.Key("meshfeed").Int(Version)
	w.Key("mesh")
	writeMesh(w, d.Mesh)
	w.Key("arrays").Open('{')
	for i := range d.Arrays {
		w.Key(d.Arrays[i].Name)
		writeArray(w, d, &d.Arrays[i])
	}
	w.Close('}')
	if d.Batch != nil {
		w.Key("batch")
		writeBatch(w, d)
	}
	if d.Dataset != nil {
		w.Key("dataset")
		writeDataset(w, d.Dataset)
	}
	unlessDefault(w, "loading", d.Loading, layout.LoadProcess)
	if d.Prefetch != nil && *d.Prefetch != layout.DefaultPrefetch {
		w.Key("prefetch").Int(int64(*d.Prefetch))
	}
	if d.Budget != (layout.BudgetSpec{}) {
		w.Key("budget")
		writeBudget(w, d.Budget)
	}
	w.Close('}')
	return w.Text
}

// unlessDefault writes a member, unless its value is empty or the default.
func unlessDefault(w *jsontext.Writer, key, value, standard string) {
	if value != "" && value != standard {
		w.Key(key).String(value)
	}
}

func writeMesh(w *jsontext.Writer, s layout.MeshSpec) {
	w.Open('{')
	w.Key("axes").Open('[')
	for _, a := range s.Axes {
		w.Open('[')
		w.String(a.Name)
		w.Int(int64(a.Size))
		w.Close(']')
	}
	w.Close(']')
	processes, standard := standardProcesses(s)
	if processes > 1 {
		w.Key("processes").Int(int64(processes))
	}
	if !standard {
		w.Key("devices").Open('[')
		for _, d := range s.Devices {
			w.Ints(d.Process, d.ID)
		}
		w.Close(']')
	}
	w.Close('}')
}

// standardProcesses returns the number of processes with which a mesh without a list of
// devices has the same devices and numbers. Without such a number, ok is false.
func standardProcesses(s layout.MeshSpec) (processes int, ok bool) {
	if s.Devices == nil {
		return s.Processes, true
	}
	perProcess, n := 0, len(s.Devices)
	for perProcess < n && s.Devices[perProcess].Process == 0 {
		perProcess++
	}
	if perProcess == 0 || n%perProcess != 0 {
		return 0, false
	}
	for i, d := range s.Devices {
		if d != (mesh.Device{Process: i / perProcess, ID: i}) {
			return 0, false
		}
	}
	return n / perProcess, true
}

func writeArray(w *jsontext.Writer, d *layout.Document, a *layout.ArraySpec) {
	w.Open('{')
	unlessDefault(w, "field", a.Field, a.Name)
	if a.Columns != nil {
		w.Key("columns").Pairs(a.Columns)
	}
	w.Key("shape").Open('[')
	if !a.Static && d.Batch != nil {
		for i := range d.Batch.Size {
			w.String(batchDimension(i, len(d.Batch.Size)))
		}
	}
	for _, n := range a.RowShape {
		w.Int(int64(n))
	}
	w.Close(']')
	w.Key("dtype").String(a.Type.String())
	if len(a.Spec) > 0 {
		w.Key("spec")
		WriteSpec(w, a.Spec)
	}
	w.Close('}')
}

// batchDimension names batch dimension i of a shape.
func batchDimension(i, dims int) string {
	if dims == 1 {
		return "B"
	}
	return "B" + strconv.Itoa(i)
}

// WriteSpec writes a partition spec: an entry is null, an axis, or a list of
// axes.
func WriteSpec(w *jsontext.Writer, spec sharding.PartitionSpec) {
	w.Open('[')
	for _, entry := range spec {
		switch len(entry) {
		case 0:
			w.Null()
		case 1:
			w.String(entry[0])
		default:
			w.Strings(entry...)
		}
	}
	w.Close(']')
}

func writeBatch(w *jsontext.Writer, d *layout.Document) {
	b := d.Batch
	w.Open('{')
	w.Key("size")
	if len(b.Size) == 1 {
		w.Int(int64(b.Size[0]))
	} else {
		w.Ints(b.Size...)
	}
	unlessDefault(w, "remainder", b.Remainder, layout.Drop)
	unlessDefault(w, "mask", b.Mask, layout.DefaultMask)
	if b.MaskSpec != nil && !b.MaskSpec.Equal(d.SharedSpec()) {
		w.Key("mask_spec")
		WriteSpec(w, b.MaskSpec)
	}
	if len(b.Extras) > 0 {
		w.Key("extras").Strings(b.Extras...)
	}
	w.Close('}')
}

func writeDataset(w *jsontext.Writer, s *layout.DatasetSpec) {
	w.Open('{')
	w.Key("records").Int(s.Records)
	if s.Fields != nil {
		w.Key("fields").Open('{')
		for _, f := range s.Fields {
			w.Key(f.Name).Open('{')
			w.Key("shape").Ints(f.Shape...)
			w.Key("dtype").String(f.Type.String())
			w.Close('}')
		}
		w.Close('}')
	}
	unlessDefault(w, "fingerprint", s.Fingerprint, "")
	unlessDefault(w, "order", s.Order, sampler.Sequential)
	if s.Seed != 0 {
		w.Key("seed").Int(s.Seed)
	}
	w.Close('}')
}

func writeBudget(w *jsontext.Writer, b layout.BudgetSpec) {
	w.Open('{')
	if b.DeviceBytes > 0 {
		w.Key("device_bytes").Int(b.DeviceBytes)
	}
	if b.HostBytes > 0 {
		w.Key("host_bytes").Int(b.HostBytes)
	}
	w.Close('}')
}
