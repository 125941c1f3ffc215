package index

import (
	"math/rand/v2"
	"testing"
)

// TestLocate compares Locate, Behind and Find with a loop over the rows of all batches.
func TestLocate(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for trial := range 300 {
		rows := make([]int64, 1+random.IntN(40))
		for i := range rows {
			switch trial % 3 {
			case 0:
				rows[i] = 10
				if i == len(rows)-1 {
					rows[i] = 1 + random.Int64N(12) // the last batch may be smaller or larger
				}
			case 1:
				rows[i] = random.Int64N(20)
			default: // a few huge, many small or empty
				rows[i] = random.Int64N(3) * (1 + random.Int64N(2)*random.Int64N(5000))
			}
		}
		x := New(rows)
		records, entries := make([]int64, x.Len()), make([]uint32, x.Len())
		for i := range records {
			records[i] = int64(i)
		}
		x.Find(records, entries)
		record := int64(0)
		for b, n := range rows {
			if got := x.Rows(b); got != n {
				t.Fatalf("%v: batch %d has %d rows instead of %d", rows, b, got, n)
			}
			for row := range n {
				batch, at := x.Locate(record)
				if batch != int32(b) || at != row || x.Batch(int(entries[record])) != batch {
					t.Fatalf("%v: record %d is row %d of batch %d instead of row %d of %d", rows, record, at, batch, row, b)
				}
				if got := x.Behind(record); got != n-row-1 {
					t.Fatalf("%v: %d records are behind record %d, not %d", rows, got, record, n-row-1)
				}
				record++
			}
		}
		if x.Len() != record {
			t.Fatalf("%v: %d records instead of %d", rows, x.Len(), record)
		}
		if x.Behind(-1) != 0 || x.Behind(record) != 0 {
			t.Fatalf("%v: records are behind those that do not exist", rows)
		}
	}
}

// TestIndexMemory checks that the index of a million batches takes at most 32 MiB. It is
// half of the memory that a dataset may take for them.
func TestIndexMemory(t *testing.T) {
	rows := make([]int64, 1_000_000)
	for i := range rows {
		rows[i] = int64(i%1000) + 1
	}
	x := New(rows)
	if n := 8*cap(x.first) + 4*cap(x.bucket) + 4*cap(x.batch); n > 32<<20 {
		t.Errorf("the index takes %d bytes", n)
	}
}

func BenchmarkFind(b *testing.B) {
	for name, odd := range map[string]int64{"even": 1000, "uneven": 13} {
		rows := make([]int64, 10_000)
		for i := range rows {
			rows[i] = 1000
		}
		rows[77] = odd
		x := New(rows)
		records, entry := make([]int64, 4096), make([]uint32, 4096)
		for i := range records {
			records[i] = rand.Int64N(x.Len())
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x.Find(records, entry)
			}
		})
	}
}
