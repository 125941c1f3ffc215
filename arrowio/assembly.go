package arrowio

import (
	"context"
	"math"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/hostmemory"
)

// assembly makes a dataset of open files. Its methods set the fields of the dataset that do
// not change later.
type assembly struct {
	*Dataset
	ctx    context.Context
	o      Options
	united []union.File // the files, with their members
}

// newDataset makes a dataset of open files. Close closes them. If newDataset fails,
// the caller closes them.
func newDataset(ctx context.Context, files []*file, o Options) (*Dataset, error) {
	d := &Dataset{files: files, opener: o.Opener, disk: disk{path: o.Cache, home: o.CacheHome, limit: o.CacheBytes, over: cacheBytes, io: o.IO, handler: o.FaultHandler}}
	calls := source.NewCalls("arrowio", "dataset", func() error { d.end(); d.disk.close(); return closeFiles(d.files) })
	d.life, d.end = calls.Join(context.Background())
	d.table = &table.Table{Calls: calls, Load: d.load, Arm: func() { d.set.Arm() }, Store: (*store)(d), Held: cacheBytes / 2}
	a := &assembly{Dataset: d, ctx: ctx, o: o}
	for _, step := range []func() error{a.unite, a.scan, a.setFields, a.setRows, a.checkColumns, a.openContents} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// unite makes the union of the files, and sets the member of each file.
func (a *assembly) unite() (err error) {
	a.united = make([]union.File, len(a.files))
	for i, f := range a.files {
		a.united[i] = union.File{File: f.File, Schema: f.Schema, Adapts: f.Adapts}
	}
	if a.union, err = union.Unite(a.united, a.o.Columns); err != nil {
		return err
	}
	for i, f := range a.files {
		f.member = a.united[i].Member
	}
	return nil
}

// scan reads the header of every record batch. It builds the index from the numbers
// of rows, and records which columns have nulls.
func (a *assembly) scan() error {
	rows := make([][]int64, len(a.files))
	a.nulls = make([]buffers.Nulls, len(a.union.Schema.Fields))
	var mu sync.Mutex
	err := parallel(len(a.files), func(i int) error {
		f := a.files[i]
		rows[i] = make([]int64, 0, len(f.Units))
		found := make([]buffers.Nulls, len(a.nulls))
		err := f.scan(a.ctx, len(f.Units), func(_ int, u format.Unit) error {
			rows[i] = append(rows[i], u.Rows())
			f.note(u, found)
			return nil
		})
		if err == nil {
			err = f.CheckRecords(f.records)
		}
		mu.Lock()
		defer mu.Unlock()
		for c := range found {
			a.nulls[c] = a.nulls[c].Or(found[c])
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.index(rows)
}

// note adds one record batch to the counts of the file, and to what is known of nulls.
func (f *file) note(u format.Unit, nulls []buffers.Nulls) {
	f.records += u.Rows()
	f.largest = max(f.largest, u.Rows())
	if f.encoding == "" {
		f.encoding = u.Encoding()
	}
	for c, number := range f.member.Numbers {
		if number >= 0 {
			nulls[c] = nulls[c].Or(u.Nulls(number))
		} else if u.Rows() > 0 {
			nulls[c] = buffers.Nulls{May: true, Has: true}
		}
	}
}

// maxRecords bounds a dataset, because orders of records are bounded.
const maxRecords = 1 << 40

// index numbers the records of all files.
func (a *assembly) index(rows [][]int64) error {
	var all []int64
	total := int64(0)
	for i, list := range rows {
		f := a.files[i]
		f.first = len(all)
		all = append(all, list...)
		for _, n := range list {
			if total += n; total > maxRecords {
				return status.Errorf(status.ResourceExhausted, "arrowio", "%s: the dataset has more than 2^40 records", f.Path).With("path", f.Path)
			}
			if len(a.files) > 1 {
				a.table.Files = append(a.table.Files, int32(i))
			}
		}
	}
	a.table.Index = table.NewIndex(all)
	return nil
}

// checkColumns returns an error if a chosen column is not a field.
func (a *assembly) checkColumns() error {
	for _, name := range a.o.Columns {
		if _, err := a.Schema().Find(name); err != nil {
			return err
		}
	}
	return nil
}

// openContents prepares reads of the files, and opens the disk cache if a folder was chosen.
func (a *assembly) openContents() (err error) {
	contents := make([]*resident.File, len(a.files))
	for i, f := range a.files {
		contents[i] = f.content
	}
	if a.disk.chosen() && a.canStore() {
		if err := a.disk.open(); err != nil {
			return err
		}
	}
	a.set, err = resident.NewSet(a.table.Calls, contents, resident.Options{IO: a.o.IO, Memory: a.freeMemory(), FaultHandler: a.o.FaultHandler})
	return err
}

// smallBytes is the size up to which a dataset is assumed to fit into memory,
// without asking the system how much is free.
const smallBytes = 16 << 20

func (a *assembly) freeMemory() int64 {
	if a.bytes() <= smallBytes {
		return math.MaxInt64
	}
	return hostmemory.Free()
}
