package certificate_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

const dataset = "000102030405060708090a0b0c0d0e0f"

func sequence(records int64) certificate.Sequence {
	return certificate.Sequence{Order: sampler.Shuffle, Dataset: dataset, Records: records, Seed: 7}
}

// row is a record at a position, as one process delivers it.
type row struct{ position, record int64 }

// deliver gives the certificate of a process for one batch.
func deliver(s certificate.Sequence, epoch, first, last int64, rows []row) certificate.Certificate {
	c := certificate.Certificate{Sequence: s}
	var t certificate.Tally
	for _, r := range rows {
		certificate.EpochOf(epoch).Count(&t, r.position, []int64{r.record})
	}
	c.Delivered(epoch, first, last, t)
	return c
}

// batchOf gives the rows of positions [first, last), dealt out to processes.
func batchOf(t testing.TB, s certificate.Sequence, epoch, first, last int64, processes int) [][]row {
	t.Helper()
	order, err := sampler.New(s.Order, s.Seed, s.Records)
	if err != nil {
		t.Fatal(err)
	}
	parts, e := make([][]row, processes), order.Epoch(epoch)
	for p := first; p < last; p++ {
		n := int(p-first) * processes / int(last-first)
		parts[n] = append(parts[n], row{p, e.At(p)})
	}
	return parts
}

// sum adds the certificates of all processes.
func sum(t testing.TB, s certificate.Sequence, epoch, first, last int64, parts [][]row) certificate.Certificate {
	t.Helper()
	total := certificate.Certificate{Sequence: s}
	for _, rows := range parts {
		total = plus(t, total, deliver(s, epoch, first, last, rows))
	}
	return total
}

