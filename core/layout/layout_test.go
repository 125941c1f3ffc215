package layout_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// simple makes a document as a Go program would write it.
func simple() *layout.Document {
	return &layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 4}}, Processes: 2},
		Arrays: []layout.ArraySpec{{Name: "x", RowShape: []int{3}, Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{8}},
	}
}

// New refuses what a text cannot contain, but a Go program can.
func TestNewRefuses(t *testing.T) {
	name := strings.Repeat("n", 1025)
	long := `"` + name[:60] + `…"`
	for _, c := range []struct {
		want   string
		change func(d *layout.Document)
	}{
		{"layout: /prefetch: prefetch is -1, but must be from 0 to 65536", func(d *layout.Document) { d.Prefetch = new(-1) }},
		{"layout: /mesh/processes: there are -1 processes, but must be from 1 to 4, the number of devices", func(d *layout.Document) { d.Mesh.Processes = -1 }},
		{`layout: /mesh/axes/0/1: axis "data" has size 0, but the smallest size is 1`, func(d *layout.Document) { d.Mesh.Axes[0].Size = 0 }},
		{`layout: /mesh/axes/0/0: an axis is named "\xff", which is not valid UTF-8`, func(d *layout.Document) { d.Mesh.Axes[0].Name = "\xff" }},
		{"layout: /mesh/axes: there are 33 axes, but a mesh may have 32", func(d *layout.Document) { d.Mesh.Axes = make([]mesh.Axis, 33) }},
		{"layout: /mesh/devices/1: the device is [-1, 1], but a process is from 0 to 2147483647 and an id from 0 to 2^53", func(d *layout.Document) {
			d.Mesh = layout.MeshSpec{Axes: d.Mesh.Axes, Devices: []mesh.Device{{}, {Process: -1, ID: 1}, {ID: 2}, {ID: 3}}}
		}},
		{"layout: /mesh/devices/0: the device is [2147483648, 0], but a process is from 0 to 2147483647 and an id from 0 to 2^53", func(d *layout.Document) {
			d.Mesh = layout.MeshSpec{Axes: d.Mesh.Axes, Devices: []mesh.Device{{Process: 1 << 31}, {ID: 1}, {ID: 2}, {ID: 3}}}
		}},
		{"layout: /mesh/devices/3: the device is [0, 9007199254740993], but a process is from 0 to 2147483647 and an id from 0 to 2^53", func(d *layout.Document) {
			d.Mesh = layout.MeshSpec{Axes: d.Mesh.Axes, Devices: []mesh.Device{{}, {ID: 1}, {ID: 2}, {ID: 1<<53 + 1}}}
		}},
		{"layout: /batch/size: the batch has 0 dimensions, but must have from 1 to 32", func(d *layout.Document) { d.Batch.Size = nil }},
		{"layout: /batch/size/1: the batch size is 0, but must be at least 1", func(d *layout.Document) { d.Batch.Size = []int{4, 0} }},
		{"layout: /dataset/records: the dataset has -1 records, but may have from 0 to 2^40", func(d *layout.Document) { d.Dataset = &layout.DatasetSpec{Records: -1} }},
		{"layout: /dataset/seed: seed 9007199254740993 is outside ±2^53", func(d *layout.Document) { d.Dataset = &layout.DatasetSpec{Seed: 1<<53 + 1} }},
		{"layout: /mesh/axes/0/0: an axis is named " + long + ", which has 1025 bytes, but may have 1024; choose a shorter name", func(d *layout.Document) { d.Mesh.Axes[0].Name = name }},
		{"layout: /arrays/" + name[:112] + "…: an array is named " + long + ", which has 1025 bytes, but may have 1024; choose a shorter name", func(d *layout.Document) { d.Arrays[0].Name = name }},
		{"layout: /arrays/x/field: the field of an array is named " + long + ", which has 1025 bytes, but may have 1024; choose a shorter name", func(d *layout.Document) { d.Arrays[0].Field = name }},
		{"layout: /dataset/order: an order is named " + long + ", which has 1025 bytes, but may have 1024; choose a shorter name", func(d *layout.Document) { d.Dataset = &layout.DatasetSpec{Order: name} }},
		{"layout: /mesh/processes: there are 131073 processes, but a mesh may have 131072; give each process more devices", func(d *layout.Document) { d.Mesh.Axes[0].Size, d.Mesh.Processes = 1<<18, 131073 }},
		{"layout: /mesh/processes: there are 131073 processes, but a mesh may have 131072; give each process more devices", func(d *layout.Document) {
			d.Mesh = layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 131074}}, Devices: make([]mesh.Device, 131074)}
			for i := range d.Mesh.Devices {
				d.Mesh.Devices[i] = mesh.Device{Process: min(i, 131072), ID: i}
			}
		}},
		{`layout: /dataset/order: an order is named "\xff", which is not valid UTF-8`, func(d *layout.Document) { d.Dataset = &layout.DatasetSpec{Order: "\xff"} }},
		{`layout: /dataset/fields/f: field "f" occurs twice; name every field once`, func(d *layout.Document) {
			d.Dataset = &layout.DatasetSpec{Fields: []layout.FieldSpec{{Name: "f", Type: dtype.Bool}, {Name: "f", Type: dtype.Bool}}}
		}},
		{"layout: /dataset/fields/f/dtype: there is no element type", func(d *layout.Document) { d.Dataset = &layout.DatasetSpec{Fields: []layout.FieldSpec{{Name: "f"}}} }},
		{"layout: /budget/host_bytes: the budget is -1 bytes, but must be from 1 to 2^53; leave it out for no bound", func(d *layout.Document) { d.Budget.HostBytes = -1 }},
		{`layout: /arrays/x: array "x" occurs twice; name every array once`, func(d *layout.Document) { d.Arrays = append(d.Arrays, d.Arrays[0]) }},
		{"layout: /arrays: there are 1025 arrays, but may be 1024", func(d *layout.Document) { d.Arrays = make([]layout.ArraySpec, 1025) }},
		{"layout: /arrays/x/dtype: there is no element type", func(d *layout.Document) { d.Arrays[0].Type = 0 }},
		{"layout: /arrays/x/shape/1: the dimension is -3, but must be from 0 to 2^53", func(d *layout.Document) { d.Arrays[0].RowShape[0] = -3 }},
		{"layout: /arrays/x/shape: the shape has rank 33, but may have 32", func(d *layout.Document) { d.Arrays[0].RowShape = make([]int, 32) }},
		{"layout: /arrays/x/spec: the spec has 33 entries, but may have 32", func(d *layout.Document) { d.Arrays[0].Spec = make(sharding.PartitionSpec, 33) }},
		{"layout: /arrays/x/spec/0: the entry names 33 axes, but a mesh may have 32", func(d *layout.Document) { d.Arrays[0].Spec[0] = make([]string, 33) }},
		{`layout: /arrays/x/field: the field of an array is named "\xff", which is not valid UTF-8`, func(d *layout.Document) { d.Arrays[0].Field = "\xff" }},
		{`layout: /arrays/x/shape: array "x" has a batch dimension, but there is no batch; add "batch": {"size": …}`, func(d *layout.Document) { d.Batch = nil }},
	} {
		d := simple()
		c.change(d)
		_, err := layout.New(d)
		if err == nil || err.Error() != c.want {
			t.Errorf("error %v\nwant  %s", err, c.want)
		}
		if status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%v has code %s", err, status.CodeOf(err))
		}
	}
	if _, err := layout.New(nil); err == nil || err.Error() != "layout: there is no document; Parse reads one; look at its error" {
		t.Errorf("without a document: %v", err)
	}
}

