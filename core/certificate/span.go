package certificate

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
)

// Span is the positions [First, Last) of each of Epochs epochs from Epoch on.
type Span struct {
	Epoch, Epochs int64
	First, Last   int64
}

func (s Span) String() string {
	if s.Epochs == 1 {
		return fmt.Sprintf("[%d, %d) of epoch %d", s.First, s.Last, s.Epoch)
	}
	return fmt.Sprintf("[%d, %d) of epochs %d to %d", s.First, s.Last, s.Epoch, s.Epoch+s.Epochs-1)
}

const (
	// maxPieces bounds the spans of a certificate, and its ranges of processes.
	// A run without skipped steps has at most six spans. Three are delivered: the
	// rest of an epoch, whole epochs, and the beginning of an epoch. Each of these
	// may have a dropped remainder.
	maxPieces = 1 << 13

	// maxCount bounds rows, positions and epochs: JSON holds these integers
	// exactly.
	maxCount = 1 << 53

	// maxParts bounds Run.Parts, the number of blocks that hold a part of one row.
	maxParts = 1 << 31
)

// appendSpan appends a span that follows all spans before it. It joins equal spans
// of consecutive epochs, so the list of a long run stays short. The last span may
// still grow, so it is joined only when the next one comes.
func appendSpan(spans []Span, s Span) []Span {
	if s.First == s.Last || s.Epochs == 0 {
		return spans
	}
	if n := len(spans); n > 0 {
		last := &spans[n-1]
		if last.Epochs == 1 && s.Epochs == 1 && last.Epoch == s.Epoch && last.Last == s.First {
			last.Last = s.Last
			return spans
		}
		spans = fold(spans)
	}
	return append(spans, s)
}

// fold joins the last span with the one before it, if they are equal spans of
// consecutive epochs.
func fold(spans []Span) []Span {
	n := len(spans)
	if n < 2 {
		return spans
	}
	a, b := &spans[n-2], spans[n-1]
	if a.First != b.First || a.Last != b.Last || a.Epoch+a.Epochs != b.Epoch {
		return spans
	}
	a.Epochs += b.Epochs
	return spans[:n-1]
}

// union returns the canonical form of spans, which may overlap. Consecutive epochs
// with the same positions share their spans, and the positions of an epoch have as
// few spans as possible.
func union(spans []Span) ([]Span, error) {
	if canonical(spans) {
		return spans, nil
	}
	pieces := make([]piece, len(spans))
	for i, s := range spans {
		pieces[i].Span = s
	}
	var m merger
	err := eachBand(pieces, func(from, to int64, here []piece) error {
		slices.SortFunc(here, func(a, b piece) int { return cmp.Compare(a.First, b.First) })
		for _, s := range here {
			m.add(Span{from, to - from, s.First, s.Last})
		}
		return m.endBand()
	})
	return m.out, err
}

// piece is a span, what the run did with its positions, and the number of the run.
type piece struct {
	Span
	kind kind
	run  int
}

