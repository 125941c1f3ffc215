package source

import (
	"context"
	"fmt"
	"strings"
)

// IsText reports whether the rows of a ragged field, or the elements of their lists, are
// text in UTF-8. Data are not trusted: reading a row does not check its bytes.
func (f Field) IsText() bool { return f.Ragged > 0 && strings.Contains(f.Logical, "string") }

// TypeString returns the type of a row: "string", "list<int32>", "list<list<float32[3]>>".
func (f Field) TypeString() string {
	inner, lists := f.Type.String(), f.Ragged
	if len(f.Shape) > 0 {
		inner += strings.ReplaceAll(fmt.Sprint(f.Shape), " ", ", ")
	}
	if f.Logical != "" {
		inner = f.Logical
		if f.IsText() || f.IsBytes() {
			lists--
		}
	}
	return strings.Repeat("list<", lists) + inner + strings.Repeat(">", lists)
}

// IsBytes reports whether the innermost lists are values of Arrow's binary types.
func (f Field) IsBytes() bool { return f.Ragged > 0 && strings.Contains(f.Logical, "binary") }

// Why returns why the rows of a ragged field are not rows of an array, with a remedy. It is
// empty for a fixed field.
func (f Field) Why() string {
	pad := fmt.Sprintf("ds.pad(%q, length=…) in Python, view.Pad in Go, mf_dataset_pad in C", f.Name)
	what := "lists of different lengths; give them one length: " + pad
	switch {
	case f.Ragged == 0:
		return ""
	case f.Ragged > 1:
		what = "nested lists of different lengths; store them with one length"
	case strings.HasPrefix(f.Logical, "dictionary<"):
		what = "categories, given as text; store the indices instead: column.combine_chunks().indices in pyarrow, to_physical() in polars, cat.codes in pandas"
	case f.IsText():
		what = "text of different lengths; store token ids, or give the bytes one length: " + pad
	case f.IsBytes():
		what = "bytes of different lengths; store decoded elements, or give the bytes one length: " + pad
	}
	return "its rows are " + what
}

// lengthsAtOnce is the number of records whose lengths are read together.
const lengthsAtOnce = 64 << 10

// Lengths writes the lengths of the rows of a ragged field to out, from record start on. If
// out is empty, it still refuses a fixed field.
func Lengths(ctx context.Context, src Source, field int, start int64, out []int64) error {
	r, err := src.Reader([]int{field})
	if err != nil {
		return err
	}
	defer r.Close()
	records := make([]int64, min(lengthsAtOnce, len(out)))
	for from := 0; from == 0 || from < len(out); from += lengthsAtOnce {
		some := out[from:min(from+lengthsAtOnce, len(out))]
		for i := range some {
			records[i] = start + int64(from+i)
		}
		if err := r.Lengths(ctx, field, records[:len(some)], some); err != nil {
			return err
		}
	}
	return nil
}
