package main

/*
#include <time.h>

// What Linux adds to every sleep is 50 µs at most.
static void mfi_nap(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }
*/
import "C"

import (
	"os"
	"runtime"
	"sync"
	"time"
)

// nap sleeps in C. There the goroutine keeps its place in Go's scheduler, so
// that no thread but the one that sleeps is woken, and none by a caller.
func nap(d time.Duration) { C.mfi_nap(C.long(d)) }

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
