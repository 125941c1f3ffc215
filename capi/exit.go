package main

import "C"

import (
	"context"

	"github.com/meshfeed/meshfeed/capi/internal/future"
)

// stopper is an object that works in the background.
type stopper interface {
	// stop ends that work, and returns when it has ended. The object stays.
	stop() error
}

// leave ends all calls and all gathers, for a program that is about to exit
// and to take away memory that they use. It waits for them, but not longer
// than patience, and frees nothing: other threads may still hold batches, and
// no callback may run by now.
func leave() {
	until, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var ends []*future.Future[struct{}]
	for _, o := range handles.CancelAll() {
		if s, ok := o.(stopper); ok {
			ends = append(ends, future.Start("capi", func() (struct{}, error) { return struct{}{}, s.stop() }))
		}
	}
	for _, end := range ends {
		_, _ = end.Wait(until) // nobody is left to hear of it
	}
	handles.Idle(until)
}

//export mfgo_cancel_all
func mfgo_cancel_all() {
	call(nil, func() error { leave(); return nil })
}
