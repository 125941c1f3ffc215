// Package cstream serves records from memory that somebody else owns: arrays
// in the caller's memory ([FromArrays]) and the batches of an Arrow C stream
// ([Read]). Nothing is copied but the rows that a loader gathers.
//
// The memory is borrowed until the source is closed. Close waits for every
// gather under way, however long it takes (none of them touches a disk), and
// only then gives the memory back, by the callbacks that came with it. They run
// on the goroutine that calls Close, and nowhere else: never from a finalizer
// or a goroutine of this package. The owner may be an interpreter, whose lock
// the callback takes.
//
// What the descriptions say about the memory is believed. There is no way to
// find out whether an address is readable.
package cstream
