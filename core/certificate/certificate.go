// Package certificate shows that a run delivered every position of its epochs
// exactly once over all processes.
//
// # Certificates and runs
//
// A [Certificate] names a sequence of records (order, dataset, number of records, seed) and
// has a list of runs. A [Run] is a series of batches on one mesh, without a restore, a seek
// or a change of the mesh in between. The run records which positions were delivered, which
// ends of epochs were dropped because they do not fill a step, and which steps were skipped
// on request. The run also lists the processes of the mesh, and the processes that
// contributed certificates.
//
// The [Evidence] of a run is the number of its rows and a digest of them. Each
// process counts its own rows. The digest combines the records that the process
// gathered with the positions of its rows in the batch. Neither is computed from
// the other, so an error in one of them changes the digest.
//
// If several processes hold the same block of an array, only the process with the
// lowest number counts the block (layout.FirstHeld). If processes hold different
// columns of a row, each column block is a part of the row, and each part counts.
// The hash of a row is multiplied by the [Weight] of the part, so a part that
// counts twice cannot replace a missing part. Padding does not count.
//
// # The digest
//
// It is a multiset hash: the sum modulo 2^128 of a hash of (epoch, position,
// record) for every row. It is MSet-Add-Hash of Clarke, Devadas, van Dijk,
// Gassend and Suh (Incremental Multiset Hash Functions and Their Application to
// Memory Integrity Checking, ASIACRYPT 2003). A sum does not depend on the order
// of its terms, and the digest of two sets of rows is the sum of their digests. So
// batches and processes can be added in any order ([Certificate.Add]). A row that
// is missing or repeated changes the sum. In contrast, two additional copies of a
// row would not change an exclusive or.
//
// The hash is a mixing function and not a cipher. It takes a few nanoseconds per
// row. An accident (lost or repeated rows, exchanged files, processes, seeds or
// orders, wrong arithmetic) stays undetected with a probability of about 2^-128.
// The hash does not protect against records that are chosen to deceive. It does
// not cover the bytes of a row, nor replicas of a block that another process
// counts. If a process holds only such replicas, its certificate has positions,
// but no rows.
//
// # Adding and checking
//
// Certificates of one sequence can be added in any order. Runs of different
// processes with the same mesh and positions are joined to one run. All other runs
// stay separate. The mesh, the batch size and the remainder may differ between
// runs. If a job was killed and continued from a saved state, add the certificate
// that was saved together with that state.
//
// [Certificate.Check] covers every position from the first of epoch 0 to the last
// one delivered, and [Certificate.Covers] the positions between two cursors. Each
// position must have been delivered by all processes of one run and by no other
// run, or dropped, or skipped. The evidence of these runs must equal the evidence
// that order and seed determine for their positions. A certificate without
// delivered positions is never complete.
//
//	total := parts[0]
//	for _, part := range parts[1:] {
//		total, err = total.Add(part)
//	}
//	err = total.Check(ctx)
package certificate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

// Sequence determines the record at each position of each epoch. All states of a
// run have the same sequence.
type Sequence struct {
	Order   string // the name of the order
	Dataset string // its fingerprint: 32 hexadecimal digits
	Records int64  // the number of records of an epoch
	Seed    int64  // the seed of the order
}

// Certificate records the positions that one or several processes delivered.
type Certificate struct {
	Sequence

	// Commits has the names under which the files of a hub open again, as source.Facts has them. Runs of
	// different commits may have one sequence, because their files are equal.
	Commits []string

	runs  []Run   // joined and sorted, with spans in canonical form
	units []int64 // sizes of the dataset's units; nil if they are not known
}

// Of returns the certificate together with the number of records of every unit of its
// dataset. Check and Covers need them if the blocks of the order are these units
// ([sampler.NeedsUnits]). The units do not stand in the JSON. The error is Incompatible
// if another dataset has them.
func (c Certificate) Of(units []int64) (Certificate, error) {
	records := int64(0)
	for _, n := range units {
		records += n
	}
	if records != c.Records {
		return Certificate{}, fail(status.Incompatible, "the dataset has %d records, but the certificate is of %d", records, c.Records).
			WithHint("give the dataset that the loader had")
	}
	c.units = units
	_, err := c.sampler()
	return c, err
}

