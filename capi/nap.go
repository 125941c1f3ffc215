package main

/*
#include <time.h>

// Sleeps 20 to 70 µs: what Linux adds to every sleep is 50 µs at most.
static void mfi_nap(void) { nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); }
*/
import "C"

import (
	"os"
	"runtime"
	"sync"
)

// nap sleeps in C. There the goroutine keeps its place in Go's scheduler, so
// that no thread but the one that sleeps is woken, and none by a caller.
func nap() { C.mfi_nap() }

// widen gives Go's scheduler places enough: a goroutine that naps holds one,
// and so does each of the caller's threads that was here before. Where none is
// free, Go's watchdog runs every 20 µs to take them away again, which costs a
// loop of short steps a tenth of its time. Who sets GOMAXPROCS has the last
// word.
var widen = sync.OnceFunc(func() {
	const places = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < places {
		runtime.GOMAXPROCS(places)
	}
})
