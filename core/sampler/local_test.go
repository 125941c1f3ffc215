package sampler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/sampler/samplertest"
	"github.com/meshfeed/meshfeed/core/status"
)

// locals are names with edge cases: one part, a part per row, sizes that are not
// powers of two, more parts than records.
var locals = []string{"local.1:1:1", "local.1:1:32", "local.1:4:32", "local.1:3:21", "local.1:8:8", "local.1:512:1024"}

func TestLocalOrders(t *testing.T) {
	for _, name := range locals {
		t.Run(name, func(t *testing.T) {
			samplertest.Run(t, func(seed, records int64) (sampler.Order, error) { return sampler.New(name, seed, records) })
			order, err := sampler.New(name, 0, 10)
			if err != nil || order.Name() != name {
				t.Errorf("the order has the name %v (%v)", order, err)
			}
		})
	}
}

// partOf returns the part of a position by the definition of the order, or -1 for
// the records of no part.
func partOf(position, records, parts, batch int64) int64 {
	n, rows := records/parts, batch/parts
	steps := n / rows
	if position < steps*batch {
		return position % batch / rows
	}
	left := n - steps*rows
	if i := position - steps*batch; i < left*parts {
		return i / left
	}
	return -1
}

// Every position has a record of the part that the definition says. The records
// of no part come last, in order.
func TestLocalParts(t *testing.T) {
	for _, c := range []struct{ records, parts, batch int64 }{
		{1797, 4, 32}, {1797, 1, 32}, {1000, 7, 21}, {64, 8, 8}, {5, 8, 8}, {31, 4, 32}, {100_003, 3, 12}, {35, 4, 32},
	} {
		name := sampler.Local(c.parts, c.batch)
		e, n := epoch(t, name, 3, 2, c.records), c.records/c.parts
		for position := range c.records {
			record, part := e.At(position), partOf(position, c.records, c.parts, c.batch)
			switch {
			case part < 0 && record != position:
				t.Fatalf("%s, %d records: position %d holds record %d, not itself", name, c.records, position, record)
			case part >= 0 && (record < part*n || record >= (part+1)*n):
				t.Fatalf("%s, %d records: position %d holds record %d, which is not of part %d", name, c.records, position, record, part)
			}
		}
	}
}

// The permutations of different parts, epochs, seeds and sizes are unrelated.
func TestLocalPartsAreUnrelated(t *testing.T) {
	const n, parts = 5003, 3
	part := func(name string, seed, number, records, g int64) []int64 {
		all := make([]int64, records)
		epoch(t, name, seed, number, records).Fill(all, 0)
		var list []int64
		for position, record := range all {
			if partOf(int64(position), records, parts, 12) == g {
				list = append(list, record-g*n)
			}
		}
		return list
	}
	const name = "local.1:3:12"
	first := part(name, 5, 6, n*parts, 0)
	own := slices.Sorted(slices.Values(first))
	for what, other := range map[string][]int64{
		"the order of the file":  own,
		"another part":           part(name, 5, 6, n*parts, 1),
		"another epoch":          part(name, 5, 7, n*parts, 0),
		"another seed":           part(name, 6, 6, n*parts, 0),
		"seed and epoch swapped": part(name, 6, 5, n*parts, 0),
		"one record more":        part(name, 5, 6, n*parts+1, 0),
	} {
		if hits := agreements(first, other); hits > 9 || len(other) != n {
			t.Errorf("%s: %d of %d positions hold the same record, expected about 1", what, hits, len(other))
		}
		if z := differences(first, other); z > bound {
			t.Errorf("%s: differences are uneven (z = %.1f)", what, z)
		}
	}
}

