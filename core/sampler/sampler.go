// Package sampler maps the positions of an epoch to records.
//
// An [Order] is a permutation of the records for every epoch, a pure function
// of (seed, epoch, number of records). It does not depend on processes, devices,
// workers or batches, so every process computes the same epoch on its own.
// Resuming at any position costs nothing, because nothing is stored or replayed.
//
// Saved states contain the name of their order. The meaning of a name never changes:
// a better shuffle would get a new name, shuffle.2.
//
//	order, err := sampler.New(sampler.Shuffle, 42, 1797)
//	epoch := order.Epoch(0)
//	record := epoch.At(1000)
package sampler

import (
	"fmt"

	"github.com/meshfeed/meshfeed/core/internal/permutation"
	"github.com/meshfeed/meshfeed/core/status"
)

// The names of the orders without parameters. Functions Local, Blocks and Units return
// the names of the others.
const (
	// Sequential has record i at position i, in every epoch. The seed has no
	// effect.
	Sequential = "sequential.1"

	// Shuffle permutes the records anew in every epoch. Package permutation
	// documents the construction. The key of an epoch is a hash of (seed, epoch,
	// records), so epoch 1 of seed 0 and epoch 0 of seed 1 are unrelated.
	Shuffle = "shuffle.1"
)

// Limits of what an order accepts.
const (
	MaxRecords = 1 << 40
	MaxSeed    = 1 << 53 // the least is -MaxSeed: JSON holds these integers exactly
)

// Order is an order of records with a name. It is immutable and safe for
// concurrent use.
type Order interface {
	// Name returns the name that saved states contain.
	Name() string

	// Len returns the number of records, which is the number of positions of
	// every epoch.
	Len() int64

	// Epoch returns the order of one epoch. It accepts every number. The call may
	// take a few microseconds, so keep its result during the epoch.
	Epoch(epoch int64) Epoch
}

// Epoch is the order of one epoch: a bijection from positions 0…Len-1 to
// records 0…Len-1. It is immutable and safe for concurrent use.
type Epoch interface {
	// At returns the record at a position. It panics if the position is outside
	// the epoch.
	At(position int64) int64

	// Fill sets dst[i] to At(position+i), several times faster than At. It panics
	// if one of the positions is outside the epoch.
	Fill(dst []int64, position int64)
}

// New returns the order with a name. The seed must be within ±MaxSeed and the number of
// records within 0…MaxRecords, else the error is InvalidArgument. An order with the units
// of a dataset as blocks needs [NewOf].
func New(name string, seed, records int64) (Order, error) {
	return construct(name, seed, records, nil)
}

// NewOf is New for the records of a dataset that is stored in units of these sizes.
func NewOf(name string, seed int64, units []int64) (Order, error) {
	records := int64(0)
	if units == nil {
		units = []int64{} // known, and none
	}
	for i, n := range units {
		if n < 0 || n > MaxRecords-records {
			return nil, fail("unit %d of %d records does not fit the 2^40 records of a dataset", i, n).With("unit", i)
		}
		records += n
	}
	return construct(name, seed, records, units)
}

// Check returns an error if the name of the order is unknown. It accepts an order that
// needs the units of a dataset.
func Check(name string, seed, records int64) error {
	_, _, err := lookUp(name, seed, records)
	return err
}

func construct(name string, seed, records int64, units []int64) (Order, error) {
	n, k, err := lookUp(name, seed, records)
	if err != nil {
		return nil, err
	}
	return k.make(n, seed, records, units)
}

// lookUp parses and checks a name.
func lookUp(text string, seed, records int64) (n name, k *kind, err error) {
	if seed < -MaxSeed || seed > MaxSeed {
		return n, nil, fail("seed %d is not within ±2^53", seed).WithHint("use a seed that JSON carries exactly").With("seed", seed)
	}
	if records < 0 || records > MaxRecords {
		return n, nil, fail("%d records are not within 0…2^40", records).With("records", records)
	}
	if n, k, err = parse(text); err == nil && k.check != nil {
		err = k.check(n)
	}
	return n, k, err
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

// The first word of a hash is one of these numbers, by the purpose of the hash. So
// hashes for different purposes are unrelated.
const (
	useShuffle = 1
	useKey     = 2
	useLocal   = 3
	useBlocks  = 4 // the blocks of an epoch
	useWindow  = 5 // the records of a window
	useUnits   = 6
	useSplit   = 7
)

// RecordKey returns 64 pseudorandom bits for a record in an epoch, as the two
// words of a JAX threefry key (jax.random.wrap_key_data), high half first. It
// depends on (seed, epoch, record) and not on the order. Within an epoch, no two
// records have the same key. Like the meaning of an order's name, it never changes.
func RecordKey(seed, epoch, record int64) [2]uint32 {
	h := permutation.Hash(useKey, uint64(seed), uint64(epoch), uint64(record))
	return [2]uint32{uint32(h >> 32), uint32(h)}
}
