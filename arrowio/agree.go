package arrowio

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// agree fails unless a file has the schema of the first one: the same columns in
// the same order, with rows of the same type and shape. Nullability and other
// metadata may differ.
func agree(first, f *file) error {
	want, have := first.schema.Fields, f.schema.Fields
	for i := range min(len(want), len(have)) {
		w, h := &want[i], &have[i]
		switch {
		case w.Name != h.Name:
			return disagree(first, f, w.Name, fmt.Sprintf("column %d is %q, but %q in %s", i, h.Name, w.Name, first.path))
		case w.TypeString() != h.TypeString():
			return disagree(first, f, w.Name, fmt.Sprintf("field %q is %s, but %s in %s", w.Name, h.TypeString(), w.TypeString(), first.path))
		}
		wt, _ := w.Extension()
		ht, _ := h.Extension()
		wd, _ := w.Metadata.Get(arrowtype.DTypeKey)
		hd, _ := h.Metadata.Get(arrowtype.DTypeKey)
		if wt != ht || wd != hd {
			return disagree(first, f, w.Name, fmt.Sprintf("field %q has the extension type %q, but %q in %s", w.Name, ht+hd, wt+wd, first.path))
		}
		if wr, hr := describeRows(w), describeRows(h); wr != hr {
			return disagree(first, f, w.Name, fmt.Sprintf("field %q has %s, but %s in %s", w.Name, hr, wr, first.path))
		}
	}
	if len(want) != len(have) {
		return disagree(first, f, "", fmt.Sprintf("the number of columns is %d, but %d in %s", len(have), len(want), first.path))
	}
	return nil
}

// agreeClasses fails if the integers of a field stand for other classes in another file. It
// drops the names of classes that some files do not declare.
func agreeClasses(files []*file, fields []*arrowtype.Field) error {
	first := files[0]
	for _, f := range files[1:] {
		if arrowtype.SameFeatures(first.schema, f.schema) {
			continue
		}
		others, _ := arrowtype.Describe(f.schema)
		for i, field := range fields {
			switch {
			case field == nil || field.Names == nil:
			case others[i] == nil || others[i].Names == nil:
				field.Names = nil
			default:
				if what := source.DifferentClasses(others[i].Names, field.Names); what != "" {
					return disagree(first, f, field.Name, fmt.Sprintf("field %q stands for other classes than in %s: %s", field.Name, first.path, what))
				}
			}
		}
	}
	return nil
}

// describeRows returns the type and shape of a column's rows. TypeString alone does
// not contain the shape of tensors or the metadata of a list's child.
func describeRows(f *arrowmeta.Field) string {
	rows, reason := arrowtype.Of(f)
	if reason != "" {
		return "no rows of an array"
	}
	return fmt.Sprintf("rows of %v%v", rows.Type, rows.Shape)
}

func disagree(first, f *file, field, msg string) error {
	return status.New(status.Incompatible, "arrowio", f.path+": "+msg).
		WithHint("all files of a dataset need the same columns in the same order; open them apart, or write them again with one schema").
		With("path", f.path).With("field", field)
}
