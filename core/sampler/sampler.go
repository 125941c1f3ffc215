// Package sampler says which record stands at which position of an epoch.
//
// An [Order] is a permutation of the records for every epoch, a pure function
// of (seed, epoch, number of records). It knows nothing of processes, devices,
// workers or batches, so every process computes the same epoch by itself, and
// resuming at any position costs nothing: nothing is stored and nothing is
// replayed.
//
// Orders are named, and the name stands in saved states. An order under a name
// never changes: a better shuffle will be shuffle.2.
//
//	order, err := sampler.New(sampler.Shuffle, 42, 1797)
//	epoch := order.Epoch(0)
//	record := epoch.At(1000)
package sampler

import (
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
	"github.com/meshfeed/meshfeed/core/status"
)

// The names of the orders without parameters; Local gives those of a third.
const (
	// Sequential delivers record i at position i, in every epoch. The seed
	// has no effect.
	Sequential = "sequential.1"

	// Shuffle delivers every epoch in a fresh pseudorandom order. Package
	// permutation documents the construction; an epoch's key is a hash of
	// (seed, epoch, records), so that epoch 1 of seed 0 and epoch 0 of seed 1
	// have nothing in common.
	Shuffle = "shuffle.1"
)

// Limits of what an order accepts.
const (
	MaxRecords = 1 << 40
	MaxSeed    = 1 << 53 // and -MaxSeed: the integers that JSON carries exactly
)

// Order is an order of records under a name. It is immutable and safe for
// concurrent use.
type Order interface {
	// Name gives the name that stands in saved states.
	Name() string

	// Len gives the number of records, which is the number of positions of
	// every epoch.
	Len() int64

	// Epoch gives the order of one epoch. Any number is an epoch. The call may
	// cost a few microseconds: keep its result while the epoch lasts.
	Epoch(epoch int64) Epoch
}

// Epoch is the order of one epoch: a bijection from positions 0…Len-1 to
// records 0…Len-1. It is immutable and safe for concurrent use.
type Epoch interface {
	// At gives the record at a position. It panics if the position is outside
	// the epoch, as a slice does.
	At(position int64) int64

	// Fill sets dst[i] to At(position+i), at a fraction of the cost. It panics
	// if one of the positions is outside the epoch.
	Fill(dst []int64, position int64)
}

// orders lists those without parameters, in alphabetical order.
var orders = []struct {
	name string
	make func(seed, records int64) Order
}{
	{Sequential, func(_, records int64) Order { return sequential(records) }},
	{Shuffle, func(seed, records int64) Order { return shuffle{seed, records} }},
}

// Names lists the orders without parameters that New knows, in alphabetical
// order.
func Names() []string {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.name
	}
	return names
}

// New gives the order of a name. The seed must lie within ±MaxSeed and the
// number of records within 0…MaxRecords, else the error is InvalidArgument.
func New(name string, seed, records int64) (Order, error) {
	if seed < -MaxSeed || seed > MaxSeed {
		return nil, fail("seed %d is not within ±2^53", seed).WithHint("use a seed that JSON carries exactly").With("seed", seed)
	}
	if records < 0 || records > MaxRecords {
		return nil, fail("%d records are not within 0…2^40", records).With("records", records)
	}
	for _, o := range orders {
		if o.name == name {
			return o.make(seed, records), nil
		}
	}
	if IsLocal(name) {
		return newLocal(name, seed, records)
	}
	return nil, fail("there is no order %q", name).
		WithHint("use one of %s, or local.1:G:B with G parts for batches of B", strings.Join(Names(), ", ")).With("order", name)
}

// check panics unless positions [position, position+count) lie in [0, records).
func check(position, count, records int64) {
	if position < 0 || position > records-count {
		panic(fmt.Sprintf("sampler: positions [%d, %d) are not in [0, %d)", position, position+count, records))
	}
}

func fail(format string, args ...any) *status.Error {
	return status.Errorf(status.InvalidArgument, "sampler", format, args...)
}

// What a hash is for is its first word, so that no two uses share a value.
const (
	useShuffle = 1
	useKey     = 2
	useLocal   = 3
)

// RecordKey gives 64 random-looking bits for a record in an epoch, as the two
// words of a JAX threefry key (jax.random.wrap_key_data). It depends on
// (seed, epoch, record) alone, whatever the order, and within an epoch no two
// records have the same key. It is frozen like an order. The first word is the
// high half.
func RecordKey(seed, epoch, record int64) [2]uint32 {
	h := permutation.Hash(useKey, uint64(seed), uint64(epoch), uint64(record))
	return [2]uint32{uint32(h >> 32), uint32(h)}
}
