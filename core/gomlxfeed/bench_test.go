package gomlxfeed

import (
	"context"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// The benchmarks place batches of 128 images of 32 × 32 × 3 float32, 1.5 MiB, as
// 8 shards on 8 devices. Nothing is read ahead, so that each figure is the whole
// cost of a batch. Rows are shuffled over 48 MiB, which no cache holds.
const (
	imageRows  = 128
	imageBytes = 32 * 32 * 3 * 4
	images     = 4096
	batchBytes = imageRows * imageBytes
)

func imageSource(b *testing.B) source.Source {
	b.Helper()
	pixels := make([]float32, images*imageBytes/4)
	for i := range pixels {
		pixels[i] = float32(i)
	}
	src, err := arrowio.FromSlices(arrowio.Slice("image", pixels, 32, 32, 3))
	if err != nil {
		b.Fatal(err)
	}
	return src
}

func imageLayout(b *testing.B) *layout.Layout {
	b.Helper()
	lay, err := layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: 8}}},
		Arrays: []layout.ArraySpec{{Name: "image", RowShape: []int{32, 32, 3}, Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{imageRows}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return lay
}

func imageLoader(b *testing.B, d *Devices) *loader.Loader {
	b.Helper()
	lay := imageLayout(b)
	o := loader.Options{Layout: lay, Shuffle: true, Epochs: -1, Prefetch: -1, Workers: 1}
	if d != nil {
		o.Allocator = ringOf(b, d, lay)
	}
	l, err := loader.New(imageSource(b), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// A copy of the same bytes, warm.
func BenchmarkMemcpy(b *testing.B) {
	src, dst := make([]byte, batchBytes), make([]byte, batchBytes)
	b.SetBytes(batchBytes)
	for b.Loop() {
		copy(dst, src)
	}
}

// The rows alone, without a loader: gathered to one piece of memory, and into a
// ring.
func BenchmarkGather(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		jobs := []source.Job{{Rows: [2]int{0, imageRows}, Dst: make([]byte, batchBytes)}}
		gather(b, func(do func([]source.Job) error) error { return do(jobs) })
	})
	b.Run("ring", func(b *testing.B) {
		_, d := newWitness(b, 8, true)
		ring := ringOf(b, d, imageLayout(b))
		jobs := make([]source.Job, 8)
		gather(b, func(do func([]source.Job) error) error {
			m, err := ring.Alloc(ring.plan.blocks)
			if err != nil {
				return err
			}
			defer m.Free()
			for i := range jobs {
				jobs[i] = source.Job{Rows: [2]int{16 * i, 16*i + 16}, Dst: m.Dst(i)}
			}
			if err := do(jobs); err != nil {
				return err
			}
			return m.Commit(context.Background())
		})
	})
}

// gather measures step, which is given a function that gathers random rows.
func gather(b *testing.B, step func(do func([]source.Job) error) error) {
	g, err := imageSource(b).Gatherer([]source.Part{{Boxes: [][][2]int{{{0, 32}, {0, 32}, {0, 3}}}}})
	if err != nil {
		b.Fatal(err)
	}
	records, n := make([]int64, imageRows), int64(0)
	b.SetBytes(batchBytes)
	for b.Loop() {
		for i := range records {
			records[i] = (n*imageRows + int64(i)) * 2654435761 % images
		}
		n++
		if err := step(func(jobs []source.Job) error { return g.Gather(context.Background(), records, jobs) }); err != nil {
			b.Fatal(err)
		}
	}
}

// The same by a loader, to host memory that goes round.
func BenchmarkLoader(b *testing.B) {
	l := imageLoader(b, nil)
	b.SetBytes(batchBytes)
	for b.Loop() {
		host, err := l.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		host.Release()
	}
}

// The pull path: on virtual devices, whose memory is shared, and on such as
// take a copy; with a ring, and from the loader's own memory. "sent" is how
// often the bytes were copied by the backend, beyond the gather and a copy out
// of other memory.
func BenchmarkPlaced(b *testing.B) {
	for name, shared := range map[string]bool{"shared": true, "sent": false} {
		for memory, ring := range map[string]bool{"ring": true, "heap": false} {
			b.Run(name+"/"+memory, func(b *testing.B) {
				w, d := newWitness(b, 8, shared)
				l := imageLoader(b, when(ring, d))
				b.SetBytes(batchBytes)
				steps := 0
				for placed, err := range Placed(context.Background(), l, d) {
					if err != nil {
						b.Fatal(err)
					}
					placed.Release()
					if steps++; !b.Loop() {
						break
					}
				}
				b.ReportMetric(float64(w.copied)/float64(steps)/batchBytes, "sent")
			})
		}
	}
}

// The trainer's path: what it is given is fresh memory, and it finalizes it.
func BenchmarkDataset(b *testing.B) {
	for memory, ring := range map[string]bool{"ring": true, "heap": false} {
		b.Run(memory, func(b *testing.B) {
			d, err := Open(context.Background(), "virtual:8")
			if err != nil {
				b.Fatal(err)
			}
			ds, err := NewDistributedDataset(imageLoader(b, when(ring, d)), d, DatasetOptions{Inputs: []string{"image"}})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(batchBytes)
			for given, err := range ds.DistributedIter() {
				if err != nil {
					b.Fatal(err)
				}
				if err := given.Finalize(); err != nil {
					b.Fatal(err)
				}
				if !b.Loop() {
					break
				}
			}
		})
	}
}

// when gives the devices, or none.
func when(ring bool, d *Devices) *Devices {
	if ring {
		return d
	}
	return nil
}
