package packing_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/core/view/packing"
	"github.com/meshfeed/meshfeed/tests/golden"
	"github.com/meshfeed/meshfeed/tests/random"
)

// of returns a function that reads these lengths.
func of(lengths []int64) packing.Lengths {
	return func(_ context.Context, start int64, out []int64) error {
		copy(out, lengths[start:])
		return nil
	}
}

func plan(t testing.TB, lengths []int64, o packing.Options) *packing.Plan {
	t.Helper()
	p, err := packing.New(t.Context(), int64(len(lengths)), of(lengths), o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return p
}

// rows returns all rows of a plan.
func rows(t testing.TB, p *packing.Plan) (all [][]packing.Piece) {
	t.Helper()
	for k := range p.Rows() {
		row, err := p.Row(t.Context(), k, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

// elements is how many elements of a document are packed.
func elements(n int64, o packing.Options) int64 {
	if n <= 0 {
		return 0
	}
	if o.Separator {
		n++
	}
	switch {
	case n <= int64(o.Length):
		return n
	case o.TooLong == packing.Truncate:
		return int64(o.Length)
	case o.TooLong == packing.Drop:
		return 0
	}
	return n
}

// naive packs documents as the package comment says, without a table of rooms.
func naive(lengths []int64, o packing.Options) (all [][]packing.Piece) {
	if o.Method == packing.Split {
		return naiveSplit(lengths, o)
	}
	group, length := int(cmp.Or(o.Group, 65536)), int64(o.Length)
	for first := 0; first < len(lengths); first += group {
		var rests []packing.Piece
		for d := first; d < min(first+group, len(lengths)); d++ {
			n := elements(lengths[d], o)
			at := int64(0)
			for ; n-at >= length; at += length {
				all = append(all, []packing.Piece{{Document: int64(d), Start: at, Stop: at + length, Total: n}})
			}
			if at < n {
				rests = append(rests, packing.Piece{Document: int64(d), Start: at, Stop: n, Total: n})
			}
		}
		slices.SortStableFunc(rests, func(a, b packing.Piece) int { return cmp.Compare(b.Stop-b.Start, a.Stop-a.Start) })
		var packed [][]packing.Piece
		var room, filled []int64
		for clock, p := range rests {
			n, best := p.Stop-p.Start, -1
			for row := range packed {
				full := o.MaxDocuments > 0 && len(packed[row]) == o.MaxDocuments
				if !full && room[row] >= n && (best < 0 || room[row] < room[best] || room[row] == room[best] && filled[row] > filled[best]) {
					best = row
				}
			}
			if best < 0 {
				best = len(packed)
				packed, room, filled = append(packed, nil), append(room, length), append(filled, 0)
			}
			packed[best], room[best], filled[best] = append(packed[best], p), room[best]-n, int64(clock)
		}
		byDocument := func(a, b packing.Piece) int { return cmp.Compare(a.Document, b.Document) }
		for _, row := range packed {
			slices.SortFunc(row, byDocument)
		}
		slices.SortFunc(packed, func(a, b []packing.Piece) int { return byDocument(a[0], b[0]) })
		all = append(all, packed...)
	}
	return all
}

// naiveSplit lists the document of each element, then cuts the list.
func naiveSplit(lengths []int64, o packing.Options) (all [][]packing.Piece) {
	var list []packing.Piece
	for d, n := range lengths {
		total := elements(n, o)
		for at := range total {
			list = append(list, packing.Piece{Document: int64(d), Start: at, Stop: at + 1, Total: total})
		}
	}
	for start := 0; start < len(list); start += o.Length - o.Overlap {
		if start > 0 && len(list) <= start+o.Overlap {
			break // the row before has all
		}
		var row []packing.Piece
		for _, p := range list[start:min(start+o.Length, len(list))] {
			if n := len(row); n > 0 && row[n-1].Document == p.Document {
				row[n-1].Stop++
				continue
			}
			row = append(row, p)
		}
		all = append(all, row)
	}
	return all
}

// compare compares a plan with the naive one, and its report with its rows.
func compare(t *testing.T, lengths []int64, o packing.Options) {
	t.Helper()
	p := plan(t, lengths, o)
	got, want := rows(t, p), naive(lengths, o)
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Fatalf("%v with %+v:\ngot  %v\nwant %v", lengths, o, got, want)
	}
	units := int64(0)
	for _, n := range p.Units() {
		units += n
	}
	if units != p.Rows() || slices.Contains(p.Units(), 0) {
		t.Fatalf("%v with %+v: units %v of %d rows", lengths, o, p.Units(), p.Rows())
	}
	r, real := p.Report(), int64(0)
	whole, seen := map[int64]bool{}, map[int64]bool{}
	for _, row := range got {
		for _, piece := range row {
			real += piece.Stop - piece.Start
			seen[piece.Document] = true
			whole[piece.Document] = whole[piece.Document] || piece.Stop-piece.Start == piece.Total
		}
	}
	split := int64(0)
	for d := range seen {
		if !whole[d] {
			split++
		}
	}
	if padding := int64(len(got)*o.Length) - real; r.Padding != padding || r.Split != split || r.Rows != int64(len(got)) || r.Documents != int64(len(lengths)) {
		t.Fatalf("%v with %+v: %d padding, %d split, report %+v", lengths, o, padding, split, r)
	}
}

// TestExhaustive compares all lists of up to four documents with a naive plan.
func TestExhaustive(t *testing.T) {
	lengths := []int64{-1, 1, 2, 3, 4, 7} // -1 is as empty as 0
	var lists [][]int64
	for count, all := 0, [][]int64{{}}; count <= 4; count++ {
		lists = append(lists, all...)
		var next [][]int64
		for _, list := range all {
			for _, n := range lengths {
				next = append(next, append(slices.Clone(list), n))
			}
		}
		all = next
	}
	var options []packing.Options
	for _, long := range []packing.TooLong{packing.Cut, packing.Truncate, packing.Drop} {
		for _, separator := range []bool{false, true} {
			for _, length := range []int{1, 3, 5} {
				for overlap := range min(length, 3) {
					options = append(options, packing.Options{Method: packing.Split, Length: length, TooLong: long, Overlap: overlap, Separator: separator})
				}
			}
			for _, most := range []int{0, 1, 2} {
				for _, group := range []int64{1, 2, 0} {
					options = append(options, packing.Options{Method: packing.BestFit, Length: 4, TooLong: long, MaxDocuments: most, Group: group, Separator: separator})
				}
			}
		}
	}
	for _, o := range options {
		for _, list := range lists {
			compare(t, list, o)
		}
	}
}

// draw returns random options, and lengths that suit them.
func draw(r *rand.Rand) ([]int64, packing.Options) {
	o := packing.Options{
		Length: 1 + r.IntN(300), Method: random.One(r, packing.BestFit, packing.Split),
		TooLong: random.One(r, packing.Cut, packing.Truncate, packing.Drop), Separator: r.IntN(2) == 0,
	}
	if o.Method == packing.Split {
		o.Overlap = r.IntN(o.Length)
	} else {
		o.MaxDocuments, o.Group = r.IntN(2)*r.IntN(6), random.One(r, int64(0), 1+r.Int64N(40))
	}
	lengths := make([]int64, r.IntN(200))
	most := 1 + r.IntN(2*o.Length+2)
	for i := range lengths {
		lengths[i] = int64(r.IntN(most+1)) - 1
	}
	return lengths, o
}

// TestNaive compares random plans with naive ones. Plans that are made again are the same, and so are plans
// from counts.
func TestNaive(t *testing.T) {
	random.Rounds(t, 300, 5000, func(t *testing.T, r *rand.Rand) {
		lengths, o := draw(r)
		compare(t, lengths, o)
		p := plan(t, lengths, o)
		want := rows(t, p)
		p.Forget()
		restored := packing.Restore(int64(len(lengths)), of(lengths), o, p.Counts())
		if restored == nil || !bytes.Equal(restored.Counts(), p.Counts()) || restored.Effective() != p.Effective() || !slices.Equal(restored.Units(), p.Units()) {
			t.Fatalf("%v with %+v: %+v from counts is %+v", lengths, o, p, restored)
		}
		p = random.One(r, p, restored)
		for _, k := range r.Perm(len(want)) {
			if got, err := p.Row(t.Context(), int64(k), nil); err != nil || !slices.Equal(got, want[k]) {
				t.Fatalf("row %d of %v with %+v is %v, %v, then %v", k, lengths, o, want[k], err, got)
			}
		}
	})
}

// TestPrepare: the plans of several groups are made at a time, once each, and the error of one is returned.
func TestPrepare(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	lengths := []int64{3, 2, 5, 1, 4, 4, 2, 2, 5, 5}
	var reads sync.WaitGroup
	var wrong error
	counted, together := map[int64]int{}, false
	var mu sync.Mutex
	p, err := packing.New(t.Context(), 10, func(ctx context.Context, start int64, out []int64) error {
		if together {
			reads.Done()
			reads.Wait() // for the other one
		}
		mu.Lock()
		defer mu.Unlock()
		counted[start]++
		copy(out, lengths[start:])
		if start == 8 {
			return wrong
		}
		return nil
	}, packing.Options{Length: 5, Group: 2})
	if err != nil {
		t.Fatal(err)
	}
	p.Forget()
	clear(counted)
	together = true
	reads.Add(2)
	first, _ := p.Known(0, nil)
	if err := p.Prepare(t.Context(), []int64{-1, 0, 1, 2, 0}); err != nil || first != nil {
		t.Error(err, first)
	}
	together = false
	if _, known := p.Known(2, nil); !known || len(counted) != 2 || counted[0] != 1 || counted[2] != 1 {
		t.Errorf("row 2 is known: %v, reads %v", known, counted)
	}
	wrong = errors.New("no disk")
	if err := p.Prepare(t.Context(), []int64{p.Rows() - 1, 3, 0}); !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}

// TestForeignCounts: texts that are not the counts of the documents are not used.
func TestForeignCounts(t *testing.T) {
	lengths := []int64{3, 2, 5, 1}
	o := packing.Options{Length: 5, Group: 2}
	text := string(plan(t, lengths, o).Counts())
	for name, c := range map[string]struct {
		documents int64
		options   packing.Options
		text      string
	}{
		"no text":         {4, o, ""},
		"cut":             {4, o, text[:len(text)/2]},
		"more documents":  {6, o, text},
		"fewer documents": {3, o, text},
		"another method":  {4, packing.Options{Length: 5, Method: packing.Split}, text},
		"bad options":     {4, packing.Options{}, text},
		"other rows":      {4, o, strings.Replace(text, `"before":[0,1`, `"before":[0,9`, 1)},
		"a group of 0":    {4, o, strings.Replace(text, `"group":2`, `"group":0`, 1)},
	} {
		if packing.Restore(c.documents, of(lengths), c.options, []byte(c.text)) != nil {
			t.Errorf("%s: %s is used", name, c.text)
		}
	}
}

// logNormal returns lengths with a mean. The logarithms have the deviation s.
func logNormal(r *rand.Rand, n int, mean, s float64) []int64 {
	lengths := make([]int64, n)
	for i := range lengths {
		lengths[i] = int64(max(1, math.Exp(r.NormFloat64()*s+math.Log(mean)-s*s/2)))
	}
	return lengths
}

// TestEachTokenOnce: the rows of a million documents have each of 3 × 10^7 elements once, by both
// methods, and no row has more than its length.
func TestEachTokenOnce(t *testing.T) {
	const length = 128
	lengths := logNormal(rand.New(rand.NewPCG(1, 2)), 1_000_000, 30, 1)
	starts := make([]int64, len(lengths)+1)
	for i, n := range lengths {
		starts[i+1] = starts[i] + n
	}
	total := starts[len(lengths)]
	for _, method := range []packing.Method{packing.BestFit, packing.Split} {
		p := plan(t, lengths, packing.Options{Length: length, Method: method})
		seen := make([]uint64, total/64+1)
		var pieces []packing.Piece
		count := int64(0)
		for k := range p.Rows() {
			var err error
			if pieces, err = p.Row(t.Context(), k, pieces[:0]); err != nil {
				t.Fatal(err)
			}
			row := int64(0)
			for i, piece := range pieces {
				if row += piece.Stop - piece.Start; i > 0 && piece.Document <= pieces[i-1].Document || piece.Total != lengths[piece.Document] || piece.Stop > piece.Total {
					t.Fatalf("%s: row %d is %v", method, k, pieces)
				}
				for at := starts[piece.Document] + piece.Start; at < starts[piece.Document]+piece.Stop; at++ {
					if seen[at/64]>>(at%64)&1 != 0 {
						t.Fatalf("%s: element %d of document %d is in two rows", method, at-starts[piece.Document], piece.Document)
					}
					seen[at/64] |= 1 << (at % 64)
				}
			}
			if count += row; row > length {
				t.Fatalf("%s: row %d has %d elements", method, k, row)
			}
		}
		if r := p.Report(); count != total || r.Tokens != total || r.Padding != p.Rows()*length-total {
			t.Errorf("%s: %d of %d elements, report %+v", method, count, total, r)
		}
	}
}

// TestFill: groups have at most 1.0005 times the rows of the whole, packed by best-fit-decreasing.
func TestFill(t *testing.T) {
	n := random.Count(1<<18, 1<<20)
	uniform := make([]int64, n)
	for i := range uniform {
		uniform[i] = 1020 + rand.Int64N(160)
	}
	for name, lengths := range map[string][]int64{
		"log-normal": logNormal(rand.New(rand.NewPCG(3, 4)), n, 700, 1), "long tail": logNormal(rand.New(rand.NewPCG(5, 6)), n, 700, 1.5),
		"chat": logNormal(rand.New(rand.NewPCG(7, 8)), n, 250, 0.8), "half a row": uniform,
	} {
		for _, length := range []int{2048, 8192} {
			o := packing.Options{Length: length}
			groups := plan(t, lengths, o)
			o.Group = int64(n)
			whole := plan(t, lengths, o)
			ratio := float64(groups.Rows()) / float64(whole.Rows())
			t.Logf("%s in rows of %d: %.5f times the rows of the whole, %.3f %% real", name, length, ratio, 100*groups.Report().Real)
			if ratio > 1.0005 {
				t.Errorf("%s in rows of %d: %.5f times the rows of the whole", name, length, ratio)
			}
		}
	}
}

// TestGroup: groups have at least 65,536 documents, and more for long rows.
func TestGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, c := range []struct {
		mean   float64
		length int
		want   string
	}{{700, 2048, "best_fit.1:65536"}, {700, 32768, "best_fit.1:131072"}, {700, 131072, "best_fit.1:524288"}, {2, 1 << 20, "best_fit.1:1048576"}} {
		if got := plan(t, logNormal(r, 70_000, c.mean, 1), packing.Options{Length: c.length}).Name(); got != c.want {
			t.Errorf("documents of about %v elements in rows of %d: %s, want %s", c.mean, c.length, got, c.want)
		}
	}
	for name, changes := range map[string]func(i int) int64{
		"short": func(int) int64 { return 20 }, "short first": func(i int) int64 { return 20 + int64(i/70_000)*2000 },
		"long first": func(i int) int64 { return max(20, 2000-int64(i/70_000)*2000) },
	} {
		lengths, read := make([]int64, 300_000), 0
		for i := range lengths {
			lengths[i] = changes(i)
		}
		p, err := packing.New(t.Context(), int64(len(lengths)), func(_ context.Context, start int64, out []int64) error {
			read += copy(out, lengths[start:])
			return nil
		}, packing.Options{Length: 2048})
		if err != nil {
			t.Fatal(err)
		}
		group := p.Effective().Group
		if again := plan(t, lengths, packing.Options{Length: 2048, Group: group}); again.Rows() != p.Rows() || again.Name() != p.Name() {
			t.Errorf("%s: %d rows of %s, but %d of %s for that group", name, p.Rows(), p.Name(), again.Rows(), again.Name())
		}
		want := map[string]int64{"short": 262144, "short first": 65536, "long first": 65536}[name]
		if most := len(lengths) + 65536; group != want || name == "short" && read > most {
			t.Errorf("%s: groups of %d after %d lengths were read, want %d and at most %d", name, group, read, want, most)
		}
	}
}

// TestGolden: plans are frozen.
func TestGolden(t *testing.T) {
	lengths := []int64{5, 0, 9, 3, 16, 2, 2, -1, 7, 8, 1, 6, 4, 21, 3, 5}
	var text strings.Builder
	for _, o := range []packing.Options{
		{Length: 8}, {Length: 8, Group: 8}, {Length: 8, MaxDocuments: 2}, {Length: 8, TooLong: packing.Truncate, Separator: true}, {Length: 8, TooLong: packing.Drop},
		{Length: 8, Method: packing.Split}, {Length: 8, Method: packing.Split, Separator: true}, {Length: 8, Method: packing.Split, Overlap: 3},
	} {
		p := plan(t, lengths, o)
		fmt.Fprintf(&text, "%s %+v\n", p.Name(), o)
		for _, row := range rows(t, p) {
			for _, piece := range row {
				fmt.Fprintf(&text, " %d[%d:%d]", piece.Document, piece.Start, piece.Stop)
			}
			text.WriteByte('\n')
		}
	}
	for _, o := range []packing.Options{{Length: 2048}, {Length: 131072}, {Length: 777, MaxDocuments: 3}, {Length: 2048, Method: packing.Split, Separator: true}} {
		n := make([]int64, 80_000)
		for i, x := 0, uint64(1); i < len(n); i++ {
			x = x*6364136223846793005 + 1442695040888963407
			n[i] = int64(x>>33%31) * int64(x>>40%97)
		}
		p, h := plan(t, n, o), fnv.New64a()
		for _, row := range rows(t, p) {
			fmt.Fprintln(h, row)
		}
		fmt.Fprintf(&text, "%s %+v: %d rows, hash %016x\n", p.Name(), o, p.Rows(), h.Sum64())
	}
	golden.Compare(t, "testdata/plans", text.String())
}

// TestRefusals compares messages.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		o    packing.Options
		code status.Code
		want string
	}{
		{packing.Options{}, status.InvalidArgument, `packing: rows of 0 elements cannot be packed; give a length of at least 1`},
		{packing.Options{Length: -1}, status.InvalidArgument, `packing: rows of -1 elements cannot be packed; give a length of at least 1`},
		{packing.Options{Length: 1<<24 + 1}, status.InvalidArgument, `packing: rows of 16777217 elements cannot be packed: at most 16777216; give a shorter length`},
		{packing.Options{Length: 4, Method: "bfd"}, status.InvalidArgument, `packing: there is no method "bfd"; give "best_fit" or "split"`},
		{packing.Options{Length: 4, TooLong: "cut"}, status.InvalidArgument, `packing: there is no treatment "cut" of documents that are too long; give "split", "truncate", "drop" or "error"`},
		{packing.Options{Length: 4, Group: -1}, status.InvalidArgument, `packing: a group of -1 documents is outside 1 to 16777216; leave it out for a choice by the lengths`},
		{packing.Options{Length: 4, MaxDocuments: -1}, status.InvalidArgument, `packing: at most -1 documents in a row make no rows; leave it out for any number`},
		{packing.Options{Length: 4, Overlap: 1}, status.InvalidArgument, `packing: rows packed by best_fit do not overlap, but the overlap is 1; leave it out, or give the method "split"`},
		{packing.Options{Length: 4, Overlap: 4, Method: packing.Split}, status.InvalidArgument, `packing: rows of 4 elements cannot overlap by 4; give an overlap from 0 to less than the length`},
		{packing.Options{Length: 4, Group: 9, Method: packing.Split}, status.InvalidArgument, `packing: the method split has neither groups nor a most number of documents in a row; leave them out, or give the method "best_fit"`},
		{packing.Options{Length: 4, TooLong: packing.Refuse}, status.OutOfRange, `packing: record 2 has 5 elements, but a row has 4; give longer rows, or say what happens to longer documents: too_long is "split", "truncate" or "drop"`},
	} {
		_, err := packing.New(t.Context(), 3, of([]int64{4, 0, 5}), c.o)
		if err == nil || err.Error() != c.want || status.CodeOf(err) != c.code {
			t.Errorf("%+v: got  %v\nwant %s", c.o, err, c.want)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := packing.New(cancelled, 3, of([]int64{4, 0, 5}), packing.Options{Length: 4}); status.CodeOf(err) != status.Cancelled {
		t.Error(err)
	}
}

// TestChanged: lengths that change after New are an error of the rows whose plan is made again.
func TestChanged(t *testing.T) {
	for _, method := range []packing.Method{packing.BestFit, packing.Split} {
		lengths := []int64{4, 0, 5, 3}
		p := plan(t, lengths, packing.Options{Length: 4, Method: method})
		lengths[2] = 0
		if _, err := p.Row(t.Context(), 2, nil); err != nil {
			t.Error(err)
		}
		p.Forget()
		_, err := p.Row(t.Context(), 2, nil)
		if want := "packing: the lengths of records 0 to 3 have changed since they were packed; pack the dataset again"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, ok := p.Known(2, nil); ok {
			t.Error("a plan is known that was not made")
		}
	}
}

// TestReport checks the counts of documents, and the length that has less padding.
func TestReport(t *testing.T) {
	lengths := []int64{5, 0, 9, 3, -1, 16}
	drop := plan(t, lengths, packing.Options{Length: 8, TooLong: packing.Drop}).Report()
	if drop.Empty != 2 || drop.Dropped != 2 || drop.Lost != 25 || drop.Tokens != 8 || drop.Longest != 16 || drop.Real != 1 || drop.Rows != 1 {
		t.Errorf("%+v", drop)
	}
	cut := plan(t, lengths, packing.Options{Length: 8, TooLong: packing.Truncate, Separator: true}).Report()
	want := []packing.Bin{{From: 2, To: 3, Documents: 1}, {From: 4, To: 7, Documents: 1}, {From: 8, To: 15, Documents: 1}, {From: 16, To: 31, Documents: 1}}
	if cut.Truncated != 2 || cut.Lost != 11 || cut.Tokens != 26 || !slices.Equal(cut.Lengths, want) {
		t.Errorf("%+v", cut)
	}
	half := make([]int64, 5000)
	for i := range half {
		half[i] = 1020 + int64(i)%160
	}
	r := plan(t, half, packing.Options{Length: 2048}).Report()
	if r.Real > 0.56 || r.Better == nil || r.Better.Length != 1179 || r.Better.Real < 0.93 {
		t.Errorf("%+v, %+v", r, r.Better)
	}
	for _, none := range [][]int64{nil, {0, -1, 0}} {
		if p := plan(t, none, packing.Options{Length: 8}); p.Rows() != 0 || p.Report().Real != 1 || len(p.Units()) != 0 {
			t.Errorf("%v: %+v", none, p.Report())
		}
	}
}
