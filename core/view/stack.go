package view

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Stacked is a field that [Stack] makes of several columns.
type Stacked struct {
	Name    string
	Columns []string
}

// Stack returns a view in which columns of equal type and shape become one field.
// Its first dimension counts them: forty columns of float32 become one field of
// shape [40]. The view leaves the stacked columns out. Other fields keep their
// order, and the stacks follow.
func Stack(src source.Source, stacks ...Stacked) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	v := &stack{base: newBase("stack", src)}
	v.base.identify = v.identify
	schema := src.Schema()
	used := map[int]bool{}
	var fields []source.Field
	for _, s := range stacks {
		f, columns, err := stackedField(schema, s)
		if err != nil {
			return nil, err
		}
		for _, c := range columns {
			used[c] = true
		}
		fields, v.origins = append(fields, f), append(v.origins, origin{fields: columns, joined: true})
	}
	for i := len(schema.Fields) - 1; i >= 0; i-- {
		if !used[i] {
			fields, v.origins = slices.Insert(fields, 0, schema.Fields[i]), slices.Insert(v.origins, 0, passed(i)...)
			v.plain++
		}
	}
	v.schema, v.records = source.Schema{Skipped: schema.Skipped}, src.Len()
	for _, f := range fields {
		if err := addField(&v.schema, "stack", f); err != nil {
			return nil, err
		}
	}
	if err := checkSkipped("stack", v.schema); err != nil {
		return nil, err
	}
	return v, nil
}

// stackedField returns the field, and the numbers of its columns.
func stackedField(schema source.Schema, s Stacked) (f source.Field, columns []int, err error) {
	if err := checkName(s.Name); err != nil {
		return f, nil, err
	}
	if len(s.Columns) == 0 {
		return f, nil, status.Errorf(status.InvalidArgument, "view", "the stack %q has no columns", s.Name).
			WithHint("name at least one")
	}
	for i, name := range s.Columns {
		n, err := schema.Find(name)
		if err != nil {
			return f, nil, err
		}
		next := schema.Fields[n]
		if next.Ragged > 0 {
			return f, nil, status.Errorf(status.Unsupported, "view", "the stack %q cannot join column %q: it is ragged", s.Name, name).
				WithHint("pad it first").With("field", name)
		}
		if i == 0 {
			f = next
		}
		if typeOf(next) != typeOf(f) {
			return f, nil, status.Errorf(status.InvalidArgument, "view", "the stack %q cannot join column %q, which is %s, and column %q, which is %s",
				s.Name, f.Name, typeOf(f), name, typeOf(next)).
				WithHint("stack columns of one type and shape").With("field", name)
		}
		f.Nullable, f.HasNulls = f.Nullable || next.Nullable, f.HasNulls || next.HasNulls
		if !slices.Equal(f.Names, next.Names) {
			f.Names = nil
		}
		columns = append(columns, n)
	}
	f.Name, f.Lists, f.Shape = s.Name, false, append([]int{len(columns)}, f.Shape...)
	return f, columns, nil
}

// stack is a view with stacked fields.
type stack struct {
	base
	plain int // number of fields before the stacks
}

func (v *stack) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("stack", below...)
	for i, from := range v.origins[v.plain:] {
		name := v.schema.Fields[v.plain+i].Name
		if err := hashNumbers(ctx, h, int64(len(name)), int64(len(from.fields))); err != nil {
			return source.Fingerprint{}, err
		}
		h.Write([]byte(name))
		for _, c := range from.fields {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(c)))
		}
	}
	return fingerprint(h), nil
}

// Facts implements source.Source.
func (v *stack) Facts() source.Facts {
	f := v.base.Facts()
	f.Check = v.checked(func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
		return below(ctx, v.fieldsBelow(fields), start, stop)
	})
	return f
}
