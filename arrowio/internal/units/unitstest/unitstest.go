// Package unitstest opens the files of a dataset for tests of packages that units have above them.
package unitstest

import (
	"context"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/files"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/union"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/core/source"
)

// Dataset is a dataset of files of one format. All columns that can be fields are.
type Dataset struct {
	Files *units.Files
	Table *table.Table // over the files; the caller sets Units
	Life  context.Context
}

// Open opens files of a format, which o finds by names. A cleanup closes them, after it has called
// release.
func Open(t *testing.T, f format.Format, o blob.Opener, names []string, release func()) *Dataset {
	t.Helper()
	reads := resident.NewReads(o.Hints())
	list, united := make([]*units.File, len(names)), make([]union.File, len(names))
	for i, name := range names {
		b, err := o.Open(t.Context(), blob.Entry{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		list[i] = &units.File{File: &files.File{Path: name}, Content: resident.NewFile(b, reads)}
		if list[i].Contents, err = f.Open(t.Context(), list[i].Content); err != nil {
			t.Fatal(err)
		}
		list[i].Metadata = list[i].Contents.Metadata()
		united[i] = union.File{File: list[i].File, Schema: list[i].Schema, Adapts: list[i].Adapts}
	}
	u, err := union.Unite(united, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		f.Member = united[i].Member
	}
	var end func()
	calls := source.NewCalls("arrowio", "dataset", func() error {
		end()
		release()
		for _, f := range list {
			_ = f.Content.Close()
		}
		return nil
	})
	d := &Dataset{}
	d.Life, end = calls.Join(context.Background())
	t.Cleanup(func() {
		if err := calls.Close(source.Patience); err != nil {
			t.Error(err)
		}
	})
	d.Files = units.New(list, reads, calls, d.Life)
	err = d.Files.Number(t.Context(), len(u.Schema.Fields))
	if err != nil {
		t.Fatal(err)
	}
	d.Table = &table.Table{Store: d.Files, Index: d.Files.Index, Files: d.Files.Of, Calls: calls}
	fields, reasons, err := table.Fields(&u.Schema, table.Shapes{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range fields {
		if reasons[i] == "" && !f.Open() {
			d.Files.Fields = append(d.Files.Fields, units.Field{Field: f, Column: i})
			d.Table.Add(f, d.Files.Nulls[i])
		}
	}
	if err := d.Files.Prepare(resident.Options{IO: "read"}); err != nil {
		t.Fatal(err)
	}
	return d
}
