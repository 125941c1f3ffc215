package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// sequence maps positions to records. All states of a run have it in common. A loader has one sequence, unless its order is local: then a restored
// state brings the order's parameters.
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

// at returns the state at a cursor.
func (q *sequence) at(c batch.Cursor) State {
	s := q.state
	s.Epoch, s.Position = c.Epoch, c.Position
	return s
}

// certified returns the sequence as certificates name it.
func (q *sequence) certified() certificate.Sequence {
	return certificate.Sequence{Order: q.state.Order, Dataset: q.state.Dataset.String(), Records: q.state.Records, Seed: q.state.Seed}
}

// resume returns the sequence of a saved state, if a run of this sequence can
// continue there. A derived order takes the parameters of the state.
func (q *sequence) resume(s State, o *Options, ignoreDataset bool) (*sequence, error) {
	live := q.state
	if sampler.Accepts(o.Order, s.Order) {
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
