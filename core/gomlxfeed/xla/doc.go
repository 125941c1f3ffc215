// Package xla makes PJRT plugins available to gomlxfeed.Open. It is imported for
// that effect alone:
//
//	import _ "github.com/meshfeed/meshfeed/core/gomlxfeed/xla"
//
//	func main() {
//		gomlxfeed.RunProbe() // a plugin is tried in a child process: this program again
//		d, err := gomlxfeed.Open(ctx, "xla:/opt/plugins/xla_cpu_pjrt.so?devices=8")
//
// PJRT is the C interface between a program and a compiler with its devices. A
// plugin is a shared library that implements it: for CPUs in the Python package
// xla-cpu-pjrt, for NVIDIA's GPUs in jax-cuda13-pjrt, for TPUs in libtpu. What a
// plugin runs on is what its client says, never how its file is called.
//
//	devices=N            how many devices there must be; a CPU plugin makes as many
//	shared=false         CPU: transfer to buffers of the plugin's own, as to a GPU (for tests)
//	visible_devices=0,2  CUDA: the GPUs to use, by their number on this machine
//	memory_fraction=0.5  CUDA: the most of a GPU's memory that may be taken
//
// Nothing is searched for, downloaded or preallocated. The environment stays as
// it is; a plugin may read some of it, such as XLA_FLAGS and CUDA_VISIBLE_DEVICES.
// XLA logs nothing unless TF_CPP_MIN_LOG_LEVEL is set. A plugin stays loaded to
// the end of the process; its clients and buffers end with Devices.Close.
//
// The package needs cgo on Linux or macOS. Elsewhere it can be imported too,
// and opening a plugin is an error that says so.
package xla

import "github.com/meshfeed/meshfeed/core/gomlxfeed"

func init() { gomlxfeed.Register("xla", opener{}) }
