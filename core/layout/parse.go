package layout

import (
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// Parse reads a layout document. It is strict: text that is not JSON in UTF-8,
// keys that repeat, are unknown or differ in case, numbers that are not
// integers within ±2^53, and anything beyond the limits of this package are
// InvalidArgument errors, which carry the place as a JSON Pointer in their
// attribute "path".
func Parse(text []byte) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, fail("", "the document has %d bytes, but may have %d", len(text), MaxBytes)
	}
	r, err := newReader(text)
	if err != nil {
		return nil, err
	}
	p := parser{reader: r}
	if err := p.document(); err != nil {
		return nil, err
	}
	if err := p.doc.validate(); err != nil {
		return nil, err
	}
	return &p.doc, nil
}

// parser fills a document from its text.
type parser struct {
	reader
	doc    Document
	scalar bool         // batch.size is an integer, not a list
	shapes map[int]axes // the batch dimensions that each array's shape names
}

// axes are the batch dimensions of one shape, which can be judged only when
// the batch is known.
type axes struct {
	names []string
	path  string
}

var documentKeys = []string{"meshfeed", "mesh", "arrays", "batch", "dataset", "loading", "prefetch", "budget"}

func (p *parser) document() error {
	p.shapes = map[int]axes{}
	if err := p.members("a layout document", 3, documentKeys, p.top); err != nil {
		return err
	}
	for i := range p.doc.Arrays {
		if err := p.batchDims(i); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) top(key string) (err error) {
	switch key {
	case "meshfeed":
		var v int64
		if v, err = p.integer("the version of the format", -MaxInteger, MaxInteger); err == nil && v != Version {
			return p.fail("the document has version %d, but this release reads version %d", v, Version)
		}
	case "mesh":
		err = p.members("a mesh", 1, []string{"axes", "processes", "devices"}, p.mesh)
	case "arrays":
		err = p.object("an object of arrays", p.array)
	case "batch":
		p.doc.Batch = new(BatchSpec)
		err = p.members("a batch", 1, []string{"size", "remainder", "mask", "mask_spec", "extras"}, p.batch)
	case "dataset":
		p.doc.Dataset = new(DatasetSpec)
		err = p.members("a dataset", 1, []string{"records", "fields", "fingerprint", "order", "seed"}, p.dataset)
	case "loading":
		p.doc.Loading, err = p.word("a way of loading")
	case "prefetch":
		var n int64
		n, err = p.integer("a number of batches", 0, maxPrefetch)
		p.doc.Prefetch = new(int(n))
	case "budget":
		err = p.members("a budget", 0, []string{"device_bytes", "host_bytes"}, p.budget)
	}
	return err
}

// word reads a string that may not be empty, since "" stands for a default.
func (p *parser) word(want string) (string, error) {
	s, err := p.str(want)
	if err == nil && s == "" {
		return "", p.fail("expected %s, but found an empty string", want)
	}
	return s, err
}

func (p *parser) mesh(key string) (err error) {
	m := &p.doc.Mesh
	switch key {
	case "axes":
		return p.list("a list of axes", mesh.MaxAxes, func(int) error {
			a := mesh.Axis{}
			err := p.pair("an axis as [name, size]", func(i int) (err error) {
				if i == 0 {
					a.Name, err = p.word("the name of an axis")
				} else {
					a.Size, err = p.small("a size", 1, MaxInteger)
				}
				return err
			})
			m.Axes = append(m.Axes, a)
			return err
		})
	case "processes":
		m.Processes, err = p.small("a number of processes", 1, MaxProcesses)
		return err
	}
	m.Devices = []mesh.Device{}
	return p.list("a list of devices", mesh.MaxDevices, func(int) error {
		v, err := p.two("a device as [process, id]")
		m.Devices = append(m.Devices, mesh.Device{Process: v[0], ID: v[1]})
		return err
	})
}

func (p *parser) small(want string, least, most int64) (int, error) {
	n, err := p.integer(want, least, most)
	return int(n), err
}

// pair reads a list of exactly two elements.
func (p *parser) pair(want string, visit func(i int) error) error {
	n := 0
	err := p.list(want, 3, func(i int) error {
		if n = i + 1; n > 2 {
			return p.fail("expected %s, but the list has more than 2 elements", want)
		}
		return visit(i)
	})
	if err == nil && n != 2 {
		return p.fail("expected %s, but the list has %d", want, n)
	}
	return err
}

// two reads a pair of integers from 0.
func (p *parser) two(want string) (v [2]int, err error) {
	err = p.pair(want, func(i int) (err error) {
		v[i], err = p.small("an integer", 0, MaxInteger)
		return err
	})
	return v, err
}

func (p *parser) array(name string) error {
	n := len(p.doc.Arrays)
	if n == MaxArrays {
		return fail("/arrays", "there are more than %d arrays", MaxArrays)
	}
	a := ArraySpec{Name: name}
	err := p.members("an array", 2, []string{"shape", "dtype", "spec", "field", "columns"}, func(key string) (err error) {
		switch key {
		case "field":
			a.Field, err = p.word("the name of a field")
		case "columns":
			a.Columns = [][2]int{}
			err = p.list("a list of [start, stop) ranges", MaxBytes, func(int) error {
				c, err := p.two("a range as [start, stop]")
				a.Columns = append(a.Columns, c)
				return err
			})
		case "shape":
			err = p.shape(n, &a)
		case "dtype":
			a.Type, err = p.dtype()
		case "spec":
			a.Spec, err = p.spec()
		}
		return err
	})
	p.doc.Arrays = append(p.doc.Arrays, a)
	return err
}

func (p *parser) shape(n int, a *ArraySpec) error {
	batch := axes{path: pointer(p.path)}
	a.RowShape = []int{}
	err := p.list("a shape", MaxRank, func(i int) error {
		if p.next() != '"' {
			size, err := p.small(`a size or "B"`, 0, MaxInteger)
			a.RowShape = append(a.RowShape, size)
			return err
		}
		if len(a.RowShape) > 0 {
			return p.fail("the batch dimensions come first, but %s stands after %d", quote(p.raw()), a.RowShape[len(a.RowShape)-1])
		}
		batch.names = append(batch.names, p.raw())
		return nil
	})
	a.Static = len(batch.names) == 0
	p.shapes[n] = batch
	return err
}

// batchDims compares the batch dimensions that a shape names with the batch.
func (p *parser) batchDims(n int) error {
	have := p.shapes[n]
	if p.doc.Batch == nil || len(p.doc.Batch.Size) == 0 || len(have.names) == 0 {
		return nil // validate says what is missing
	}
	want := []string{"B"}
	if !p.scalar {
		want = nil
		for i := range p.doc.Batch.Size {
			want = append(want, fmt.Sprintf("B%d", i))
		}
	}
	for i, name := range have.names {
		if i >= len(want) || name != want[i] {
			return fail(at(have.path, i), "%s is not the batch dimension that stands here", quote(name)).
				WithHint("begin the shape with %s", quotedList(want))
		}
	}
	if len(have.names) < len(want) {
		return fail(have.path, "the shape names %d of the %d batch dimensions", len(have.names), len(want)).
			WithHint("begin the shape with %s", quotedList(want))
	}
	return nil
}

func quotedList(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

func (p *parser) dtype() (dtype.Type, error) {
	name, err := p.word("an element type")
	if err != nil {
		return dtype.Invalid, err
	}
	t, err := dtype.Parse(name)
	if err != nil {
		return dtype.Invalid, p.fail("%s is not an element type", quote(name)).WithHint("use a name such as \"float32\", as NumPy spells it")
	}
	return t, nil
}

func (p *parser) spec() (sharding.PartitionSpec, error) {
	spec := sharding.PartitionSpec{}
	err := p.list("a spec as a list", MaxRank, func(int) error {
		entry, err := p.entry()
		spec = append(spec, entry)
		return err
	})
	return spec, err
}

// entry reads null, an axis, or a list of axes.
func (p *parser) entry() ([]string, error) {
	switch {
	case p.null():
		return nil, nil
	case p.next() == '"':
		axis, err := p.word("the name of an axis")
		return []string{axis}, err
	}
	var entry []string
	err := p.list("an axis, a list of axes or null", mesh.MaxAxes, func(int) error {
		axis, err := p.word("the name of an axis")
		entry = append(entry, axis)
		return err
	})
	return entry, err
}

func (p *parser) batch(key string) (err error) {
	b := p.doc.Batch
	switch key {
	case "size":
		if p.scalar = p.next() != '['; p.scalar {
			n, err := p.small("a batch size", 1, maxRecords)
			b.Size = []int{n}
			return err
		}
		return p.list("a batch size", MaxRank, func(int) error {
			n, err := p.small("a batch size", 1, maxRecords)
			b.Size = append(b.Size, n)
			return err
		})
	case "remainder":
		b.Remainder, err = p.word("a way to treat the remainder")
	case "mask":
		b.Mask, err = p.word("the name of the mask")
	case "mask_spec":
		b.MaskSpec, err = p.spec()
	case "extras":
		err = p.list("a list of extras", MaxRank, func(int) error {
			name, err := p.word("the name of an extra")
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
		s.Records, err = p.integer("a number of records", 0, maxRecords)
	case "fields":
		s.Fields = []FieldSpec{}
		err = p.object("an object of fields", p.field)
	case "fingerprint":
		s.Fingerprint, err = p.word("a fingerprint")
	case "order":
		s.Order, err = p.word("the name of an order")
	case "seed":
		s.Seed, err = p.integer("a seed", -MaxInteger, MaxInteger)
	}
	return err
}

func (p *parser) field(name string) error {
	f := FieldSpec{Name: name, Shape: []int{}}
	err := p.members("a field", 2, []string{"shape", "dtype"}, func(key string) (err error) {
		if key == "dtype" {
			f.Type, err = p.dtype()
			return err
		}
		return p.list("a shape", MaxRank, func(int) error {
			n, err := p.small("a size", 0, MaxInteger)
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
	*to, err = p.integer("a number of bytes", 1, MaxInteger)
	return err
}
