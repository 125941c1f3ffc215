package main

import (
	"context"
	"errors"
	"iter"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sharding"
	"github.com/meshfeed/meshfeed/core/source"
)

// cell is one way to bring a batch to memory or devices.
type cell struct {
	on    string // the backend, or "host"
	what  string
	flows bool // a step may find its batch ready, so the mean counts
	step  func() error
	end   func() error
}

// bench makes cells and keeps the first error.
type bench struct {
	workload
	cells []cell
	err   error
}

func (b *bench) add(c cell, err error) {
	if b.err == nil {
		b.err = err
	}
	if b.err == nil {
		b.cells = append(b.cells, c)
	}
}

func (b *bench) end() (err error) {
	for _, c := range b.cells {
		if c.end != nil {
			err = errors.Join(err, c.end())
		}
	}
	return err
}

// mode is how a loader feeds a cell.
type mode struct {
	ring  bool
	ahead int // batches read ahead; if positive, each batch is held until the next one arrives
}

// Names of cells, which the page looks up.
const (
	host         = "host"
	memcpy       = "memcpy"
	plain        = "plain gather"
	hostLoader   = "loader"
	ringGather   = "gather into the ring"
	pullRing     = "pull, ring"
	pullHeap     = "pull, the loader's own memory"
	pullAhead    = "pull, ring, reading ahead"
	trainerAhead = "trainer, ring, reading ahead"
	trainerRing  = "trainer, ring"
	trainerHeap  = "trainer, the loader's own memory"
	byHand       = "by hand: gather, FromRaw, dtensor, finalize"
)

// onHost adds the cells that the others are compared with.
func (b *bench) onHost() {
	from, to := make([]byte, batchBytes), make([]byte, batchBytes)
	b.add(cell{on: host, what: memcpy, step: func() error { copy(to, from); return nil }}, nil)
	b.add(b.plain())
	b.add(b.loaded())
}

func (b *bench) plain() (cell, error) {
	g, err := b.gather()
	if err != nil {
		return cell{}, err
	}
	jobs := []source.Job{{Rows: [2]int{0, rows}, Dst: make([]byte, batchBytes)}}
	return cell{on: host, what: plain, step: func() error { return g.batch(jobs) }, end: g.Close}, nil
}

func (b *bench) loaded() (cell, error) {
	l, err := b.loader(nil, 0)
	if err != nil {
		return cell{}, err
	}
	step := func() error {
		next, err := l.Next(context.Background())
		if err == nil {
			next.Release()
		}
		return err
	}
	return cell{on: host, what: hostLoader, step: step, end: l.Close}, nil
}

// onDevices adds the cells of a backend.
func (b *bench) onDevices(name string, d *gomlxfeed.Devices) {
	b.add(b.intoRing(cell{on: name, what: ringGather}, d))
	b.add(b.pulled(cell{on: name, what: pullRing}, d, mode{ring: true}))
	b.add(b.pulled(cell{on: name, what: pullHeap}, d, mode{}))
	b.add(b.pulled(cell{on: name, what: pullAhead, flows: true}, d, mode{ring: true, ahead: 2}))
	b.add(b.trained(cell{on: name, what: trainerRing}, d, mode{ring: true}))
	b.add(b.trained(cell{on: name, what: trainerHeap}, d, mode{}))
	b.add(b.trained(cell{on: name, what: trainerAhead, flows: true}, d, mode{ring: true, ahead: 2}))
	b.add(b.byHand(cell{on: name, what: byHand}, d))
}

// intoRing gathers into a ring without a loader.
func (b *bench) intoRing(c cell, d *gomlxfeed.Devices) (cell, error) {
	ring, err := d.Ring(b.lay)
	if err != nil {
		return cell{}, err
	}
	l, err := b.loader(ring, 0) // for its list of blocks
	if err != nil {
		return cell{}, err
	}
	g, err := b.gather()
	c.step = func() error {
		m, err := ring.Alloc(l.Blocks())
		if err != nil {
			return err
		}
		defer m.Free()
		if err := g.batch(shardJobs(m.Dst)); err != nil {
			return err
		}
		return m.Commit(context.Background())
	}
	c.end = func() error { return errors.Join(g.Close(), l.Close(), ring.Close()) }
	return c, err
}

