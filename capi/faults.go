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

// armed holds the next fault of each loader: a panic in "next", "restore" or
// "worker", or a gather that begins "late" or never ends ("stuck").
var armed sync.Map

// injecting is true in test builds: every call then enters Go, where faults are
// injected.
const injecting = true

// inject panics once if the fault of the loader is a panic in this step.
func (l *loaderObject) inject(step string) {
	if armed.CompareAndDelete(l, step) {
		panic("injected in " + step)
	}
}

// instrument injects faults into the gathers of the loader.
func (l *loaderObject) instrument(s source.Source) source.Source { return faultySource{s, l} }

type faultySource struct {
	source.Source
	loader *loaderObject
}

func (s faultySource) Gatherer(parts []source.Part) (source.Gatherer, error) {
	g, err := s.Source.Gatherer(parts)
	return faultyGatherer{g, s.loader}, err
}

type faultyGatherer struct {
	source.Gatherer
	loader *loaderObject
}

func (g faultyGatherer) Gather(ctx context.Context, draw source.Draw, records []int64, jobs []source.Job) error {
	g.loader.inject("worker")
	if armed.CompareAndDelete(g.loader, "late") {
		defer lateEnded.Store(true)
		<-ctx.Done() // the loader or the program ends
		time.Sleep(lateness)
		ctx = context.WithoutCancel(ctx) // like a copy in progress, which does not check its context
	}
	if armed.CompareAndDelete(g.loader, "stuck") {
		select {}
	}
	return g.Gatherer.Gather(ctx, draw, records, jobs)
}

// lateness is how long a late gather waits after its context has ended. The exit
// of a program waits longer.
const lateness = 100 * time.Millisecond

var lateEnded atomic.Bool

// mf_fault_late_ended reports whether a late gather has ended.
//
//export mf_fault_late_ended
func mf_fault_late_ended() C.int {
	if lateEnded.Load() {
		return 1
	}
	return 0
}

// openFiles hangs for the path "hang", as a network file system may.
func openFiles(ctx context.Context, paths []string, o arrowio.Options) (*arrowio.Dataset, error) {
	if paths[0] == "hang" {
		select {}
	}
	o.FaultHandler = truncating{faultHandler()}
	return arrowio.OpenFiles(ctx, paths, o)
}

// truncation is a file that the next gather from any mapping truncates, after
// the size check and before the copy.
var truncation atomic.Pointer[truncatedFile]

type truncatedFile struct {
	path string
	size int64
}

type truncating struct{ arrowio.FaultHandler }

// Arm takes the file first. If a program installs a handler and then requests a
// truncation, the gather that truncates was armed after both.
func (t truncating) Arm() {
	file := truncation.Swap(nil)
	t.FaultHandler.Arm()
	if file == nil {
		return
	}
	if err := os.Truncate(file.path, file.size); err != nil {
		panic(err)
	}
}

// mark is the mark of the last mapping that was made.
var mark atomic.Pointer[uint32]

// Watch notes the mark of the mapping.
func (t truncating) Watch(mapping []byte) (faulted *uint32, end func()) {
	faulted, end = t.FaultHandler.Watch(mapping)
	mark.Store(faulted)
	return faulted, end
}

// mf_fault_marked reports whether the last mapping has faulted.
//
//export mf_fault_marked
func mf_fault_marked() C.int { return C.int(atomic.LoadUint32(mark.Load())) }

// mf_fault_cut makes the next gather truncate a file.
//
//export mf_fault_cut
func mf_fault_cut(path *C.char, size C.int64_t) {
	truncation.Store(&truncatedFile{C.GoString(path), int64(size)})
}

// mf_fault_collect runs Go's garbage collector.
//
//export mf_fault_collect
func mf_fault_collect() { runtime.GC() }

// mf_fault sets the next fault of a loader. Released libraries do not have it.
//
//export mf_fault
func mf_fault(h C.uint64_t, fault *C.char) C.mf_status {
	return with(h, nil, func(_ context.Context, l *loaderObject) error {
		armed.Store(l, C.GoString(fault))
		return nil
	})
}
