package document

import (
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/form"
	"github.com/meshfeed/meshfeed/internal/jsontext"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// Size is the size of a dimension.
func Size(to *int) form.Value {
	return form.Defined("size", "", form.Integer(to, "a size", 0, layout.MaxInteger))
}

// Sizes is a shape without batch dimensions.
func Sizes(to *[]int) form.Value {
	return form.Defined("sizes", "", form.List(to, "a shape", layout.MaxRank, Size))
}

// DType is an element type of a batch.
func DType(to *dtype.Type) form.Value {
	return form.Defined("dtype", "The element type, as NumPy and JAX spell it.", form.Parsed(to, "an element type", parseDType, dtype.All))
}

func parseDType(name string) (dtype.Type, error) {
	t, err := dtype.Parse(name)
	if err != nil {
		err = status.Errorf(status.InvalidArgument, "layout", "%s is not an element type", wording.Quote(name)).
			WithHint("use a name such as \"float32\", as NumPy spells it")
	}
	return t, err
}

// Axes are the axes of a mesh.
func Axes(to *[]mesh.Axis) form.Value {
	return form.List(to, "a list of axes", mesh.MaxAxes, func(a *mesh.Axis) form.Value {
		size := form.Described(`"type":"integer","minimum":1,"maximum":1048576`, form.Integer(&a.Size, "a size", 1, layout.MaxInteger))
		return form.Tuple("an axis as [name, size]", axisName(&a.Name), size)
	})
}

func axisName(to *string) form.Value { return form.Word(to, "the name of an axis") }

// Spec is the partition spec of an array.
func Spec(to *sharding.PartitionSpec) form.Value {
	return form.Defined("spec", "A jax.sharding.PartitionSpec: per dimension null, an axis, or a list of axes with the most significant one first. Dimensions beyond its end are not partitioned.",
		SpecOf(to, layout.MaxRank, axisName))
}

// SpecOf is a partition spec with at most rank entries: null, an axis, or a list of axes.
func SpecOf(to *sharding.PartitionSpec, rank int, axis func(to *string) form.Value) form.Value {
	return form.List((*[][]string)(to), "a spec as a list", rank, func(to *[]string) form.Value {
		return &entry{form.List(to, "an axis, a list of axes or null", mesh.MaxAxes, axis), to, axis}
	})
}

// entry is an entry of a spec. The embedded value is a list of axes.
type entry struct {
	form.Value
	to   *[]string
	axis func(to *string) form.Value
}

func (e *entry) Read(r *jsontext.Reader) error {
	switch {
	case r.Null():
		return nil
	case r.Kind() == jsontext.String:
		*e.to = []string{""}
		return e.axis(&(*e.to)[0]).Read(r)
	}
	err := e.Value.Read(r)
	if len(*e.to) == 0 {
		*e.to = nil
	}
	return err
}

func (e *entry) Write(w *jsontext.Writer) {
	switch axes := *e.to; len(axes) {
	case 0:
		w.Null()
	case 1:
		w.String(axes[0])
	default:
		w.Strings(axes...)
	}
}

func (e *entry) Describe(s *form.Schema) {
	s.AnyOf(`"type":"null"`, e.axis(new(string)), e.Value)
}

// WriteSpec writes a partition spec.
func WriteSpec(w *jsontext.Writer, spec sharding.PartitionSpec) { Spec(&spec).Write(w) }
