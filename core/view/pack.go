package view

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/internal/block"
)

// Packing describes the rows of [Pack]. Package packing explains the options; Pack sets
// Options.Separator if there is a separator.
type Packing struct {
	packing.Options
	Fields    []string // more fields to pack, such as a loss mask; their rows are as long as the first field's
	Separator any      // ends each document: an element of the first field, 0 in the others; nil for none
	Labels    string   // the name of a field of labels; empty for none
	Ignored   any      // the label of the last element of a document, and of padding; nil for -100
}

// The names of the fields that [Pack] adds.
const (
	SegmentsName  = "segment_ids"
	PositionsName = "positions"
)

// Pack returns a view whose rows hold several documents each, so that they have little padding.
// A document is the row of a record: a list, text or bytes. A null is an empty document, and empty
// documents are in no row.
//
// The fields of the view are the packed field, p.Fields, the labels, "segment_ids" and "positions", with
// rows of p.Length elements. All other fields are left out. Packed fields are 0 in padding. A segment id
// is the number of a document in its row, from 1 on, and 0 in padding. A position counts the elements
// of a document in its row, from 0 on. So a document that is cut begins at 0 in each row, because
// attention cannot reach the elements in other rows.
//
// A label is the next element of the same document, even if that is in another row. Labels of
// unsigned integers have type int32.
//
// Pack reads the lengths of all rows, which must not depend on the draw, and no values. For more than 65,536
// documents in files, it keeps the counts of rows in the cache folder of the files, for later runs. A null element
// of a document is an error of the gather that needs it.
func Pack(ctx context.Context, src source.Source, field string, p Packing) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	if err := keepsRecords("pack", src); err != nil {
		return nil, err
	}
	v := &pack{base: newBase("pack", src), options: p}
	v.identify = v.hash
	if err := v.choose(src.Schema(), append([]string{field}, p.Fields...)); err != nil {
		return nil, err
	}
	o := p.Options
	o.Separator = p.Separator != nil
	var err error
	if v.plan, err = v.planned(ctx, o); err != nil {
		return nil, err
	}
	v.records, v.numbers = v.plan.Rows(), make([]byte, 0, 4*p.Length)
	for i := range p.Length {
		v.numbers = binary.LittleEndian.AppendUint32(v.numbers, uint32(i))
	}
	return v, nil
}

// planned plans the rows, or takes the counts that an earlier run has kept. Few documents are counted
// each time.
func (v *pack) planned(ctx context.Context, o packing.Options) (*packing.Plan, error) {
	src := v.below[0]
	notes, key := v.facts[0].Notes, ""
	if notes == nil || src.Len() <= uncounted {
		return packing.New(ctx, src.Len(), v.lengths, o)
	}
	version, err := source.VersionOf(src)
	if err == nil {
		below, err := src.Fingerprint(ctx)
		if err != nil {
			return nil, err
		}
		h := hashOf("counts", below)
		fmt.Fprintf(h, "%q %v %+v\n", version, v.fields, o)
		key = fingerprint(h).String()
		if p := packing.Restore(src.Len(), v.lengths, o, notes.Note(key)); p != nil {
			return p, nil
		}
	}
	p, err := packing.New(ctx, src.Len(), v.lengths, o)
	if err == nil && key != "" {
		notes.KeepNote(key, p.Counts())
	}
	return p, err
}

// uncounted is the most documents of which no counts are kept: one group.
const uncounted = 1 << 16

// PackingOf returns the report of a view that Pack has made.
func PackingOf(src source.Source) (r packing.Report, ok bool) {
	v, ok := src.(*pack)
	if ok {
		r = v.plan.Report()
	}
	return r, ok
}

// pack is a view whose rows consist of the rows of several records below.
type pack struct {
	base
	options  Packing
	plan     *packing.Plan
	contents []content // by field
	fields   []int     // the packed fields below
	numbers  []byte    // from 0 on, as int32: the positions of a document that fills a row

	separator, ignored []byte // one number each, of the types of the packed field and of the labels
}

// content says what the rows of a field are made of.
type content struct {
	kind    contentKind
	slot    int          // of copies and labels: an index in pack.fields
	element source.Field // of copies and labels: an element of the rows below
}

type contentKind int

const (
	copies contentKind = iota
	labels
	segments
	positions
)

