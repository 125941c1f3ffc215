// Package cstream makes sources of memory that has another owner: arrays in the
// caller's memory ([FromArrays]) and the batches of an Arrow C stream ([Read]).
// It copies only the rows that a loader gathers.
//
// The memory is borrowed until the source is closed. Close waits for every
// running gather, without a limit, because a gather reads memory and never a
// disk. Then it calls the release callbacks of the owner. They run on the
// goroutine that calls Close, never in a finalizer or on a goroutine of this
// package, because a callback may take the lock of an interpreter.
//
// The package trusts the description of the memory, because it cannot test whether
// an address is readable.
package cstream