// OfSame returns the certificate with the units of another one. The other certificate
// has checked the units. OfSame reports false if the other one is of another sequence,
// or has no units.
func (c Certificate) OfSame(other Certificate) (Certificate, bool) {
	if other.units == nil || other.Sequence != c.Sequence {
		return c, false
	}
	c.units = other.units
	return c, true
}

// sampler returns the order of the records.
func (c Certificate) sampler() (sampler.Order, error) {
	if sampler.NeedsUnits(c.Order) && c.units != nil {
		return sampler.NewOf(c.Order, c.Seed, c.units)
	}
	return sampler.New(c.Order, c.Seed, c.Records)
}

// New makes a certificate of runs of a sequence. The error is ResourceExhausted if
// the runs have too many spans, ranges of processes, or rows.
func New(s Sequence, runs []Run) (Certificate, error) {
	c := Certificate{Sequence: s}
	pieces := 0
	for _, r := range runs {
		r, err := r.Clone().canonical()
		if err != nil {
			return Certificate{}, err
		}
		if pieces += r.pieces(); pieces > maxPieces {
			return Certificate{}, tooMany()
		}
		if !r.Empty() {
			c.runs = append(c.runs, r)
		}
	}
	c.runs = joined(c.runs)
	for _, r := range c.runs {
		if r.Rows < 0 || r.Rows > maxCount {
			return Certificate{}, fail(status.ResourceExhausted, "a run has more than 2^53 rows")
		}
	}
	return c, nil
}

// Runs returns the runs, ordered by their positions, with spans in canonical
// form. Runs of different processes with the same mesh and positions are joined.
func (c Certificate) Runs() []Run {
	runs := make([]Run, len(c.runs))
	for i, r := range c.runs {
		runs[i] = r.Clone()
	}
	return runs
}

// Last returns the cursor after the last position that was delivered.
func (c Certificate) Last() (last Cursor) {
	for _, r := range c.runs {
		if at := r.last(); at.compare(last) > 0 {
			last = at
		}
	}
	return last
}

// Add returns a certificate with the runs of both. The error is Incompatible for
// different sequences, and ResourceExhausted as for New.
func (c Certificate) Add(o Certificate) (Certificate, error) {
	if err := c.sameAs(o); err != nil {
		return Certificate{}, err
	}
	sum, err := New(c.Sequence, slices.Concat(c.runs, o.runs))
	if sum.units = c.units; sum.units == nil {
		sum.units = o.units
	}
	sum.Commits = slices.Concat(c.Commits, o.Commits)
	slices.Sort(sum.Commits)
	sum.Commits = slices.Compact(sum.Commits)
	return sum, err
}

// Equal reports whether both have the same runs of the same sequence with the
// same evidence.
func (c Certificate) Equal(o Certificate) bool {
	return c.Sequence == o.Sequence && slices.CompareFunc(c.runs, o.runs, Run.compare) == 0
}

// sameAs returns an error that lists every difference of the sequences, or nil.
func (c Certificate) sameAs(o Certificate) error {
	var differ []string
	compare := func(what string, a, b any) {
		if a != b {
			differ = append(differ, fmt.Sprintf("%s %v and %v", what, a, b))
		}
	}
	compare("dataset", c.Dataset, o.Dataset)
	compare("records", c.Records, o.Records)
	compare("order", c.Order, o.Order)
	compare("seed", c.Seed, o.Seed)
	if differ == nil {
		return nil
	}
	return fail(status.Incompatible, "certificates of different sequences cannot be added: %s", strings.Join(differ, "; ")).
		WithHint("every process and every run must load the same dataset with the same order and seed")
}

func fail(code status.Code, format string, args ...any) *status.Error {
	return status.Errorf(code, "certificate", format, args...)
}
