package parts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/arrowio/internal/units"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/hostmemory"
)

// set keeps some fields of a dataset in parts.
type set struct {
	cache   *Cache
	about   string // the dataset and its fields, for a listing of the folder
	numbers []int  // the fields
	parts   []*state
	of      []int32 // by record batch: its part
	stored  *part.Files
	onDisk  *table.Table // over the stored parts
	missing atomic.Int64 // parts that are not ready

	mu      sync.Mutex
	queue   []*state // parts to write
	claimed int64    // stored bytes of the parts that are claimed
	workers int
}

// state is a part of a set.
type state struct {
	number      int
	file        *units.File
	first, last int   // record batches of the dataset, from first to last-1
	record      int64 // number in the file; the first of the part
	bytes       int64 // decoded, about
	key         string

	claim        *diskcache.Scratch // while its bytes are fetched; guarded by set.mu
	claimedBytes int64

	attempt *attempt // to write it; nil if a gather may begin one; guarded by set.mu
}

// attempt is an attempt to write a part.
type attempt struct {
	done chan struct{} // closed at its end
	err  error         // read after done
}

const (
	// partBytes is about how many decoded bytes a part has, unless there would be more
	// than maxParts. A gather waits for a whole part, and each part is an open file.
	partBytes = 8 << 20
	maxParts  = 256

	// decodersVersion is part of every key. It increases when the same bytes are decoded
	// to other buffers.
	decodersVersion = 1
)

// newSet divides the record batches into parts. None is written yet.
func newSet(c *Cache, numbers []int) (*set, error) {
	s := &set{cache: c, about: c.about(numbers), numbers: numbers, of: make([]int32, c.files.Batches())}
	columns := c.files.EmptyColumns(numbers)
	for k, i := range numbers {
		inMemory, err := c.inMemory.Column(i)
		if err != nil {
			return nil, err
		}
		takeDictionaries(columns[k], inMemory)
	}
	s.divide()
	s.missing.Store(int64(len(s.parts)))
	calls, options := c.inMemory.Calls, resident.Options{IO: c.IO, Memory: hostmemory.Free(), FaultHandler: c.FaultHandler}
	s.stored = part.NewFiles(calls, numbers, columns, s.of, len(s.parts), c.files.Named, options)
	s.onDisk = &table.Table{
		Fields: c.inMemory.Fields, Schema: c.inMemory.Schema, Index: c.inMemory.Index, Files: s.of, Store: s.stored, Calls: calls,
	}
	return s, nil
}

// takeDictionaries copies the dictionaries of a column and of its variants from another column.
func takeDictionaries(to, from *buffers.Column) {
	to.Dictionaries = from.Dictionaries
	for batch, v := range to.Variants {
		if v != nil && v.Column != nil {
			v.Column.Dictionaries = from.Variants[batch].Column.Dictionaries
		}
	}
}

// divide divides the record batches of every file into parts. It depends only on metadata,
// so that all processes have the same parts.
func (s *set) divide() {
	sizes, all := s.decodedBytes()
	most := max(partBytes, all/maxParts)
	for _, f := range s.cache.files.List {
		record := int64(0)
		for batch := f.First; batch < f.End(); batch++ {
			bytes := sizes[batch]
			last := len(s.parts) - 1
			if batch == f.First || s.parts[last].bytes+bytes > most {
				last++
				s.parts = append(s.parts, &state{number: last, file: f, first: batch, record: record})
			}
			p := s.parts[last]
			record += s.cache.files.Index.Rows(batch)
			p.last, p.bytes = batch+1, p.bytes+bytes
			s.of[batch] = int32(last)
		}
	}
	for _, p := range s.parts {
		p.key = s.key(p)
	}
}

// decodedBytes returns about how many bytes the fields take decoded, in each record batch and in all.
func (s *set) decodedBytes() (sizes []int64, all int64) {
	sizes = make([]int64, len(s.of))
	for _, f := range s.cache.files.List {
		for batch := f.First; batch < f.End(); batch++ {
			sizes[batch] = s.batchBytes(f, batch)
			all += sizes[batch]
		}
	}
	return sizes, all
}

