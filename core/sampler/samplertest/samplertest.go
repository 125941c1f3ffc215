// Package samplertest has the tests that every order of package sampler must pass.
// Every epoch of every size is a bijection, Fill agrees with At, and an epoch depends
// only on (seed, epoch, records).
package samplertest

import (
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
)

// New creates the order under test.
type New func(seed, records int64) (sampler.Order, error)

// Run tests the orders that make creates.
func Run(t *testing.T, make New) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(make); err != nil {
				t.Error(err)
			}
		})
	}
}

var checks = []struct {
	name string
	run  func(New) error
}{
	{"Bijection", bijection},
	{"Bounds", bounds},
	{"Fill", fill},
	{"Large", large},
	{"Purity", purity},
	{"Concurrency", concurrency},
}
