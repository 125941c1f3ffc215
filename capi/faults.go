//go:build meshfeed_faults

package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
)

// armed holds, per loader, what happens to it next: a panic in "next",
// "restore" or "worker", or a gather that begins "late" or never ends ("stuck").
var armed sync.Map

// injecting says whether every call must come where faults are injected.
const injecting = true

// inject panics once if the loader is armed for the place.
func (l *loaderObject) inject(place string) {
	if armed.CompareAndDelete(l, place) {
		panic("injected in " + place)
	}
}

// instrument lets gathers of the loader's workers panic.
func (l *loaderObject) instrument(s source.Source) source.Source { return faultySource{s, l} }

type faultySource struct {
	source.Source
	loader *loaderObject
}

func (s faultySource) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := s.Source.Gatherer(parts)
	return faultyGatherer{g, s.loader}, err
}

// Check implements source.Checker.
func (s faultySource) Check(ctx context.Context, fields []int, start, stop int64) error {
	if c, ok := s.Source.(source.Checker); ok {
		return c.Check(ctx, fields, start, stop)
	}
	return nil
}

type faultyGatherer struct {
	source.Gatherer
	loader *loaderObject
}

func (g faultyGatherer) Gather(ctx context.Context, records []int64, jobs []source.Job) error {
	g.loader.inject("worker")
	if armed.CompareAndDelete(g.loader, "late") {
		defer lateEnded.Store(true)
		<-ctx.Done() // the end of its loader, or of the program
		time.Sleep(late)
		ctx = context.WithoutCancel(ctx) // as a copy under way, which looks at no context
	}
	if armed.CompareAndDelete(g.loader, "stuck") {
		select {}
	}
	return g.Gatherer.Gather(ctx, records, jobs)
}

// late is how long after its end was asked for a late gather begins: less than
// the exit of a program waits.
const late = 100 * time.Millisecond

var lateEnded atomic.Bool

// mf_fault_late_ended says whether a late gather has come to its end.
//
//export mf_fault_late_ended
func mf_fault_late_ended() C.int {
	if lateEnded.Load() {
		return 1
	}
	return 0
}

// openFiles hangs for the path "hang", as a network file system may.
func openFiles(paths []string, o arrowio.Options) (*arrowio.Dataset, error) {
	if paths[0] == "hang" {
		select {}
	}
	o.FaultHandler = cutting{signals()}
	return arrowio.OpenFiles(context.Background(), paths, o)
}

// cut is a file that is cut in the next gather from any mapping, after its
// size was checked and before its bytes are read.
var cut atomic.Pointer[cutFile]

type cutFile struct {
	path string
	size int64
}

type cutting struct{ arrowio.FaultHandler }

// Arm takes the file before it arms: a program that puts up a handler of its
// own and then asks for a cut gets it in a gather that was armed after both.
func (c cutting) Arm() {
	file := cut.Swap(nil)
	c.FaultHandler.Arm()
	if file == nil {
		return
	}
	if err := os.Truncate(file.path, file.size); err != nil {
		panic(err)
	}
}

// mf_fault_cut makes the next gather that begins cut a file.
//
//export mf_fault_cut
func mf_fault_cut(path *C.char, size C.int64_t) {
	cut.Store(&cutFile{C.GoString(path), int64(size)})
}

// mf_fault_collect runs Go's garbage collector.
//
//export mf_fault_collect
func mf_fault_collect() { runtime.GC() }

// mf_fault arms a loader. It is no part of the library that ships.
//
//export mf_fault
func mf_fault(h C.uint64_t, place *C.char) C.mf_status {
	return call(nil, func() error {
		return use(h, func(_ context.Context, l *loaderObject) error {
			armed.Store(l, C.GoString(place))
			return nil
		})
	})
}
