package layout

import (
	"fmt"
	"testing"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
)

// large gives a document for a mesh of this many devices, eight per process.
func large(devices int) *Document {
	return &Document{
		Mesh: MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: devices / 4}, {Name: "model", Size: 4}}, Processes: max(devices/8, 1)},
		Arrays: []ArraySpec{
			{Name: "tokens", RowShape: []int{2048}, Type: dtype.Int32, Spec: sharding.P("data", "model")},
			{Name: "segment", RowShape: []int{2048}, Type: dtype.Int32, Spec: sharding.P("data", "model")},
			{Name: "weight", Type: dtype.Float32, Spec: sharding.P("data")},
		},
		Batch:   &BatchSpec{Size: []int{devices}},
		Dataset: &DatasetSpec{Records: 1 << 30},
	}
}

// deviceByDevice gives the text of a document that lists every device: in no order that
// a shorter text could say.
func deviceByDevice(devices int) []byte {
	d := large(devices)
	for i := range devices {
		last := devices - 1 - i
		d.Mesh.Devices = append(d.Mesh.Devices, mesh.Device{Process: last / 8, ID: last})
	}
	d.Mesh.Processes = 0
	return d.Canonical()
}

var sizes = []int{8, 4096, 1 << 20}

func BenchmarkNew(b *testing.B) {
	for _, devices := range sizes {
		d := large(devices)
		b.Run(fmt.Sprint(devices), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if l, err := New(d); err != nil || l.Err() != nil {
					b.Fatal(err, l.Err())
				}
			}
		})
	}
}

// BenchmarkNewReshard also counts what moves.
func BenchmarkNewReshard(b *testing.B) {
	for _, devices := range sizes {
		d := large(devices)
		d.Loading = LoadReshard
		b.Run(fmt.Sprint(devices), func(b *testing.B) {
			for b.Loop() {
				if l, err := New(d); err != nil || l.Err() != nil {
					b.Fatal(err, l.Err())
				}
			}
		})
	}
}

func BenchmarkReport(b *testing.B) {
	for _, devices := range sizes {
		for _, tables := range []bool{false, true} {
			l, err := New(large(devices))
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%d/tables=%t", devices, tables), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.SetBytes(int64(len(l.Report(ReportOptions{Tables: tables}))))
				}
			})
		}
	}
}

func BenchmarkText(b *testing.B) {
	for _, devices := range sizes {
		l, err := New(large(devices))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(devices), func(b *testing.B) {
			for b.Loop() {
				l.Text(PictureOptions{})
			}
		})
	}
}

func BenchmarkProcess(b *testing.B) {
	l, err := New(large(1 << 20))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Process(777)
	}
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string][]byte{"digits": []byte(digits), "65536": deviceByDevice(1 << 16)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