// eachBand cuts the epochs where pieces begin and end, and calls do for each
// band between two cuts, with all pieces that contain it. The list is valid
// until do returns.
func eachBand(all []piece, do func(from, to int64, here []piece) error) error {
	var bounds []int64
	for _, p := range all {
		bounds = append(bounds, p.Epoch, p.Epoch+p.Epochs)
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var here []piece
	for i := 1; i < len(bounds); i++ {
		here = here[:0]
		for _, p := range all {
			if p.Epoch <= bounds[i-1] && bounds[i] <= p.Epoch+p.Epochs {
				here = append(here, p)
			}
		}
		if err := do(bounds[i-1], bounds[i], here); err != nil {
			return err
		}
	}
	return nil
}

// merger makes the canonical form of spans that are added band by band, and
// within a band by their first position.
type merger struct {
	out  []Span
	last int    // index in out of the first span of the band before
	here []Span // spans of this band
}

func (m *merger) add(s Span) {
	if n := len(m.here); n > 0 && s.First <= m.here[n-1].Last {
		m.here[n-1].Last = max(m.here[n-1].Last, s.Last)
		return
	}
	m.here = append(m.here, s)
}

// endBand ends a band. It extends the band before if that has the same positions.
func (m *merger) endBand() error {
	if len(m.out)+len(m.here) > maxPieces {
		return tooMany()
	}
	before := m.out[m.last:]
	if len(m.here) > 0 && follows(before, m.here) && samePositions(before, m.here) {
		for i := range before {
			before[i].Epochs += m.here[i].Epochs
		}
	} else {
		m.last = len(m.out)
		m.out = append(m.out, m.here...)
	}
	m.here = m.here[:0]
	return nil
}

// follows reports whether b begins in the epoch after the last epoch of a.
func follows(a, b []Span) bool { return len(a) > 0 && a[0].Epoch+a[0].Epochs == b[0].Epoch }

func samePositions(a, b []Span) bool {
	return slices.EqualFunc(a, b, func(a, b Span) bool { return a.First == b.First && a.Last == b.Last })
}

// canonical reports whether spans are in canonical form.
func canonical(spans []Span) bool {
	var before []Span // spans of the previous epochs
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].Epoch == spans[0].Epoch && spans[n].Epochs == spans[0].Epochs {
			if spans[n].First <= spans[n-1].Last {
				return false
			}
			n++
		}
		here := spans[:n]
		if len(before) > 0 && (before[0].Epoch+before[0].Epochs > here[0].Epoch || follows(before, here) && samePositions(before, here)) {
			return false
		}
		before, spans = here, spans[n:]
	}
	return true
}

func tooMany() error {
	return fail(status.ResourceExhausted, "the runs have more than %d pieces", maxPieces).
		WithHint("take certificates more often, each of a new loader, and keep them apart")
}

// positions counts the positions of spans. ok is false beyond maxCount.
func positions(spans []Span) (sum int64, ok bool) {
	for _, s := range spans {
		high, low := bits.Mul64(uint64(s.Epochs), uint64(s.Last-s.First))
		if high > 0 || low > maxCount-uint64(sum) {
			return 0, false
		}
		sum += int64(low)
	}
	return sum, true
}

// shown is the number of spans that a text lists.
const shown = 3

// list writes the first spans, and how many more there are.
func list(spans []Span) string {
	var words []string
	for _, s := range spans[:min(len(spans), shown)] {
		words = append(words, s.String())
	}
	if more := len(spans) - shown; more > 0 {
		words = append(words, fmt.Sprintf("and %d more pieces", more))
	}
	return strings.Join(words, ", ")
}

// Cursor is a position of an epoch. Position 0 of an epoch is also the end of the
// epoch before.
type Cursor struct{ Epoch, Position int64 }

func (p Cursor) String() string { return fmt.Sprintf("position %d of epoch %d", p.Position, p.Epoch) }

func (p Cursor) compare(o Cursor) int {
	return cmp.Or(cmp.Compare(p.Epoch, o.Epoch), cmp.Compare(p.Position, o.Position))
}

// through returns the spans between two cursors. An epoch has the given number of
// records.
func through(first, last Cursor, records int64) (spans []Span) {
	if first.Epoch == last.Epoch {
		return appendSpan(nil, Span{first.Epoch, 1, first.Position, max(first.Position, last.Position)})
	}
	if first.Epoch > last.Epoch {
		return nil
	}
	if first.Position > 0 {
		spans = appendSpan(spans, Span{first.Epoch, 1, first.Position, records})
		first = Cursor{Epoch: first.Epoch + 1}
	}
	if records > 0 {
		spans = appendSpan(spans, Span{first.Epoch, last.Epoch - first.Epoch, 0, records})
	}
	return appendSpan(spans, Span{last.Epoch, 1, 0, last.Position})
}