// A layout shares nothing with the document that it was made of.
func TestNewCopies(t *testing.T) {
	d := simple()
	d.Arrays[0].Columns = [][2]int{{0, 3}}
	d.Batch.Extras, d.Prefetch, d.Dataset = []string{layout.ExtraKey}, new(4), &layout.DatasetSpec{Records: 100, Fields: []layout.FieldSpec{{Name: "x", Shape: []int{3}, Type: dtype.Float32}}}
	d.Batch.Remainder, d.Batch.MaskSpec = layout.Pad, sharding.P(nil)
	l, err := layout.New(d)
	if err != nil {
		t.Fatal(err)
	}
	before := string(document.Canonical(l.Document()))
	d.Mesh.Axes[0].Name, d.Arrays[0].Name, d.Arrays[0].RowShape[0], d.Arrays[0].Spec[0] = "z", "z", 9, nil
	d.Arrays[0].Columns[0], d.Batch.Size[0], d.Batch.Extras[0], *d.Prefetch = [2]int{1, 2}, 9, "z", 9
	d.Batch.MaskSpec[0], d.Dataset.Records, d.Dataset.Fields[0].Shape[0] = []string{"z"}, 9, 9
	l.BatchShape()[0] = 9
	if after := string(document.Canonical(l.Document())); after != before || l.BatchSize() != 8 || l.Prefetch() != 4 || l.Remainder() != layout.Pad {
		t.Errorf("the layout has become %s", after)
	}
}

