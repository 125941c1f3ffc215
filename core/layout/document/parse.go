// Package document reads and writes layouts as JSON. A document describes the
// wanted layout ([Layout], [Parse], [Canonical]). A report describes what is computed from it
// ([Report], [DeviceTable] and the other tables). Go, Python, the command and the
// browser share both forms.
package document

import (
	"strconv"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Version is the version of the format.
const Version = form.Version

// MaxBytes limits the text of a document. Parse checks this limit and the limits of package
// layout before it allocates memory in proportion to the limited number.
const MaxBytes = form.MaxBytes

// Parse reads a layout document. Text that is not JSON in UTF-8, keys that repeat, are
// unknown or differ in case, and integers in other spellings, such as 1e3, are errors. So
// is everything that [layout.Document.Validate] refuses. An error is InvalidArgument, with
// a JSON Pointer in its attribute "path".
func Parse(text []byte) (*layout.Document, error) {
	var p parser
	if err := form.Layout.Read(text, p.top); err != nil {
		return nil, err
	}
	for _, shape := range p.shapes {
		if err := p.checkBatchDimensions(shape); err != nil {
			return nil, err
		}
	}
	if err := p.doc.Validate(); err != nil {
		return nil, err
	}
	return &p.doc, nil
}

// Layout makes the layout of a layout document. It returns the errors of [Parse] and of
// [layout.New]. A program that reports faults calls Parse and [layout.Draft].
func Layout(text []byte) (*layout.Layout, error) {
	d, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return layout.New(d)
}

// parser fills a document from its text.
type parser struct {
	*jsontext.Reader
	doc    layout.Document
	scalar bool              // batch.size is an integer, not a list
	shapes []batchDimensions // batch dimensions of every array's shape
}

// batchDimensions are the names of the batch dimensions at the start of a shape,
// such as "B". They are checked after the whole document is read, because the batch
// may come after the arrays.
type batchDimensions struct {
	names []string
	path  string
}

func (p *parser) top(r *jsontext.Reader, key string) (err error) {
	p.Reader = r
	switch key {
	case "mesh":
		p.doc.Mesh, err = ReadMesh(p.Reader)
	case "arrays":
		err = p.Object("an object of arrays", p.array)
	case "batch":
		p.doc.Batch = new(layout.BatchSpec)
		err = p.Members("a batch", 1, []string{"size", "remainder", "mask", "mask_spec", "extras"}, p.batch)
	case "dataset":
		p.doc.Dataset = new(layout.DatasetSpec)
		err = p.Members("a dataset", 1, []string{"records", "fields", "fingerprint", "order", "seed"}, p.dataset)
	case "loading":
		p.doc.Loading, err = p.Word("a way of loading")
	case "prefetch":
		var n int64
		n, err = p.Integer("a number of batches", 0, layout.MaxPrefetch)
		p.doc.Prefetch = new(int(n))
	case "budget":
		err = p.Members("a budget", 0, []string{"device_bytes", "host_bytes"}, p.budget)
	}
	return err
}

// ReadMesh reads a mesh as in a layout document. The caller checks it with
// [layout.MeshSpec.Build] or [layout.Document.Validate].
func ReadMesh(r *jsontext.Reader) (m layout.MeshSpec, err error) {
	err = r.Members("a mesh", 1, []string{"axes", "processes", "devices"}, func(key string) (err error) {
		switch key {
		case "axes":
			m.Axes, err = readAxes(r)
		case "processes":
			m.Processes, err = r.Int("a number of processes", 1, layout.MaxProcesses)
		case "devices":
			m.Devices = []mesh.Device{}
			err = r.List("a list of devices", mesh.MaxDevices, func(int) error {
				v, err := two(r, "a device as [process, id]")
				m.Devices = append(m.Devices, mesh.Device{Process: v[0], ID: v[1]})
				return err
			})
		}
		return err
	})
	return m, err
}

func readAxes(r *jsontext.Reader) (axes []mesh.Axis, err error) {
	err = r.List("a list of axes", mesh.MaxAxes, func(int) error {
		a := mesh.Axis{}
		err := r.Tuple("an axis as [name, size]", 2, func(i int) (err error) {
			if i == 0 {
				a.Name, err = r.Word("the name of an axis")
			} else {
				a.Size, err = r.Int("a size", 1, layout.MaxInteger)
			}
			return err
		})
		axes = append(axes, a)
		return err
	})
	return axes, err
}

// two reads a pair of integers that are not negative.
func two(r *jsontext.Reader, want string) (v [2]int, err error) {
	err = r.Tuple(want, 2, func(i int) (err error) {
		v[i], err = r.Int("an integer", 0, layout.MaxInteger)
		return err
	})
	return v, err
}

func (p *parser) array(name string) error {
	if len(p.doc.Arrays) == layout.MaxArrays {
		return form.Layout.Invalid("/arrays", "there are more than %d arrays", layout.MaxArrays)
	}
	a, shape := layout.ArraySpec{Name: name}, batchDimensions{}
	err := p.Members("an array", 2, []string{"shape", "dtype", "spec", "field", "columns"}, func(key string) (err error) {
		switch key {
		case "field":
			a.Field, err = p.Word("the name of a field")
		case "columns":
			a.Columns = [][2]int{}
			err = p.List("a list of [start, stop) ranges", MaxBytes, func(int) error {
				c, err := two(p.Reader, "a range as [start, stop]")
				a.Columns = append(a.Columns, c)
				return err
			})
		case "shape":
			shape, err = p.shape(&a)
		case "dtype":
			a.Type, err = p.dtype()
		case "spec":
			a.Spec, err = ReadSpec(p.Reader)
		}
		return err
	})
	p.doc.Arrays, p.shapes = append(p.doc.Arrays, a), append(p.shapes, shape)
	return err
}

// shape reads the shape of an array.
func (p *parser) shape(a *layout.ArraySpec) (batchDimensions, error) {
	batch := batchDimensions{path: p.Pointer()}
	a.RowShape = []int{}
	err := p.List("a shape", layout.MaxRank, func(int) error {
		if p.Kind() != jsontext.String {
			size, err := p.Int(`a size or "B"`, 0, layout.MaxInteger)
			a.RowShape = append(a.RowShape, size)
			return err
		}
		name, err := p.Text("a batch dimension")
		if err == nil && len(a.RowShape) > 0 {
			return p.Fail("the batch dimensions come first, but %s is after %d", wording.Quote(name), a.RowShape[len(a.RowShape)-1])
		}
		batch.names = append(batch.names, name)
		return err
	})
	a.Static = len(batch.names) == 0
	return batch, err
}

// checkBatchDimensions compares the batch dimensions that a shape names with
// the batch. Validate reports a batch that is missing.
func (p *parser) checkBatchDimensions(have batchDimensions) error {
	if p.doc.Batch == nil || len(p.doc.Batch.Size) == 0 || len(have.names) == 0 {
		return nil
	}
	want := []string{"B"}
	if !p.scalar {
		want = nil
		for i := range p.doc.Batch.Size {
			want = append(want, "B"+strconv.Itoa(i))
		}
	}
	for i, name := range have.names {
		if i >= len(want) || name != want[i] {
			return form.Layout.Invalid(jsontext.Element(have.path, i), "%s is not the batch dimension expected here", wording.Quote(name)).
				WithHint("begin the shape with %s", wording.QuotedList(want))
		}
	}
	if len(have.names) < len(want) {
		return form.Layout.Invalid(have.path, "the shape names %d of the %d batch dimensions", len(have.names), len(want)).
			WithHint("begin the shape with %s", wording.QuotedList(want))
	}
	return nil
}

func (p *parser) dtype() (dtype.Type, error) {
	name, err := p.Word("an element type")
	if err != nil {
		return dtype.Invalid, err
	}
	t, err := dtype.Parse(name)
	if err != nil {
		return dtype.Invalid, p.Fail("%s is not an element type", wording.Quote(name)).WithHint("use a name such as \"float32\", as NumPy spells it")
	}
	return t, nil
}

// ReadSpec reads a partition spec as in a layout document.
func ReadSpec(r *jsontext.Reader) (sharding.PartitionSpec, error) {
	spec := sharding.PartitionSpec{}
	err := r.List("a spec as a list", layout.MaxRank, func(int) error {
		entry, err := readEntry(r)
		spec = append(spec, entry)
		return err
	})
	return spec, err
}

// readEntry reads null, an axis, or a list of axes.
func readEntry(r *jsontext.Reader) ([]string, error) {
	switch {
	case r.Null():
		return nil, nil
	case r.Kind() == jsontext.String:
		axis, err := r.Word("the name of an axis")
		return []string{axis}, err
	}
	var entry []string
	err := r.List("an axis, a list of axes or null", mesh.MaxAxes, func(int) error {
		axis, err := r.Word("the name of an axis")
		entry = append(entry, axis)
		return err
	})
	return entry, err
}

func (p *parser) batch(key string) (err error) {
	b := p.doc.Batch
	switch key {
	case "size":
		if p.scalar = p.Kind() != jsontext.List; p.scalar {
			n, err := p.Int("a batch size", 1, layout.MaxRecords)
			b.Size = []int{n}
			return err
		}
		return p.List("a batch size", layout.MaxRank, func(int) error {
			n, err := p.Int("a batch size", 1, layout.MaxRecords)
			b.Size = append(b.Size, n)
			return err
		})
	case "remainder":
		b.Remainder, err = p.Word("a way to treat the remainder")
	case "mask":
		b.Mask, err = p.Word("the name of the mask")
	case "mask_spec":
		b.MaskSpec, err = ReadSpec(p.Reader)
	case "extras":
		err = p.List("a list of extras", layout.MaxRank, func(int) error {
			name, err := p.Word("the name of an extra")
			b.Extras = append(b.Extras, name)
			return err
		})
	}
	return err
}

func (p *parser) dataset(key string) (err error) {
	s := p.doc.Dataset
	switch key {
	case "records":
		s.Records, err = p.Integer("a number of records", 0, layout.MaxRecords)
	case "fields":
		s.Fields = []layout.FieldSpec{}
		err = p.Object("an object of fields", p.field)
	case "fingerprint":
		s.Fingerprint, err = p.Word("a fingerprint")
	case "order":
		s.Order, err = p.Word("the name of an order")
	case "seed":
		s.Seed, err = p.Integer("a seed", -layout.MaxInteger, layout.MaxInteger)
	}
	return err
}

func (p *parser) field(name string) error {
	f := layout.FieldSpec{Name: name, Shape: []int{}}
	err := p.Members("a field", 2, []string{"shape", "dtype"}, func(key string) (err error) {
		if key == "dtype" {
			f.Type, err = p.dtype()
			return err
		}
		return p.List("a shape", layout.MaxRank, func(int) error {
			n, err := p.Int("a size", 0, layout.MaxInteger)
			f.Shape = append(f.Shape, n)
			return err
		})
	})
	p.doc.Dataset.Fields = append(p.doc.Dataset.Fields, f)
	return err
}

func (p *parser) budget(key string) (err error) {
	to := &p.doc.Budget.HostBytes
	if key == "device_bytes" {
		to = &p.doc.Budget.DeviceBytes
	}
	*to, err = p.Integer("a number of bytes", 1, layout.MaxInteger)
	return err
}
