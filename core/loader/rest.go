package loader

import "time"

const (
	// longRest ends the naps: a loop whose steps take longer does not feel
	// what starting a goroutine costs.
	longRest = 2 * time.Millisecond
	minNap   = 20 * time.Microsecond
)

// rest is the time between two batches, passed in naps. Each of them takes a
// processor from whoever has it, which costs where processes share the
// processors: with four on two, naps of the least length took half as long
// again as the loop itself. A loop mostly goes on as it did, so the naps are
// parts of what the last rest took, and a rest has about three.
type rest struct {
	began time.Time     // zero between rests
	usual time.Duration // what the last one took
}

// short tells whether another nap is worth while.
func (r *rest) short() bool { return r.began.IsZero() || time.Since(r.began) < longRest }

// nap gives the length of the next nap.
func (r *rest) nap() time.Duration {
	if r.began.IsZero() {
		r.began = time.Now()
		return max(minNap, r.usual/2)
	}
	return max(minNap, r.usual/4)
}

// end notes that there is something to make.
func (r *rest) end() {
	if !r.began.IsZero() {
		*r = rest{usual: min(time.Since(r.began), longRest)}
	}
}
