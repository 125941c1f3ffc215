// Package index finds the record batch of a record.
package index

import (
	"math/bits"
	"slices"
	"sort"
)

// Index finds the record batch of a record. It has an entry for each batch that is
// not empty, and takes 12 to 28 bytes per batch.
//
// The records are divided into equal buckets, one to four times as many as there
// are entries, each a power of two wide. The entries of the first records of a bucket
// and of the next one bound the entry of a record. If they differ by more than one,
// a binary search finds it.
type Index struct {
	first  []int64  // first record of each entry, then the number of all records
	batch  []uint32 // batch of each entry; nil if no batch is empty
	bucket []uint32 // entry of the bucket's first record
	shift  uint     // a bucket has 1<<shift records
}

// New makes the index of record batches with the given numbers of rows.
func New(rows []int64) *Index {
	x := &Index{first: make([]int64, 0, len(rows)+1)}
	empty := false
	for _, n := range rows {
		empty = empty || n == 0
	}
	total := int64(0)
	for i, n := range rows {
		if n == 0 {
			continue
		}
		x.first = append(x.first, total)
		if empty {
			x.batch = append(x.batch, uint32(i))
		}
		total += n
	}
	x.first = append(x.first, total)
	x.fill(total)
	return x
}

// fill makes the buckets: one to four times as many as entries, so that in few of
// them more than one batch begins.
func (x *Index) fill(total int64) {
	n := len(x.first) - 1
	if n == 0 {
		return
	}
	x.shift = uint(max(bits.Len64(uint64(total-1))-bits.Len64(uint64(n))-1, 0))
	x.bucket = make([]uint32, (total-1)>>x.shift+2)
	at := 0
	for b := range x.bucket {
		for at < n-1 && x.first[at+1] <= int64(b)<<x.shift {
			at++
		}
		x.bucket[b] = uint32(at)
	}
}

// Len returns the number of records.
func (x *Index) Len() int64 { return x.first[len(x.first)-1] }

// Units returns the number of records of every batch that is not empty.
func (x *Index) Units() []int64 {
	sizes := make([]int64, x.Entries())
	for i := range sizes {
		sizes[i] = x.first[i+1] - x.first[i]
	}
	return sizes
}

// Single reports whether all records lie in one batch, and returns its number.
func (x *Index) Single() (batch int32, ok bool) {
	return x.Batch(0), len(x.first) == 2
}

// Locate returns the batch of a record and the row in it. The record must be in
// [0, Len).
func (x *Index) Locate(record int64) (batch int32, row int64) {
	at := x.search(record)
	return x.Batch(at), record - x.first[at]
}

// Behind returns how many records follow a record in its batch. It is 0 for a record that is not in [0, Len).
func (x *Index) Behind(record int64) int64 {
	if record < 0 || record >= x.Len() {
		return 0
	}
	return x.first[x.search(record)+1] - record - 1
}

// Entries returns the number of entries.
func (x *Index) Entries() int { return len(x.first) - 1 }

// Find sets the entries of many records. Record -1 has the entry number
// x.Entries(), one after the last.
func (x *Index) Find(records []int64, entry []uint32) {
	entry = entry[:len(records)]
	first, bucket, shift := x.first, x.bucket, x.shift&63
	for i, r := range records {
		if r < 0 {
			entry[i] = uint32(x.Entries())
			continue
		}
		at := bucket[r>>shift]
		at += uint32(uint64(first[at+1]-r-1) >> 63) // if first[at+1] <= r: a branch could not be predicted
		if first[at+1] <= r {
			at = uint32(x.search(r))
		}
		entry[i] = at
	}
}

// search returns the entry of a record.
func (x *Index) search(record int64) int {
	b := record >> x.shift
	at, end := int(x.bucket[b]), int(x.bucket[b+1])
	if end-at > 1 {
		return at + sort.Search(end-at, func(i int) bool { return x.first[at+i+1] > record })
	}
	if x.first[at+1] <= record {
		at++
	}
	return at
}

// Batch returns the batch of an entry. If some batches are empty, it is 0 for
// the number after the last entry.
func (x *Index) Batch(i int) int32 {
	if x.batch == nil {
		return int32(i)
	}
	if i >= len(x.batch) {
		return 0
	}
	return int32(x.batch[i])
}

// Start returns the first record of an entry.
func (x *Index) Start(entry int) int64 { return x.first[entry] }

// First returns the first record of the batch that holds a record.
func (x *Index) First(record int64) int64 {
	_, row := x.Locate(record)
	return record - row
}

// Rows returns the number of rows of a record batch.
func (x *Index) Rows(batch int) int64 {
	at, found := batch, true
	if x.batch != nil {
		at, found = slices.BinarySearch(x.batch, uint32(batch))
	}
	if !found || at >= len(x.first)-1 {
		return 0
	}
	return x.first[at+1] - x.first[at]
}
