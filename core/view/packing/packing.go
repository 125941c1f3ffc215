// Package packing plans which documents stand in which rows, if all rows have one length. It knows
// lengths alone, and reads them through a function.
//
// # Documents, pieces, rows
//
// A document is a list of elements, such as the tokens of a text. A row has Length elements. It
// consists of pieces, which are runs of elements of documents, and of padding at its end. A document
// that is longer than a row is cut into pieces. [Options].TooLong says what else may happen to it.
//
// # Methods
//
// The method best_fit.1 divides the documents into groups of consecutive ones. Each document has full
// pieces, of Length elements, and a rest. A full piece is a row by itself. The rests of a group are
// packed by best-fit-decreasing: the longest first, and each into the row with the least room that
// is enough. Among rests of one length the earlier document comes first. Among rows with equal room,
// the row that was filled last is taken. The rows of a group are its full pieces, in the order of the
// documents, then its packed rows, ordered by their first document. The pieces of a row are in the
// order of the documents. So the plan of a group is a function of its lengths.
//
// The method split.1 joins all documents, and cuts the result: row k begins at element
// k × (Length − Overlap). The last row is padded.
//
// The names of both methods are frozen, because saved states depend on them.
//
// # Cost
//
// [New] reads all lengths once, plans each group and keeps 8 bytes for it. [Restore] makes the plan from
// counts that [Plan.Counts] has returned, without reading lengths. [Plan.Row] finds the
// group by binary search. If the plan of the group is not in memory, Row reads the lengths of the
// group again and plans it, which takes about 0.1 µs for each document. [Plan.Prepare] plans several
// groups at a time. Up to 256 MiB of plans stay in memory: 8 bytes for each document, and 4 for each row.
package packing

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Method is how documents are divided among rows.
type Method string

// The methods. The first is the default.
const (
	BestFit Method = "best_fit"
	Split   Method = "split"
)

// TooLong is what happens to a document that is longer than a row.
type TooLong string

// The first is the default.
const (
	Cut      TooLong = "split"    // into several pieces
	Truncate TooLong = "truncate" // to its first Length elements
	Drop     TooLong = "drop"     // leave it out, and count it
	Refuse   TooLong = "error"    // an error of New
)

// Options describe the rows. Length is required.
type Options struct {
	Length       int // elements of a row
	Method       Method
	TooLong      TooLong
	Group        int64 // best_fit: documents in a group; 0: chosen by New
	MaxDocuments int   // best_fit: the most documents in a row; 0: any number
	Overlap      int   // split: elements that a row has in common with the next one

	// Separator adds an element to the end of each document that has elements. It is a part of
	// the document, so it counts for TooLong.
	Separator bool
}

// MaxLength bounds the length of a row, because planning takes memory for each number up to it.
const MaxLength = 1 << 24

const maxGroup = 1 << 24

// New chooses groups of autoDocuments, or of the next power of two that has about autoRows rows, up to
// autoMost. Few rows leave no choice to the last rests, so a group of few rows has more padding.
const (
	autoDocuments = 1 << 16
	autoRows      = 2000
	autoMost      = 1 << 20
)

// Lengths writes the lengths of the documents from number start on to out, -1 for a missing one.
type Lengths func(ctx context.Context, start int64, out []int64) error

// Piece is a part of a row: the elements [Start, Stop) of a document with Total elements.
type Piece struct {
	Document           int64
	Start, Stop, Total int64
}

// Plan says which pieces each row has. It is safe for concurrent use.
type Plan struct {
	options   Options
	documents int64
	lengths   Lengths
	report    Report
	rows      int64
	most      int // best_fit: the most rests in a row

	// before has an entry for each group, and one for the end: the rows of best_fit, or the
	// elements of split, that come before.
	before []int64
	plans  plans
}

