// Command capi is the C library libmeshfeed: built with -buildmode=c-shared it
// exports the functions of include/meshfeed.h and nothing else.
//
// It has two layers. The C files are what a program sees: they notice a fork,
// check pointers, clear out-parameters, hold the memory of batches, and do
// everything that frees or reads a batch without entering Go. The Go files are
// the functions mfgo_*, hidden by the version script exports.map: each is one
// guarded call that finds the objects behind handles and does the work.
//
// README.md beside this file says who owns what, what threads may do, and what
// happens at fork.
package main

func main() {}
