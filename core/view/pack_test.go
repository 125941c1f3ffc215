package view_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// packedModel makes the rows of a packed view from plain rows, element by element. Fields are numbers
// of fields of the model. The plan says which elements stand where; package packing tests it.
func packedModel(t testing.TB, m model, fields []int, p view.Packing) model {
	lists := func(field, record int) []byte { return m.rows[record][field] }
	o, first := p.Options, m.fields[fields[0]]
	o.Separator = p.Separator != nil
	length := func(record int64) int64 { return int64(len(lists(fields[0], int(record))) / element(first).RowBytes()) }
	plan, err := packing.New(t.Context(), int64(len(m.rows)), func(_ context.Context, start int64, out []int64) error {
		for i := range out {
			out[i] = length(start + int64(i))
		}
		return nil
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	var out model
	add := func(f source.Field) { out.fields = append(out.fields, f) }
	for _, n := range fields {
		f := element(m.fields[n])
		f.Shape, f.Nullable = append([]int{p.Length}, f.Shape...), false
		add(f)
	}
	labels := source.Field{Name: p.Labels, Type: first.Type, Shape: []int{p.Length}}
	if p.Labels != "" {
		if first.Type >= dtype.Uint8 {
			labels.Type = dtype.Int32
		}
		add(labels)
	}
	add(source.Field{Name: "segment_ids", Type: dtype.Int32, Shape: []int{p.Length}})
	add(source.Field{Name: "positions", Type: dtype.Int32, Shape: []int{p.Length}})
	number := func(typ dtype.Type, value int64) []byte {
		return binary.LittleEndian.AppendUint64(nil, uint64(value))[:typ.Size()]
	}
	at := func(field int, record, k int64) []byte { // element k of a document
		size := element(m.fields[field]).RowBytes()
		if k < length(record) {
			return lists(field, int(record))[k*int64(size):][:size]
		}
		if field == fields[0] {
			return number(first.Type, int64(p.Separator.(int)))
		}
		return make([]byte, size)
	}
	ignored := int64(-100)
	if p.Ignored != nil {
		ignored = int64(p.Ignored.(int))
	}
	for k := range plan.Rows() {
		pieces, err := plan.Row(t.Context(), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		cells := make([][]byte, len(out.fields))
		for s, piece := range pieces {
			for e := piece.Start; e < piece.Stop; e++ {
				for i, n := range fields {
					cells[i] = append(cells[i], at(n, piece.Document, e)...)
				}
				if p.Labels != "" {
					label := number(labels.Type, ignored)
					if e+1 < piece.Total {
						next := append(slices.Clone(at(fields[0], piece.Document, e+1)), make([]byte, 8)...)
						label = next[:labels.Type.Size()]
					}
					cells[len(fields)] = append(cells[len(fields)], label...)
				}
				cells[len(cells)-2] = append(cells[len(cells)-2], number(dtype.Int32, int64(s+1))...)
				cells[len(cells)-1] = append(cells[len(cells)-1], number(dtype.Int32, e-piece.Start)...)
			}
		}
		for i, f := range out.fields {
			padding := make([]byte, f.RowBytes()-len(cells[i]))
			if p.Labels != "" && i == len(fields) {
				padding = bytes.Repeat(number(labels.Type, ignored), len(padding)/labels.Type.Size())
			}
			cells[i] = append(cells[i], padding...)
		}
		out.rows = append(out.rows, cells)
	}
	return out
}

// element describes an element of the rows of a field.
func element(f source.Field) source.Field {
	if f.Ragged == 0 {
		f.Shape = f.Shape[1:]
	}
	f.Ragged = 0
	return f
}

// pack packs the rows of a field, and of others of the same lengths.
func (c *composer) pack(src source.Source, m model) (source.Source, model) {
	at := c.r.IntN(len(m.fields))
	f := m.fields[at]
	if c.drawn || c.mixed || f.Ragged == 0 && (len(f.Shape) == 0 || f.Nullable) || src.Schema().Fields[at].Mapped {
		return src, m // a row of zeros may be null, so its length is not known here; maps are refused
	}
	p, _ := randomPacking(c.r)
	if integers := f.Type.IsInteger() && len(element(f).Shape) == 0; !integers {
		p.Labels, p.Separator = "", nil
	}
	fields := []int{at}
	for _, i := range c.r.Perm(len(m.fields))[:c.r.IntN(len(m.fields))] {
		if g := m.fields[i]; i != at && g.Ragged == 0 && f.Ragged == 0 && !g.Nullable && len(g.Shape) > 0 && g.Shape[0] == f.Shape[0] {
			fields, p.Fields = append(fields, i), append(p.Fields, g.Name)
		}
	}
	if slices.ContainsFunc(fields, func(i int) bool {
		return slices.Contains([]string{p.Labels, view.SegmentsName, view.PositionsName}, m.fields[i].Name)
	}) {
		return src, m // refused
	}
	c.note("pack(%q, %+v)", f.Name, p)
	return c.must(view.Pack(c.Context(), src, f.Name, p)), packedModel(c, m, fields, p)
}

// randomPacking returns random options without more fields.
func randomPacking(r *rand.Rand) (p view.Packing, o *packing.Options) {
	o = &p.Options
	o.Length, o.Method = 1+r.IntN(9), random.One(r, packing.BestFit, packing.Split)
	o.TooLong = random.One(r, packing.Cut, packing.Truncate, packing.Drop)
	if o.Method == packing.Split {
		o.Overlap = r.IntN(o.Length)
	} else {
		o.MaxDocuments, o.Group = r.IntN(2)*r.IntN(4), int64(r.IntN(5))
	}
	if r.IntN(2) == 0 {
		p.Separator = r.IntN(100)
	}
	if r.IntN(2) == 0 {
		p.Labels = "labels"
	}
	if r.IntN(2) == 0 {
		p.Ignored = r.IntN(2) - 1
	}
	return p, o
}

// documents is a dataset of documents with rows of a model, and with a mask and pairs of the same
// lengths. A null has no elements.
type documents struct {
	*synthetic.Source
	m model
}

// newDocuments returns n documents. A field with the name of a type has elements of the type.
func newDocuments(n int64, types ...dtype.Type) *documents {
	d := &documents{Source: synthetic.New(n)}
	for _, typ := range types {
		d.m.fields = append(d.m.fields, source.Field{Name: typ.String(), Type: typ, Ragged: 1, Nullable: true})
	}
	d.m.fields = append(d.m.fields, source.Field{Name: "pairs", Type: dtype.Float32, Shape: []int{2}, Ragged: 1, Nullable: true})
	for k := range n {
		length := synthetic.Length(d.m.fields[0], k)
		var row [][]byte
		for _, f := range d.m.fields {
			cell := make([]byte, max(length, 0)*int64(f.RowBytes()))
			for e, size := 0, f.Type.Size(); e*size < len(cell); e++ {
				synthetic.Put(cell[e*size:], f.Type, synthetic.Value(f.Name, k, e))
			}
			if length < 0 {
				cell = nil
			}
			row = append(row, cell)
		}
		d.m.rows = append(d.m.rows, row)
	}
	return d
}

func (d *documents) Schema() source.Schema { return source.Schema{Fields: d.m.fields} }

func (d *documents) Reader([]int) (source.Reader, error) { return documentsReader{d}, nil }

type documentsReader struct{ *documents }

func (r documentsReader) Read(ctx context.Context, _ source.Draw, spans []source.Span, use func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range spans {
		spans[i].Row = r.m.rows[spans[i].Record][spans[i].Field]
	}
	return use()
}

func (r documentsReader) Lengths(_ context.Context, _ source.Draw, field int, records, out []int64) error {
	for i, record := range records {
		if out[i] = -1; r.m.rows[record][field] != nil {
			out[i] = int64(len(r.m.rows[record][field]) / r.m.fields[field].RowBytes())
		}
	}
	return nil
}

func (documentsReader) Ahead(source.Draw, []int64) {}

func (documentsReader) Close() error { return nil }

// TestPack runs the suite of all sources over packed fields of one length, and compares every row with
// a model.
func TestPack(t *testing.T) {
	types := []dtype.Type{dtype.Int64, dtype.Uint16, dtype.Int8, dtype.Uint8, dtype.Uint64, dtype.Float64, dtype.Bool}
	random.Rounds(t, 20, 500, func(t *testing.T, r *rand.Rand) {
		first := random.One(r, types...)
		d := newDocuments(int64(r.IntN(60)), append([]dtype.Type{first}, slices.DeleteFunc(slices.Clone(types), func(t dtype.Type) bool { return t == first })...)...)
		p, _ := randomPacking(r)
		if !first.IsInteger() {
			p.Labels, p.Separator = "", nil
		}
		if first == dtype.Uint64 {
			p.Labels = "" // no label holds large numbers: see TestPackValues
		}
		fields := []int{0}
		for _, i := range r.Perm(len(d.m.fields))[:r.IntN(4)] {
			if i > 0 {
				fields, p.Fields = append(fields, i), append(p.Fields, d.m.fields[i].Name)
			}
		}
		m := packedModel(t, d.m, fields, p)
		v := packed(t, d, d.m.fields[0].Name, p)
		if v.Len() != int64(len(m.rows)) || !slices.EqualFunc(v.Schema().Fields, m.fields, sameField) {
			t.Fatalf("%d records of %v, want %d of %v", v.Len(), v.Schema().Fields, len(m.rows), m.fields)
		}
		sourcetest.Suite{
			Open: func(t *testing.T) source.Source { return packed(t, d, d.m.fields[0].Name, p) },
			Draw: draw,
			Row:  m.row,
		}.Run(t)
		if t.Failed() {
			t.Logf("%v with %+v", d.m.fields[0], p)
		}
	})
}

func packed(t testing.TB, src source.Source, field string, p view.Packing) source.Source {
	t.Helper()
	v, err := view.Pack(context.Background(), src, field, p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPackRefused checks whole messages.
func TestPackRefused(t *testing.T) {
	d := newDocuments(40, dtype.Int32, dtype.Uint8, dtype.Float32)
	uneven := newDocuments(40, dtype.Int32, dtype.Uint8)
	uneven.m.rows[33][1] = make([]byte, 70)
	ragged := synthetic.New(9, source.Field{Name: "id", Type: dtype.Int64, Shape: []int{}}, source.Field{Name: "deep", Type: dtype.Int8, Ragged: 2}, source.Field{Name: "positions", Type: dtype.Int8, Ragged: 1})
	for _, c := range []struct {
		src   source.Source
		field string
		p     view.Packing
		code  status.Code
		want  string
	}{
		{d, "word", view.Packing{}, status.NotFound, `source: the dataset has no field "word"; the fields are "int32", "uint8", "float32", "pairs"`},
		{d, "int32", view.Packing{Fields: []string{"word"}, Options: packing.Options{Length: 8}}, status.NotFound, `source: the dataset has no field "word"; the fields are "int32", "uint8", "float32", "pairs"`},
		{ragged, "id", view.Packing{}, status.InvalidArgument, `view: field "id" has one value in each record, and no length to pack`},
		{ragged, "deep", view.Packing{}, status.Unsupported, `view: field "deep" has rows of type list<list<int8>>, and only their first dimension can be packed; store the values of all inner lists of a record as one list`},
		{d, "int32", view.Packing{}, status.OutOfRange, `view: the length of packed rows of field "int32" is 0, but must be from 1 to 536870912`},
		{d, "int32", view.Packing{Options: packing.Options{Length: 1<<29 + 1}}, status.OutOfRange, `view: the length of packed rows of field "int32" is 536870913, but must be from 1 to 536870912`},
		{d, "int32", view.Packing{Options: packing.Options{Length: 8, Method: "x"}}, status.InvalidArgument, `packing: there is no method "x"; give "best_fit" or "split"`},
		{d, "uint8", view.Packing{Options: packing.Options{Length: 8}, Separator: 256}, status.InvalidArgument, `view: the separator of field "uint8" is 256, but uint8 cannot hold it; give a value of that type`},
		{d, "uint8", view.Packing{Options: packing.Options{Length: 8}, Separator: "x"}, status.InvalidArgument, `view: the separator of field "uint8" is x, but uint8 cannot hold it; give a value of that type`},
		{d, "uint8", view.Packing{Options: packing.Options{Length: 8}, Labels: "y", Ignored: 1 << 31}, status.InvalidArgument, `view: the ignored label of field "uint8" is 2147483648, but int32 cannot hold it; give a value of that type`},
		{d, "float32", view.Packing{Options: packing.Options{Length: 8}, Labels: "y"}, status.InvalidArgument, `view: labels are integers, but field "float32" has elements of type float32; leave out the labels`},
		{d, "pairs", view.Packing{Options: packing.Options{Length: 8}, Labels: "y"}, status.InvalidArgument, `view: labels are integers, but field "pairs" has elements of type float32[2]; leave out the labels`},
		{d, "int32", view.Packing{Options: packing.Options{Length: 8}, Labels: "positions"}, status.InvalidArgument, `view: two fields of the packed rows are called "positions"; give each field one name`},
		{d, "int32", view.Packing{Options: packing.Options{Length: 8}, Fields: []string{"int32"}}, status.InvalidArgument, `view: two fields of the packed rows are called "int32"; give each field one name`},
		{d, "int32", view.Packing{Options: packing.Options{Length: 8}, Labels: "\xff"}, status.InvalidArgument, `view: "\xff" is not a name for a field: it must be UTF-8 and not empty`},
		{uneven, "int32", view.Packing{Options: packing.Options{Length: 8}, Fields: []string{"uint8"}}, status.InvalidArgument, `view: record 33 has 70 elements in field "uint8", but 9 in field "int32"; fields that are packed together have rows of one length; leave out the record, or the field`},
		{uneven, "uint8", view.Packing{Options: packing.Options{Length: 9, TooLong: packing.Refuse}}, status.OutOfRange, `packing: record 33 has 70 elements, but a row has 9; give longer rows, or say what happens to longer documents: too_long is "split", "truncate" or "drop"`},
	} {
		_, err := view.Pack(t.Context(), c.src, c.field, c.p)
		if err == nil || status.CodeOf(err) != c.code || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestPackFingerprint: a parameter is part of the fingerprint if it changes rows.
func TestPackFingerprint(t *testing.T) {
	d := newDocuments(40, dtype.Int32, dtype.Uint8) // no document has more than 9 elements
	of := func(p view.Packing, o packing.Options) source.Fingerprint {
		p.Options = o
		return fingerprint(t, packed(t, d, "int32", p))
	}
	type o = packing.Options
	var none view.Packing
	seen := map[source.Fingerprint]int{}
	for i, equal := range [][]source.Fingerprint{
		{of(none, o{Length: 9}), of(none, o{Length: 9, Method: packing.BestFit, TooLong: packing.Drop, Group: 40, MaxDocuments: 9}), of(view.Packing{Ignored: 7}, o{Length: 9, Group: 65536})},
		{of(none, o{Length: 8}), of(none, o{Length: 8, TooLong: packing.Cut})},
		{of(none, o{Length: 8, TooLong: packing.Drop})},
		{of(none, o{Length: 8, TooLong: packing.Truncate})},
		{of(none, o{Length: 9, Group: 39})},
		{of(none, o{Length: 9, MaxDocuments: 2})},
		{of(view.Packing{Fields: []string{"uint8"}}, o{Length: 9})},
		{of(view.Packing{Separator: 0}, o{Length: 9}), of(view.Packing{Separator: 0.0}, o{Length: 9})},
		{of(view.Packing{Separator: 1}, o{Length: 9})},
		{of(view.Packing{Labels: "y"}, o{Length: 9}), of(view.Packing{Labels: "y", Ignored: int8(-100)}, o{Length: 9})},
		{of(view.Packing{Labels: "z"}, o{Length: 9})},
		{of(view.Packing{Labels: "y", Ignored: 0}, o{Length: 9})},
		{of(none, o{Length: 9, Method: packing.Split}), of(none, o{Length: 9, Method: packing.Split, TooLong: packing.Refuse})},
		{of(none, o{Length: 9, Method: packing.Split, Overlap: 1})},
		{fingerprint(t, packed(t, d, "uint8", view.Packing{Options: o{Length: 9}}))},
	} {
		for k, f := range equal {
			if j, known := seen[f]; known != (k > 0) || known && j != i {
				t.Errorf("fingerprint %d of %d is known from %d", k, i, j)
			}
			seen[f] = i
		}
	}
}

// whole gathers all rows of the first field.
func whole(t *testing.T, v source.Source, draw source.Draw, to dtype.Type, field int) ([]byte, error) {
	t.Helper()
	part := v.Schema().Whole(field)
	part.To = to
	g, err := v.Gatherer([]source.Part{part})
	if err != nil {
		return nil, err
	}
	var records []int64
	for k := range v.Len() {
		records = append(records, k)
	}
	dst := make([]byte, len(records)*part.Bytes(to))
	return dst, g.Gather(t.Context(), draw, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}})
}

// TestPackValues: values that a packed row cannot hold are errors that name the record below.
func TestPackValues(t *testing.T) {
	refuse := func(err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	o := packing.Options{Length: 4}
	d := newDocuments(2, dtype.Uint64, dtype.Int64)
	for k := range d.m.rows {
		d.m.rows[k] = [][]byte{{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 0}, bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 128}, 2), make([]byte, 16)}
	}
	labeled := packed(t, d, "uint64", view.Packing{Options: o, Labels: "y"})
	_, err := whole(t, labeled, draw, dtype.Int32, 1)
	refuse(err, `view: field "uint64": record 0 holds 2147483648, but labels of unsigned elements are int32; leave out the labels, or store smaller elements`)
	if _, err = whole(t, labeled, draw, dtype.Uint64, 0); err != nil {
		t.Error(err)
	}
	wide := packed(t, d, "int64", view.Packing{Options: o, Labels: "y", Ignored: -1 << 40})
	_, err = whole(t, wide, draw, dtype.Int32, 0)
	refuse(err, `source: field "int64": record 0 holds -9223372036854775807, which int32 cannot; deliver the field as int64 (in JAX: jax.config.update("jax_enable_x64", True)), or store smaller values`)
	_, err = whole(t, wide, draw, dtype.Int32, 1)
	refuse(err, `view: the ignored label of field "int64" is -1099511627776, but int32 cannot hold it; give a value of that type`)

	null := packed(t, holes{synthetic.New(1)}, "x", view.Packing{Options: o})
	_, err = whole(t, null, draw, dtype.Int8, 0)
	refuse(err, `view: field "x": record 0 holds a null among its elements, and a packed row cannot; leave out this record (Go: view.FilterFunc; Python: ds.filter)`)

	drawn := packed(t, synthetic.New(40, source.Field{Name: "drawn x", Type: dtype.Int8, Ragged: 1}), "drawn x", view.Packing{Options: o})
	if _, err = whole(t, drawn, source.Draw{}, dtype.Int8, 0); err != nil {
		t.Error(err)
	}
	if _, err = whole(t, drawn, draw, dtype.Int8, 0); status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "has another length than when its dataset was packed; lengths that depend on the draw cannot be packed") {
		t.Error(err)
	}
}

// TestPackKeepsCounts: lengths are read once for each version of the data and for each row length.
func TestPackKeepsCounts(t *testing.T) {
	const n = 1<<16 + 1
	kept := notes{}
	src := &noted{Source: synthetic.New(n, source.Field{Name: "t", Type: dtype.Int32, Ragged: 1}), notes: kept}
	pack := func(length int) (*noted, source.Source) {
		s := *src
		return &s, must(view.Pack(t.Context(), &s, "t", view.Packing{Options: packing.Options{Length: length}}))
	}
	first, counted := pack(16)
	again, restored := pack(16)
	if len(kept) != 1 || first.readers == 0 || again.readers > 0 || fingerprint(t, restored) != fingerprint(t, counted) {
		t.Errorf("%d notes, %d and %d readers of lengths", len(kept), first.readers, again.readers)
	}
	a, _ := view.PackingOf(counted)
	if b, _ := view.PackingOf(restored); b.Tokens != a.Tokens || b.Rows != restored.Len() || b.Rows != a.Rows {
		t.Errorf("the report is %+v, then %+v", a, b)
	}
	if other, _ := pack(17); len(kept) != 2 || other.readers == 0 {
		t.Error("another length has the same counts")
	}
	src.version = "changed"
	if changed, _ := pack(16); len(kept) != 3 || changed.readers == 0 {
		t.Error("changed files have the same counts")
	}
	src.unversioned = true
	if unknown, _ := pack(16); len(kept) != 3 || unknown.readers == 0 {
		t.Error("files that do not say when they change have counts")
	}
}

// notes keeps texts in memory.
type notes map[string][]byte

func (n notes) Note(key string) []byte           { return n[key] }
func (n notes) KeepNote(key string, text []byte) { n[key] = text }

// noted counts the readers of a source with notes.
type noted struct {
	source.Source
	notes       notes
	version     string
	unversioned bool
	readers     int
}

func (s *noted) Facts() source.Facts {
	f := s.Source.Facts()
	f.Notes, f.Version = s.notes, func() (string, error) { return s.version, nil }
	if s.unversioned {
		f.Version = func() (string, error) { return "", status.New(status.Unsupported, "test", "no version") }
	}
	return f
}

func (s *noted) Reader(fields []int) (source.Reader, error) {
	s.readers++
	return s.Source.Reader(fields)
}

// TestPackAhead: the documents of rows are announced if the plans are in memory.
func TestPackAhead(t *testing.T) {
	src := synthetic.New(9, source.Field{Name: "x", Type: dtype.Int8, Shape: []int{3}}, source.Field{Name: "y", Type: dtype.Int8})
	v := packed(t, src, "x", view.Packing{Options: packing.Options{Length: 6}})
	g, err := v.Gatherer(firstField(v))
	if err != nil {
		t.Fatal(err)
	}
	src.Counts()
	g.Ahead(draw, []int64{-1, 1, 4, 5, 1 << 50})
	if c := src.Counts(); !maps.Equal(c.Ahead, map[int64]int{2: 1, 3: 1, 8: 1}) || c.Draws[draw] != 3 {
		t.Errorf("%v were announced, of the draws %v", c.Ahead, c.Draws)
	}
	if r, ok := view.PackingOf(v); !ok || r.Rows != 5 || r.Documents != 9 {
		t.Errorf("%+v", r)
	}
	text := packed(t, raggedSource(), "text", view.Packing{Options: packing.Options{Length: 6}})
	if f := text.Schema().Fields[0]; f.Logical != "" || f.Nullable {
		t.Errorf("packed text is %+v", f)
	}
	if _, ok := view.PackingOf(src); ok {
		t.Error("a dataset that is not packed has a report")
	}
}
