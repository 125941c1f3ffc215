// Package certificate shows that a run delivered every position of its epochs
// exactly once over all processes.
//
// # What a certificate says
//
// A [Certificate] names a sequence of records (order, dataset, number of
// records, seed) and claims that certain positions of it were delivered: its
// runs. As evidence it has the number of rows that were counted, and a digest
// of them. Positions and records are counted where they arrive, in each
// process by itself: the digest is made of the list of records that the
// process really gathered, and of the positions that its rows of the batch
// stand for. Neither is taken from the other.
//
// A row that several processes hold counts in the lowest of them
// (layout.FirstRows), and padding never counts. So over all processes every
// position counts once, on any mesh, and the sum of all evidence is the same
// on any mesh.
//
// # The digest
//
// It is a multiset hash: the sum modulo 2^128 of a hash of (epoch, position,
// record) for every row (Clarke, Devadas, van Dijk, Gassend, Suh: Incremental
// Multiset Hash Functions and Their Application to Memory Integrity Checking,
// ASIACRYPT 2003, MSet-Add-Hash). A sum does not depend on the order of its
// terms, and the digest of two sets of rows is the sum of their digests. So
// batches, processes and runs are added up as they come ([Certificate.Add]).
// A row that is missing or comes twice changes the sum, which an exclusive or
// would not notice of two.
//
// The hash is a mixing function and not a cipher, a few nanoseconds per row.
// Faults that do not know of it (lost or repeated rows, exchanged files,
// processes, seeds or orders, broken arithmetic) stay unnoticed with a
// probability of 2^-128, or never: at a position, different records never
// have the same hash. It is no defence against somebody who chooses records in
// order to deceive, and it says nothing of the bytes of a row, nor of rows
// that a process holds without counting them.
//
// # Adding, and what is complete
//
// Certificates of one sequence are added in any order: of the processes of one
// run, whose claims are the same, and of runs that follow each other, whose
// claims meet. Another mesh, batch size or remainder between two runs does not
// matter. The end of an epoch that was dropped is claimed by nobody, and where
// a run was set back, the certificate of the time of the saved state is the
// one to add.
//
// A sum is complete if its rows are as many as the positions it claims, and
// its digest is that of these positions, computed from order and seed alone
// ([Certificate.Check]), in a time that is proportional to the positions. Two
// complete sums of the same claim are [Certificate.Equal], so a run that one
// process made of the whole is a check as good.
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

// Certificate is a claim, and the evidence that one or several processes have
// for it. The zero value with a Sequence claims nothing.
type Certificate struct {
	Sequence
	Tally
	runs []Run // not in canonical form while batches are added
}

// Delivered adds positions [first, last) of an epoch to the claim, and what
// this process counted of them to the evidence.
func (c *Certificate) Delivered(epoch, first, last int64, t Tally) {
	c.Tally = c.Plus(t)
	if first == last {
		return
	}
	if n := len(c.runs); n > 0 {
		r := &c.runs[n-1]
		if r.Epochs == 1 && r.Epoch == epoch && r.Last == first {
			r.Last = last
			return
		}
		c.runs = fold(c.runs)
	}
	c.runs = append(c.runs, Run{Epoch: epoch, Epochs: 1, First: first, Last: last})
}

// Clone gives a certificate of its own.
func (c Certificate) Clone() Certificate {
	c.runs = slices.Clone(c.runs)
	return c
}

// Runs gives the positions that are claimed, in canonical form: epochs
// ascending, and as few runs as possible.
func (c Certificate) Runs() ([]Run, error) { return union(c.runs) }

// Add gives the sum of two certificates: both claims together, and all
// evidence. The error is Incompatible for different sequences, and
// ResourceExhausted for claims in too many pieces.
func (c Certificate) Add(o Certificate) (Certificate, error) {
	if err := c.sameAs(o); err != nil {
		return Certificate{}, err
	}
	runs, err := union(append(slices.Clone(c.runs), o.runs...))
	if err != nil {
		return Certificate{}, err
	}
	if c.Rows+o.Rows > maxCount {
		return Certificate{}, fail(status.ResourceExhausted, "%d and %d rows are more than 2^53", c.Rows, o.Rows)
	}
	return Certificate{Sequence: c.Sequence, Tally: c.Plus(o.Tally), runs: runs}, nil
}

// Equal says whether both claim the same of the same sequence with the same
// evidence.
func (c Certificate) Equal(o Certificate) bool {
	mine, err := c.Runs()
	if err != nil {
		return false
	}
	others, err := o.Runs()
	return err == nil && c.Sequence == o.Sequence && c.Tally == o.Tally && slices.Equal(mine, others)
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
