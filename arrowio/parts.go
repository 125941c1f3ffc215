package arrowio

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/diskcache"
	"github.com/meshfeed/meshfeed/arrowio/internal/local"
	"github.com/meshfeed/meshfeed/arrowio/internal/part"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/arrowio/internal/table"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/hostmemory"
)

// partSet keeps some fields of a dataset decoded in a folder on disk. It divides the record
// batches into parts, a file each. A part is decoded when a gather first needs one of its
// rows, unless another process has done so. Its rows are then gathered from the file, in the
// same way as those of Arrow files without compression.
type partSet struct {
	d       *Dataset
	folder  *diskcache.Folder
	about   string // the dataset and its fields, for a listing of the folder
	numbers []int  // of the fields
	fields  []*arrowtype.Field
	columns []*buffers.Column // by field: positions in the parts
	parts   []*partState
	of      []int32 // by record batch: its part
	table   *table.Table
	files   *resident.Set
	missing atomic.Int64 // parts that are not ready
	checked atomic.Int64 // time of the last check of the files, in nanoseconds

	mu      sync.Mutex
	queue   []*partState // parts to make
	workers int
}

// partState is a part of a partSet.
type partState struct {
	number      int
	file        *file
	first, last int   // record batches of the dataset, from first to last-1
	record      int64 // of the file, the first of the part
	bytes       int64 // decoded, about
	key         string
	ready       atomic.Bool
	content     *resident.File // set before ready

	attempt *attempt // to make it; nil if a gather may begin one; guarded by partSet.mu
}

// attempt is an attempt to make a part.
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

