package main

import (
	"os"
	"runtime"
	"sync"
)

// widen gives Go's scheduler places enough: a goroutine that rests holds one,
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
