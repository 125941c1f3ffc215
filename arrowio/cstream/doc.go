// Package cstream makes sources of memory that has another owner: arrays in the
// caller's memory ([FromArrays]) and the batches of an Arrow C stream ([Read]).
// It copies only the rows that a loader gathers.
//
// The memory is borrowed until the source is closed. Close waits for every
// gather under way without a limit, since none of them reads from a disk. Then it
// returns the memory by the callbacks of its owner. These run on the goroutine
// that calls Close, never in a finalizer or on a goroutine of this package: the
// owner may be an interpreter, whose lock the callback takes.
//
// The package trusts the description of the memory, because it cannot test whether
// an address is readable.
package cstream
