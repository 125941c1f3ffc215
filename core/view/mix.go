package view

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/mixture"
)

// Mixing says how [Mix] draws from its datasets.
type Mixing struct {
	// Schedule has the weights of the datasets, and the draws from which on they hold. The first stage
	// begins at draw 0. Draws are counted over all epochs.
	Schedule []mixture.Stage

	// Order is the order that a loader over each dataset alone would have: "sequential", "shuffle",
	// "blocks" and so on, as in loader.Options, but not "local". The default window of "blocks" has 128 MiB
	// of rows. Empty: "shuffle" if Shuffle is set, else "sequential". Seed is within ±sampler.MaxSeed.
	Order   string
	Shuffle bool
	Seed    int64

	Stop    Stop
	Records int64 // draws in an epoch of the view; 0: Stop decides

	// Source is the name of a field of int32 that is added: the number of the dataset of each row.
	// It is empty for none. Names are the names of the datasets, for errors and for this field; nil
	// for numbers.
	Source string
	Names  []string
}

// Stop says when an epoch of a mixture ends, if its length is not given.
type Stop string

// The rules. The first is the default.
const (
	StopSum      Stop = ""         // after as many draws as all datasets have records
	StopShortest Stop = "shortest" // when the first dataset with a weight has given all its records
	StopLongest  Stop = "longest"  // when each of them has given all its records
)

// Mix returns a view that draws from several datasets by weights: record k is draw k of package mixture.
// A dataset that has given all its records begins again, with its next epoch. Epoch e of the view
// continues at draw e × Len, so no epoch repeats another. The fields must agree as for [Concat].
//
// The view has its own order, so loaders take its records in sequence. After 2^42 draws it begins again.
func Mix(sources []source.Source, m Mixing) (source.Source, error) {
	if len(sources) == 0 {
		return nil, status.New(status.InvalidArgument, "view", "there are no datasets to mix").WithHint("give at least one")
	}
	if len(sources) > mixture.MaxSources {
		return nil, status.Errorf(status.InvalidArgument, "view", "%d datasets are more than a mixture can have: %d", len(sources), mixture.MaxSources).
			WithHint("concatenate datasets of one kind")
	}
	if err := source.Given("view", sources...); err != nil {
		return nil, err
	}
	draws, err := mixture.New(m.Seed, m.Schedule)
	if err != nil {
		return nil, err
	}
	if len(m.Names) > 0 && len(m.Names) != len(sources) {
		return nil, status.Errorf(status.InvalidArgument, "view", "there are %d names for %d datasets", len(m.Names), len(sources)).
			WithHint("give each dataset one name, or none")
	}
	if draws.Sources() != len(sources) {
		return nil, status.Errorf(status.InvalidArgument, "view", "there are %d weights for %d datasets", draws.Sources(), len(sources)).
			WithHint("give each dataset one weight")
	}
	all, orders := make([]source.Source, len(sources)), make([]string, len(sources))
	for i, s := range sources {
		if s, err = like(sources[0].Schema(), s, i); err != nil {
			return nil, err
		}
		if _, drawn := draws.Position(i, 0); drawn && s.Len() == 0 {
			return nil, status.Errorf(status.InvalidArgument, "view", "dataset %s has a weight, but no records", m.name(i)).
				WithHint("give it the weight 0, or leave it out").With("dataset", i)
		}
		if s, err = m.marked(s, i); err != nil {
			return nil, err
		}
		order, err := m.order(s)
		if err != nil {
			return nil, err
		}
		all[i], orders[i] = endless{s, order}, order.Name()
	}
	v := &mix{base: newBase("mixture", all...), draws: draws, options: m, orders: orders}
	if v.records, err = m.length(draws, sources); err != nil {
		return nil, err
	}
	for i := range v.starts {
		v.starts[i] = int64(i) * maxRepeated
	}
	v.schema, v.origins = joined(all).Some(), allOf(all[0])
	v.base.identify, v.renumber, v.base.drawn = v.identify, v.locate, true
	return v, nil
}

// name returns the name of a dataset, for errors.
func (m *Mixing) name(i int) string {
	if i < len(m.Names) {
		return strconv.Quote(m.Names[i])
	}
	return strconv.Itoa(i)
}

// marked returns dataset i with the field of its number, if one is asked for.
func (m *Mixing) marked(src source.Source, i int) (source.Source, error) {
	if m.Source == "" {
		return src, nil
	}
	return Constants(src, []int64{src.Len()}, Constant{
		Field: source.Field{Name: m.Source, Type: dtype.Int32, Names: m.Names},
		Rows:  [][]byte{binary.LittleEndian.AppendUint32(nil, uint32(i))},
	})
}

// order returns the order of the epochs of a dataset. A mixture in a mixture continues with its draws.
func (m *Mixing) order(src source.Source) (order sampler.Order, err error) {
	name, units := sampler.Full(m.Order), []int64(nil)
	switch {
	case m.Shuffle && m.Order != "" && name != sampler.Shuffle:
		return nil, status.Errorf(status.InvalidArgument, "view", "the order of a mixture is %q, and shuffle is set", m.Order).
			WithHint("leave one of them out")
	case strings.HasPrefix(name, "local"):
		return nil, status.Errorf(status.InvalidArgument, "view", "the order %q follows from the processes of a loader, but a mixture has none", m.Order).
			WithHint(`give "shuffle", "blocks" or "sequential"`)
	case src.Facts().Drawn || name == "" && !m.Shuffle:
		name = sampler.Sequential
	case name == "":
		name = sampler.Shuffle
	}
	if sampler.NeedsUnits(name) {
		if units, err = source.UnitsOf(src); err != nil {
			return nil, err
		}
	}
	if sampler.IsDerived(name) {
		run := sampler.Run{Batch: sampler.MaxWindow, Records: src.Len(), Units: units}
		for _, f := range src.Schema().Fields {
			run.RowBytes += int64(f.RowBytes())
		}
		if name, err = sampler.Derive(name, run); err != nil {
			return nil, err
		}
	}
	if units == nil {
		return sampler.New(name, m.Seed, src.Len())
	}
	return sampler.NewOf(name, m.Seed, units)
}

