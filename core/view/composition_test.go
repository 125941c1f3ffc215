package view_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/sourcetest"
	"github.com/meshfeed/meshfeed/core/view"
	"github.com/meshfeed/meshfeed/core/view/mixture"
	"github.com/meshfeed/meshfeed/core/view/raster"
	"github.com/meshfeed/meshfeed/tests/random"
	"github.com/meshfeed/meshfeed/tests/synthetic"
)

// model is a dataset as plain rows: rows[record][field], with zeros for nulls.
type model struct {
	fields []source.Field
	rows   [][][]byte
}

func (m model) row(field int, record int64) []byte { return m.rows[record][field] }

// digest hashes names and rows.
func (m model) digest() [32]byte {
	h := sha256.New()
	for i, f := range m.fields {
		fmt.Fprintln(h, i, f.Name, f.Type, f.Shape)
	}
	for _, row := range m.rows {
		for _, cell := range row {
			fmt.Fprintf(h, "%x,", cell)
		}
	}
	return [32]byte(h.Sum(nil))
}

// columns returns the model of other fields. Cell computes each of them from a row.
func (m model) columns(fields []source.Field, cell func(row [][]byte, field int) []byte) model {
	out := model{fields: fields}
	for _, row := range m.rows {
		cells := make([][]byte, len(fields))
		for i := range fields {
			cells[i] = cell(row, i)
		}
		out.rows = append(out.rows, cells)
	}
	return out
}

// composer makes random views, and their models.
type composer struct {
	*testing.T
	r     *rand.Rand
	trace []string // the views, from below
	drawn bool     // the dataset has fields that depend on the draw
	mixed bool     // a view is a mixture
}

func (c *composer) note(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf(format, args...))
}

func (c *composer) must(v source.Source, err error) source.Source {
	c.Helper()
	if err != nil {
		c.Fatalf("%v: %v", c.trace, err)
	}
	return v
}

// draw is the draw of all rows that are compared with a model.
var draw = source.Draw{Seed: -7, Epoch: 3}

// stored returns a dataset without views.
func (c *composer) stored() (source.Source, model) {
	n := int64(c.r.IntN(40))
	if c.r.IntN(2) == 0 {
		src := newNullable(n)
		m := model{fields: src.Schema().Fields}
		for k := range n {
			var row [][]byte
			for f := range m.fields {
				cell, _ := src.row(f, k)
				if cell == nil {
					cell = make([]byte, m.fields[f].RowBytes())
				}
				row = append(row, cell)
			}
			m.rows = append(m.rows, row)
		}
		return src, m
	}
	src := synthetic.New(n,
		source.Field{Name: "image", Type: dtype.Uint8, Shape: []int{3, 2}},
		source.Field{Name: "a", Type: dtype.Float32}, source.Field{Name: "b", Type: dtype.Float32},
		source.Field{Name: "label", Type: dtype.Int64}, source.Field{Name: "flag", Type: dtype.Bool},
		source.Field{Name: "tokens", Type: dtype.Int32, Ragged: 1, Nullable: true})
	if c.drawn = c.r.IntN(2) == 0; c.drawn {
		src = synthetic.New(n,
			source.Field{Name: "drawn image", Type: dtype.Uint8, Shape: []int{3, 2}},
			source.Field{Name: "drawn a", Type: dtype.Float32}, source.Field{Name: "drawn b", Type: dtype.Float32},
			source.Field{Name: "label", Type: dtype.Int64},
			source.Field{Name: "drawn tokens", Type: dtype.Int32, Ragged: 1, Nullable: true})
	}
	m := model{fields: src.Schema().Fields}
	for k := range n {
		var row [][]byte
		for _, f := range m.fields {
			row = append(row, synthetic.Row(synthetic.In(draw, f), k))
		}
		m.rows = append(m.rows, row)
	}
	return src, m
}

