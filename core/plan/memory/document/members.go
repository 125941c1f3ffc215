package document

import (
	"slices"

	"github.com/meshfeed/meshfeed/core/layout"
	layouts "github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/plan/memory"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// document is what a text says: a tree, and its mesh.
type document struct {
	mesh layout.MeshSpec
	memory.Tree
}

func (d *document) members() []*form.Member {
	return []*form.Member{
		form.Key("mesh", layouts.Mesh(&d.mesh), "").Required(),
		form.Key("arrays", arrays(&d.Parameters), `The parameters by name. A name in a nested tree is joined by "/".`).Required(),
		form.Key("optimizer", optimizer{arrays(&d.States), &d.Optimizer}, "The name of an optimizer, which has states for the parameters, or the states themselves. Left out for no states."),
		form.Key("precision", precision(&d.Tree), "Element types of arrays that follow from the parameters."),
		form.Key("batch", arrays(&d.Batch), "The arrays of a batch by name, of the whole batch."),
		form.Key("activation_bytes", form.Pointer(&d.Activations, activations), "The least and the most bytes of a device that activations take."),
		form.Key("capacity_bytes", form.Integer(&d.Capacity, "a number of bytes", 1, jsontext.MaxInteger), "The memory of a device."),
	}
}

func precision(t *memory.Tree) form.Value {
	return form.Object("a precision",
		form.Key("gradients", float(&t.Gradients), "The type of the gradients; the type of the parameter if left out."),
		form.Key("master", float(&t.Master), "The type of the optimizer's copy of the parameters; left out for no copy."),
		form.Key("moments", moments(&t.Moments), "The type of a named optimizer's states; the type of the parameter if left out."),
	)
}

func arrays(to *[]memory.Array) form.Value {
	return form.Defined("arrays", "", form.ByName(to, "an object of arrays", nil, MaxArrays, array))
}

func array(a *memory.Array) (*string, form.Value) {
	return &a.Name, form.Checked(form.With(`"not":{"required":["spec","shard_shape"]}`, form.Object("an array",
		form.Key("shape", shape(&a.Shape), "The global shape.").Required(),
		form.Key("dtype", element(&a.Element), "").Required(),
		form.Key("spec", layouts.Spec(&a.Spec), "").Default("[]"),
		form.Key("shard_shape", shape(&a.Shard), "Instead of spec: the shape of the largest part of the array on a device."),
		form.Key("memory_kind", memoryKind(&a.Host), "The memory of the array, as JAX names it.").Default(`"device"`),
	)), func(r *jsontext.Reader) error { return checkArray(r, a) })
}

func checkArray(r *jsontext.Reader, a *memory.Array) error {
	if a.Name == "" {
		return r.Fail("an array has no name").WithHint("a name has at least one character")
	}
	if a.Shard == nil {
		return nil
	}
	if a.Spec != nil {
		return r.Fail("array %s has a spec and a shard_shape", wording.Quote(a.Name)).WithHint("give only one of them")
	}
	fits := len(a.Shard) == len(a.Shape)
	for d := range a.Shard {
		fits = fits && a.Shard[d] <= a.Shape[d]
	}
	if !fits {
		return r.FailAt(r.Pointer()+"/shard_shape", "shard_shape %s is not a part of shape %s", wording.Shape(a.Shard), wording.Shape(a.Shape)).
			WithHint("give the size of the largest part in every dimension")
	}
	return nil
}

func shape(to *[]int) form.Value {
	return form.Defined("sizes", "", form.List(to, "a shape", layout.MaxRank, func(to *int) form.Value { return form.Before(refuseName, layouts.Size(to)) }))
}

// refuseName refuses a name in a shape, and says which documents have batch dimensions.
func refuseName(r *jsontext.Reader) error {
	if r.Kind() == jsontext.String {
		return r.Fail("expected a size, but found a string").WithHint(`write a number instead of "B"; meshfeed check and meshfeed plan read layouts`)
	}
	return nil
}

func element(to *memory.Element) form.Value {
	return form.Defined("dtype", "The element type, as JAX spells it.", form.Parsed(to, "an element type", memory.ParseElement, memory.Elements))
}

func float(to *memory.Element) form.Value {
	return form.Checked(element(to), func(r *jsontext.Reader) error { return checkFloat(r, *to, to.IsFloat()) })
}

func moments(to *memory.Element) form.Value {
	return form.Checked(element(to), func(r *jsontext.Reader) error { return checkFloat(r, *to, to.IsFloat() || to.StoresMoments()) })
}

func checkFloat(r *jsontext.Reader, e memory.Element, ok bool) error {
	if !ok {
		return r.Fail("%s is not a type of floating-point numbers", e)
	}
	return nil
}

// activations is [low, high].
func activations(to *memory.Interval) form.Value {
	bytes := func(to *int64) form.Value {
		return form.Defined("bytes", "", form.Integer(to, "a number of bytes", 0, jsontext.MaxInteger))
	}
	return form.Checked(form.Tuple("activations as [low, high]", bytes(&to.Low), bytes(&to.High)), func(r *jsontext.Reader) error {
		if to.High < to.Low {
			return r.FailAt(jsontext.Element(r.Pointer(), 1), "expected a number of bytes from %d to %d, but found %d", to.Low, int64(jsontext.MaxInteger), to.High)
		}
		return nil
	})
}

// optimizer is the name of an optimizer, or its states as arrays, which is the embedded value.
type optimizer struct {
	form.Value
	to *memory.Optimizer
}

func (v optimizer) name() form.Value {
	return form.Parsed(v.to, "the name of an optimizer", memory.ParseOptimizer, memory.Optimizers)
}

func (v optimizer) Read(r *jsontext.Reader) error {
	if r.Kind() == jsontext.String {
		return v.name().Read(r)
	}
	return v.Value.Read(r)
}

func (v optimizer) Describe(s *form.Schema) { s.AnyOf("", v.name(), v.Value) }

const deviceMemory = "device"

// memoryKinds lists the memory kinds of JAX.
var memoryKinds = []string{deviceMemory, "pinned_host", "unpinned_host"}

// memoryKind is a memory kind. The variable is "" for the memory of a device.
func memoryKind(to *string) form.Value {
	return form.Checked(form.Choice(to, "a memory kind", memoryKinds...), func(r *jsontext.Reader) error {
		if !slices.Contains(memoryKinds, *to) {
			return r.Fail("%s is not a memory kind of JAX", wording.Quote(*to)).WithHint("%s", wording.Suggest(*to, memoryKinds))
		}
		if *to == deviceMemory {
			*to = ""
		}
		return nil
	})
}