// choose sets the fields of the view.
func (v *pack) choose(schema source.Schema, names []string) error {
	for slot, name := range names {
		number, f, err := listsOf(schema, name, "pack", "packed", "store the values of all inner lists of a record as one list")
		if err != nil {
			return err
		}
		if f.Mapped && schema.Fields[number].HasLengths() {
			return status.Errorf(status.InvalidArgument, "view", "field %q has rows that a map computes, and pack needs the lengths of all rows before", name).
				WithHint("keep the rows before they are packed (Go: Mapping.Key and arrowio.Cached; Python: ds.map(…, key=\"tokens.1\").cache().pack(…); C: a view of the kind cache)").With("field", name)
		}
		if limit := maxRowBytes / max(f.RowBytes(), 1); v.options.Length < 1 || v.options.Length > limit {
			return status.Errorf(status.OutOfRange, "view", "the length of packed rows of field %q is %d, but must be from 1 to %d", name, v.options.Length, limit).
				With("field", name)
		}
		element := f
		if below := schema.Fields[number]; below.IsText() || below.IsBytes() {
			f.Logical = ""
		}
		f.Lists, f.Nullable, f.HasNulls, f.Mapped = false, false, false, false
		v.fields = append(v.fields, number)
		v.add(f, content{copies, slot, element})
	}
	first := v.contents[0].element
	if v.options.Separator != nil {
		var err error
		if v.separator, err = v.encode("the separator", first, first.Type, v.options.Separator); err != nil {
			return err
		}
	}
	if v.options.Labels != "" {
		typ, ok := labelType(first)
		if !ok {
			return status.Errorf(status.InvalidArgument, "view", "labels are integers, but field %q has elements of type %s", first.Name, first.TypeString()).
				WithHint("leave out the labels").With("field", first.Name)
		}
		v.options.Ignored = cmp.Or[any](v.options.Ignored, -100)
		var err error
		if v.ignored, err = v.encode("the ignored label", first, typ, v.options.Ignored); err != nil {
			return err
		}
		v.add(source.Field{Name: v.options.Labels, Type: typ, Computed: true}, content{labels, 0, first})
	}
	v.add(source.Field{Name: SegmentsName, Type: dtype.Int32, Computed: true}, content{kind: segments})
	v.add(source.Field{Name: PositionsName, Type: dtype.Int32, Computed: true}, content{kind: positions})
	return v.checkNames()
}

// add adds a field with packed rows.
func (v *pack) add(f source.Field, c content) {
	f.Shape = append([]int{v.options.Length}, f.Shape...)
	v.schema.Fields, v.contents = append(v.schema.Fields, f), append(v.contents, c)
}

// encode returns the bytes of a value as a number of a type.
func (v *pack) encode(what string, f source.Field, t dtype.Type, value any) ([]byte, error) {
	b, ok := block.Element(t, value)
	if !ok {
		return nil, status.Errorf(status.InvalidArgument, "view", "%s of field %q is %v, but %v cannot hold it", what, f.Name, value, t).
			WithHint("give a value of that type").With("field", f.Name)
	}
	return b, nil
}

// labelType returns the type of the labels of a field. Unsigned types cannot hold -100.
func labelType(f source.Field) (t dtype.Type, ok bool) {
	switch t = f.Type; {
	case !t.IsInteger() || len(f.Shape) > 0:
		return t, false
	case t >= dtype.Uint8:
		t = dtype.Int32
	}
	return t, true
}

// checkNames returns an error if two fields have one name.
func (v *pack) checkNames() error {
	var known source.Schema
	for _, f := range v.schema.Fields {
		if err := checkName(f.Name); err != nil {
			return err
		}
		if err := addField(&known, "packed rows", f); err != nil {
			return err
		}
	}
	return nil
}

// lengths reads the lengths of documents, and compares the lengths of all packed fields.
func (v *pack) lengths(ctx context.Context, start int64, out []int64) error {
	return v.call(ctx, func(ctx context.Context) error {
		if err := source.Lengths(ctx, v.below[0], v.fields[0], start, out); err != nil {
			return err
		}
		others := make([]int64, len(out))
		for slot, field := range v.fields[1:] {
			if err := source.Lengths(ctx, v.below[0], field, start, others); err != nil {
				return err
			}
			for i, n := range others {
				if max(n, 0) != max(out[i], 0) {
					return v.uneven(slot+1, start+int64(i), n, out[i])
				}
			}
		}
		return nil
	})
}

func (v *pack) uneven(slot int, record, n, first int64) error {
	name, other := v.contents[slot].element.Name, v.contents[0].element.Name
	return status.Errorf(status.InvalidArgument, "view", "record %d has %d elements in field %q, but %d in field %q", record, max(n, 0), name, max(first, 0), other).
		WithHint("fields that are packed together have rows of one length; leave out the record, or the field").With("field", name).With("record", record)
}

// hash hashes what the rows depend on. Options that change no row are left out.
func (v *pack) hash(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h, o := hashOf("pack", below...), v.plan.Effective()
	fmt.Fprintf(h, "%s %d %d %s %d %d\n", o.Method, o.Length, o.Group, o.TooLong, o.MaxDocuments, o.Overlap)
	fmt.Fprintf(h, "%q %x %x\n", v.options.Labels, v.separator, v.ignored)
	fields := make([]int64, len(v.fields))
	for i, f := range v.fields {
		fields[i] = int64(f)
	}
	err := hashNumbers(ctx, h, fields...)
	return fingerprint(h), err
}

// Facts implements source.Source. Nothing needs to be checked, because Pack has read all lengths.
func (v *pack) Facts() source.Facts {
	f := v.base.Facts()
	f.Units, f.Check = v.plan.Units, nil
	return f
}

// Reader implements source.Source. All rows are fixed, and gathered.
func (v *pack) Reader(fields []int) (source.Reader, error) { return cut.Reader(v, fields) }
