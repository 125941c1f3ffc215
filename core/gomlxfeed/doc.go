// Package gomlxfeed places batches on the devices of GoMLX and feeds its
// trainer.
//
// A backend of GoMLX is opened by a specification, and checked before it is
// trusted:
//
//	d, err := gomlxfeed.Open(ctx, "virtual:8")
//	defer d.Close()
//
//	go                           GoMLX's pure-Go backend: one device
//	virtual:N                    N devices over the pure-Go backend, so that sharded programs run and are tested anywhere
//	xla:/abs/plugin.so?devices=N a PJRT plugin (CPU, CUDA, TPU); needs package gomlxfeed/xla, which needs cgo
//
// Batches come from a loader whose memory is a ring of the devices' buffers, so
// that the gather is the transfer, or the transfer is done when a batch is asked
// for. A program pulls them, or lets a trainer do it:
//
//	ring, err := d.Ring(lay)
//	defer ring.Close()
//	l, err := loader.New(src, loader.Options{Layout: lay, Shuffle: true, Allocator: ring})
//	defer l.Close()
//	for b, err := range gomlxfeed.Placed(ctx, l, d) {
//		… b.Tensor("image") …
//		b.Release()
//	}
//
//	ds, err := gomlxfeed.NewDistributedDataset(l, d, gomlxfeed.DatasetOptions{Inputs: []string{"image"}, Labels: []string{"label"}})
//	metrics, err := train.NewLoop(trainer).RunSteps(ds, 1000)
//
// Some words of GoMLX, as they are used here. A backend is one engine with
// devices numbered from 0. A tensor lives on one device of one backend; a
// dtensor is a tensor for every position of a mesh, in the mesh's row-major
// order, with a sharding spec. A backend has shared memory where writing into a
// buffer is already the transfer: the pure-Go ones and XLA on CPU.
//
// GoMLX reports some mistakes by a panic, checks few lengths, and prints the
// values of tensors in some of its errors. Everything here checks lengths,
// element types and device numbers first, turns panics into errors, and words
// errors anew: they never hold data. Memory on devices is outside Go, so it is
// freed explicitly, and [Devices.Live] counts it.
package gomlxfeed