// feed is a loader with a ring, or with host memory.
func (b *bench) feed(d *gomlxfeed.Devices, m mode) (*loader.Loader, func() error, error) {
	if !m.ring {
		l, err := b.loader(nil, m.ahead)
		return l, func() error { return l.Close() }, err
	}
	ring, err := d.Ring(b.lay)
	if err != nil {
		return nil, nil, err
	}
	l, err := b.loader(ring, m.ahead)
	return l, func() error { return errors.Join(l.Close(), ring.Close()) }, err
}

// pulled measures gomlxfeed.Placed. It compares the first batches byte by byte.
func (b *bench) pulled(c cell, d *gomlxfeed.Devices, m mode) (cell, error) {
	l, closeFeed, err := b.feed(d, m)
	if err != nil {
		return cell{}, err
	}
	next, stop := iter.Pull2(gomlxfeed.Placed(context.Background(), l, d))
	var last *gomlxfeed.Batch
	for range 3 {
		placed, err, _ := next()
		if err == nil {
			err = verify(l, placed)
		}
		if err != nil {
			return cell{}, err
		}
		placed.Release()
		last = placed
	}
	c.step = func() error {
		placed, err, _ := next()
		if err != nil {
			return err
		}
		if m.ahead > 0 { // releases the previous batch and holds this one
			placed, last = last, placed
		}
		placed.Release()
		return nil
	}
	c.end = func() error { stop(); last.Release(); return closeFeed() }
	return c, nil
}

// trained measures batches that a trainer gets and finalizes.
func (b *bench) trained(c cell, d *gomlxfeed.Devices, m mode) (cell, error) {
	l, closeFeed, err := b.feed(d, m)
	if err != nil {
		return cell{}, err
	}
	ds, err := gomlxfeed.NewDistributedDataset(l, d, gomlxfeed.DatasetOptions{Inputs: []string{"image"}})
	if err != nil {
		return cell{}, err
	}
	next, stop := iter.Pull2(ds.DistributedIter())
	last, err, _ := next()
	if err != nil {
		return cell{}, err
	}
	c.step = func() error {
		given, err, _ := next()
		if err != nil {
			return err
		}
		if m.ahead > 0 {
			given, last = last, given
		}
		return given.Finalize()
	}
	c.end = func() error { stop(); return errors.Join(last.Finalize(), closeFeed()) }
	return c, nil
}

// byHand measures a program without meshfeed: it gathers a batch to host memory
// and makes a tensor of every shard, one after the other. It joins them to a
// global array, as the other cells do, and frees it.
func (b *bench) byHand(c cell, d *gomlxfeed.Devices) (cell, error) {
	g, err := b.gather()
	if err != nil {
		return cell{}, err
	}
	on, _, err := gomlxfeed.Mesh(b.lay.Mesh(), d)
	if err != nil {
		return cell{}, err
	}
	spec, err := gomlxfeed.ShardingSpec(on, sharding.P("data"), 4)
	if err != nil {
		return cell{}, err
	}
	staging := make([]byte, batchBytes)
	jobs := []source.Job{{Rows: [2]int{0, rows}, Dst: staging}}
	shape := shapes.Make(dtypes.Float32, shardRows, 32, 32, 3)
	c.step = func() error {
		if err := g.batch(jobs); err != nil {
			return err
		}
		shards := make([]*tensors.Tensor, devices)
		for i := range shards {
			bytes := staging[i*shardRows*rowBytes:][:shardRows*rowBytes]
			if shards[i], err = tensors.FromRaw(d.Backend(), compute.DeviceNum(i), shape, bytes); err != nil {
				return err
			}
		}
		array, err := dtensor.NewTensor(spec, shards)
		if err != nil {
			return err
		}
		return array.Finalize()
	}
	c.end = g.Close
	return c, nil
}
