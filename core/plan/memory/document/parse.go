// Package document reads trees of arrays as JSON. It writes the memory that they take as
// JSON ([Report]) and as a table ([Text]).
//
//	{"meshfeed":1, "mesh":{"axes":[["data",4]]},
//	 "arrays":{"w":{"shape":[512,512],"dtype":"bfloat16","spec":["data"]}},
//	 "optimizer":"adamw"}
//
// The mesh and the specs are written as in a layout document. The member optimizer is the
// name of an optimizer. Its states follow from the arrays. Or it lists the states in the
// form of arrays.
package document

import (
	"errors"
	"slices"

	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Version is the version of the format.
const Version = form.Version

// Limits of a document.
const (
	MaxBytes  = form.MaxBytes
	MaxArrays = 1 << 16 // in each of the members arrays, optimizer and batch
)

// Parse reads a document. Text that is not JSON in UTF-8, keys that repeat, are unknown
// or differ in case, and integers in other spellings, such as 1e3, are errors. An error
// is InvalidArgument, with a JSON Pointer in its attribute "path".
func Parse(text []byte) (*memory.Tree, error) {
	var p parser
	err := form.Memory.Read(text, p.top)
	if err != nil {
		return nil, err
	}
	if p.tree.Mesh, err = p.mesh.Build(); err != nil {
		e, _ := errors.AsType[*status.Error](err)
		e.Op = "memory"
		return nil, e
	}
	return &p.tree, nil
}

// parser fills a tree from the text of a document.
type parser struct {
	*jsontext.Reader
	mesh layout.MeshSpec
	tree memory.Tree
}

func (p *parser) top(r *jsontext.Reader, key string) (err error) {
	p.Reader = r
	t := &p.tree
	switch key {
	case "mesh":
		p.mesh, err = layouts.ReadMesh(p.Reader)
	case "arrays":
		t.Parameters, err = p.arrays()
	case "optimizer":
		err = p.optimizer()
	case "precision":
		err = p.Members("a precision", 0, []string{"gradients", "master", "moments"}, func(key string) (err error) {
			to := map[string]*memory.Element{"gradients": &t.Gradients, "master": &t.Master, "moments": &t.Moments}[key]
			*to, err = p.element()
			if err == nil && !to.IsFloat() && !(key == "moments" && to.StoresMoments()) {
				return p.Fail("%s is not a type of floating-point numbers", to)
			}
			return err
		})
	case "batch":
		t.Batch, err = p.arrays()
	case "activation_bytes":
		err = p.activations()
	case "capacity_bytes":
		t.Capacity, err = p.Integer("a number of bytes", 1, jsontext.MaxInteger)
	}
	return err
}

func (p *parser) optimizer() (err error) {
	if p.Kind() != jsontext.String {
		p.tree.States, err = p.arrays()
		return err
	}
	name, err := p.Text("the name of an optimizer")
	if err != nil {
		return err
	}
	p.tree.Optimizer, err = memory.ParseOptimizer(name)
	return p.at(err)
}

func (p *parser) activations() error {
	var v [2]int64
	err := p.Tuple("activations as [low, high]", 2, func(i int) (err error) {
		v[i], err = p.Integer("a number of bytes", v[0], jsontext.MaxInteger)
		return err
	})
	p.tree.Activations = &memory.Interval{Low: v[0], High: v[1]}
	return err
}

// at adds the JSON Pointer of the value that is being read to an error.
func (p *parser) at(err error) error {
	if e, ok := errors.AsType[*status.Error](err); ok {
		return p.Fail("%s", e.Msg).WithHint("%s", e.Hint)
	}
	return err
}

func (p *parser) arrays() ([]memory.Array, error) {
	list := []memory.Array{}
	err := p.Object("an object of arrays", func(name string) error {
		if len(list) == MaxArrays {
			return p.Fail("there are more than %d arrays", MaxArrays)
		}
		a, err := p.array(name)
		list = append(list, a)
		return err
	})
	return list, err
}

func (p *parser) array(name string) (memory.Array, error) {
	a := memory.Array{Name: name}
	if name == "" {
		return a, p.Fail("an array has no name").WithHint("a name has at least one character")
	}
	pointer := p.Pointer()
	err := p.Members("an array", 2, []string{"shape", "dtype", "spec", "shard_shape", "memory_kind"}, func(key string) (err error) {
		switch key {
		case "shape":
			a.Shape, err = p.shape()
		case "dtype":
			a.Element, err = p.element()
		case "spec":
			a.Spec, err = layouts.ReadSpec(p.Reader)
		case "shard_shape":
			a.Shard, err = p.shape()
		case "memory_kind":
			a.Host, err = p.host()
		}
		return err
	})
	if err == nil && a.Shard != nil {
		err = checkShard(pointer, a)
	}
	return a, err
}

func checkShard(path string, a memory.Array) error {
	if a.Spec != nil {
		return form.Memory.Invalid(path, "array %s has a spec and a shard_shape", wording.Quote(a.Name)).WithHint("give only one of them")
	}
	fits := len(a.Shard) == len(a.Shape)
	for d := range a.Shard {
		fits = fits && a.Shard[d] <= a.Shape[d]
	}
	if !fits {
		return form.Memory.Invalid(path+"/shard_shape", "shard_shape %s is not a part of shape %s", wording.Shape(a.Shard), wording.Shape(a.Shape)).
			WithHint("give the size of the largest part in every dimension")
	}
	return nil
}

func (p *parser) shape() ([]int, error) {
	shape := []int{}
	err := p.List("a shape", layout.MaxRank, func(int) error {
		if p.Kind() == jsontext.String {
			return p.Fail("expected a size, but found a string").WithHint(`write a number instead of "B"; meshfeed check and meshfeed plan read layouts`)
		}
		n, err := p.Int("a size", 0, jsontext.MaxInteger)
		shape = append(shape, n)
		return err
	})
	return shape, err
}

func (p *parser) element() (memory.Element, error) {
	name, err := p.Word("an element type")
	if err != nil {
		return memory.Invalid, err
	}
	e, err := memory.ParseElement(name)
	return e, p.at(err)
}

const deviceMemory = "device"

// memoryKinds lists the memory kinds of JAX.
var memoryKinds = []string{deviceMemory, "pinned_host", "unpinned_host"}

// host reads a memory kind. It returns "" for the memory of a device.
func (p *parser) host() (string, error) {
	kind, err := p.Word("a memory kind")
	if err == nil && !slices.Contains(memoryKinds, kind) {
		return "", p.Fail("%s is not a memory kind of JAX", wording.Quote(kind)).WithHint("%s", wording.Suggest(kind, memoryKinds))
	}
	if kind == deviceMemory {
		kind = ""
	}
	return kind, err
}

// Measure reads a document and computes the sizes of its arrays.
func Measure(text []byte) (*memory.Usage, error) {
	tree, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return memory.Measure(tree), nil
}
