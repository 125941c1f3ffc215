package main

import (
	"testing"
	"time"
)

// A nap ends with Wake, also with one that came before it; each ends one nap.
func TestWake(t *testing.T) {
	const long = 10 * time.Second
	var n napper
	began := time.Now()
	n.Wake()
	n.Nap(long)
	asleep := make(chan struct{})
	go func() {
		<-asleep
		n.Wake()
	}()
	close(asleep)
	n.Nap(long)
	if took := time.Since(began); took >= long {
		t.Errorf("two naps that were ended took %v", took)
	}
	began = time.Now()
	n.Nap(time.Millisecond)
	if took := time.Since(began); took < time.Millisecond {
		t.Errorf("a nap of 1ms that nobody ended took %v", took)
	}
}
