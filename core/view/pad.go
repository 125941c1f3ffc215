package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Padding describes the rows of [Pad].
type Padding struct {
	Length   int  // elements of every row
	Value    any  // fills added elements: a number or a boolean; nil for 0
	Left     bool // add them in front of the row, not after it
	Truncate bool // keep the first elements of a longer row, which is an error otherwise
}

// LengthSuffix is what [Pad] appends to the name of the padded field, to name the field
// of the lengths.
const LengthSuffix = "_length"

// Pad returns a view with one length for all rows of a field. The rows below are lists, text or
// bytes of any length, also if all happen to have one. A field of type int32 after it holds how
// many elements of each row are its own. A null row becomes a row of padding of length 0. Text and
// bytes become bytes.
//
// A row that is too long is an error of the gather that needs it, and of [source.Check],
// which loader.New calls. Pad itself reads no row.
func Pad(src source.Source, field string, p Padding) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	schema := src.Schema()
	number, f, err := listsOf(schema, field, "pad", "padded", "store two columns instead, the values of all inner lists as one list and the lengths of these lists, and pad both")
	if err != nil {
		return nil, err
	}
	v := &pad{base: newBase("pad", src), number: number, options: p, rows: schema.Fields[number], element: f}
	v.identify = v.hash
	if v.value, err = paddingValue(f, p.Value); err != nil {
		return nil, err
	}
	if limit := maxRowBytes / max(f.RowBytes(), 1); p.Length < 1 || p.Length > limit {
		return nil, status.Errorf(status.OutOfRange, "view", "the length of field %q is %d, but must be from 1 to %d", field, p.Length, limit).With("field", field)
	}
	if _, _, ok := schema.Field(field + LengthSuffix); ok {
		return nil, status.Errorf(status.InvalidArgument, "view", "the dataset already has a field %q, which pad would add", field+LengthSuffix).
			WithHint("rename that field").With("field", field+LengthSuffix)
	}
	padded := f
	padded.Shape, padded.HasNulls, padded.Lists = append([]int{p.Length}, f.Shape...), false, false
	if v.rows.IsText() || v.rows.IsBytes() { // neither has nulls within a row
		padded.Logical, padded.Nullable = "", false
	}
	lengths := source.Field{Name: field + LengthSuffix, Type: dtype.Int32, Shape: []int{}, Computed: true}
	fields := slices.Clone(schema.Fields)
	fields[number] = padded
	v.schema = source.Schema{Fields: slices.Insert(fields, number+1, lengths), Skipped: schema.Skipped}
	if err := checkSkipped("pad", v.schema); err != nil {
		return nil, err
	}
	v.records, v.origins = src.Len(), slices.Insert(allOf(src), number+1, origin{fields: []int{number}, compute: v.padLength, lengths: !v.rows.Mapped})
	v.origins[number].compute = v.padRow
	return v, nil
}

// maxRowBytes bounds a row that a view makes.
const maxRowBytes = 1 << 31

// listsOf finds a field and describes an element of its rows. The rows must have a first dimension.
// Errors say what a view would do with it, and what to do about lists of lists.
func listsOf(schema source.Schema, name, do, done, remedy string) (number int, element source.Field, err error) {
	if number, err = schema.Find(name); err != nil {
		return 0, element, err
	}
	element = schema.Fields[number]
	switch {
	case element.Ragged > 1:
		return 0, element, status.Errorf(status.Unsupported, "view", "field %q has rows of type %s, and only their first dimension can be %s", name, element.TypeString(), done).
			WithHint("%s", remedy).With("field", name)
	case element.Ragged == 1:
		element.Ragged = 0
	case len(element.Shape) == 0:
		return 0, element, status.Errorf(status.InvalidArgument, "view", "field %q has one value in each record, and no length to %s", name, do).With("field", name)
	default:
		element.Shape = element.Shape[1:]
	}
	return number, element, nil
}

// paddingValue encodes the value of added elements.
func paddingValue(f source.Field, value any) ([]byte, error) {
	if value == nil {
		return make([]byte, f.Type.Size()), nil
	}
	b, ok := block.Element(f.Type, value)
	if !ok {
		return nil, status.Errorf(status.InvalidArgument, "view", "field %q cannot be padded with %v: %v cannot hold it", f.Name, value, f.Type).
			WithHint("give a value of the type of the field").With("field", f.Name)
	}
	return b, nil
}

// pad is a view with a padded field, and a field of its lengths after it.
type pad struct {
	base
	number  int          // number of the field, in the dataset below and in the view
	rows    source.Field // the field in the dataset below
	element source.Field // an element of its rows
	options Padding
	value   []byte // one element
}

