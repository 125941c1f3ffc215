package samplertest

import (
	"sync/atomic"
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// broken is an order with a fault that a check must find. Without a fault it is the
// reverse order, which is correct.
type broken struct {
	n     int64
	fault string
	calls *atomic.Int64
}

func (b broken) Name() string              { return "broken" }
func (b broken) Len() int64                { return b.n }
func (b broken) Epoch(int64) sampler.Epoch { return b }

func (b broken) At(position int64) int64 {
	outside := position < 0 || position >= b.n
	switch {
	case outside && b.fault != "Bounds":
		panic("outside")
	case b.fault == "Bijection" && position == b.n/2:
		return 0
	case b.fault == "Large" && b.n > 1<<32 && position == b.n-1:
		return b.n
	case b.fault == "Purity":
		return (position + b.calls.Add(1)) % b.n
	}
	return b.n - 1 - position
}

func (b broken) Fill(dst []int64, position int64) {
	if b.fault != "Bounds" && (position < 0 || position > b.n-int64(len(dst))) {
		panic("outside")
	}
	for i := range dst {
		dst[i] = b.At(position + int64(i))
	}
	if b.fault == "Fill" && len(dst) == 33 {
		dst[32] = 0
	}
}

func TestChecksFindFaults(t *testing.T) {
	for _, c := range checks {
		make := func(fault string) New {
			return func(_, records int64) (sampler.Order, error) {
				return broken{records, fault, new(atomic.Int64)}, nil
			}
		}
		if err := c.run(make("none")); err != nil {
			t.Errorf("%s refuses a correct order: %v", c.name, err)
		}
		fault := c.name
		if fault == "Concurrency" {
			fault = "Purity"
		}
		if c.run(make(fault)) == nil {
			t.Errorf("%s does not find its fault", c.name)
		}
	}
}
