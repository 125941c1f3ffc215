package sourcetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// boxes compares gathers of random parts of rows with the same parts of whole rows.
func (r *run) boxes() {
	for _, i := range r.fixed() {
		f := r.src.Schema().Fields[i]
		records := r.sample(20)
		rows := r.read(r.gatherer(r.whole(i)), f.RowBytes(), records)
		for range 10 {
			p := r.randomPart(i)
			var want []byte
			for k := range records {
				want = append(want, cut(rows[k*f.RowBytes():(k+1)*f.RowBytes()], f, p)...)
			}
			got := r.read(r.gatherer(p), p.Bytes(f.Type), records)
			if !bytes.Equal(got, want) {
				r.Fatalf("field %q, boxes %v of records %v: %x instead of %x", f.Name, p.Boxes, records, got, want)
			}
		}
	}
}

// randomPart draws up to three boxes that differ only in dimension 0.
func (r *run) randomPart(field int) source.Part {
	f := r.src.Schema().Fields[field]
	p := source.Part{Field: field, Fill: r.whole(field).Fill}
	if len(f.Shape) == 0 {
		p.Boxes = [][][2]int{{}}
		return p
	}
	interval := func(n int) [2]int {
		a, b := r.random.IntN(n+1), r.random.IntN(n+1)
		return [2]int{min(a, b), max(a, b)}
	}
	var inner [][2]int
	for _, n := range f.Shape[1:] {
		inner = append(inner, interval(n))
	}
	for range 1 + r.random.IntN(3) {
		p.Boxes = append(p.Boxes, append([][2]int{interval(f.Shape[0])}, inner...))
	}
	return p
}

// cut copies the elements of a row that lie in the boxes of a part.
func cut(row []byte, f source.Field, p source.Part) []byte {
	var out []byte
	size := f.Type.Size()
	for _, box := range p.Boxes {
		index := make([]int, len(box))
		for e := 0; e*size < len(row); e++ {
			rest, inside := e, true
			for d := len(box) - 1; d >= 0; d-- {
				index[d] = rest % f.Shape[d]
				rest /= f.Shape[d]
				inside = inside && index[d] >= box[d][0] && index[d] < box[d][1]
			}
			if inside {
				out = append(out, row[e*size:(e+1)*size]...)
			}
		}
	}
	return out
}

// jobs gathers many jobs in one call, for several parts and overlapping ranges. It
// compares each job with a gather of its own.
func (r *run) jobs() {
	fields, fixed := r.src.Schema().Fields, r.fixed()
	if len(fixed) == 0 {
		return // no fixed fields
	}
	var parts []source.Part
	for range 6 {
		parts = append(parts, r.randomPart(fixed[r.random.IntN(len(fixed))]))
	}
	g, records := r.gatherer(parts...), r.sample(60)
	var jobs []source.Job
	var want [][]byte
	for range 30 {
		p := r.random.IntN(len(parts))
		a, b := r.random.IntN(len(records)+1), r.random.IntN(len(records)+1)
		a, b = min(a, b), max(a, b)
		width := parts[p].Bytes(fields[parts[p].Field].Type)
		jobs = append(jobs, source.Job{Part: p, Rows: [2]int{a, b}, Dst: bytes.Repeat([]byte{0xEE}, (b-a)*width)})
		want = append(want, r.read(r.gatherer(parts[p]), width, records[a:b]))
	}
	if err := g.Gather(context.Background(), r.Draw, records, jobs); err != nil {
		r.Fatal(err)
	}
	for i, j := range jobs {
		if !bytes.Equal(j.Dst, want[i]) {
			r.Fatalf("job %d for rows %v, boxes %v: %x instead of %x", i, j.Rows, parts[j.Part].Boxes, j.Dst, want[i])
		}
	}
	r.badJobs(g, records)
}

// badJobs checks that the gatherer rejects jobs that do not fit its parts or records.
func (r *run) badJobs(g source.Gatherer, records []int64) {
	for _, j := range []source.Job{
		{Part: -1}, {Part: 99},
		{Rows: [2]int{-1, 0}}, {Rows: [2]int{1, 0}}, {Rows: [2]int{0, len(records) + 1}},
		{Rows: [2]int{0, 0}, Dst: make([]byte, 1)},
	} {
		r.expect(g.Gather(context.Background(), r.Draw, records, []source.Job{j}), status.InvalidArgument, "a bad job")
	}
}