// maxRepeated is the most records of a dataset in all its epochs. A mixture has no more draws.
const maxRepeated = 1 << 42

// length returns the number of draws in an epoch.
func (m *Mixing) length(draws *mixture.Mixture, sources []source.Source) (n int64, err error) {
	switch m.Stop {
	case StopSum, StopShortest, StopLongest:
	default:
		return 0, status.Errorf(status.InvalidArgument, "view", "there is no rule %q for the end of an epoch", string(m.Stop)).
			WithHint(`give "shortest" or "longest", or leave it out`)
	}
	if n = m.Records; n == 0 {
		shortest, longest := int64(math.MaxInt64), int64(0)
		for i, s := range sources {
			if m.Stop == StopSum {
				n += s.Len()
			} else if last, drawn := draws.Position(i, s.Len()-1); drawn {
				shortest, longest = min(shortest, last+1), max(longest, last+1)
			}
		}
		if n == 0 {
			if n = longest; m.Stop == StopShortest {
				n = shortest
			}
		}
	}
	if n < 1 || n > maxRepeated {
		return 0, status.Errorf(status.InvalidArgument, "view", "an epoch of %d draws cannot be made: 1 to %d", n, int64(maxRepeated)).
			WithHint("give another length")
	}
	return n, nil
}

// mix is a view that draws from datasets. In the numbers of base, dataset i begins at record i × maxRepeated.
type mix struct {
	base
	draws   *mixture.Mixture
	options Mixing
	orders  []string // by dataset: the name of the order of its epochs
}

// locate appends the records that draws take. It keeps a run of draws, because a batch asks for
// consecutive ones.
func (v *mix) locate(draw source.Draw, list *[]int64, records []int64) {
	var run [mixture.Run]mixture.Draw
	first := int64(-1)
	for _, k := range records {
		if k >= 0 {
			at := (draw.Epoch*v.records + k) % maxRepeated
			if first < 0 || at < first || at >= first+mixture.Run {
				first = at - at%mixture.Run
				v.draws.Draws(first, run[:])
			}
			d := run[at-first]
			k = v.starts[d.Source] + d.Number
		}
		*list = append(*list, k)
	}
}

// identify hashes what decides the draws.
func (v *mix) identify(ctx context.Context, below []source.Fingerprint) (source.Fingerprint, error) {
	all, err := v.identities(ctx, below)
	if err != nil {
		return source.Fingerprint{}, err
	}
	return all[len(all)-1], nil
}

// identities returns the fingerprints of the mixtures of the first stage, of the first two, and so on. A
// dataset counts from the first stage in which it has a weight, so a dataset may be added with a stage.
func (v *mix) identities(ctx context.Context, below []source.Fingerprint) (all []source.Fingerprint, err error) {
	h, known := hashOf(mixture.Name), make([]bool, len(below))
	fmt.Fprintf(h, "%d %d\n", v.options.Seed, v.records)
	for _, s := range v.options.Schedule {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		fmt.Fprintf(h, "from %d\n", s.Start)
		for i, w := range s.Weights {
			if w == 0 {
				continue
			}
			if fmt.Fprintf(h, "%d: %v\n", i, w); !known[i] {
				fmt.Fprintf(h, "%s %s\n", below[i], v.orders[i])
				known[i] = true
			}
		}
		all = append(all, fingerprint(h))
	}
	return all, nil
}

// changes returns the stages after the first one, and the changes of datasets, from the draws on that take
// the first records that differ.
func (v *mix) changes(ctx context.Context) (changes []source.Change, err error) {
	if changes, err = v.changesBelow(ctx, v.draws.Position); err != nil {
		return nil, err
	}
	err = v.call(ctx, func(ctx context.Context) error {
		below, err := v.identitiesBelow(ctx)
		if err != nil {
			return err
		}
		before, err := v.identities(ctx, below)
		if err != nil {
			return err
		}
		for i, s := range v.options.Schedule[1:] {
			changes = append(changes, source.Change{Record: s.Start, Before: before[i]})
		}
		return nil
	})
	return changes, err
}

// Facts implements source.Source.
func (v *mix) Facts() source.Facts {
	f := v.base.Facts()
	f.Units, f.Adjacent, f.Check, f.Changes = unknown, nil, v.check, v.changes
	f.Version = func() (string, error) {
		return "", status.New(status.Unsupported, "view", "a mixture has other rows in every epoch, so its rows cannot be kept").
			WithHint("keep the rows of each dataset before they are mixed")
	}
	return f
}

// unknown stands for units that are not known.
func unknown() []int64 { return nil }

// check checks all records of each dataset that has a check, because any of them may be drawn.
func (v *mix) check(ctx context.Context, fields []int, _, _ int64) error {
	return v.call(ctx, func(ctx context.Context) error {
		for _, s := range v.below {
			if check := s.Facts().Check; check != nil {
				if err := check(ctx, fields, 0, s.Len()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
