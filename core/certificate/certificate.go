// Package certificate shows that a run delivered every position of its epochs
// exactly once over all processes.
//
// # What a certificate says
//
// A [Certificate] names a sequence of records (order, dataset, number of
// records, seed) and has an account of one or several processes: a list of
// runs. A [Run] is batches that followed each other on one mesh. A restore, a
// seek and a remesh begin another one in the same account. A run says which
// positions were delivered, which ends of epochs were dropped because they fill
// no step, and which steps were skipped on request. It names the processes of
// the mesh and those that speak here.
//
// As evidence a run has the number of rows that were counted and a digest of
// them. Positions and records are counted where they arrive, in each process by
// itself: the digest is made of the list of records that the process gathered,
// and of the positions that its rows of the batch stand for. Neither is taken
// from the other.
//
// Every distinct block of every array counts once, in the lowest process that
// holds it (layout.FirstHeld), so a process that alone holds some columns
// counts their rows. The hash of a row is multiplied by the [Weight] of the
// part, so one part does not stand for another. Padding never counts.
//
// # The digest
//
// It is a multiset hash: the sum modulo 2^128 of a hash of (epoch, position,
// record) for every row (Clarke, Devadas, van Dijk, Gassend, Suh: Incremental
// Multiset Hash Functions and Their Application to Memory Integrity Checking,
// ASIACRYPT 2003, MSet-Add-Hash). A sum does not depend on the order of its
// terms, and the digest of two sets of rows is the sum of their digests. So
// batches and processes are added up as they come ([Certificate.Add]). A row
// that is missing or comes twice changes the sum, which an exclusive or would
// not notice of two.
//
// The hash is a mixing function and not a cipher, a few nanoseconds per row.
// Accidents (lost or repeated rows, exchanged files, processes, seeds or orders,
// broken arithmetic) stay unnoticed with a probability of about 2^-128. The hash
// does not protect against records that are chosen in order to deceive. It says
// nothing of the bytes of a row, nor of the further replicas of a block. Of
// processes that hold only such replicas it says which positions they delivered.
//
// # Adding, and what is complete
//
// Certificates of one sequence are added in any order: of the processes of one
// run, which become one run, and of runs, which stay apart. Another mesh, batch
// size or remainder between two runs does not matter. Where a job was killed
// and went on from a saved state, the certificate that was saved together with
// that state is the one to add.
//
// [Certificate.Check] asks for every position from the first of epoch 0 to the
// last one delivered, and [Certificate.Covers] for those between two places:
// each was delivered by all processes of one run and by no other run, or it was
// dropped or skipped; and the evidence of these runs is what order and seed
// alone give for their positions. A certificate that has nothing delivered is
// never complete.
//
//	total := parts[0]
//	for _, part := range parts[1:] {
//		total, err = total.Add(part)
//	}
//	err = total.Check(ctx)
package certificate

import (
	"fmt"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Sequence says which record stands at which position of which epoch. It is
// what all states of a run share.
type Sequence struct {
	Order   string // the name of the order
	Dataset string // its fingerprint: 32 hexadecimal digits
	Records int64  // of an epoch
	Seed    int64  // of the order
}

// Certificate is the account of one or several processes.
type Certificate struct {
	Sequence
	runs []Run // in canonical form
}

// New gives the certificate of some runs of a sequence. The error is
// ResourceExhausted for runs in too many pieces.
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

// Runs gives the runs, ordered by their positions: spans in canonical form, and
// the processes of a run together.
func (c Certificate) Runs() []Run {
	runs := make([]Run, len(c.runs))
	for i, r := range c.runs {
		runs[i] = r.Clone()
	}
	return runs
}

// Last gives the place behind the last position that was delivered.
func (c Certificate) Last() (last Cursor) {
	for _, r := range c.runs {
		if at := r.last(); at.compare(last) > 0 {
			last = at
		}
	}
	return last
}

// Add gives the sum of two certificates: the runs of both. The error is
// Incompatible for different sequences, and ResourceExhausted for runs in too
// many pieces.
func (c Certificate) Add(o Certificate) (Certificate, error) {
	if err := c.sameAs(o); err != nil {
		return Certificate{}, err
	}
	return New(c.Sequence, append(c.Runs(), o.runs...))
}

// Equal says whether both have the same runs of the same sequence with the same
// evidence.
func (c Certificate) Equal(o Certificate) bool {
	if c.Sequence != o.Sequence || len(c.runs) != len(o.runs) {
		return false
	}
	for i := range c.runs {
		if c.runs[i].compare(&o.runs[i]) != 0 {
			return false
		}
	}
	return true
}

// sameAs compares the sequences, and shows every pair of values that differ.
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