// conversions gathers fields of 64 bits as 32 bits, and compares the values with
// a gather of 64 bits.
func (r *run) conversions() {
	for _, i := range r.fixed() {
		f := r.src.Schema().Fields[i]
		to := f.Type.Narrow()
		if to == f.Type {
			continue
		}
		records := r.sample(40)
		wide := r.read(r.gatherer(r.whole(i)), f.RowBytes(), records)
		want, fits := narrow(wide, f.Type)
		p := r.whole(i)
		p.To = to
		g := r.gatherer(p)
		dst := make([]byte, len(wide)/2)
		err := g.Gather(context.Background(), r.Draw, records, []source.Job{{Rows: [2]int{0, len(records)}, Dst: dst}})
		switch {
		case fits && err != nil:
			r.Errorf("field %q as %v: %v", f.Name, to, err)
		case fits && !bytes.Equal(dst, want):
			r.Errorf("field %q as %v: %x instead of %x", f.Name, to, dst, want)
		case !fits:
			r.expect(err, status.OutOfRange, "a value that does not fit")
		}
	}
}

// narrow converts elements of 64 bits to 32 bits. fits is false if one does not fit.
func narrow(wide []byte, typ dtype.Type) (out []byte, fits bool) {
	for ; len(wide) > 0; wide = wide[8:] {
		v := binary.LittleEndian.Uint64(wide)
		u := uint32(v)
		switch typ {
		case dtype.Int64:
			if int64(v) != int64(int32(v)) {
				return nil, false
			}
		case dtype.Uint64:
			if v != uint64(u) {
				return nil, false
			}
		default:
			u = math.Float32bits(float32(math.Float64frombits(v)))
		}
		out = binary.LittleEndian.AppendUint32(out, u)
	}
	return out, true
}

// unfilled gathers rows without a fill value: rows with a null are an error, others are not.
func (r *run) unfilled() {
	for _, i := range r.fixed() {
		p := r.whole(i)
		p.Fill = nil
		records := r.existing(10)
		rows, err := r.readRows(context.Background(), r.reader(i), []int{i}, records)
		if err != nil {
			r.Fatal(err)
		}
		g, dst := r.gatherer(p), make([]byte, r.src.Schema().Fields[i].RowBytes())
		for k, record := range records {
			err := g.Gather(context.Background(), r.Draw, []int64{record}, []source.Job{{Rows: [2]int{0, 1}, Dst: dst}})
			if null := rows[0][k].null || rows[0][k].nulls != nil; null && len(dst) > 0 {
				r.expect(err, status.InvalidArgument, "a null without a fill value")
			} else if err != nil {
				r.Errorf("record %d without nulls and without a fill value: %v", record, err)
			}
		}
	}
}

// badParts checks that the source rejects parts that do not fit its fields.
func (r *run) badParts() {
	fields := r.src.Schema().Fields
	refuse := func(what string, p source.Part) {
		r.Helper()
		g, err := r.src.Gatherer([]source.Part{p})
		if err == nil {
			g.Close()
			r.Errorf("%s was accepted", what)
			return
		}
		e, ok := errors.AsType[*status.Error](err)
		if !ok || e.Code != status.InvalidArgument && e.Code != status.Unsupported {
			r.Errorf("%s: %v (%v)", what, err, status.CodeOf(err))
		}
	}
	refuse("a field beyond the last", source.Part{Field: len(fields), Boxes: [][][2]int{{}}})
	refuse("field -1", source.Part{Field: -1, Boxes: [][][2]int{{}}})
	for _, i := range r.fixed() {
		f, whole := fields[i], r.whole(i)
		refuse("a part without boxes", source.Part{Field: i, Fill: whole.Fill})
		refuse("a box of another rank", source.Part{Field: i, Fill: whole.Fill, Boxes: [][][2]int{append(whole.Boxes[0], [2]int{0, 1})}})
		for _, to := range dtype.All() {
			if to != f.Type && to != f.Type.Narrow() {
				p := whole
				p.To = to
				refuse("a conversion to "+to.String(), p)
			}
		}
		if len(f.Shape) > 0 {
			box := append([][2]int{{0, f.Shape[0] + 1}}, whole.Boxes[0][1:]...)
			refuse("a box beyond the row", source.Part{Field: i, Fill: whole.Fill, Boxes: [][][2]int{box}})
		}
	}
}