// compose returns views of views.
func (c *composer) compose(depth int) (source.Source, model) {
	if depth == 0 {
		src, m := c.stored()
		c.note("%d records of %v", src.Len(), m.fields)
		return factual{src}, m
	}
	src, m := c.compose(depth - 1)
	return random.One(c.r, c.slice, c.take, c.filter, c.fields, c.rename, c.concat, c.window, c.stack, c.constants, c.pad, c.pack, c.reshape, c.decodeImage, c.cache, c.mix, c.mapped)(src, m)
}

func (c *composer) slice(src source.Source, m model) (source.Source, model) {
	a, b := c.r.IntN(len(m.rows)+1), c.r.IntN(len(m.rows)+1)
	a, b = min(a, b), max(a, b)
	c.note("slice(%d, %d)", a, b)
	return c.must(view.Slice(src, int64(a), int64(b))), model{m.fields, m.rows[a:b]}
}

func (c *composer) take(src source.Source, m model) (source.Source, model) {
	out := model{fields: m.fields}
	var indices []int64
	if len(m.rows) > 0 {
		for range c.r.IntN(30) {
			k := c.r.IntN(len(m.rows))
			indices, out.rows = append(indices, int64(k)), append(out.rows, m.rows[k])
		}
	}
	c.note("take(%v)", indices)
	return c.must(view.Take(src, indices)), out
}

func (c *composer) filter(src source.Source, m model) (source.Source, model) {
	if c.mixed {
		return c.slice(src, m)
	}
	out := model{fields: m.fields}
	keep := make([]bool, len(m.rows))
	for k, row := range m.rows {
		if keep[k] = c.r.IntN(3) > 0; keep[k] {
			out.rows = append(out.rows, row)
		}
	}
	c.note("filter(%v)", keep)
	return c.must(view.Filter(src, keep)), out
}

func (c *composer) fields(src source.Source, m model) (source.Source, model) {
	chosen := c.r.Perm(len(m.fields))[:1+c.r.IntN(len(m.fields))]
	var names []string
	var fields []source.Field
	for _, i := range chosen {
		names, fields = append(names, m.fields[i].Name), append(fields, m.fields[i])
	}
	c.note("select(%v)", names)
	return c.must(view.Select(src, names...)), m.columns(fields, func(row [][]byte, i int) []byte { return row[chosen[i]] })
}

func (c *composer) rename(src source.Source, m model) (source.Source, model) {
	names, fields := map[string]string{}, slices.Clone(m.fields)
	for i := range fields {
		if c.r.IntN(2) == 0 {
			names[fields[i].Name] = fmt.Sprintf("f%d", len(c.trace)*100+i)
			fields[i].Name = names[fields[i].Name]
		}
	}
	c.note("rename(%v)", names)
	return c.must(view.Rename(src, names)), model{fields, m.rows}
}

// concat joins random slices, takes and filters of a dataset.
func (c *composer) concat(src source.Source, m model) (source.Source, model) {
	out := model{fields: m.fields}
	var parts []source.Source
	for range 1 + c.r.IntN(3) {
		part, rows := random.One(c.r, c.slice, c.take, c.filter)(src, m)
		if c.r.IntN(4) == 0 {
			part, rows = c.concat(part, rows)
		}
		parts, out.rows = append(parts, part), append(out.rows, rows.rows...)
	}
	c.note("concat(%d)", len(parts))
	return c.must(view.Concat(parts...)), out
}

