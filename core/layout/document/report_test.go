package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/tests/documents"
)

// TestReport compares the whole report of the example document with a text that the
// test composes from the documented format.
func TestReport(t *testing.T) {
	var want strings.Builder
	want.WriteString(`{"meshfeed":1,"arrays":{"image":{"global_shape":[256,8,8],"shard_shape":[64,8,4],"replicated":false,"devices":[`)
	for i := range 8 {
		if i > 0 {
			want.WriteString(",")
		}
		row, col := i/2*64, i%2*4
		fmt.Fprintf(&want, `{"mesh_index":%d,"process":%d,"id":%d,"index":[[%d,%d],[0,8],[%d,%d]],"replica":0,"bytes":8192}`, i, i/2, i, row, row+64, col, col+4)
	}
	want.WriteString(`]},"label":{"global_shape":[256],"shard_shape":[64],"replicated":false,"devices":[`)
	for i := range 8 {
		if i > 0 {
			want.WriteString(",")
		}
		row := i / 2 * 64
		fmt.Fprintf(&want, `{"mesh_index":%d,"process":%d,"id":%d,"index":[[%d,%d]],"replica":%d,"bytes":256}`, i, i/2, i, row, row+64, i%2)
	}
	want.WriteString(`]}},"processes":[` +
		`{"process":0,"devices":2,"rows":[[0,64]],"bytes_per_step":16640,"host_bytes":49920,"interconnect_bytes":0,"network_bytes":0,"same_rows_as":[]},` +
		`{"process":1,"devices":2,"rows":[[64,128]],"bytes_per_step":16640,"host_bytes":49920,"interconnect_bytes":0,"network_bytes":0,"same_rows_as":[]},` +
		`{"process":2,"devices":2,"rows":[[128,192]],"bytes_per_step":16640,"host_bytes":49920,"interconnect_bytes":0,"network_bytes":0,"same_rows_as":[]},` +
		`{"process":3,"devices":2,"rows":[[192,256]],"bytes_per_step":16640,"host_bytes":49920,"interconnect_bytes":0,"network_bytes":0,"same_rows_as":[]}],` +
		`"totals":{"batch_bytes":66560,"read_bytes":66560,"device_bytes":8448,"host_bytes":49920,"interconnect_bytes":0,"network_bytes":0,"steps_per_epoch":7,"remainder_records":5},"problems":[]}`)
	if got := string(document.Report(documents.Layout(t, documents.Digits), document.ReportOptions{})); got != want.String() {
		t.Errorf("the report is\n%s\nwant\n%s", got, want.String())
	}
}

// TestReportOfBrokenArray checks that the report of an indivisible array contains all
// values that do not depend on its shards, and null for the others.
func TestReportOfBrokenArray(t *testing.T) {
	l := documents.Layout(t, `{"meshfeed":1,"mesh":{"axes":[["data",4]],"processes":2},"arrays":{"x":{"shape":["B",2],"dtype":"int8","spec":["data"]},"w":{"shape":[4],"dtype":"int8","spec":["data"]}},"batch":{"size":30},"dataset":{"records":100}}`)
	const want = `{"meshfeed":1,"arrays":{"x":{"global_shape":[30,2],"shard_shape":null,"replicated":null,"devices":null},` +
		`"w":{"global_shape":[4],"shard_shape":[1],"replicated":false,"devices":[` +
		`{"mesh_index":0,"process":0,"id":0,"index":[[0,1]],"replica":0,"bytes":1},{"mesh_index":1,"process":0,"id":1,"index":[[1,2]],"replica":0,"bytes":1},` +
		`{"mesh_index":2,"process":1,"id":2,"index":[[2,3]],"replica":0,"bytes":1},{"mesh_index":3,"process":1,"id":3,"index":[[3,4]],"replica":0,"bytes":1}]}},` +
		`"processes":[{"process":0,"devices":2,"rows":null,"bytes_per_step":null,"host_bytes":null,"interconnect_bytes":null,"network_bytes":null,"same_rows_as":null},{"process":1,"devices":2,"rows":null,"bytes_per_step":null,"host_bytes":null,"interconnect_bytes":null,"network_bytes":null,"same_rows_as":null}],` +
		`"totals":{"batch_bytes":60,"read_bytes":null,"device_bytes":null,"host_bytes":null,"interconnect_bytes":null,"network_bytes":null,"steps_per_epoch":3,"remainder_records":10},` +
		`"problems":[{"severity":"error","code":"indivisible","path":"/arrays/x/shape/0","message":"dimension 0 of array \"x\" of shape (30, 2) is split 4 ways by axis \"data\" (size 4), but 30 % 4 = 2","hint":"use a batch of 28 or 32","facts":{"size":30,"tiles":4,"remainder":2}}]}`
	if got := string(document.Report(l, document.ReportOptions{})); got != want {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
	const text = `layout: dimension 0 of array "x" of shape (30, 2) is split 4 ways by axis "data" (size 4), but 30 % 4 = 2; use a batch of 28 or 32`
	if err := l.Err(); err == nil || err.Error() != text {
		t.Errorf("error %v, want %s", err, text)
	}
}

// TestReportLists checks that a report without the option Tables lists at most 1,024
// devices and processes.
func TestReportLists(t *testing.T) {
	for _, n := range []int{1024, 1025} {
		l := documents.Layout(t, fmt.Sprintf(`{"meshfeed":1,"mesh":{"axes":[["data",%d]],"processes":%[1]d},"arrays":{"x":{"shape":["B"],"dtype":"int8","spec":["data"]}},"batch":{"size":%[1]d}}`, n))
		var report struct {
			Arrays    map[string]struct{ Devices []any }
			Processes []struct {
				SameRowsAs []int `json:"same_rows_as"`
			}
		}
		if err := json.Unmarshal(document.Report(l, document.ReportOptions{}), &report); err != nil {
			t.Fatal(err)
		}
		devices, processes := len(report.Arrays["x"].Devices), len(report.Processes)
		if n == 1024 && (devices != n || processes != n || report.Processes[0].SameRowsAs == nil) || n > 1024 && devices+processes != 0 {
			t.Errorf("of %d devices and processes %d and %d are listed", n, devices, processes)
		}
	}
}

// TestReportTables checks that the option Tables lists all devices and processes. Only
// same_rows_as stays null for more than 1,024 processes.
func TestReportTables(t *testing.T) {
	l := documents.Layout(t, `{"meshfeed":1,"mesh":{"axes":[["data",2048]],"processes":2048},"arrays":{"x":{"shape":["B"],"dtype":"int64","spec":["data"]}},"batch":{"size":2048}}`)
	short, long := document.Report(l, document.ReportOptions{}), document.Report(l, document.ReportOptions{Tables: true})
	if !bytes.Contains(short, []byte(`"devices":null}},"processes":null,`)) {
		t.Errorf("the short report is %s", short)
	}
	var report struct {
		Arrays    map[string]struct{ Devices []any }
		Processes []struct {
			Rows       [][2]int
			SameRowsAs []int `json:"same_rows_as"`
		}
	}
	if err := json.Unmarshal(long, &report); err != nil {
		t.Fatal(err)
	}
	if p := report.Processes[2047]; len(report.Arrays["x"].Devices) != 2048 || p.Rows[0] != [2]int{2047, 2048} || p.SameRowsAs != nil {
		t.Errorf("the long report has %d devices and the last process %+v", len(report.Arrays["x"].Devices), p)
	}
}
