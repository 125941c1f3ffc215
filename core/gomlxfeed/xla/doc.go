// Package xla makes PJRT plugins available to gomlxfeed.Open. A program imports it
// for its side effect:
//
//	import _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"
//
//	func main() {
//		gomlxfeed.RunProbe() // a child process runs this program to try a plugin
//		d, err := gomlxfeed.Open(ctx, "xla:/opt/plugins/xla_cpu_pjrt.so?devices=8")
//
// PJRT is the C interface between a program and a compiler with its devices. A
// plugin is a shared library that implements it. The Python package xla-cpu-pjrt
// contains one for CPUs, jax-cuda13-pjrt for NVIDIA GPUs, and libtpu for TPUs. The
// plugin itself reports its platform; the file name has no effect.
//
//	devices=N            the exact number of devices; a CPU plugin creates N devices
//	shared=false         CPU: transfer to separate buffers, as to a GPU (for tests)
//	visible_devices=0,2  CUDA: the GPUs to use, by their number on this machine
//	memory_fraction=0.5  CUDA: the largest part of a GPU's memory to use
//
// The package does not search for plugins, download them, or preallocate device
// memory. It changes no environment variable. A plugin may read some, such as
// XLA_FLAGS and CUDA_VISIBLE_DEVICES. XLA logs nothing unless TF_CPP_MIN_LOG_LEVEL
// is set. A plugin stays loaded until the process ends. Devices.Close frees its
// clients and buffers.
//
// The package needs cgo on Linux or macOS. On other systems it can be imported,
// and opening a plugin returns an error.
package xla

import "github.com/meshfeed/meshfeed/core/gomlxfeed"

func init() { gomlxfeed.Register("xla", opener{}) }
