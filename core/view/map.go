package view

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// Mapping describes the fields that [Map] computes.
type Mapping struct {
	// Fields are the fields that Func gets; nil for all.
	Fields []string

	// Out are the fields that Func returns: Name, Type, Shape, Ragged and Logical. They take the places
	// of fields with their names, or follow the others. The rows of a ragged field are lists, text
	// ("string") or bytes ("binary"), and vary in one dimension. No row is null.
	Out []source.Field

	// Func computes rows. Several goroutines call it at a time, each for other records. The result of a
	// record depends on its row and its key alone. Func returns soon after the context has ended.
	Func func(ctx context.Context, rows *Rows) error

	// Zero makes the rows of Out zeros, or empty if they are ragged, in place of an error of Func for a
	// record. Then errors that do not follow from the record alone are still errors: Cancelled, IO,
	// ResourceExhausted, InvalidState, Forked and Internal. The Stats of a loader count such records.
	Zero bool

	// Keys gives each record a key for random choices. See Keys of [Rows].
	Keys bool

	// Name names Func in errors. It stands in the fingerprint unless there is a Key.
	Name string

	// Key names what Func does, such as "crop.2", and changes with it. Without a key, the rows cannot
	// be kept by arrowio.Cached, because nothing tells them from the rows of another version of Func.
	Key string

	// Workers is how many calls of Func run at a time. 0: GOMAXPROCS.
	Workers int
}

// Map returns a view with fields that a function computes from the rows of each record. The other fields
// stay. Rows are computed when a gather or a read needs them, ahead of the step, and only the rows that
// this process needs. Nothing is kept: each gather computes its rows again, unless arrowio.Cached keeps
// them.
//
// The lengths of ragged rows are not known before they are computed, so reading them calls the function.
//
// If Func fails for several records, it is called for each of them alone, so that the error names the
// record. The error has the code of the error of Func, or else InvalidArgument.
func Map(src source.Source, m Mapping) (source.Source, error) {
	if err := source.Given("view", src); err != nil {
		return nil, err
	}
	if m.Func == nil || len(m.Out) == 0 {
		return nil, status.New(status.InvalidArgument, "view", "a map needs a function and the fields that it returns").
			WithHint("give both (Go: Mapping.Func and Mapping.Out; Python: fn and out)")
	}
	if m.Workers < 0 || m.Workers > maxMapWorkers {
		return nil, status.Errorf(status.OutOfRange, "view", "a map has %d workers, but must have from 1 to %d, or 0 for a choice", m.Workers, maxMapWorkers)
	}
	m.Workers = cmp.Or(m.Workers, min(runtime.GOMAXPROCS(0), maxMapWorkers))
	v := &mapped{base: newBase("map", src), options: m, slots: make(chan struct{}, m.Workers)}
	schema := src.Schema()
	v.records, v.origins, v.identify, v.base.rows = src.Len(), allOf(src), v.hash, v.Reader
	v.schema = source.Schema{Fields: slices.Clone(schema.Fields), Skipped: schema.Skipped}
	if err := v.choose(schema); err != nil {
		return nil, err
	}
	v.made = slices.Repeat([]int{-1}, len(schema.Fields))
	for i := range m.Out {
		if err := v.add(i); err != nil {
			return nil, err
		}
	}
	for _, f := range slices.Concat(v.in, v.out) {
		if f.Ragged == 0 {
			v.rowBytes += f.RowBytes()
		}
	}
	return v, checkSkipped("map", v.schema)
}

// maxMapWorkers bounds Mapping.Workers.
const maxMapWorkers = 256

// mapped is a view with computed fields.
type mapped struct {
	base
	options  Mapping
	fields   []int          // that the function gets, below
	in, out  []source.Field // that the function gets and returns
	made     []int          // by field of the view: its index in out, or -1
	slots    chan struct{}  // holds an element for each call of the function
	rowBytes int            // of the fixed fields in and out
	rowTime  atomic.Int64   // nanoseconds that a row took lately; 0 before the first call
}

// choose sets the fields that the function gets.
func (v *mapped) choose(schema source.Schema) error {
	names := v.options.Fields
	if names == nil {
		for _, f := range schema.Fields {
			names = append(names, f.Name)
		}
	}
	for i, name := range names {
		number, err := schema.Find(name)
		if err != nil {
			return err
		}
		if slices.Contains(names[:i], name) {
			return status.Errorf(status.InvalidArgument, "view", "the function of the map gets field %q twice", name).
				WithHint("give each field once").With("field", name)
		}
		v.fields, v.in = append(v.fields, number), append(v.in, schema.Fields[number])
	}
	return nil
}