func (c *composer) window(src source.Source, m model) (source.Source, model) {
	w := view.Windows{Length: int64(1 + c.r.IntN(3)), Stride: int64(1 + c.r.IntN(3))}
	within := -1
	if i := c.r.IntN(len(m.fields)); c.r.IntN(2) == 0 && !c.drawn && !c.mixed && !m.fields[i].Nullable && m.fields[i].Ragged == 0 {
		within, w.Within = i, m.fields[i].Name
	}
	out := model{}
	fixed := source.Schema{Fields: m.fields}.Fixed()
	for _, i := range fixed {
		f := m.fields[i]
		f.Shape = append([]int{int(w.Length)}, f.Shape...)
		out.fields = append(out.fields, f)
	}
	for start := 0; start < len(m.rows); {
		stop := start + 1
		for stop < len(m.rows) && (within < 0 || bytes.Equal(m.rows[stop][within], m.rows[start][within])) {
			stop++
		}
		for k := start; k+int(w.Length) <= stop; k += int(w.Stride) {
			row := make([][]byte, len(fixed))
			for t := range int(w.Length) {
				for f, below := range fixed {
					row[f] = append(row[f], m.rows[k+t][below]...)
				}
			}
			out.rows = append(out.rows, row)
		}
		start = stop
	}
	if len(out.rows) == 0 || len(fixed) == 0 {
		return src, m // refused: see TestErrors
	}
	c.note("window(%+v)", w)
	return c.must(view.Window(c.Context(), src, w)), out
}

func (c *composer) stack(src source.Source, m model) (source.Source, model) {
	first := c.r.IntN(len(m.fields))
	if m.fields[first].Ragged > 0 {
		return src, m // refused: see TestErrors
	}
	var alike []int
	for i, f := range m.fields {
		if f.Ragged == 0 && f.Type == m.fields[first].Type && slices.Equal(f.Shape, m.fields[first].Shape) {
			alike = append(alike, i)
		}
	}
	s := view.Stacked{Name: fmt.Sprintf("s%d", len(c.trace))}
	joined := make([]int, 1+c.r.IntN(4))
	f := m.fields[first]
	f.Name, f.Shape, f.Nullable = s.Name, append([]int{len(joined)}, f.Shape...), false
	for i := range joined {
		joined[i] = random.One(c.r, alike...)
		s.Columns = append(s.Columns, m.fields[joined[i]].Name)
		f.Nullable = f.Nullable || m.fields[joined[i]].Nullable
	}
	var fields []source.Field
	var plain []int
	for i := range m.fields {
		if !slices.Contains(joined, i) {
			fields, plain = append(fields, m.fields[i]), append(plain, i)
		}
	}
	c.note("stack(%v)", s)
	out := m.columns(append(fields, f), func(row [][]byte, i int) (cell []byte) {
		if i < len(plain) {
			return row[plain[i]]
		}
		for _, j := range joined {
			cell = append(cell, row[j]...)
		}
		return cell
	})
	return c.must(view.Stack(src, s)), out
}

// constants adds a number and a text. Each run has one value of each, or a null.
func (c *composer) constants(src source.Source, m model) (source.Source, model) {
	number := source.Field{Name: fmt.Sprintf("n%d", len(c.trace)), Type: dtype.Int64, Shape: []int{}}
	text := source.Field{Name: fmt.Sprintf("t%d", len(c.trace)), Type: dtype.Uint8, Shape: []int{}, Ragged: 1, Logical: "string"}
	var runs []int64
	rows := [2][][]byte{}
	all := [2][][]byte{} // by field, then by record
	for left := len(m.rows); left > 0 || len(runs) == 0; {
		n := c.r.IntN(left + 1)
		cells := [2][]byte{bytes.Repeat([]byte{byte(len(runs))}, 8), bytes.Repeat([]byte{byte(len(runs))}, c.r.IntN(4))}
		for i := range cells {
			if c.r.IntN(3) == 0 {
				cells[i] = nil
			}
			rows[i] = append(rows[i], cells[i])
			number.Nullable, text.Nullable = number.Nullable || cells[0] == nil, text.Nullable || cells[1] == nil
			if i == 0 && cells[i] == nil {
				cells[i] = make([]byte, 8)
			}
			all[i] = append(all[i], slices.Repeat([][]byte{cells[i]}, n)...)
		}
		runs, left = append(runs, int64(n)), left-n
	}
	out := model{fields: append(slices.Clone(m.fields), number, text)}
	for k, row := range m.rows {
		out.rows = append(out.rows, append(slices.Clone(row), all[0][k], all[1][k]))
	}
	c.note("constants(%v, %v)", runs, rows)
	return c.must(view.Constants(src, runs, view.Constant{Field: number, Rows: rows[0]}, view.Constant{Field: text, Rows: rows[1]})), out
}

