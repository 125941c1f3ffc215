package arrowio_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/view"
)

// BenchmarkGather copies random rows of one field, from memory and from files in the
// page cache, with one record batch and with many.
func BenchmarkGather(b *testing.B) {
	for _, width := range []int{12288, 2048, 104, 4} {
		rows := 64 << 20 / width
		values := make([]float32, rows*width/4)
		for i := range values {
			values[i] = 1 // memory that was never written is one page of zeros
		}
		b.Run(fmt.Sprintf("memory/%dB", width), func(b *testing.B) {
			ds, err := arrowio.FromSlices(arrowio.Slice("x", values, width/4))
			if err != nil {
				b.Fatal(err)
			}
			gatherRandom(b, ds, width)
		})
		for _, batches := range []int{1, 64} {
			path := uniform(b, width/4, rows/batches, batches)
			for _, io := range []string{"map", "read"} {
				b.Run(fmt.Sprintf("%s/%dbatches/%dB", io, batches, width), func(b *testing.B) {
					ds, err := arrowio.OpenFiles(b.Context(), []string{path}, arrowio.Options{IO: io})
					if err != nil {
						b.Fatal(err)
					}
					gatherRandom(b, ds, width)
				})
			}
		}
	}
}

// gatherRandom copies about 1.5 MB of random rows per step.
func gatherRandom(b *testing.B, ds source.Source, width int) {
	defer ds.Close()
	n := min(1536<<10/width, 4096)
	g, err := ds.Gatherer([]source.Part{whole(0, ds.Schema().Fields[0])})
	if err != nil {
		b.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	steps := make([][]int64, 64)
	for i := range steps {
		steps[i] = make([]int64, n)
		for k := range steps[i] {
			steps[i][k] = random.Int64N(ds.Len())
		}
	}
	dst := make([]byte, n*width)
	jobs := []source.Job{{Rows: [2]int{0, n}, Dst: dst}}
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	step := 0
	for b.Loop() {
		if err := g.Gather(context.Background(), source.Draw{}, steps[step%len(steps)], jobs); err != nil {
			b.Fatal(err)
		}
		step++
	}
}

// uniform writes record batches of one fixed-size-list column.
func uniform(b testing.TB, width, rows, batches int) string {
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.FixedSizeListOfNonNullable(int32(width), arrow.PrimitiveTypes.Float32)}}, nil)
	values := array.NewFloat32Data(array.NewData(arrow.PrimitiveTypes.Float32, rows*width, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, 4*rows*width))}, nil, 0, 0))
	column := array.NewData(schema.Field(0).Type, rows, []*memory.Buffer{nil}, []arrow.ArrayData{values.Data()}, 0, 0)
	record := array.NewRecord(schema, []arrow.Array{array.NewFixedSizeListData(column)}, int64(rows))
	path := temp(b, "x.arrow")
	writeIPC(b, path, false, schema, slices.Repeat([]arrow.Record{record}, batches))
	return path
}

// BenchmarkLabels copies 4,096 elements of 4 and of 8 bytes in the order of a
// permutation. The file has 1 or 8 MB in the page cache, and one record batch, or 50
// of the same or of different sizes.
func BenchmarkLabels(b *testing.B) {
	for _, megabytes := range []int{1, 8} {
		for _, size := range []int{4, 8} {
			total := megabytes << 20 / size
			even, uneven := make([]int, 50), make([]int, 50)
			random := rand.New(rand.NewPCG(3, 4))
			for i := range even {
				even[i], uneven[i] = total/50, total/100+random.IntN(total/50)
			}
			for name, rows := range map[string][]int{"single": {total}, "even": even, "uneven": uneven} {
				b.Run(fmt.Sprintf("%dMB/%s/%dB", megabytes, name, size), func(b *testing.B) {
					ds, err := arrowio.OpenFiles(b.Context(), []string{labels(b, size, rows)}, arrowio.Options{IO: "map"})
					if err != nil {
						b.Fatal(err)
					}
					gatherPermuted(b, ds, size)
				})
			}
		}
	}
}

// gatherPermuted copies 4,096 records of a permutation per step.
func gatherPermuted(b *testing.B, ds source.Source, size int) {
	defer ds.Close()
	const n = 4096
	g, err := ds.Gatherer([]source.Part{whole(0, ds.Schema().Fields[0])})
	if err != nil {
		b.Fatal(err)
	}
	var records []int64
	for _, r := range rand.New(rand.NewPCG(5, 6)).Perm(int(ds.Len())) {
		records = append(records, int64(r))
	}
	jobs := []source.Job{{Rows: [2]int{0, n}, Dst: make([]byte, n*size)}}
	at, quickest := 0, time.Hour
	defer func() { b.ReportMetric(float64(quickest.Nanoseconds()), "ns-quickest") }()
	for b.Loop() {
		start := time.Now()
		if err := g.Gather(context.Background(), source.Draw{}, records[at:at+n], jobs); err != nil {
			b.Fatal(err)
		}
		quickest = min(quickest, time.Since(start))
		if at += n; at+n > len(records) {
			at = 0
		}
	}
}

