package loader

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// checker collects all errors of loader.New, so that the user sees them at once.
type checker struct {
	errs []error
}

func (c *checker) add(err error) {
	if err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *checker) err() error {
	if len(c.errs) == 1 {
		return c.errs[0]
	}
	return errors.Join(c.errs...)
}

// check returns everything that is wrong with the options for this dataset. Planned
// is the document's description of the dataset.
func check(src source.Source, o *Options, planned *layout.DatasetSpec) error {
	if err := o.Layout.Err(); err != nil {
		return err
	}
	c := &checker{}
	c.checkNumbers(o)
	c.add(checkProcess(o))
	c.checkArrays(o.Layout, src.Schema())
	c.checkDataset(planned, src)
	c.checkFill(o.Fill, src.Schema())
	c.add(checkOrder(o, planned, src))
	if o.Layout.BatchSize() > 0 {
		c.add(gridOf(o.Layout, src).checkEpoch())
	}
	return c.err()
}

// checkOrder returns an error if the order of the records is unknown.
func checkOrder(o *Options, planned *layout.DatasetSpec, src source.Source) error {
	name, seed, err := o.order(planned, src)
	if err != nil {
		return err
	}
	return sampler.Check(name, seed, src.Len())
}

func gridOf(lay *layout.Layout, src source.Source) grid {
	return grid{records: src.Len(), batch: lay.BatchSize(), remainder: lay.Remainder()}
}

func (c *checker) checkNumbers(o *Options) {
	invalid := func(wrong bool, format string, args ...any) {
		if wrong {
			c.add(fail(status.InvalidArgument, format, args...))
		}
	}
	invalid(o.Processes < 0, "Options.Processes is %d, but must be positive, or 0 for the layout's number", o.Processes)
	invalid(o.Epochs < -1, "Options.Epochs is %d, but must be positive, 0 for one epoch per loop, or -1 for no end", o.Epochs)
	invalid(o.Prefetch < -1 || o.Prefetch > maxPrefetch, "Options.Prefetch is %d, but must be from -1 to %d", o.Prefetch, maxPrefetch)
	invalid(o.MaxHostBytes < 0, "Options.MaxHostBytes is %d, but must be positive, or 0 for no bound", o.MaxHostBytes)
	invalid(o.Workers < 0 || o.Workers > maxWorkers, "Options.Workers is %d, but must be from 1 to %d, or 0 to choose", o.Workers, maxWorkers)
	invalid(o.Layout.BatchSize() == 0, "the layout has no batch, so there is nothing to load")
}

// processes returns how many processes the run has.
func (o *Options) processes() int { return max(o.Processes, o.Layout.ProcessCount()) }

// checkProcess returns an error for a process that the run does not have. Such a
// process would get batches without blocks, and no process would load the rows
// that it was meant for.
func checkProcess(o *Options) error {
	n := o.processes()
	if o.Process >= 0 && o.Process < n {
		return nil
	}
	owner, known := "layout", fmt.Sprintf("processes 0 to %d", n-1)
	if n > o.Layout.ProcessCount() {
		owner = "run"
	}
	if n == 1 {
		known = "process 0 alone"
	}
	return fail(status.OutOfRange, "Options.Process is %d, but the %s has %s", o.Process, owner, known).
		WithHint("number processes from 0; if the run has processes outside the mesh, say in Options.Processes how many it has")
}

const maxPrefetch = 1 << 16

// checkArrays compares the arrays with the dataset's fields.
func (c *checker) checkArrays(lay *layout.Layout, schema source.Schema) {
	fields, others := make([]layout.FieldSpec, 0, len(schema.Fields)), schema.Skipped
	for _, f := range schema.Fields {
		if f.Ragged > 0 {
			others = append(others[:len(others):len(others)], source.Skipped{Name: f.Name, Type: f.TypeString(), Reason: f.Why()})
			continue
		}
		fields = append(fields, layout.FieldSpec{Name: f.Name, Shape: f.Shape, Type: f.Type})
	}
	for _, a := range lay.Arrays() {
		switch a.Kind {
		case layout.Static:
			c.add(fail(status.InvalidArgument, "array %q has no batch dimension, so it cannot be loaded", a.Name).
				WithHint("begin its shape with the batch dimension, or plan it in a layout of its own"))
		case layout.Data:
			c.add(checkArray(a, fields, others))
		}
	}
}

// checkArray returns the first problem between an array and its field. Others are the
// columns that cannot be arrays.
func checkArray(a layout.Array, fields []layout.FieldSpec, others []source.Skipped) error {
	for _, s := range others {
		if s.Name == a.Field {
			return fail(status.Unsupported, "array %q takes column %q of type %s, which cannot be an array: %s", a.Name, s.Name, s.Type, s.Reason)
		}
	}
	problems := layout.CheckField(a, fields)
	if len(problems) == 0 {
		return nil
	}
	p, code := problems[0], status.InvalidArgument
	switch p.Code {
	case layout.UnknownField:
		code = status.NotFound
	case layout.ColumnsRange:
		code = status.OutOfRange
	}
	return status.New(code, "loader", p.Message).WithHint("%s", p.Hint)
}

// checkDataset compares the facts that the document states with the source.
func (c *checker) checkDataset(d *layout.DatasetSpec, src source.Source) {
	if d == nil {
		return
	}
	if d.Records != src.Len() {
		c.add(fail(status.Incompatible, "the layout is for a dataset of %d records, but this one has %d", d.Records, src.Len()).
			WithHint("open the dataset that was planned for, or change /dataset/records").With("planned", d.Records).With("records", src.Len()))
	}
	for _, want := range d.Fields {
		_, f, ok := src.Schema().Field(want.Name)
		switch {
		case !ok:
			c.add(fail(status.Incompatible, "the layout is for a dataset with field %q, but this one does not have it", want.Name))
		case f.Type != want.Type || !slices.Equal(f.Shape, want.Shape):
			c.add(fail(status.Incompatible, "the layout is for a field %q of %s %v, but it is %s %v", want.Name, want.Type, want.Shape, f.Type, f.Shape))
		}
	}
}

// checkFill adds an error for every fill value of an unknown field.
func (c *checker) checkFill(fill map[string]any, schema source.Schema) {
	for name := range fill {
		if _, _, ok := schema.Field(name); !ok {
			c.add(fail(status.NotFound, "there is a fill value for field %q, but the dataset does not have it", name))
		}
	}
}

// checkContent compares the document's commits and fingerprint with the source's.
func checkContent(d *layout.DatasetSpec, src source.Source, live source.Fingerprint) error {
	if d == nil {
		return nil
	}
	if commits := source.CommitsOf(src); d.Commits != nil && !slices.Equal(d.Commits, commits) {
		return fail(status.Incompatible, "the layout is for the files of %s, but the dataset has those of %s", strings.Join(d.Commits, " and "), cmp.Or(strings.Join(commits, " and "), "no commit")).
			WithHint("open the commit that was planned for, or change /dataset/commits")
	}
	if d.Fingerprint == "" || d.Fingerprint == live.String() {
		return nil
	}
	return fail(status.Incompatible, "the layout is for the dataset with fingerprint %s, but this one has %s", d.Fingerprint, live).
		WithHint("open the dataset that was planned for, or change /dataset/fingerprint")
}
