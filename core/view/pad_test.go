package view_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// raggedFields are fixed and ragged fields in front of, between and after each other.
var raggedFields = []source.Field{
	{Name: "id", Type: dtype.Int64, Shape: []int{}},
	{Name: "tokens", Type: dtype.Int32, Ragged: 1, Nullable: true},
	{Name: "image", Type: dtype.Uint8, Shape: []int{3, 2}},
	{Name: "text", Type: dtype.Uint8, Ragged: 1, Nullable: true, Logical: "string"},
	{Name: "boxes", Type: dtype.Float32, Shape: []int{2}, Ragged: 1},
	{Name: "flags", Type: dtype.Bool, Ragged: 1},
}

const raggedRecords = 57

func raggedSource() *synthetic.Source { return synthetic.New(raggedRecords, raggedFields...) }

func padded(t testing.TB, src source.Source, field string, p view.Padding) source.Source {
	t.Helper()
	v, err := view.Pad(src, field, p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// paddedRow is what a row of a padded field must be, written without the view.
func paddedRow(f source.Field, record int64, p view.Padding, value []byte) (row []byte, length int) {
	row = synthetic.Row(f, record)
	width := p.Length * f.RowBytes()
	if len(row) > width {
		row = row[:width]
	}
	length = len(row) / f.RowBytes()
	rest := bytes.Repeat(value, (width-len(row))/len(value))
	if p.Left {
		return append(rest, row...), length
	}
	return append(row, rest...), length
}

// TestPad runs the suite of all sources over padded fields, and compares every row.
func TestPad(t *testing.T) {
	for _, c := range []struct {
		field string
		p     view.Padding
		value []byte
	}{
		{"tokens", view.Padding{Length: 9}, make([]byte, 4)},
		{"tokens", view.Padding{Length: 12, Value: -1, Left: true}, []byte{255, 255, 255, 255}},
		{"tokens", view.Padding{Length: 4, Value: 7, Truncate: true}, []byte{7, 0, 0, 0}},
		{"text", view.Padding{Length: 5, Value: uint8(32), Left: true, Truncate: true}, []byte(" ")},
		{"boxes", view.Padding{Length: 9, Value: 0.5}, binary.LittleEndian.AppendUint32(nil, 0x3f000000)},
		{"flags", view.Padding{Length: 10, Value: true}, []byte{1}},
	} {
		t.Run(c.field, func(t *testing.T) {
			fields := slices.Clone(raggedFields)
			for i := range fields {
				fields[i].Name = "drawn " + fields[i].Name
			}
			src := synthetic.New(raggedRecords, fields...)
			number, f, _ := src.Schema().Field("drawn " + c.field)
			sourcetest.Suite{
				Open: func(t *testing.T) source.Source { return padded(t, src, f.Name, c.p) },
				Draw: draw,
				Row: func(field int, record int64) []byte {
					row, length := paddedRow(synthetic.In(draw, f), record, c.p, c.value)
					switch {
					case field == number:
						return row
					case field == number+1:
						return binary.LittleEndian.AppendUint32(nil, uint32(length))
					case field > number:
						field--
					}
					return synthetic.Row(synthetic.In(draw, fields[field]), record)
				},
				Ragged: func(span *source.Span) {
					field := span.Field
					if field > number {
						field--
					}
					span.Row = synthetic.Row(synthetic.In(draw, fields[field]), span.Record)
				},
			}.Run(t)
		})
	}
}

// TestPadSchema checks the fields of a padded dataset. Padding a second field stacks.
func TestPadSchema(t *testing.T) {
	v := padded(t, padded(t, raggedSource(), "boxes", view.Padding{Length: 20}), "text", view.Padding{Length: 6})
	want := []source.Field{
		raggedFields[0], raggedFields[1], raggedFields[2],
		{Name: "text", Type: dtype.Uint8, Shape: []int{6}},
		{Name: "text_length", Type: dtype.Int32, Shape: []int{}},
		{Name: "boxes", Type: dtype.Float32, Shape: []int{20, 2}},
		{Name: "boxes_length", Type: dtype.Int32, Shape: []int{}},
		raggedFields[5],
	}
	got := v.Schema().Fields
	for i := range max(len(got), len(want)) {
		a, b := got[i], want[i]
		if a.Name != b.Name || a.Type != b.Type || !slices.Equal(a.Shape, b.Shape) || a.Ragged != b.Ragged || a.Logical != b.Logical || a.Nullable != b.Nullable {
			t.Errorf("field %d is %+v, want %+v", i, a, b)
		}
	}
}

// TestPadTooLong: gathers and checks name the first record with a row that is too long.
func TestPadTooLong(t *testing.T) {
	src := raggedSource()
	v := padded(t, src, "tokens", view.Padding{Length: 5})
	record := int64(0)
	for synthetic.Length(raggedFields[1], record) <= 5 {
		record++
	}
	length := synthetic.Length(raggedFields[1], record)
	want := status.Errorf(status.OutOfRange, "view", `field "tokens": record %d has %d elements, but pad makes rows of 5`, record, length).
		WithHint(`give a larger length, or cut longer rows: too_long="truncate" in Python, Padding.Truncate in Go, MF_PAD_TRUNCATE in C`).Error()
	refuse := func(what string, err error) {
		t.Helper()
		if status.CodeOf(err) != status.OutOfRange || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", what, err, want)
		}
	}
	refuse("check", source.Check(t.Context(), v, []int{0, 1}))
	refuse("check of the lengths", source.Check(t.Context(), v, []int{2}))
	if err := source.Check(t.Context(), v, []int{0}); err != nil {
		t.Error(err)
	}
	if err := v.Facts().Check(t.Context(), []int{1}, 0, record); err != nil {
		t.Error(err)
	}
	for _, field := range []int{1, 2} {
		g, err := v.Gatherer([]source.Part{v.Schema().Whole(field)})
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]byte, v.Schema().Fields[field].RowBytes())
		refuse("gather", g.Gather(t.Context(), source.Draw{}, []int64{record}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}))
	}
	cutoff := padded(t, src, "tokens", view.Padding{Length: 5, Truncate: true})
	if err := source.Check(t.Context(), cutoff, []int{1}); err != nil {
		t.Error(err)
	}
}

