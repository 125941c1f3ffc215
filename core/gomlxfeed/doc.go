// Package gomlxfeed places batches on the devices of GoMLX and feeds its
// trainer.
//
// A specification names the GoMLX backend to open. A plugin is checked in a
// child process before it is loaded:
//
//	d, err := gomlxfeed.Open(ctx, "virtual:8")
//	defer d.Close()
//
//	go                           GoMLX's pure-Go backend: one device
//	virtual:N                    N devices over the pure-Go backend, to run and test sharded programs anywhere
//	xla:/abs/plugin.so?devices=N a PJRT plugin (CPU, CUDA, TPU); needs package gomlxfeed/xla, which needs cgo
//
// The loader allocates its batches from a ring of device buffers. With shared
// memory the gather is the transfer. Otherwise the transfer runs ahead of the
// program. The program pulls batches, or a trainer does:
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
//	metrics, err := train.NewLoop(trainer).RunSteps(ds, 1000) // for a loader with Epochs: -1
//
// GoMLX's terms: a backend is one engine with devices numbered from 0. A tensor
// lives on one device of one backend. A dtensor holds one tensor per position of
// a mesh, in the mesh's row-major order, and a sharding spec. A backend has
// shared memory if writing into a buffer is already the transfer: the pure-Go
// backends and XLA on CPU have it.
//
// GoMLX reports some mistakes by a panic, checks few lengths, and prints the
// values of tensors in some errors. This package checks lengths and device numbers
// first. It turns panics into errors, and its own error texts never contain data.
// Device memory is outside the Go heap, so it is freed explicitly, and
// [Devices.Live] counts it.
package gomlxfeed