// pad pads the rows of a field to one length, and adds the lengths.
func (c *composer) pad(src source.Source, m model) (source.Source, model) {
	at := c.r.IntN(len(m.fields))
	f := m.fields[at]
	name := f.Name + view.LengthSuffix
	if _, _, known := src.Schema().Field(name); known || f.Ragged == 0 && (len(f.Shape) == 0 || f.Nullable) {
		return src, m // a row of zeros may be null, so its length is not known here
	}
	element := f
	if element.Ragged = 0; f.Ragged == 0 {
		element.Shape = f.Shape[1:]
	}
	p := view.Padding{Length: 1 + c.r.IntN(5), Left: c.r.IntN(2) == 0, Truncate: c.drawn || c.mixed || c.r.IntN(2) == 0}
	if !p.Truncate {
		for _, row := range m.rows {
			p.Length = max(p.Length, len(row[at])/element.RowBytes())
		}
		if f.Ragged == 0 {
			p.Length = max(p.Length, f.Shape[0])
		}
	}
	padded := element
	padded.Shape, padded.Nullable = append([]int{p.Length}, element.Shape...), f.Nullable && f.Logical == ""
	lengths := source.Field{Name: name, Type: dtype.Int32, Shape: []int{}}
	out := model{fields: slices.Insert(slices.Clone(m.fields), at+1, lengths)}
	out.fields[at] = padded
	for _, row := range m.rows {
		own := row[at][:min(len(row[at]), padded.RowBytes())]
		added := make([]byte, padded.RowBytes()-len(own))
		cell := slices.Concat(own, added)
		if p.Left {
			cell = slices.Concat(added, own)
		}
		cells := slices.Insert(slices.Clone(row), at+1, binary.LittleEndian.AppendUint32(nil, uint32(len(own)/element.RowBytes())))
		cells[at] = cell
		out.rows = append(out.rows, cells)
	}
	c.note("pad(%q, %+v)", f.Name, p)
	return c.must(view.Pad(src, f.Name, p)), out
}

// reshape changes the shape of a field.
func (c *composer) reshape(src source.Source, m model) (source.Source, model) {
	at := c.r.IntN(len(m.fields))
	f := m.fields[at]
	if f.Ragged > 0 {
		return src, m
	}
	n := f.RowBytes() / f.Type.Size()
	f.Shape = random.One(c.r, []int{n}, []int{n, 1}, []int{1, n, 1})
	out := model{fields: slices.Clone(m.fields), rows: m.rows}
	out.fields[at] = f
	c.note("reshape(%q, %v)", f.Name, f.Shape)
	return c.must(view.Reshape(src, f.Name, view.Shape{Dims: f.Shape})), out
}

// decodeImage adds a field of images of one color, and decodes it.
func (c *composer) decodeImage(src source.Source, m model) (source.Source, model) {
	f := source.Field{Name: fmt.Sprintf("i%d", len(c.trace)), Type: dtype.Uint8, Ragged: 1, Logical: "binary"}
	o := raster.Options{Height: 1 + c.r.IntN(3), Width: 1 + c.r.IntN(3), Gray: c.r.IntN(2) == 0, Zero: c.r.IntN(2) == 0}
	file, pixel := encoded(c, byte(c.r.Uint32()))
	f.Nullable = c.r.IntN(2) == 0
	cell := bytes.Repeat([]byte{pixel}, o.Height*o.Width*o.Channels())
	if f.Nullable {
		file, cell = nil, make([]byte, len(cell))
	} else if o.Zero {
		file, cell = file[:len(file)/2], make([]byte, len(cell))
	}
	src = c.must(view.Constants(src, []int64{src.Len()}, view.Constant{Field: f, Rows: [][]byte{file}}))
	out := model{fields: append(slices.Clone(m.fields), f)}
	to := &out.fields[len(m.fields)]
	to.Shape, to.Ragged, to.Logical = []int{o.Height, o.Width, o.Channels()}, 0, ""
	for _, row := range m.rows {
		out.rows = append(out.rows, append(slices.Clone(row), cell))
	}
	c.note("decode_image(%q, %+v)", f.Name, o)
	return c.must(view.DecodeImage(src, f.Name, o)), out
}