func TestLocalNames(t *testing.T) {
	const hint = "; use the name in the state of the first loader"
	const form = " is not local.1:G:B with G parts for batches of B"
	for name, want := range map[string]string{
		"local.1:":                       form,
		"local.1:4":                      form,
		"local.1:4:":                     form,
		"local.1:4:32:1":                 form,
		"local.1:4:32 ":                  form,
		"local.1:04:32":                  form,
		"local.1:+4:32":                  form,
		"local.1:4:0x20":                 form,
		"local.1:-4:32":                  " has -4 parts, but may have from 1 to 1048576",
		"local.1:0:32":                   " has 0 parts, but may have from 1 to 1048576",
		"local.1:1048577:32":             " has 1048577 parts, but may have from 1 to 1048576",
		"local.1:4:0":                    " is for batches of 0 rows, but they may have from 1 to 2^53",
		"local.1:1:-1":                   " is for batches of -1 rows, but they may have from 1 to 2^53",
		"local.1:3:32":                   " has 3 parts, which do not divide a batch of 32: 32 % 3 = 2",
		"local.1:64:32":                  " has 64 parts, which do not divide a batch of 32: 32 % 64 = 32",
		"local.1:1:9007199254740993":     " is for batches of 9007199254740993 rows, but they may have from 1 to 2^53",
		"local.1:99999999999999999999:1": form,
	} {
		order, err := sampler.New(name, 0, 100)
		want = fmt.Sprintf("sampler: order %q%s%s", name, want, hint)
		if order != nil || err == nil || err.Error() != want || status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	for _, name := range []string{"local", "local.1", "local.2:4:32", "Local.1:4:32"} {
		want := fmt.Sprintf("sampler: there is no order %q; use one of sequential.1, shuffle.1, local.1:G:B with G parts for batches of B, or blocks.1:W:B:H with windows of W blocks of B records; loaders and layouts also take sequential, shuffle, local, blocks, blocks:W, or blocks:W:B with windows of W blocks of B records", name)
		if _, err := sampler.New(name, 0, 100); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// A short name stands for orders of one kind, and for no others.
func TestDerivedNames(t *testing.T) {
	for _, c := range []struct {
		short, full string
		want        bool
	}{
		{"local", "local.1:4:32", true}, {"local", "local.1:x", false}, {"local", "shuffle.1", false},
		{"local.1:4:32", "local.1:4:32", false}, {"shuffle", "shuffle.1", false}, {"", "local.1:4:32", false},
		{"blocks", "blocks.1:4:0:7", true}, {"blocks", "blocks.1:4:8:0", false}, {"blocks:4", "blocks.1:4:0:7", true}, {"blocks:5", "blocks.1:4:0:7", false},
		{"blocks:0:8", "blocks.1:4:8:0", true}, {"blocks:4:8", "blocks.1:4:8:0", true}, {"blocks:4:9", "blocks.1:4:8:0", false}, {"blocks:4", "blocks.1:4:8:0", false},
		{"blocks:0:8", "local.1:4:8", false}, {"blocks:x", "blocks.1:4:0:7", false}, {"local:1", "local.1:4:32", false},
	} {
		if got := sampler.Accepts(c.short, c.full); got != c.want {
			t.Errorf("Accepts(%q, %q) = %t", c.short, c.full, got)
		}
	}
	for short, want := range map[string]bool{"local": true, "local.1": false, "shuffle": false, "": false, "blocks": true, "blocks:4:8": true, "blocks.1:4:8:0": false} {
		if sampler.IsDerived(short) != want {
			t.Errorf("IsDerived(%q) = %t", short, !want)
		}
	}
	if got, err := sampler.Derive("local", sampler.Run{Groups: 4, Batch: 32}); err != nil || got != "local.1:4:32" {
		t.Errorf("the name is %s (%v)", got, err)
	}
}

// The largest parameters work, because no allocation grows with the batch.
func TestLocalExtremes(t *testing.T) {
	order, err := sampler.New(sampler.Local(sampler.MaxLocalParts, sampler.MaxLocalBatch), 1, sampler.MaxRecords)
	if err != nil {
		t.Fatal(err)
	}
	e := order.Epoch(1 << 52)
	const part = sampler.MaxRecords / sampler.MaxLocalParts
	for _, position := range []int64{0, part, sampler.MaxRecords - 1} {
		if record := e.At(position); record/part != position/part {
			t.Errorf("position %d holds record %d", position, record)
		}
	}
}

func BenchmarkLocal(b *testing.B) {
	for _, c := range []struct{ records, parts, batch int64 }{
		{1797, 4, 32}, {50_000, 4, 128}, {1_000_000, 8, 256}, {1_000_000_000, 64, 4096}, {1_000_000_000, 512, 1024}, {1_000_000_000, 4096, 4096},
	} {
		b.Run(fmt.Sprintf("n=%d/%s", c.records, sampler.Local(c.parts, c.batch)), func(b *testing.B) {
			e := epoch(b, sampler.Local(c.parts, c.batch), 0, 0, c.records)
			rows := make([]int64, c.batch)
			position := int64(0)
			for b.Loop() {
				if position+c.batch > c.records {
					position = 0
				}
				e.Fill(rows, position)
				position += c.batch
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.batch), "ns/position")
		})
	}
}

func ExampleLocal() {
	order, err := sampler.New(sampler.Local(2, 4), 42, 13)
	if err != nil {
		panic(err)
	}
	records := make([]int64, order.Len())
	order.Epoch(0).Fill(records, 0)
	for ; len(records) > 4; records = records[4:] {
		fmt.Println(records[:2], records[2:4])
	}
	fmt.Println(records)
	// Output:
	// [4 5] [10 8]
	// [3 2] [9 6]
	// [0 1] [11 7]
	// [12]
}
