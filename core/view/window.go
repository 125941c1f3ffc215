package view

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/source/cut"
	"github.com/meshfeed/meshfeed/core/status"
)

// Windows says which records a [Window] joins.
type Windows struct {
	Length int64  // records in a window
	Stride int64  // records from the start of a window to the start of the next; 0: 1
	Within string // the name of a field that has one value in a window; empty for none
}

// Window returns a view of windows. Record k consists of Length consecutive records
// of src, from record k*Stride on. Every field gets a first dimension of that length.
// Records behind the last whole window are left out.
//
// If Within names a field, such as the number or the name of a patient, its changes divide the
// records into runs. Each run is divided into windows by itself, from its first record
// on. Window then reads the field once, and keeps 16 bytes for each run.
func Window(ctx context.Context, src source.Source, w Windows) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	w.Stride = cmp.Or(w.Stride, 1)
	if w.Length < 1 || w.Stride < 1 {
		return nil, status.Errorf(status.InvalidArgument, "view", "windows of %d records that begin every %d records cannot be made", w.Length, w.Stride).
			WithHint("give a length and a stride of at least 1")
	}
	v := &window{base: newBase("window", src), Windows: w}
	v.base.identify, v.renumber, v.length = v.identify, v.firstRecords, w.Length
	add := func(start, stop int64, _ []byte) {
		v.longest = max(v.longest, stop-start)
		if n := stop - start - w.Length; n >= 0 {
			v.runs, v.firsts = append(v.runs, start), append(v.firsts, v.records)
			v.records += n/w.Stride + 1
		}
	}
	if w.Within == "" {
		add(0, src.Len(), nil)
	} else if err := keepsRecords("window", src); err != nil {
		return nil, err
	} else if err := eachRun(ctx, src, w.Within, add); err != nil {
		return nil, err
	}
	if v.records == 0 {
		return nil, v.tooLong()
	}
	v.schema.Skipped = slices.Clone(src.Schema().Skipped)
	for i, f := range src.Schema().Some().Fields {
		if f.Ragged > 0 {
			v.schema.Skipped = append(v.schema.Skipped, source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: "windows join rows of one shape; pad it first"})
			continue
		}
		v.origins = append(v.origins, origin{fields: []int{i}, joined: true})
		f.Lists, f.Shape = false, append([]int{int(w.Length)}, f.Shape...)
		v.schema.Fields = append(v.schema.Fields, f)
	}
	return v, nil
}

// window is a view of windows.
type window struct {
	base
	Windows
	runs    []int64 // the first records of the runs that have a window
	firsts  []int64 // by run: the number of its first window
	longest int64   // the number of records in the longest run
}

// tooLong returns the error for a dataset without a window.
func (v *window) tooLong() error {
	if v.longest == 0 {
		return status.New(status.InvalidArgument, "view", "the dataset has no records, so it has no windows").
			WithHint("check the filter or the slice below the windows")
	}
	e := status.Errorf(status.InvalidArgument, "view", "a window takes %d records, but the dataset has %d", v.Length, v.longest)
	if v.Within != "" {
		e = status.Errorf(status.InvalidArgument, "view", "a window takes %d records, but the longest run of one value of %q has %d", v.Length, v.Within, v.longest)
	}
	return e.WithHint("make the window shorter")
}

// start returns the first record of a window.
func (v *window) start(k int64) int64 {
	run := sort.Search(len(v.firsts), func(i int) bool { return v.firsts[i] > k }) - 1
	return v.runs[run] + (k-v.firsts[run])*v.Stride
}

// firstRecords appends the first records of windows.
func (v *window) firstRecords(_ source.Draw, list *[]int64, windows []int64) {
	for _, k := range windows {
		if k >= 0 {
			k = v.start(k)
		}
		*list = append(*list, k)
	}
}

// identify hashes the runs instead of the name that they follow from.
func (v *window) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	h := hashOf("window", below...)
	if err := hashNumbers(ctx, h, v.Length, v.Stride, int64(len(v.runs))); err != nil {
		return source.Fingerprint{}, err
	}
	if err := hashNumbers(ctx, h, v.runs...); err != nil {
		return source.Fingerprint{}, err
	}
	err := hashNumbers(ctx, h, append(v.firsts, v.records)...)
	return fingerprint(h), err
}

// Facts implements source.Source.
func (v *window) Facts() source.Facts {
	f := v.base.Facts()
	f.Units, f.Check = v.units, v.checked(v.check)
	return f
}

// check checks the records of windows. If there are records between windows, a failure may be
// about one of them. The gather then reports it.
func (v *window) check(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
	if start >= stop {
		return nil
	}
	err := below(ctx, v.fieldsBelow(fields), v.start(start), v.start(stop-1)+v.Length)
	if v.Within != "" || v.Stride > v.Length {
		return ended(ctx)
	}
	return err
}

// Reader implements source.Source. All fields of windows have fixed rows, which are gathered.
func (v *window) Reader(fields []int) (source.Reader, error) { return cut.Reader(v, fields) }