// mapped adds a number and a list, which a function computes from some fields. It may take the place of a field.
func (c *composer) mapped(src source.Source, m model) (source.Source, model) {
	var names []string
	var in []int
	for _, i := range c.r.Perm(len(m.fields))[:1+c.r.IntN(len(m.fields))] {
		if !m.fields[i].Nullable { // the model has no nulls
			names, in = append(names, m.fields[i].Name), append(in, i)
		}
	}
	if len(in) == 0 {
		return src, m
	}
	zero := c.r.IntN(2) == 0
	fails := func(rows [][]byte) bool { return zero && len(rows[0]) > 0 && rows[0][0]%3 == 0 }
	sum := func(rows [][]byte) (number, list []byte) {
		if fails(rows) {
			return make([]byte, 8), []byte{}
		}
		for i, row := range rows {
			for _, b := range row {
				list = append(list, b^byte(i))
			}
		}
		h := sha256.Sum256(list)
		return h[:8], list[:len(list)/2*2]
	}
	number := source.Field{Name: fmt.Sprintf("m%d", len(c.trace)), Type: dtype.Int64, Shape: []int{}}
	list := source.Field{Name: fmt.Sprintf("l%d", len(c.trace)), Type: dtype.Uint16, Shape: []int{}, Ragged: 1}
	at := len(m.fields)
	if c.r.IntN(2) == 0 {
		at = c.r.IntN(len(m.fields))
		number.Name = m.fields[at].Name
	}
	o := view.Mapping{Fields: names, Out: []source.Field{list, number}, Name: number.Name, Key: "sum", Workers: 1 + c.r.IntN(3), Zero: zero}
	o.Func = func(_ context.Context, rows *view.Rows) error {
		for i := range rows.Records {
			var cells [][]byte
			for k := range rows.In {
				cells = append(cells, rows.In[k][i].Row)
			}
			if fails(cells) {
				return fmt.Errorf("a multiple of 3")
			}
			rows.Out[1][i], rows.Out[0][i] = sum(cells)
		}
		return nil
	}
	c.note("map(%v, %s, %t)", names, number.Name, zero)
	out := model{fields: append(slices.Clone(m.fields), list)}
	if at < len(m.fields) {
		out.fields[at] = number
	} else {
		out.fields = append(out.fields, number)
	}
	for _, row := range m.rows {
		var cells [][]byte
		for _, i := range in {
			cells = append(cells, row[i])
		}
		n, l := sum(cells)
		row = append(slices.Clone(row), l)
		if at < len(m.fields) {
			row[at] = n
		} else {
			row = append(row, n)
		}
		out.rows = append(out.rows, row)
	}
	return c.must(view.Map(src, o)), out
}

// cache keeps the rows, in memory or in a folder.
func (c *composer) cache(src source.Source, m model) (source.Source, model) {
	if c.drawn || c.mixed {
		return src, m
	}
	o := arrowio.Options{Cache: random.One(c.r, "memory", c.TempDir())}
	if runtime.GOOS != "linux" {
		o.Cache = "memory"
	}
	c.note("cache in %s", o.Cache)
	v := c.must(arrowio.Cached(c.Context(), src, o))
	c.Cleanup(func() { _ = v.Close() })
	return v, m
}