// newPartSet divides the record batches into parts. None is made yet.
func newPartSet(d *Dataset, folder *diskcache.Folder, numbers []int, io string, handler FaultHandler) (*partSet, error) {
	s := &partSet{d: d, folder: folder, about: aboutFields(d, numbers), numbers: numbers}
	r := columnReader{d: d, batches: d.files[len(d.files)-1].end()}
	for _, i := range numbers {
		s.fields = append(s.fields, d.table.Fields[i])
		r.add(d.table.Fields[i], d.columns[i])
		decoded, err := d.table.Column(i)
		if err != nil {
			return nil, err
		}
		takeDictionaries(r.columns[len(r.columns)-1], decoded)
	}
	s.columns, s.of = r.columns, make([]int32, r.batches)
	s.divide()
	s.missing.Store(int64(len(s.parts)))
	s.files = resident.NewGrowing(d.table.Calls, len(s.parts), resident.Options{IO: io, Memory: hostmemory.Free(), FaultHandler: handler})
	s.table = &table.Table{
		Fields: d.table.Fields, Schema: d.table.Schema, Index: d.table.Index, Files: s.of, Store: (*partStore)(s),
		Load: s.load, Arm: s.files.Arm, Calls: d.table.Calls,
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
func (s *partSet) divide() {
	most := max(partBytes, s.d.decodedBytes(s.numbers)/maxParts)
	for _, f := range s.d.files {
		record := int64(0)
		for batch := f.first; batch < f.end(); batch++ {
			bytes := s.d.batchBytes(f, batch, s.numbers)
			last := len(s.parts) - 1
			if batch == f.first || s.parts[last].bytes+bytes > most {
				last++
				s.parts = append(s.parts, &partState{number: last, file: f, first: batch, record: record})
			}
			p := s.parts[last]
			record += s.d.table.Index.Rows(batch)
			p.last, p.bytes = batch+1, p.bytes+bytes
			s.of[batch] = int32(last)
		}
	}
	for _, p := range s.parts {
		p.key = s.key(p)
	}
}

// decodedBytes returns about how many bytes some fields take decoded.
func (d *Dataset) decodedBytes(numbers []int) (total int64) {
	for _, f := range d.files {
		for batch := f.first; batch < f.end(); batch++ {
			total += d.batchBytes(f, batch, numbers)
		}
	}
	return total
}

// batchBytes returns about how many bytes some fields of a record batch take decoded. For
// ragged fields, which have unknown lengths, it takes the stored bytes of the batch.
func (d *Dataset) batchBytes(f *file, batch int, numbers []int) (bytes int64) {
	rows, ragged := d.table.Index.Rows(batch), false
	for _, i := range numbers {
		ragged = ragged || d.table.Fields[i].Ragged > 0
		if d.table.Fields[i].Ragged == 0 {
			bytes += (rows*d.table.Fields[i].RowBits() + 7) / 8
		}
	}
	if ragged {
		bytes += f.Stored(batch - f.first)
	}
	return bytes
}

// key returns the name of a part's file: a hash of all on which its content depends.
func (s *partSet) key(p *partState) string {
	h := sha256.New()
	version := p.file.content.Blob.(blob.Versioned).Version()
	fmt.Fprintf(h, "decoders %d\n%s\n%x\n", decodersVersion, version, p.file.Digest)
	fmt.Fprintf(h, "units %d to %d from record %d:", p.first-p.file.first, p.last-p.file.first, p.record)
	for batch := p.first; batch < p.last; batch++ {
		fmt.Fprintf(h, " %d", s.d.table.Index.Rows(batch)) // pages may be divided in other ways
	}
	fmt.Fprintln(h)
	for k, f := range s.fields {
		number, f := p.file.columnOf(s.d.columns[s.numbers[k]], f)
		fmt.Fprintf(h, "%d %q %v %v %d", number, f.Name, f.Type, f.Shape, f.Ragged)
		for _, level := range f.Levels {
			fmt.Fprintf(h, " %T%v", level, level.Buffer())
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// held returns which fields a part has, as its file stores them. It has none whose rows are all
// null.
func (s *partSet) held(p *partState) (which []int, fields []*arrowtype.Field) {
	for k, f := range s.fields {
		if number, own := p.file.columnOf(s.d.columns[s.numbers[k]], f); number >= 0 {
			which, fields = append(which, k), append(fields, own)
		}
	}
	return which, fields
}

// load implements table.Table.Load for the fields of the set.
func (s *partSet) load(numbers []int) ([]*buffers.Column, error) {
	list := make([]*buffers.Column, len(numbers))
	for i, number := range numbers {
		for k := range s.numbers {
			if s.numbers[k] == number {
				list[i] = s.columns[k]
			}
		}
	}
	return list, nil
}

// start begins to make parts, and returns at once.
func (s *partSet) start(list []*partState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(list)
}

// hasten begins to make parts before all others that were only announced.
func (s *partSet) hasten(list []*partState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(list)
	waiting := s.queue
	s.queue = make([]*partState, 0, len(waiting))
	for _, p := range list {
		if slices.Contains(waiting, p) {
			s.queue = append(s.queue, p)
		}
	}
	for _, p := range waiting {
		if !slices.Contains(list, p) {
			s.queue = append(s.queue, p)
		}
	}
}

// add adds parts to the queue, and starts workers. The caller holds the lock.
func (s *partSet) add(list []*partState) {
	for _, p := range list {
		if p.attempt == nil {
			p.attempt = &attempt{done: make(chan struct{})}
			s.queue = append(s.queue, p)
		}
	}
	for s.workers < min(len(s.queue), runtime.GOMAXPROCS(0)) {
		s.workers++
		w := worker{partSet: s}
		guard.Go("arrowio", w.run, w.failed)
	}
}

// wait waits for a part, which it starts unless it was started. The error may be that of the
// decoding.
func (s *partSet) wait(ctx context.Context, p *partState) error {
	s.hasten([]*partState{p})
	s.mu.Lock()
	a := p.attempt
	s.mu.Unlock()
	if a == nil {
		return nil // it has just failed, and is not ready
	}
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return gatherEnded(ctx.Err())
	}
}

// install makes a part ready. The error is [part.ErrDamaged] if it is damaged.
func (s *partSet) install(p *partState, entry diskcache.Entry) error {
	b, err := local.Sealed(entry.Name(), entry)
	if err != nil {
		return err
	}
	rows := make([]int64, p.last-p.first)
	for i := range rows {
		rows[i] = s.d.table.Index.Rows(p.first + i)
	}
	which, fields := s.held(p)
	units, err := part.Read(entry, b.Size(), p.key, fields, rows)
	content := resident.NewFile(b)
	if err == nil {
		err = s.files.Put(s.d.life, p.number, content)
	}
	if err != nil {
		_ = content.Close()
		return err
	}
	for i, columns := range units {
		for k, column := range columns {
			batch := p.first + i
			_, to := s.columns[which[k]].Stored(nil, int32(batch))
			setPart(to, batch, column)
		}
	}
	p.content = content
	p.ready.Store(true)
	s.missing.Add(-1)
	if s.gaveUp() {
		return s.folder.Remove(p.key)
	}
	return nil
}

// setPart sets entry batch of the slices in each plane of a column.
func setPart(to *buffers.Column, batch int, from part.Column) {
	for n := range to.Planes {
		p, l := &to.Planes[n], &from[n]
		if p.Valid != nil {
			p.Valid[batch] = l.Valid.At
		}
		if p.Data != nil {
			p.Data[batch] = max(l.Data.At, 0)
		}
		if p.Length != nil {
			p.Length[batch] = l.Length
		}
		if p.Buffers != nil {
			p.Buffers[batch] = l.Buffers
		}
	}
}

// close closes the files of the parts. No call may run.
func (s *partSet) close() {
	for _, p := range s.parts {
		if p.content != nil {
			_ = p.content.Close()
		}
	}
}

// partStore implements table.Store over the parts of a set. Gathers ask for ready parts only.
type partStore partSet

// Base implements table.Store.
func (s *partStore) Base(file int32) (uintptr, bool) {
	if p := s.parts[file]; p.ready.Load() {
		return p.content.Base()
	}
	return 0, false
}

// Acquire implements table.Store.
func (s *partStore) Acquire(ctx context.Context, spans []resident.Span, to []uintptr) (table.Lease, error) {
	lease, err := s.files.Acquire(ctx, spans, to)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// Ahead implements table.Store.
func (s *partStore) Ahead(spans []resident.Span) { s.files.Ahead(spans) }

// Encoded implements table.Store.
func (s *partStore) Encoded(int32) bool { return false }

// Decode implements table.Store. Nothing is encoded.
func (s *partStore) Decode(context.Context, []int32, int, bool, func(int, *buffers.Decoded) error) error {
	return nil
}

// DecodeAhead implements table.Store.
func (s *partStore) DecodeAhead([]int32, []int) {}

// checkAfter is the shortest time between two checks of the files. No program writes to
// them, and the fault handler notices if one was made shorter all the same.
const checkAfter = time.Second

// Check implements table.Store.
func (s *partStore) Check(files []int32) error {
	now, last := time.Now().UnixNano(), s.checked.Load()
	all := now-last > int64(checkAfter) && s.checked.CompareAndSwap(last, now)
	for _, i := range files {
		content := s.parts[i].content
		if !all && !content.HasFaulted() {
			continue
		}
		if err := content.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Named implements table.Store.
func (s *partStore) Named(batch int32, err error) error { return s.parts[s.of[batch]].file.named(err) }
