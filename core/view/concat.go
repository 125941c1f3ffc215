package view

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Concat returns a view of the records of several datasets, one dataset after the
// other. Their fields must have the same names, types of values and shapes; see
// [source.Field.Unify]. The view has the order of the first dataset. Lists of one length and lists
// of another, or of several, are joined to a ragged field. A field may hold nulls if it may in one
// of the datasets. Names of classes must be equal where two datasets have some. A dataset may
// occur twice.
func Concat(sources ...source.Source) (source.Source, error) {
	if len(sources) == 0 {
		return nil, status.New(status.InvalidArgument, "view", "there are no datasets to concatenate").
			WithHint("give at least one")
	}
	if err := source.Given("view", sources...); err != nil {
		return nil, err
	}
	var flat []source.Source
	for i, s := range sources {
		s, err := like(sources[0].Schema(), s, i)
		if err != nil {
			return nil, err
		}
		if c, ok := s.(*concat); ok {
			if err := c.calls.Enter(); err != nil {
				return nil, err
			}
			defer c.calls.Leave()
			flat = append(flat, c.below...)
			continue
		}
		flat = append(flat, s)
	}
	v := &concat{newBase("concatenation", flat...)}
	v.records, v.schema, v.origins, v.base.identify = v.starts[len(flat)], joined(flat), allOf(flat[0]), v.identify
	return v, nil
}

// like returns dataset i with its fields in the order of dataset 0.
func like(first source.Schema, s source.Source, i int) (source.Source, error) {
	other := s.Schema()
	if err := agree(first, other, i); err != nil {
		return nil, err
	}
	names := make([]string, len(first.Fields))
	ordered := true
	for k := range first.Fields {
		names[k] = first.Fields[k].Name
		ordered = ordered && other.Fields[k].Name == names[k]
	}
	if ordered {
		return s, nil
	}
	return Select(s, names...)
}

// agree returns the first difference between the fields of dataset 0 and dataset i.
func agree(first, other source.Schema, i int) error {
	differ := func(format string, args ...any) error {
		return status.Errorf(status.InvalidArgument, "view", "datasets 0 and %d differ: %s", i, fmt.Sprintf(format, args...)).
			WithHint("make their fields equal, for example by select and rename").With("dataset", i)
	}
	for _, a := range first.Fields {
		_, b, ok := other.Field(a.Name)
		if !ok {
			return differ("only dataset 0 has field %q", a.Name)
		}
		if _, ok := a.Unify(b); !ok {
			return differ("field %q is %s and %s", a.Name, typeOf(a), typeOf(b))
		}
		if what := source.DifferentClasses(a.Names, b.Names); what != "" {
			return differ("field %q stands for other classes: %s", a.Name, what)
		}
	}
	for _, b := range other.Fields {
		if _, _, ok := first.Field(b.Name); !ok {
			return differ("only dataset %d has field %q", i, b.Name)
		}
	}
	return nil
}

// typeOf describes what the rows of a field are, such as "int64[3] (timestamp[s])".
func typeOf(f source.Field) string {
	if f.Ragged > 0 {
		return f.TypeString()
	}
	text := f.Type.String()
	if len(f.Shape) > 0 {
		text += strings.ReplaceAll(fmt.Sprint(f.Shape), " ", ", ")
	}
	if f.Logical != "" {
		text += " (" + f.Logical + ")"
	}
	return text
}

// joined returns the schema of the first dataset. A field may hold nulls, is ragged, or is
// skipped, if that is so in one of the datasets.
func joined(sources []source.Source) source.Schema {
	schema := sources[0].Schema()
	out := source.Schema{Fields: slices.Clone(schema.Fields), Skipped: slices.Clone(schema.Skipped)}
	for _, s := range sources[1:] {
		for k, f := range s.Schema().Fields {
			out.Fields[k], _ = out.Fields[k].Unify(f)
			if !slices.Equal(out.Fields[k].Names, f.Names) {
				out.Fields[k].Names = nil // unknown in one of the datasets
			}
		}
		for _, skipped := range s.Schema().Skipped {
			if !slices.ContainsFunc(out.Skipped, func(o source.Skipped) bool { return o.Name == skipped.Name }) {
				out.Skipped = append(out.Skipped, skipped)
			}
		}
	}
	return out
}

// concat is a view of several datasets.
type concat struct{ base }

// identify leaves out datasets without records, unless all are empty.
func (v *concat) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	var full []source.Fingerprint
	for i, f := range below {
		if v.starts[i] < v.starts[i+1] {
			full = append(full, f)
		}
	}
	switch len(full) {
	case 0:
		return below[0], nil
	case 1:
		return full[0], nil
	}
	return fingerprint(hashOf("concat", full...)), nil
}

// Facts implements source.Source.
func (v *concat) Facts() source.Facts {
	f := v.base.Facts()
	f.Units, f.Check = v.units, v.check
	return f
}

// check checks the records of each dataset that has a check.
func (v *concat) check(ctx context.Context, fields []int, start, stop int64) error {
	return v.call(ctx, func(ctx context.Context) error {
		for i, s := range v.below {
			from, to := max(start, v.starts[i])-v.starts[i], min(stop, v.starts[i+1])-v.starts[i]
			if check := s.Facts().Check; check != nil && from < to {
				if err := check(ctx, fields, from, to); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