func plus(t testing.TB, a, b certificate.Certificate) certificate.Certificate {
	t.Helper()
	c, err := a.Add(b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantError(t testing.TB, err error, code status.Code, text string) {
	t.Helper()
	if status.CodeOf(err) != code || err == nil || err.Error() != text {
		t.Errorf("got  %v: %v\nwant %v: %s", status.CodeOf(err), err, code, text)
	}
}

// Each fault is one that a run without certificates would not notice.
func TestFaults(t *testing.T) {
	s := sequence(1797)
	const claim = "[64, 128) of epoch 2"
	const missing = "certificate: %d of 64 rows are missing, of positions " + claim + "; add the certificates of all processes; if all are there, rows were lost"
	const extra = "certificate: %d rows came for 64 positions, " + claim + "; a certificate was added twice, or rows were delivered twice"
	const replaced = "certificate: 64 rows came for as many positions, " + claim + ", but not each with its record: their digest is %s, and must be fe9bed1a64dd510f4a866065361cf245; rows were delivered in the place of others, or by another order or seed"
	exchange := func(a, b *row) { a.record, b.record = b.record, a.record }
	otherwise := func(s certificate.Sequence, epoch int64) func([][]row) [][]row {
		return func([][]row) [][]row { return batchOf(t, s, epoch, 64, 128, 4) }
	}
	otherSeed, otherOrder, otherData := s, s, sequence(1798)
	otherSeed.Seed++
	otherOrder.Order = sampler.Sequential
	for _, c := range []struct {
		what  string
		fault func([][]row) [][]row
		want  string
	}{
		{"none", func(p [][]row) [][]row { return p }, ""},
		{"processes in another order", func(p [][]row) [][]row { return [][]row{p[3], p[1], p[0], p[2]} }, ""},
		{"rows in another order", func(p [][]row) [][]row { slices.Reverse(p[1]); return p }, ""},
		{"a dropped row", func(p [][]row) [][]row { p[1] = p[1][1:]; return p }, fmt.Sprintf(missing, 1)},
		{"a doubled row", func(p [][]row) [][]row { p[1] = append(p[1], p[1][3]); return p }, fmt.Sprintf(extra, 65)},
		{"a row in the place of another", func(p [][]row) [][]row { p[1][2].record = p[1][3].record; return p }, replaced},
		{"one dropped, one doubled", func(p [][]row) [][]row { p[1][2] = p[1][3]; return p }, replaced},
		{"two dropped, one of them three times", func(p [][]row) [][]row { p[1][1], p[1][2] = p[1][3], p[1][3]; return p }, replaced},
		{"two rows exchanged", func(p [][]row) [][]row { exchange(&p[1][2], &p[1][3]); return p }, replaced},
		{"rows shifted by one", func(p [][]row) [][]row {
			for i := range p[2] {
				p[2][i].position++
			}
			return p
		}, replaced},
		{"processes swapped", func(p [][]row) [][]row {
			for i := range p[1] {
				exchange(&p[1][i], &p[2][i])
			}
			return p
		}, replaced},
		{"a process missing", func(p [][]row) [][]row { return p[1:] }, fmt.Sprintf(missing, 16)},
		{"a process twice", func(p [][]row) [][]row { return append(p, p[0]) }, fmt.Sprintf(extra, 80)},
		{"one process in the place of another", func(p [][]row) [][]row { p[2] = p[1]; return p }, replaced},
		{"padding in the place of a row", func(p [][]row) [][]row { p[0][0].record = -1; return p }, fmt.Sprintf(missing, 1)},
		{"another seed", otherwise(otherSeed, 2), replaced},
		{"another order", otherwise(otherOrder, 2), replaced},
		{"a dataset that has grown", otherwise(otherData, 2), replaced},
		{"another epoch", otherwise(s, 3), replaced},
		{"one process with another seed", func(p [][]row) [][]row { p[3] = otherwise(otherSeed, 2)(nil)[3]; return p }, replaced},
	} {
		t.Run(c.what, func(t *testing.T) {
			total := sum(t, s, 2, 64, 128, c.fault(batchOf(t, s, 2, 64, 128, 4)))
			err := total.Check(t.Context())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == replaced:
				wantError(t, err, status.DataLoss, fmt.Sprintf(replaced, total.Digest))
			case c.want != "":
				wantError(t, err, status.DataLoss, c.want)
			}
			whole := sum(t, s, 2, 64, 128, batchOf(t, s, 2, 64, 128, 1))
			if total.Equal(whole) != (c.want == "") {
				t.Errorf("compared with one process that made it all: %v", total.Equal(whole))
			}
		})
	}
}

func TestAddRefused(t *testing.T) {
	a := certificate.Certificate{Sequence: sequence(1797)}
	b := a
	b.Order, b.Seed = sampler.Sequential, 8
	const hint = "; every process and every run must load the same dataset with the same order and seed"
	_, err := a.Add(b)
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: order shuffle.1 and sequential.1; seed 7 and 8"+hint)
	b = a
	b.Dataset, b.Records = "ff"+dataset[2:], 1798
	_, err = a.Add(b)
	wantError(t, err, status.Incompatible, "certificate: certificates of different sequences cannot be added: dataset "+dataset+" and ff"+dataset[2:]+"; records 1797 and 1798"+hint)
	a.Rows, b = 1<<53, a
	b.Rows = 1
	_, err = a.Add(b)
	wantError(t, err, status.ResourceExhausted, "certificate: 9007199254740992 and 1 rows are more than 2^53")
	b = certificate.Certificate{Sequence: a.Sequence}
	for i := range int64(4097) {
		b.Delivered(3*i, i%1000, i%1000+1, certificate.Tally{})
	}
	_, err = b.Add(b)
	wantError(t, err, status.ResourceExhausted, "certificate: the positions lie in more than 4096 separate runs; add certificates of runs that follow each other first")
	if _, err := b.JSON(); err == nil || b.Equal(b) || b.Check(t.Context()) == nil {
		t.Errorf("a claim in too many pieces has JSON (%v)", err)
	}
}

func TestCheckCancelled(t *testing.T) {
	c := deliver(sequence(1797), 0, 0, 1, []row{{0, 0}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, c.Check(ctx), status.Cancelled, "certificate: the check was cancelled: context canceled")
	c.Order = "best.1"
	if err := c.Check(t.Context()); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("an order that is not known: %v", err)
	}
}
