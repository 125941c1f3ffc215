package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/mesh"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// A batch is 128 images of 32 × 32 × 3 float32, 1.5 MiB, in 8 shards of 16. The
// dataset has 4,096 images, 48 MiB.
const (
	devices    = 8
	rows       = 128
	shardRows  = rows / devices
	values     = 32 * 32 * 3
	rowBytes   = values * 4
	batchBytes = rows * rowBytes
	images     = 4096
)

// workload is the data of all cells.
type workload struct {
	src source.Source
	lay *layout.Layout
}

func newWorkload() (w workload, err error) {
	pixels := make([]float32, images*values)
	for i := range pixels {
		pixels[i] = float32(i)
	}
	if w.src, err = arrowio.FromSlices(arrowio.Slice("image", pixels, 32, 32, 3)); err != nil {
		return workload{}, err
	}
	w.lay, err = layout.New(&layout.Document{
		Mesh:   layout.MeshSpec{Axes: []mesh.Axis{{Name: "data", Size: devices}}},
		Arrays: []layout.ArraySpec{{Name: "image", RowShape: []int{32, 32, 3}, Type: dtype.Float32, Spec: sharding.P("data")}},
		Batch:  &layout.BatchSpec{Size: []int{rows}},
	})
	return w, err
}

// loader loads shuffled batches without end, on one worker. If ahead is 0,
// nothing is read ahead, so a call of Next has the whole cost of a batch.
func (w workload) loader(memory batch.Allocator, ahead int) (*loader.Loader, error) {
	if ahead == 0 {
		ahead = -1
	}
	return loader.New(w.src, loader.Options{Layout: w.lay, Shuffle: true, Epochs: -1, Prefetch: ahead, Workers: 1, Allocator: memory})
}

// gather reads shuffled rows from the source alone.
type gather struct {
	source.Gatherer
	order []int64
	next  int
}

func (w workload) gather() (*gather, error) {
	g, err := w.src.Gatherer([]source.Part{{Boxes: [][][2]int{{{0, 32}, {0, 32}, {0, 3}}}}})
	if err != nil {
		return nil, err
	}
	order := make([]int64, images)
	for i, record := range rand.New(rand.NewPCG(1, 1)).Perm(images) {
		order[i] = int64(record)
	}
	return &gather{Gatherer: g, order: order}, nil
}

// batch gathers the next 128 rows.
func (g *gather) batch(jobs []source.Job) error {
	at := g.next * rows % images
	g.next++
	return g.Gather(context.Background(), source.Draw{}, g.order[at:at+rows], jobs)
}

// shardJobs returns the jobs of a batch with separate shards.
func shardJobs(dst func(shard int) []byte) []source.Job {
	jobs := make([]source.Job, devices)
	for i := range jobs {
		jobs[i] = source.Job{Rows: [2]int{i * shardRows, (i + 1) * shardRows}, Dst: dst(i)}
	}
	return jobs
}

// verify compares every byte of a placed batch with the dataset.
func verify(l *loader.Loader, b *gomlxfeed.Batch) error {
	records, err := l.Records(b.Step().Cursor)
	if err != nil {
		return err
	}
	got, want := make([]byte, shardRows*rowBytes), make([]byte, 0, shardRows*rowBytes)
	for position := range devices {
		want = want[:0]
		for _, record := range records[position*shardRows : (position+1)*shardRows] {
			for v := range values {
				want = binary.LittleEndian.AppendUint32(want, math.Float32bits(float32(int(record)*values+v)))
			}
		}
		if err := b.Read("image", position, got); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("step %d: the shard at position %d does not hold its records", b.Step().Index, position)
		}
	}
	return nil
}