// TestPadRefused checks whole messages.
func TestPadRefused(t *testing.T) {
	fields := append(slices.Clone(raggedFields), source.Field{Name: "deep", Type: dtype.Int8, Ragged: 2}, source.Field{Name: "flags_length", Type: dtype.Int8})
	src := synthetic.New(3, fields...)
	for _, c := range []struct {
		field string
		p     view.Padding
		code  status.Code
		want  string
	}{
		{"word", view.Padding{Length: 1}, status.NotFound, `source: the dataset has no field "word"; the fields are "id", "tokens", "image", "text", "boxes", "flags", "deep", "flags_length"`},
		{"id", view.Padding{Length: 1}, status.InvalidArgument, `view: field "id" has one value in each record, and no length to pad`},
		{"deep", view.Padding{Length: 1}, status.Unsupported, `view: field "deep" has rows of type list<list<int8>>, and only their first dimension can be padded; store two columns instead, the values of all inner lists as one list and the lengths of these lists, and pad both`},
		{"tokens", view.Padding{}, status.OutOfRange, `view: the length of field "tokens" is 0, but must be from 1 to 536870912`},
		{"tokens", view.Padding{Length: 1<<29 + 1}, status.OutOfRange, `view: the length of field "tokens" is 536870913, but must be from 1 to 536870912`},
		{"text", view.Padding{Length: 1, Value: 256}, status.InvalidArgument, `view: field "text" cannot be padded with 256: uint8 cannot hold it; give a value of the type of the field`},
		{"text", view.Padding{Length: 1, Value: " "}, status.InvalidArgument, `view: field "text" cannot be padded with  : uint8 cannot hold it; give a value of the type of the field`},
		{"flags", view.Padding{Length: 1}, status.InvalidArgument, `view: the dataset already has a field "flags_length", which pad would add; rename that field`},
	} {
		_, err := view.Pad(src, c.field, c.p)
		if err == nil || status.CodeOf(err) != c.code || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// TestPadFingerprint: every parameter is part of the fingerprint.
func TestPadFingerprint(t *testing.T) {
	src := raggedSource()
	seen := map[source.Fingerprint]bool{}
	add := func(s source.Source) {
		t.Helper()
		f, err := s.Fingerprint(t.Context())
		if err != nil || seen[f] {
			t.Errorf("%v is known, %v", f, err)
		}
		seen[f] = true
	}
	add(src)
	for _, p := range []view.Padding{{Length: 9}, {Length: 10}, {Length: 9, Value: 1}, {Length: 9, Left: true}, {Length: 9, Truncate: true}} {
		add(padded(t, src, "tokens", p))
	}
	add(padded(t, src, "boxes", view.Padding{Length: 9}))
}

// holes is a dataset of one record: the list [1, null].
type holes struct{ *synthetic.Source }

func (holes) Schema() source.Schema {
	return source.Schema{Fields: []source.Field{{Name: "x", Type: dtype.Int8, Ragged: 1, Nullable: true}}}
}

func (h holes) Reader([]int) (source.Reader, error) { return holesReader{}, nil }

func (h holes) Gatherer(parts []source.Part) (source.Gatherer, error) {
	return cut.Gatherer(holesReader{}, source.Schema{}, parts)
}

type holesReader struct{}

func (holesReader) Read(_ context.Context, _ source.Draw, spans []source.Span, use func() error) error {
	for i := range spans {
		spans[i].Row, spans[i].Nulls = []byte{1, 0}, []bool{false, true}
	}
	return use()
}

func (holesReader) Lengths(_ context.Context, _ source.Draw, _ int, _, out []int64) error {
	for i := range out {
		out[i] = 2
	}
	return nil
}

func (holesReader) Ahead(source.Draw, []int64) {}

func (holesReader) Close() error { return nil }

// TestPadNulls: nulls within a row get the fill value of a loader, padding does not.
func TestPadNulls(t *testing.T) {
	src := holes{synthetic.New(1, source.Field{Name: "x", Type: dtype.Int8})}
	v := padded(t, src, "x", view.Padding{Length: 4, Value: 9, Left: true})
	part := v.Schema().Whole(0)
	part.Fill = -7
	g, err := v.Gatherer([]source.Part{part})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 4)
	if err := g.Gather(t.Context(), source.Draw{}, []int64{0}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}}); err != nil {
		t.Fatal(err)
	}
	if want := []byte{9, 9, 1, 0xf9}; !bytes.Equal(dst, want) {
		t.Errorf("got %v, want %v", dst, want)
	}
}
