// Command capi is the C library libmeshfeed: built with -buildmode=c-shared it
// exports the functions of include/meshfeed.h and nothing else.
//
// It has two layers. The C files implement the public functions: they detect a
// fork, check pointers, clear out-parameters, hold the memory of batches, and
// read and free batches without entering Go. The Go files implement the
// functions mfgo_*, which the version script exports.map hides. Each of them finds
// the objects behind its handles, does the work, and turns a panic into an error.
//
// README.md in this folder describes ownership, threads, and fork.
package main

func main() {}
