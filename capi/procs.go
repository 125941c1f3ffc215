package main

import (
	"os"
	"runtime"
	"sync"
)

// raiseProcs raises GOMAXPROCS to 4, unless the environment sets it. A resting
// producer holds a P, and so does every C thread that called Go before. If no P is
// free, Go's monitor thread runs every 20 µs to retake them. In four processes on two
// cores, a step of tokens then takes 1.2 times the processor time.
var raiseProcs = sync.OnceFunc(func() {
	const least = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
})