// mix draws from random slices and takes of a dataset, in a random epoch of each.
func (c *composer) mix(src source.Source, m model) (source.Source, model) {
	if c.drawn || c.mixed || len(m.rows) == 0 {
		return src, m
	}
	var parts []source.Source
	var models []model
	for len(parts) == 0 || c.r.IntN(3) > 0 {
		if part, some := random.One(c.r, c.slice, c.take)(src, m); len(some.rows) > 0 {
			parts, models = append(parts, part), append(models, some)
		}
	}
	o := view.Mixing{Order: random.One(c.r, "", sampler.Shuffle, sampler.Blocks(2, 3)), Seed: c.r.Int64N(100), Records: c.r.Int64N(40)}
	for at := int64(0); len(o.Schedule) == 0 || c.r.IntN(2) == 0; at += 1 + c.r.Int64N(60) {
		weights := make([]float64, len(parts))
		for i := range weights {
			weights[i] = float64(c.r.IntN(4))
		}
		weights[c.r.IntN(len(parts))] = 1
		o.Schedule = append(o.Schedule, mixture.Stage{Start: at, Weights: weights})
	}
	c.note("mix of %d by %+v", len(parts), o)
	v := c.must(view.Mix(parts, o))
	c.mixed = true
	return v, mixed(c.T, models, o, v.Len())
}

// TestCompositions runs the conformance suite over random views of views, and compares
// every record with plain rows. Two compositions with one fingerprint have the same
// rows.
func TestCompositions(t *testing.T) {
	known := map[source.Fingerprint][32]byte{}
	random.Rounds(t, 30, 1000, func(t *testing.T, r *rand.Rand) {
		seed := r.Uint64()
		open := func(t *testing.T) (source.Source, model, *composer) {
			c := &composer{T: t, r: random.From(seed)}
			src, m := c.compose(1 + c.r.IntN(6))
			return src, m, c
		}
		src, m, c := open(t)
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(c.trace)
			}
		})
		if src.Len() != int64(len(m.rows)) || !slices.EqualFunc(src.Schema().Fields, m.fields, sameField) {
			t.Fatalf("%d records of %v, want %d of %v", src.Len(), src.Schema().Fields, len(m.rows), m.fields)
		}
		for _, f := range (source.Schema{Fields: m.fields}).Fixed() {
			checkRows(t, src, m, f)
		}
		checkFacts(t, src, c.trace)
		f := fingerprint(t, src)
		if digest, seen := known[f]; seen && digest != m.digest() {
			t.Error("other rows have the same fingerprint")
		}
		known[f] = m.digest()
		sourcetest.Suite{
			Open:   func(t *testing.T) source.Source { src, _, _ := open(t); return src },
			Draw:   draw,
			Row:    m.row,
			Ragged: func(span *source.Span) { span.Row = m.row(span.Field, span.Record) },
		}.Run(t)
	})
}

func sameField(a, b source.Field) bool {
	return a.Ragged == b.Ragged && a.Name == b.Name && a.Type == b.Type && slices.Equal(a.Shape, b.Shape) && a.Nullable == b.Nullable
}

// checkRows compares all rows of a field with the model, in random order.
func checkRows(t *testing.T, src source.Source, m model, field int) {
	t.Helper()
	f := m.fields[field]
	box := make([][2]int, len(f.Shape))
	for d, n := range f.Shape {
		box[d] = [2]int{0, n}
	}
	part := source.Part{Field: field, Boxes: [][][2]int{box}, Fill: 0}
	if f.Type == dtype.Bool {
		part.Fill = false
	}
	g, err := src.Gatherer([]source.Part{part})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	var records []int64
	for _, k := range rand.Perm(len(m.rows)) {
		records = append(records, int64(k), -1)
	}
	dst := bytes.Repeat([]byte{0xEE}, len(records)*f.RowBytes())
	if err := g.Gather(t.Context(), draw, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}}); err != nil {
		t.Fatal(err)
	}
	for i, k := range records {
		want := make([]byte, f.RowBytes())
		if k >= 0 {
			want = m.rows[k][field]
		}
		if got := dst[i*f.RowBytes() : (i+1)*f.RowBytes()]; !bytes.Equal(got, want) {
			t.Fatalf("field %q, record %d: %x instead of %x", f.Name, k, got, want)
		}
	}
}