// TestArrays checks the order, types and specs of mask and extras.
func TestArrays(t *testing.T) {
	l := documents.Layout(t, `{"meshfeed":1,"mesh":{"axes":[["a",2],["b",2],["c",2]]},"arrays":{
		"x":{"field":"f","shape":["B0","B1",6],"dtype":"int8","spec":["a",["b","c"]]},
		"y":{"shape":["B0","B1"],"dtype":"int8","spec":[null,["b","c"]]},
		"w":{"shape":[4],"dtype":"float32","spec":["a"]}},
		"batch":{"size":[4,8],"remainder":"pad","mask":"real","extras":["record","key"]}}`)
	type row struct {
		Name, Field, Spec string
		Shape             []int
		BatchDims         int
		Type              dtype.Type
		Kind              layout.Kind
	}
	want := []row{
		{"x", "f", "P('a', ('b', 'c'))", []int{4, 8, 6}, 2, dtype.Int8, layout.Data},
		{"y", "y", "P(None, ('b', 'c'))", []int{4, 8}, 2, dtype.Int8, layout.Data},
		{"w", "", "P('a',)", []int{4}, 0, dtype.Float32, layout.Static},
		{"real", "", "P(None, ('b', 'c'))", []int{4, 8}, 2, dtype.Bool, layout.Mask},
		{"record", "", "P(None, ('b', 'c'), None)", []int{4, 8, 2}, 2, dtype.Uint32, layout.Record},
		{"key", "", "P(None, ('b', 'c'), None)", []int{4, 8, 2}, 2, dtype.Uint32, layout.Key},
	}
	var got []row
	for _, a := range l.Arrays() {
		got = append(got, row{a.Name, a.Field, a.Sharding.Spec().String(), a.Shape, a.BatchDims, a.Type, a.Kind})
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the arrays are\n%+v\nwant\n%+v", got, want)
	}
	if row := l.Arrays()[0].RowShape(); !reflect.DeepEqual(row, []int{6}) {
		t.Errorf("a row of x has shape %v", row)
	}
}

func TestProcessOfNoDevices(t *testing.T) {
	l, err := layout.New(simple())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{-1, 2, 1 << 40} {
		if got := l.Process(p); got.Process != p || got.Blocks != nil || got.Rows != nil {
			t.Errorf("process %d is %+v", p, got)
		}
	}
}

func TestErrCarriesFacts(t *testing.T) {
	d := simple()
	d.Batch.Size[0] = 30
	l, err := layout.Draft(d)
	if err != nil {
		t.Fatal(err)
	}
	if none, err := layout.New(d); none != nil || err == nil || err.Error() != l.Err().Error() {
		t.Errorf("New returns %v, %v; the draft has the error %v", none, err, l.Err())
	}
	var e *status.Error
	if !errors.As(l.Err(), &e) || e.Attr("path") != "/arrays/x/shape/0" || e.Attr("code") != "indivisible" || e.Attr("remainder") != int64(2) {
		t.Errorf("the error is %#v", l.Err())
	}
	if l.Arrays()[0].Sharding != nil || len(l.Process(0).Blocks) != 0 {
		t.Error("a broken array has a sharding or blocks")
	}
}

func TestTotals(t *testing.T) {
	l := documents.Layout(t, documents.Digits)
	want := layout.Totals{BatchBytes: 66560, ReadBytes: 66560, DeviceBytes: 8448, HostBytes: 49920, StepsPerEpoch: 7, RemainderRecords: 5}
	if l.Totals() != want || len(l.Problems()) != 0 {
		t.Errorf("totals %+v, problems %v", l.Totals(), l.Problems())
	}
	if p := l.Process(1); len(p.Blocks) != 3 || len(p.Rows) != 1 || p.Rows[0] != [2]int{64, 128} {
		t.Errorf("process 1 is %+v", p)
	}
}
