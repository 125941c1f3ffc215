package gomlxfeed

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/tests/random"
)

// TestGrowth places 10,000 batches in every way, or fewer under the race detector. No
// buffer stays live, and the process does not grow.
func TestGrowth(t *testing.T) {
	bothKinds(t, func(t *testing.T, counts *countingBackend, d *Devices) {
		for name, into := range map[string]*Devices{"ring": d, "other memory": nil} {
			l := squareLoader(t, into, loader.Options{Epochs: -1})
			ds := distributedOf(t, l, d, xy)
			grows(t, name, func(n int) { pull(t, l, d, n) })
			grows(t, name+", taken", func(n int) { draw(t, ds, n) })
			_ = l.Close()
		}
		_ = d.Close()
		counts.nothingLives(t, d)
	})
}

// pull places and releases n batches.
func pull(t *testing.T, l *loader.Loader, d *Devices, n int) {
	for b, err := range Placed(context.Background(), l, d) {
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		if n--; n == 0 {
			return
		}
	}
}

// grows runs 10,000 steps and compares the process's memory after a fifth of them
// with the memory at the end.
func grows(t *testing.T, what string, run func(steps int)) {
	t.Helper()
	goroutines := runtime.NumGoroutine()
	steps := random.Count(10_000, 10_000)
	run(steps / 5)
	before := resident(t)
	run(steps * 4 / 5)
	after := resident(t)
	t.Logf("%s: %.1f MiB after %d batches, %.1f after %d", what, float64(before)/(1<<20), steps/5, float64(after)/(1<<20), steps)
	if after > before+mayGrow {
		t.Errorf("%s: the process has grown", what)
	}
	for late := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() { // some are just ending
		if time.Now().After(late) {
			t.Fatalf("%s: %d goroutines, %d before", what, runtime.NumGoroutine(), goroutines)
		}
	}
}

// resident returns the resident memory of the process in bytes.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("the resident set is read from /proc/self/statm, which this system does not have")
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