// hash hashes the fingerprint below, the field and how it is padded.
func (v *pad) hash(ctx context.Context, below []source.Fingerprint) (f source.Fingerprint, err error) {
	h := hashOf("pad", below...)
	o := v.options
	if err := hashNumbers(ctx, h, int64(v.number), int64(o.Length), int64(flag(o.Left)), int64(flag(o.Truncate))); err != nil {
		return f, err
	}
	h.Write(v.value)
	return fingerprint(h), nil
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Facts implements source.Source.
func (v *pad) Facts() source.Facts {
	f := v.base.Facts()
	f.Check = v.check
	return f
}

// check reads the lengths of the rows, unless longer rows are truncated.
func (v *pad) check(ctx context.Context, fields []int, start, stop int64) error {
	return v.call(ctx, func(ctx context.Context) error {
		var others []int
		padded := false
		for _, field := range fields {
			if v.origins[field].compute != nil {
				padded = true
				continue
			}
			others = append(others, v.origins[field].fields...)
		}
		if check := v.facts[0].Check; check != nil && len(others) > 0 {
			if err := check(ctx, others, start, stop); err != nil {
				return err
			}
		}
		if !padded || v.options.Truncate || v.rows.Mapped { // a gather reports a row of a map that is too long
			return nil
		}
		return v.checkLengths(ctx, start, stop)
	})
}

// lengthsAtOnce is the number of lengths that are checked together.
const lengthsAtOnce = 1 << 20

// checkLengths returns an error if a row of the records [start, stop) is too long.
func (v *pad) checkLengths(ctx context.Context, start, stop int64) error {
	if f := v.rows; !f.HasLengths() {
		if n := int64(f.Shape[0]); n > int64(v.options.Length) && !f.Nullable && start < stop {
			return v.tooLong(start, n)
		}
		return nil
	}
	lengths := make([]int64, min(lengthsAtOnce, max(stop-start, 0)))
	for from := start; from < stop; from += lengthsAtOnce {
		some := lengths[:min(lengthsAtOnce, stop-from)]
		if err := source.Lengths(ctx, v.below[0], v.number, from, some); err != nil {
			return err
		}
		for i, length := range some {
			if length > int64(v.options.Length) {
				return v.tooLong(from+int64(i), length)
			}
		}
	}
	return nil
}

func (v *pad) tooLong(record, length int64) error {
	return status.Errorf(status.OutOfRange, "view", "field %q: record %d has %d elements, but pad makes rows of %d", v.rows.Name, record, length, v.options.Length).
		WithHint(`give a larger length, or cut longer rows: too_long="truncate" in Python, Padding.Truncate in Go, MF_PAD_TRUNCATE in C`).With("field", v.rows.Name).With("record", record)
}

// padRow copies a row to a longer one, and pads it.
func (v *pad) padRow(_ context.Context, _ source.Draw, m *memory, to *source.Span, rows []source.Span, _ int64) error {
	from, element := &rows[0], v.element.RowBytes()
	n := len(from.Row) / element
	if n > v.options.Length {
		if !v.options.Truncate {
			return v.tooLong(from.Record, int64(n))
		}
		n = v.options.Length
	}
	at := 0
	if v.options.Left {
		at = v.options.Length - n
	}
	to.Row = m.bytes(v.options.Length * element)
	copy(to.Row[at*element:], from.Row[:n*element])
	repeat(to.Row[:at*element], v.value)
	repeat(to.Row[(at+n)*element:], v.value)
	each := element / v.element.Type.Size()
	if from.Nulls == nil || !slices.Contains(from.Nulls[:n*each], true) {
		return nil
	}
	to.Nulls = make([]bool, v.options.Length*each)
	copy(to.Nulls[at*each:], from.Nulls[:n*each])
	if !slices.Contains(to.Nulls, false) {
		to.Row, to.Nulls = nil, nil
	}
	return nil
}

// padLength sets the number of elements of a padded row that are its own.
func (v *pad) padLength(_ context.Context, _ source.Draw, m *memory, to *source.Span, rows []source.Span, length int64) error {
	if rows != nil {
		length = int64(len(rows[0].Row) / v.element.RowBytes())
	}
	if length > int64(v.options.Length) && !v.options.Truncate {
		return v.tooLong(to.Record, length)
	}
	to.Row = m.bytes(4)
	binary.LittleEndian.PutUint32(to.Row, uint32(min(max(length, 0), int64(v.options.Length))))
	return nil
}

// repeat fills dst with copies of a value.
func repeat(dst, value []byte) {
	if len(bytes.TrimLeft(value, "\x00")) == 0 {
		clear(dst)
		return
	}
	for n := copy(dst, value); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}
