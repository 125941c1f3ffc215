package loader

import (
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/layout"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// sequence is which record stands where: what all states of a run share. It
// does not change, but for a loader whose order is local: a state that it
// restores brings the order's parameters.
type sequence struct {
	state State // with the cursor at zero
	order sampler.Order
}

func newSequence(s State) (*sequence, error) {
	s.Epoch, s.Position = 0, 0
	order, err := sampler.New(s.Order, s.Seed, s.Records)
	if err != nil {
		return nil, err
	}
	return &sequence{state: s, order: order}, nil
}

// certified names the sequence in certificates.
func (q *sequence) certified() certificate.Sequence {
	return certificate.Sequence{Order: q.state.Order, Dataset: q.state.Dataset.String(), Records: q.state.Records, Seed: q.state.Seed}
}

// resume gives the sequence of a saved state, if a run of this one can continue
// there. Where the order was asked for as local, its parameters are the
// state's.
func (q *sequence) resume(s State, o *Options, ignoreDataset bool) (*sequence, error) {
	live := q.state
	if o.Order == layout.OrderLocal && sampler.IsLocal(s.Order) {
		live.Order = s.Order
	}
	if err := s.fits(live, ignoreDataset); err != nil {
		return nil, err
	}
	if live.Order == q.state.Order {
		return q, nil
	}
	return newSequence(live)
}