// add adds the i-th field of Mapping.Out to the schema.
func (v *mapped) add(i int) error {
	f := v.options.Out[i]
	fail := func(code status.Code, format string, args ...any) *status.Error {
		return status.Errorf(code, "view", "the map returns field %q: "+format, append([]any{f.Name}, args...)...).With("field", f.Name)
	}
	if err := checkName(f.Name); err != nil {
		return err
	}
	words := f.Logical == "string" || f.Logical == "binary"
	switch {
	case slices.ContainsFunc(v.out, func(o source.Field) bool { return o.Name == f.Name }):
		return fail(status.InvalidArgument, "it is given twice").WithHint("give each field once")
	case !slices.Contains(dtype.All(), f.Type):
		return fail(status.InvalidArgument, "it has no element type").WithHint("give one, such as float32")
	case f.Ragged > 1 || f.Ragged < 0:
		return fail(status.Unsupported, "%d of its dimensions vary in length, and only the first one may", f.Ragged).
			WithHint("return the values of all inner lists as one list, and their lengths as another field")
	case f.Logical != "" && !words, words && (f.Type != dtype.Uint8 || f.Ragged != 1 || len(f.Shape) > 0):
		return fail(status.InvalidArgument, "rows of %v cannot stand for %q", f.Type, f.Logical).
			WithHint("leave it out, or give \"string\" or \"binary\" for ragged rows of uint8")
	case len(f.Shape) > maxDims:
		return fail(status.InvalidArgument, "its rows have %d dimensions", len(f.Shape)).WithHint("give at most %d", maxDims)
	}
	size := f.Type.Size()
	for _, n := range f.Shape {
		if n < 1 || n > maxRowBytes/size {
			return fail(status.InvalidArgument, "rows of shape %v have no elements or too many", f.Shape).WithHint("give positive lengths of at most 2 GiB in all")
		}
		size *= n
	}
	f = source.Field{Name: f.Name, Type: f.Type, Shape: slices.Clone(f.Shape), Ragged: f.Ragged, Logical: f.Logical, Names: f.Names, Computed: true, Mapped: true}
	v.out = append(v.out, f)
	from := origin{fields: v.fields, compute: byReader}
	at, _, known := v.schema.Field(f.Name)
	if !known {
		at = len(v.schema.Fields)
		v.schema.Fields, v.origins, v.made = append(v.schema.Fields, f), append(v.origins, from), append(v.made, 0)
	}
	v.schema.Fields[at], v.origins[at], v.made[at] = f, from, i
	return nil
}

// byReader marks fields with rows that [mapReader] computes.
func byReader(context.Context, source.Draw, *memory, *source.Span, []source.Span, int64) error {
	return nil
}

// hash hashes what the rows depend on.
func (v *mapped) hash(ctx context.Context, below []source.Fingerprint) (f source.Fingerprint, err error) {
	h, m := hashOf("map", below...), &v.options
	if m.Key != "" {
		fmt.Fprintf(h, "key %q\n", m.Key)
	} else {
		fmt.Fprintf(h, "name %q\n", m.Name)
	}
	fmt.Fprintf(h, "keys %t\n", m.Keys)
	if m.Zero {
		fmt.Fprintln(h, "zero")
	}
	for _, f := range v.out {
		fmt.Fprintf(h, "%q %q %v %v %d %q\n", f.Name, f.TypeString(), f.Type, f.Shape, f.Ragged, f.Names)
	}
	numbers := make([]int64, len(v.fields))
	for i, n := range v.fields {
		numbers[i] = int64(n)
	}
	err = hashNumbers(ctx, h, numbers...)
	return fingerprint(h), err
}

// Facts implements source.Source.
func (v *mapped) Facts() source.Facts {
	f := v.base.Facts()
	f.Version = v.version
	f.Check = v.checked(func(ctx context.Context, below checkFunc, fields []int, start, stop int64) error {
		var passed []int
		for _, field := range fields {
			if v.made[field] < 0 {
				passed = append(passed, field)
			}
		}
		return below(ctx, passed, start, stop)
	})
	return f
}

// version returns the versions of the files, if the rows can be kept.
func (v *mapped) version() (string, error) {
	switch {
	case v.options.Keys:
		return "", status.Errorf(status.Unsupported, "view", "the rows of the map %s depend on keys, so they differ in every epoch", v.name()).
			WithHint("cache the dataset below the map, or divide the map into one without keys and one with keys")
	case v.options.Key == "":
		return "", status.Errorf(status.Unsupported, "view", "the name of the function %s does not tell its rows from the rows of another version of it", v.name()).
			WithHint("name what it does by a key, and change the key with the function (Go: Mapping.Key; Python: ds.map(fn, key=\"crop.2\"); C: the member \"key\")")
	}
	return v.base.version()
}

// name returns the name of the function, for errors.
func (v *mapped) name() string { return cmp.Or(v.options.Name, v.options.Key, "of the map") }

// callTime is about how long a call of the function takes, if the records of a gather would not divide
// evenly among the workers otherwise. A call that is shorter costs more than it gains.
const callTime = 2 * time.Millisecond

// callBytes bounds the rows of fixed fields in one call, and callRows the rows.
const (
	callBytes = 8 << 20
	callRows  = 1024
)

// most returns how many rows a call gets at most.
func (v *mapped) most() int { return max(1, min(callRows, callBytes/max(v.rowBytes, 1))) }

// perCall returns how many of n rows a call gets: so many that all workers have some, unless the rows
// take little time.
func (v *mapped) perCall(n int) int {
	quick := n
	if t := v.rowTime.Load(); t > 0 {
		quick = int(min(int64(n), int64(callTime)/t))
	}
	even := (n + v.options.Workers - 1) / v.options.Workers
	return max(1, min(n, v.most(), max(quick, even)))
}

// timed adds a call to the time of a row.
func (v *mapped) timed(rows int, t time.Duration) {
	mean := max(1, int64(t)/int64(rows))
	if before := v.rowTime.Load(); before > 0 {
		mean = (3*before + mean) / 4
	}
	v.rowTime.Store(max(1, mean))
}