// batchBytes returns about how many bytes the fields of a record batch take decoded. For
// ragged fields, which have unknown lengths, it takes the stored bytes of the batch.
func (s *set) batchBytes(f *units.File, batch int) (bytes int64) {
	rows, ragged := s.cache.files.Index.Rows(batch), false
	for _, i := range s.numbers {
		field := s.cache.files.Fields[i]
		ragged = ragged || field.Ragged > 0
		if field.Ragged == 0 {
			bytes += (rows*field.RowBits() + 7) / 8
		}
	}
	if ragged {
		bytes += f.StoredBytes(batch - f.First)
	}
	return bytes
}

// key returns the name of a part's file: a hash of all that its content depends on.
func (s *set) key(p *state) string {
	h := sha256.New()
	version := p.file.Content.Blob.(blob.Versioned).Version()
	fmt.Fprintf(h, "decoders %d\n%s\n%x\n", decodersVersion, version, p.file.Digest)
	fmt.Fprintf(h, "units %d to %d from record %d:", p.first-p.file.First, p.last-p.file.First, p.record)
	for batch := p.first; batch < p.last; batch++ {
		fmt.Fprintf(h, " %d", s.cache.files.Index.Rows(batch)) // pages may be divided in other ways
	}
	fmt.Fprintln(h)
	for _, i := range s.numbers {
		number, f := p.file.Column(s.cache.files.Fields[i])
		fmt.Fprintf(h, "%d %q %v %v %d", number, f.Name, f.Type, f.Shape, f.Ragged)
		for _, level := range f.Levels {
			fmt.Fprintf(h, " %T%v", level, level.Buffer())
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// held returns which fields a part has, as its file stores them. It leaves out fields with rows
// that are all null.
func (s *set) held(p *state) (which []int, fields []*arrowtype.Field) {
	for k, i := range s.numbers {
		if number, own := p.file.Column(s.cache.files.Fields[i]); number >= 0 {
			which, fields = append(which, k), append(fields, own.Field)
		}
	}
	return which, fields
}

// install makes a part ready. The error is [part.ErrDamaged] if it is damaged.
func (s *set) install(p *state, entry diskcache.Entry) error {
	b, err := local.Sealed(entry.Name(), entry)
	if err != nil {
		return err
	}
	rows := make([]int64, p.last-p.first)
	for i := range rows {
		rows[i] = s.cache.files.Index.Rows(p.first + i)
	}
	which, fields := s.held(p)
	batches, err := part.Read(entry, b.Size(), p.key, fields, rows)
	content := resident.NewFile(b, nil)
	if err == nil {
		err = s.stored.Put(s.cache.life, p.number, content, p.first, which, batches)
	}
	if err != nil {
		_ = content.Close()
		return err
	}
	s.missing.Add(-1)
	if s.cache.disabled() {
		return s.cache.folder.Remove(p.key)
	}
	return nil
}

// remove removes the parts that were written, because no more can be. Parts that gathers in
// progress use stay open until the dataset is closed.
func (s *set) remove() {
	for _, p := range s.parts {
		if s.stored.Ready(p.number) {
			_ = s.cache.folder.Remove(p.key)
		}
	}
}

// needed returns the parts of some records that are not ready, each once, in the order of the
// files. It ignores records that do not exist.
func (s *set) needed(n int, record func(i int) int64) (list []*state) {
	seen := make([]bool, len(s.parts))
	for i := range n {
		r := record(i)
		if r < 0 || r >= s.onDisk.Index.Len() {
			continue
		}
		batch, _ := s.onDisk.Index.Locate(r)
		if p := s.parts[s.of[batch]]; !seen[p.number] {
			seen[p.number] = true
			if !s.stored.Ready(p.number) {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b *state) int { return cmp.Compare(a.number, b.number) })
	return list
}