// labels writes record batches of one column of integers.
func labels(b testing.TB, size int, rows []int) string {
	kind := map[int]arrow.DataType{4: arrow.PrimitiveTypes.Int32, 8: arrow.PrimitiveTypes.Int64}[size]
	schema := arrow.NewSchema([]arrow.Field{{Name: "label", Type: kind}}, nil)
	var records []arrow.Record
	for _, n := range rows {
		data := array.NewData(kind, n, []*memory.Buffer{nil, memory.NewBufferBytes(make([]byte, n*size))}, nil, 0, 0)
		records = append(records, array.NewRecord(schema, []arrow.Array{array.MakeFromData(data)}, int64(n)))
	}
	path := temp(b, "labels.arrow")
	writeIPC(b, path, false, schema, records)
	return path
}

// BenchmarkOpen opens a file and makes a gatherer.
func BenchmarkOpen(b *testing.B) {
	for _, batches := range []int{1, 10_000} {
		path := uniform(b, 4, 8, batches)
		b.Run(fmt.Sprintf("%dbatches", batches), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ds, err := arrowio.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := ds.Gatherer([]source.Part{whole(0, ds.Schema().Fields[0])}); err != nil {
					b.Fatal(err)
				}
				ds.Close()
			}
		})
	}
}

// BenchmarkManyFiles opens thousands of small files of forty fields, makes a
// gatherer of all fields, and copies rows from many files.
func BenchmarkManyFiles(b *testing.B) {
	const fields, files, rows = 40, 2000, 8
	list := make([]arrow.Field, fields)
	for i := range list {
		list[i] = arrow.Field{Name: fmt.Sprint("x", i), Type: arrow.PrimitiveTypes.Float32}
	}
	one := temp(b, "0.arrow")
	save(b, one, false, arrow.NewSchema(list, nil), []int{rows, rows, rows}, 1)
	data, err := os.ReadFile(one)
	if err != nil {
		b.Fatal(err)
	}
	for i := 1; i < files; i++ {
		if err := os.WriteFile(fmt.Sprintf("%s/%d.arrow", filepath.Dir(one), i), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	open := func() *arrowio.Dataset {
		ds, err := arrowio.Open(filepath.Dir(one))
		if err != nil {
			b.Fatal(err)
		}
		return ds
	}
	var parts []source.Part
	gatherer := func(ds *arrowio.Dataset) source.Gatherer {
		parts = parts[:0]
		for i, f := range ds.Schema().Fields {
			parts = append(parts, whole(i, f))
		}
		g, err := ds.Gatherer(parts)
		if err != nil {
			b.Fatal(err)
		}
		return g
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open().Close()
		}
	})
	b.Run("gatherer", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			ds := open()
			b.StartTimer()
			gatherer(ds)
			b.StopTimer()
			ds.Close()
			b.StartTimer()
		}
	})
	for _, n := range []int{32, 512} {
		b.Run(fmt.Sprintf("step/%drows", n), func(b *testing.B) {
			ds := open()
			defer ds.Close()
			benchmarkSteps(b, ds, gatherer(ds), n, len(parts))
		})
	}
}

// benchmarkSteps gathers random records, four bytes per part.
func benchmarkSteps(b *testing.B, ds *arrowio.Dataset, g source.Gatherer, records, parts int) {
	random := rand.New(rand.NewPCG(1, 2))
	steps := make([][]int64, 64)
	for i := range steps {
		for range records {
			steps[i] = append(steps[i], random.Int64N(ds.Len()))
		}
	}
	var jobs []source.Job
	for i := range parts {
		jobs = append(jobs, source.Job{Part: i, Rows: [2]int{0, records}, Dst: make([]byte, 4*records)})
	}
	step := 0
	for b.Loop() {
		if err := g.Gather(context.Background(), source.Draw{}, steps[step%len(steps)], jobs); err != nil {
			b.Fatal(err)
		}
		step++
	}
}

// BenchmarkTokens copies 4 KiB of tokens in random order: fixed rows of a file of Arrow, and windows of
// 2,048 tokens over a raw file of the same size.
func BenchmarkTokens(b *testing.B) {
	const width, rows = 4096, 64 << 10
	fixed := uniform(b, width/4, rows, 1)
	raw := temp(b, "train.bin")
	if err := os.WriteFile(raw, make([]byte, width*rows), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, io := range []string{"map", "read"} {
		b.Run("fixed/"+io, func(b *testing.B) {
			ds, err := arrowio.OpenFiles(b.Context(), []string{fixed}, arrowio.Options{IO: io})
			if err != nil {
				b.Fatal(err)
			}
			gatherRandom(b, ds, width)
		})
		b.Run("windows/"+io, func(b *testing.B) {
			ds, err := arrowio.OpenFiles(b.Context(), []string{raw}, arrowio.Options{IO: io, DType: dtype.Uint16})
			if err != nil {
				b.Fatal(err)
			}
			defer ds.Close()
			v, err := view.Window(b.Context(), ds, view.Windows{Length: width / 2, Stride: width/2 - 1})
			if err != nil {
				b.Fatal(err)
			}
			gatherRandom(b, v, width)
		})
	}
}
