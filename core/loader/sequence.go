package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
)

// sequence maps positions to records. All saved states of a run share it. A loader has one
// sequence, unless the parameters of its order follow from a layout. A restored state may
// then have the parameters of another layout.
type sequence struct {
	state State // with the cursor at zero
	order sampler.Order
}

// newSequence returns the sequence of a state. The state's cursor does not matter.
func newSequence(s State, src source.Source) (*sequence, error) {
	s.Epoch, s.Position = 0, 0
	order, err := newOrder(s, src)
	if err != nil {
		return nil, err
	}
	return &sequence{state: s, order: order}, nil
}

func newOrder(s State, src source.Source) (sampler.Order, error) {
	if !sampler.NeedsUnits(s.Order) {
		return sampler.New(s.Order, s.Seed, s.Records)
	}
	units, err := source.UnitsOf(src)
	if err != nil {
		return nil, err
	}
	return sampler.NewOf(s.Order, s.Seed, units)
}

// at returns the state at a cursor.
func (q *sequence) at(c batch.Cursor) State {
	s := q.state
	s.Epoch, s.Position = c.Epoch, c.Position
	return s
}

// certified returns the sequence in the form that certificates contain.
func (q *sequence) certified() certificate.Sequence {
	return certificate.Sequence{Order: q.state.Order, Dataset: q.state.Dataset.String(), Records: q.state.Records, Seed: q.state.Seed}
}

// resume returns the sequence that continues at a saved state, or an error if the
// state does not fit this sequence. If the order is given by a short name such as
// "local", it has the parameters of the state.
func (q *sequence) resume(s State, src source.Source, o *Options, ignoreDataset bool) (*sequence, error) {
	live := q.state
	if sampler.Accepts(o.named(o.Layout.Document().Dataset), s.Order) {
		live.Order = s.Order
	}
	if !ignoreDataset && s.Dataset != live.Dataset {
		appended, err := s.appended(live, src)
		if err != nil {
			return nil, err
		}
		ignoreDataset = appended
	}
	if err := s.fits(live, ignoreDataset, src.Facts().Drawn); err != nil {
		return nil, err
	}
	if live.Order == q.state.Order {
		return q, nil
	}
	return newSequence(live, src)
}