// New reads the lengths of all documents and counts the rows.
//
// The error is InvalidArgument for options that make no sense, and OutOfRange, with the number of
// the record, for a document that is too long under TooLong = Refuse. Errors of lengths are passed on.
func New(ctx context.Context, documents int64, lengths Lengths, o Options) (*Plan, error) {
	o.setDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	p := &Plan{options: o, documents: documents, lengths: lengths}
	if o.Group == 0 {
		if err := p.guess(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.count(ctx); err != nil {
		return nil, err
	}
	if guess, group := p.options.Group, p.autoGroup(p.report.Tokens, documents); o.Group == 0 && group != guess {
		p.options.Group = group
		if documents > min(guess, group) { // else all documents are one group anyway
			if err := p.count(ctx); err != nil {
				return nil, err
			}
		}
	}
	return p, p.finish(ctx)
}

// guess chooses the group by the first documents. If all documents need another one, New counts again.
func (p *Plan) guess(ctx context.Context) error {
	p.options.Group = autoDocuments
	if p.options.Method == Split || p.documents <= autoDocuments {
		return nil
	}
	var first Report
	lengths, err := p.read(ctx, 0)
	if err == nil {
		err = first.add(&p.options, 0, lengths)
	}
	p.options.Group = p.autoGroup(first.Tokens, autoDocuments)
	return err
}

func (o *Options) setDefaults() {
	o.Method, o.TooLong = cmp.Or(o.Method, BestFit), cmp.Or(o.TooLong, Cut)
}

// check returns an error for options that make no sense.
func (o *Options) check() error {
	fail := func(hint, format string, args ...any) error {
		return status.Errorf(status.InvalidArgument, "packing", format, args...).WithHint("%s", hint)
	}
	switch {
	case o.Method != BestFit && o.Method != Split:
		return fail(`give "best_fit" or "split"`, "there is no method %q", o.Method)
	case o.TooLong != Cut && o.TooLong != Truncate && o.TooLong != Drop && o.TooLong != Refuse:
		return fail(`give "split", "truncate", "drop" or "error"`, "there is no treatment %q of documents that are too long", o.TooLong)
	case o.Length < 1:
		return fail("give a length of at least 1", "rows of %d elements cannot be packed", o.Length)
	case o.Length > MaxLength:
		return fail("give a shorter length", "rows of %d elements cannot be packed: at most %d", o.Length, MaxLength)
	case o.Group < 0 || o.Group > maxGroup:
		return fail("leave it out for a choice by the lengths", "a group of %d documents is outside 1 to %d", o.Group, maxGroup)
	case o.MaxDocuments < 0:
		return fail("leave it out for any number", "at most %d documents in a row make no rows", o.MaxDocuments)
	case o.Overlap < 0 || o.Overlap >= o.Length:
		return fail("give an overlap from 0 to less than the length", "rows of %d elements cannot overlap by %d", o.Length, o.Overlap)
	case o.Method == BestFit && o.Overlap > 0:
		return fail(`leave it out, or give the method "split"`, "rows packed by best_fit do not overlap, but the overlap is %d", o.Overlap)
	case o.Method == Split && (o.MaxDocuments > 0 || o.Group > 0):
		return fail(`leave them out, or give the method "best_fit"`, "the method split has neither groups nor a most number of documents in a row")
	}
	return nil
}

// elements returns how many elements of a document of n elements are in rows.
func (o *Options) elements(n int64) int64 {
	if n <= 0 {
		return 0
	}
	if o.Separator {
		n++
	}
	if n > int64(o.Length) {
		switch o.TooLong {
		case Truncate:
			return int64(o.Length)
		case Drop:
			return 0
		}
	}
	return n
}

// stride is the number of elements from the start of a row of split to the start of the next.
func (o *Options) stride() int64 { return int64(o.Length - o.Overlap) }

// count plans all groups.
func (p *Plan) count(ctx context.Context) error {
	p.report, p.before, p.most = Report{Lengths: []Bin{}}, []int64{0}, 0
	p.plans.clear()
	for start := int64(0); start < p.documents; start += p.options.Group {
		if err := ctx.Err(); err != nil {
			return status.Errorf(status.CodeOf(err), "packing", "the planning was ended: %w", err)
		}
		lengths, err := p.read(ctx, start)
		if err != nil {
			return err
		}
		if err := p.report.add(&p.options, start, lengths); err != nil {
			return err
		}
		g, last := p.options.plan(lengths), len(p.before)-1
		p.plans.put(last, g)
		p.report.Split += g.split(&p.options, p.before[last])
		p.most = max(p.most, g.most())
		p.before = append(p.before, p.before[last]+p.size(g))
	}
	p.rows = p.countRows()
	return nil
}

// countRows returns the number of rows of all groups.
func (p *Plan) countRows() int64 {
	n := p.before[len(p.before)-1]
	if p.options.Method == Split && n > 0 {
		more := max(0, n-int64(p.options.Length))
		return 1 + (more+p.options.stride()-1)/p.options.stride()
	}
	return n
}

// size returns what before counts of a group.
func (p *Plan) size(g *group) int64 {
	if p.options.Method == Split {
		return g.elements
	}
	return g.rows()
}

// read reads the lengths of the documents of a group.
func (p *Plan) read(ctx context.Context, start int64) ([]int64, error) {
	lengths := make([]int64, min(p.options.Group, p.documents-start))
	return lengths, p.lengths(ctx, start, lengths)
}

// autoGroup returns the number of documents that New puts into a group, if some documents have these
// tokens.
func (p *Plan) autoGroup(tokens, documents int64) int64 {
	group := int64(autoDocuments)
	if p.options.Method == Split {
		return group
	}
	enough := autoRows * float64(p.options.Length) * float64(documents)
	for group < autoMost && float64(group)*float64(tokens) < enough {
		group *= 2
	}
	return group
}

// Rows returns the number of rows.
func (p *Plan) Rows() int64 { return p.rows }

// Elements returns how many elements of a document of n elements are in rows. A separator counts.
func (p *Plan) Elements(n int64) int64 { return p.options.elements(n) }

// Effective returns the options without those that change no row: two plans of the same lengths with
// other effective options have other rows.
func (p *Plan) Effective() Options {
	o := p.options
	o.Group = min(o.Group, p.documents)
	if p.report.Longest <= int64(o.Length) {
		o.TooLong = Cut
	}
	if p.most < o.MaxDocuments {
		o.MaxDocuments = 0
	}
	return o
}

// Name returns the frozen name of the method, such as "best_fit.1:65536" with the documents in a
// group.
func (p *Plan) Name() string {
	if p.options.Method == Split {
		return "split.1"
	}
	return fmt.Sprintf("best_fit.1:%d", p.options.Group)
}

// Units returns how many rows begin in each group, without groups that have none.
func (p *Plan) Units() []int64 {
	units, earlier := []int64{}, int64(0)
	for _, end := range p.before[1:] {
		if p.options.Method == Split {
			end = min((end+p.options.stride()-1)/p.options.stride(), p.rows)
		}
		if end > earlier {
			units = append(units, end-earlier)
			earlier = end
		}
	}
	return units
}

// Row appends the pieces of a row in their order. The row must exist.
func (p *Plan) Row(ctx context.Context, row int64, pieces []Piece) ([]Piece, error) {
	return p.row(row, pieces, func(i int) (*group, error) { return p.group(ctx, i) })
}

// Known is Row if the plans of the row are in memory. Else it returns false, and reads nothing.
func (p *Plan) Known(row int64, pieces []Piece) ([]Piece, bool) {
	pieces, err := p.row(row, pieces, func(i int) (*group, error) {
		if g := p.plans.get(i); g != nil {
			return g, nil
		}
		return nil, errUnknown
	})
	return pieces, err == nil
}

var errUnknown = status.New(status.Internal, "packing", "the plan is not in memory")

// maxTogether bounds the groups that Prepare plans at a time, because each takes up to 40 MiB for that.
const maxTogether = 8

// Prepare makes the plans of rows that are not in memory, one on each processor. A negative number is no row.
func (p *Plan) Prepare(ctx context.Context, rows []int64) error {
	var missing []int
	for _, row := range rows {
		if row >= 0 {
			if i, _ := p.locate(row); p.plans.get(i) == nil {
				missing = append(missing, i)
			}
		}
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	// Parallel would return when its context ends, while plans still read lengths.
	return guard.Parallel(context.WithoutCancel(ctx), "packing", len(missing), min(runtime.GOMAXPROCS(0), maxTogether), func(i int) error {
		_, err := p.group(ctx, missing[i])
		return err
	})
}

// locate returns the group in which a row begins. At is what before counts up to the row.
func (p *Plan) locate(row int64) (i int, at int64) {
	at = row
	if p.options.Method == Split {
		at *= p.options.stride()
	}
	return sort.Search(len(p.before)-1, func(i int) bool { return p.before[i+1] > at }), at
}

func (p *Plan) row(row int64, pieces []Piece, find func(i int) (*group, error)) ([]Piece, error) {
	left := int64(p.options.Length)
	i, at := p.locate(row)
	for at -= p.before[i]; left > 0 && i < len(p.before)-1; i++ {
		g, err := find(i)
		if err != nil {
			return pieces, err
		}
		first := int64(i) * p.options.Group
		if p.options.Method == BestFit {
			return g.packed(at, int64(p.options.Length), first, pieces), nil
		}
		from := len(pieces)
		pieces = g.between(at, left, first, pieces)
		for _, piece := range pieces[from:] {
			left -= piece.Stop - piece.Start
		}
		at = 0
	}
	return pieces, nil
}

// group returns the plan of a group, which it makes if it is not in memory. Concurrent calls may both
// make it.
func (p *Plan) group(ctx context.Context, i int) (*group, error) {
	if g := p.plans.get(i); g != nil {
		return g, nil
	}
	lengths, err := p.read(ctx, int64(i)*p.options.Group)
	if err != nil {
		return nil, err
	}
	g := p.options.plan(lengths)
	if p.size(g) != p.before[i+1]-p.before[i] {
		return nil, status.Errorf(status.DataLoss, "packing", "the lengths of records %d to %d have changed since they were packed", int64(i)*p.options.Group, int64(i)*p.options.Group+int64(len(lengths))-1).
			WithHint("pack the dataset again")
	}
	p.plans.put(i, g)
	return g, nil
}
