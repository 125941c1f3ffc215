package document_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/layout/document"
	"github.com/meshfeed/meshfeed/tests/documents"
)

type listed struct {
	Arrays map[string]struct {
		Shape   []int `json:"global_shape"`
		Devices []struct {
			Process   float64      `json:"process"`
			ID        float64      `json:"id"`
			Index     [][2]float64 `json:"index"`
			Replica   float64      `json:"replica"`
			Bytes     float64      `json:"bytes"`
			Delivered [][2]float64 `json:"delivered_index"`
			Received  float64      `json:"received_bytes"`
		} `json:"devices"`
	} `json:"arrays"`
	Processes []struct {
		Process      float64      `json:"process"`
		Devices      float64      `json:"devices"`
		Rows         [][2]float64 `json:"rows"`
		Bytes        *float64     `json:"bytes_per_step"`
		Host         *float64     `json:"host_bytes"`
		Interconnect *float64     `json:"interconnect_bytes"`
		Network      *float64     `json:"network_bytes"`
	} `json:"processes"`
}

func known(n *float64) float64 {
	if n == nil {
		return -1
	}
	return *n
}

func flat(row []float64, pairs [][2]float64) []float64 {
	for _, p := range pairs {
		row = append(row, p[0], p[1])
	}
	return row
}

// The tables of the layouts in picture/testdata have the numbers of their reports.
func TestTablesEqualReport(t *testing.T) {
	paths, err := filepath.Glob("../picture/testdata/svg/*.json")
	if err != nil || len(paths) < 5 {
		t.Fatal(err, paths)
	}
	delivered := 0
	for _, path := range paths {
		l := readLayout(t, path)
		var want listed
		if err := json.Unmarshal(document.Report(l, document.ReportOptions{Tables: true}), &want); err != nil {
			t.Fatal(err)
		}
		for i, a := range l.Arrays() {
			var devices, received []float64
			for _, d := range want.Arrays[a.Name].Devices {
				devices = flat(append(devices, d.Process, d.ID, d.Replica, d.Bytes), d.Index)
				if d.Delivered != nil {
					received = flat(append(received, d.Received), d.Delivered)
				}
			}
			all := l.Mesh().Size()
			if got := document.DeviceTable(l, i, 0, all); !slices.Equal(got, devices) {
				t.Errorf("%s: array %s: devices are %v, want %v", path, a.Name, got, devices)
			}
			if got := document.DeliveredTable(l, i, 0, all); !slices.Equal(got, received) {
				t.Errorf("%s: array %s: delivered are %v, want %v", path, a.Name, got, received)
			}
			delivered += len(received)
			width := 4 + 2*len(a.Shape)
			if got := document.DeviceTable(l, i, 1, 2); len(devices) > 3*width && !slices.Equal(got, devices[width:3*width]) {
				t.Errorf("%s: array %s: devices 1 and 2 are %v, want %v", path, a.Name, got, devices[width:3*width])
			}
		}
		processes := []float64{}
		for _, p := range want.Processes {
			processes = append(processes, p.Process, p.Devices, known(p.Bytes), known(p.Host), known(p.Interconnect), known(p.Network))
			if p.Rows == nil {
				processes = append(processes, -1)
				continue
			}
			processes = flat(append(processes, float64(len(p.Rows))), p.Rows)
		}
		if got := document.ProcessTable(l, 0, 1<<30); !reflect.DeepEqual(got, processes) {
			t.Errorf("%s: processes are %v, want %v", path, got, processes)
		}
	}
	if delivered == 0 {
		t.Error("no layout is resharded")
	}
}

func readLayout(t *testing.T, path string) *layout.Layout {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return documents.Layout(t, string(text))
}

func TestTablesOfNothing(t *testing.T) {
	l := readLayout(t, "../picture/testdata/svg/digits.json")
	for _, got := range [][]float64{
		document.DeviceTable(l, -1, 0, 8), document.DeviceTable(l, 99, 0, 8), document.DeviceTable(l, 0, 8, 1), document.DeviceTable(l, 0, -5, 0), document.DeviceTable(l, 0, 3, -2), document.DeviceTable(l, 0, 1<<40, 1<<40),
		document.DeliveredTable(l, 0, 0, 8), document.DeliveredTable(l, 99, 0, 8), document.ProcessTable(l, 99, 1), document.ProcessTable(l, 1, -1),
	} {
		if len(got) != 0 {
			t.Errorf("got %v", got)
		}
	}
}

func TestTablesAreBounded(t *testing.T) {
	l := documents.Layout(t, `{"meshfeed":1,"mesh":{"axes":[["d",1048576]]},"arrays":{"x":{"shape":["B",2,2],"dtype":"int8","spec":["d"]}},"batch":{"size":1048576}}`)
	if got := document.DeviceTable(l, 0, 0, 1<<20); got != nil {
		t.Errorf("%d numbers", len(got))
	}
	last := []float64{0, 1<<20 - 1, 0, 4, 1<<20 - 1, 1 << 20, 0, 2, 0, 2}
	if got := document.DeviceTable(l, 0, 1<<20-1, 1<<20); !slices.Equal(got, last) {
		t.Errorf("the last device is %v, want %v", got, last)
	}
}

// If the ranges of a process do not fit into a table, a smaller table has them.
func TestProcessTableIsBounded(t *testing.T) {
	const ranges = 1 << 20
	l := documents.Layout(t, `{"meshfeed":1,"mesh":{"axes":[["d",4]],"processes":4},"arrays":{"x":{"shape":["B0","B1"],"dtype":"int8","spec":[null,"d"]}},"batch":{"size":[1048576,4]}}`)
	all := document.ProcessTable(l, 0, 4)
	if len(all) != 4*7+2*ranges || all[6] != ranges {
		t.Fatalf("%d numbers, and %v ranges of process 0", len(all), all[6])
	}
	for n := 1; n < 4; n++ {
		process, alone := all[7*n+2*ranges:][:7], document.ProcessTable(l, n, 1)
		if process[6] != -1 || !slices.Equal(process[:6], alone[:6]) {
			t.Errorf("process %d is %v", n, process)
		}
		if len(alone) != 7+2*ranges || alone[6] != ranges || alone[7] != float64(n) {
			t.Errorf("process %d alone has %d numbers and %v ranges from %v on", n, len(alone), alone[6], alone[7])
		}
	}
}

// A report lists at most as many ranges as the options allow.
func TestReportRanges(t *testing.T) {
	l := readLayout(t, "../picture/testdata/svg/digits.json")
	count := func(o document.ReportOptions) (devices, rows int) {
		var r listed
		if err := json.Unmarshal(document.Report(l, o), &r); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.Arrays {
			devices += len(a.Devices)
		}
		for _, p := range r.Processes {
			rows += len(p.Rows)
		}
		return devices, rows
	}
	devices, rows := count(document.ReportOptions{})
	if d, r := count(document.ReportOptions{Ranges: 1}); d != 0 || r != 1 || devices == 0 || rows < 2 {
		t.Errorf("with at most 1 range: %d devices and %d rows listed; else %d and %d", d, r, devices, rows)
	}
}
