package packing

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/meshfeed/meshfeed/core/status"
)

// Report counts what a plan does with the documents.
type Report struct {
	Name      string `json:"plan"`   // of the method, as [Plan.Name] returns it
	Length    int    `json:"length"` // of a row
	Rows      int64  `json:"rows"`
	Documents int64  `json:"documents"`
	Empty     int64  `json:"empty"`     // documents without elements, or missing
	Longest   int64  `json:"longest"`   // elements of the longest document, with its separator
	Split     int64  `json:"split"`     // documents that no row has whole
	Truncated int64  `json:"truncated"` // documents that were cut to the length of a row
	Dropped   int64  `json:"dropped"`   // documents that are too long, and in no row
	Lost      int64  `json:"lost"`      // elements of truncated and dropped documents that are in no row

	Tokens  int64   `json:"tokens"`  // elements that are in rows; separators count, repeated ones do not
	Padding int64   `json:"padding"` // elements of rows that belong to no document
	Real    float64 `json:"real"`    // the share of the elements of rows that are not padding; 1 without rows

	Lengths []Bin   `json:"lengths"` // of documents with elements
	Better  *Better `json:"better"`  // nil if the rows are filled, or if no other length was better
}

// Bin counts the documents with a length from From to To.
type Bin struct {
	From      int64 `json:"from"`
	To        int64 `json:"to"`
	Documents int64 `json:"documents"`
}

// Better is a length of rows that has less padding, and the share of its elements that are not
// padding, counted over the first group.
type Better struct {
	Length int     `json:"length"`
	Real   float64 `json:"real"`
}

// Report returns the counts.
func (p *Plan) Report() Report { return p.report }

// add counts documents from number start on.
func (r *Report) add(o *Options, start int64, lengths []int64) error {
	for i, n := range lengths {
		r.Documents++
		if n <= 0 {
			r.Empty++
			continue
		}
		packed, whole := o.elements(n), n
		if packed > math.MaxUint32 {
			return status.Errorf(status.OutOfRange, "packing", "record %d has %d elements, but a document has at most %d", start+int64(i), packed, uint32(math.MaxUint32)).
				With("record", start+int64(i))
		}
		if o.Separator {
			whole++
		}
		r.Tokens += packed
		r.Lost += whole - packed
		r.Longest = max(r.Longest, whole)
		r.bin(n)
		switch {
		case whole <= int64(o.Length):
		case o.TooLong == Drop:
			r.Dropped++
		case o.TooLong == Truncate:
			r.Truncated++
		case o.TooLong == Refuse:
			return status.Errorf(status.OutOfRange, "packing", "record %d has %d elements, but a row has %d", start+int64(i), whole, o.Length).
				WithHint("give longer rows, or say what happens to longer documents: too_long is \"split\", \"truncate\" or \"drop\"").With("record", start+int64(i))
		}
	}
	return nil
}

// bin counts a document in the bin of its length. The bins are 1, 2 to 3, 4 to 7 and so on.
func (r *Report) bin(n int64) {
	k := bits.Len64(uint64(n)) - 1
	for len(r.Lengths) <= k {
		from := int64(1) << len(r.Lengths)
		r.Lengths = append(r.Lengths, Bin{From: from, To: 2*from - 1})
	}
	r.Lengths[k].Documents++
}

// split counts the documents of a group that no row has whole. Before them come some elements.
func (g *group) split(o *Options, before int64) (n int64) {
	for _, p := range g.long {
		if int64(p.elements) > int64(o.Length) {
			n++
		}
	}
	start := int64(0)
	for _, end := range g.ends {
		if end > (before+start)/o.stride()*o.stride()-before+int64(o.Length) {
			n++
		}
		start = end
	}
	return n
}

// finish completes the report.
func (p *Plan) finish(ctx context.Context) error {
	r, o := &p.report, &p.options
	r.Name, r.Length, r.Rows, r.Real = p.Name(), o.Length, p.rows, 1
	if p.rows == 0 {
		return nil
	}
	r.Lengths = slices.DeleteFunc(r.Lengths, func(b Bin) bool { return b.Documents == 0 })
	r.Padding = p.rows*int64(o.Length) - r.Tokens
	if o.Method == Split {
		r.Padding = (p.rows-1)*o.stride() + int64(o.Length) - r.Tokens
	}
	r.Real = 1 - float64(r.Padding)/float64(p.rows)/float64(o.Length)
	if o.Method == Split || r.Real >= filled {
		return nil
	}
	lengths, err := p.read(ctx, 0)
	if err == nil {
		r.Better = o.better(lengths, r.Real)
	}
	return err
}

// filled is the share of real elements below which rows are compared with rows of other lengths. The
// first length that has it is recommended, else the one with the largest share.
const filled = 0.9

// better returns a length that has less padding: the length of the longest document, or a longer length,
// which has place for several documents. Shorter rows would split documents.
func (o Options) better(lengths []int64, real float64) (best *Better) {
	longest := int64(1)
	for _, n := range lengths {
		longest = max(longest, o.elements(n))
	}
	present := int64(o.Length)
	for _, length := range []int64{min(longest, present), present * 9 / 8, present * 5 / 4, present * 3 / 2, present * 2, present * 4, present * 8} {
		if length == present || length > MaxLength {
			continue
		}
		o.Length = int(length)
		g := o.plan(slices.Clone(lengths))
		share := float64(g.elements) / float64(g.rows()) / float64(length)
		if share > real+0.01 {
			best, real = &Better{o.Length, share}, share
		}
		if real >= filled {
			return best
		}
	}
	return best
}
