//go:build !linux

package main

/*
#include <time.h>

static void mfi_nap(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }
*/
import "C"

import "time"

// napper naps in C. There the goroutine keeps its place in Go's scheduler.
type napper struct{}

// Nap implements loader.Napper.
func (*napper) Nap(d time.Duration) { C.mfi_nap(C.long(d)) }

// Wake implements loader.Napper. Naps are short: this one goes on.
func (*napper) Wake() {}
