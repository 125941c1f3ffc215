// Package units joins the open files of a dataset. It numbers their units in one sequence: the
// record batches. It finds the buffers of fields in them, and gives access to the bytes.
//
// A unit of a file that is not encoded is gathered as it is stored. Package decoded decodes the
// others.
package units

import (
	"context"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/arrowio/internal/format"
	"github.com/meshfeed/meshfeed/arrowio/internal/index"
	"github.com/meshfeed/meshfeed/arrowio/internal/resident"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowtype"
)

// Files are the files of a dataset, in the order of their records. They implement table.Store.
// Fields are added, and Prepare is called, before a table uses them.
type Files struct {
	*resident.Set // implements Acquire, Ahead and Arm of table.Store; set by Prepare

	List   []*File
	Reads  *resident.Reads // plans the reads of all files
	Fields []Field
	Index  *index.Index    // finds the record batch of a record
	Of     []int32         // by record batch: its file; nil if there is one file
	Nulls  []buffers.Nulls // by column of the union

	calls *source.Calls
	life  context.Context // ends when the dataset is closed

	fetching fetching
}

// Field is a field of the dataset, and its column in the union of the files.
type Field struct {
	*arrowtype.Field
	Column int
}

// New returns the files of a dataset. Life ends when calls are closed.
func New(list []*File, reads *resident.Reads, calls *source.Calls, life context.Context) *Files {
	s := &Files{List: list, Reads: reads, calls: calls, life: life}
	if reads.Fetches() {
		s.fetching.from, s.fetching.pieces, s.fetching.last = resident.NewFetcher(life, calls, reads), map[place][]resident.Fetched{}, -1
	}
	return s
}

// maxRecords bounds a dataset, because orders of records are bounded.
const maxRecords = 1 << 40

// Number numbers the record batches of all files. It reads the
// headers of the units, and records which columns have nulls. The files have their members of a
// union with this many columns.
func (s *Files) Number(ctx context.Context, columns int) error {
	rows := make([][]int64, len(s.List))
	s.Nulls = make([]buffers.Nulls, columns)
	var mu sync.Mutex
	err := s.Reads.Each(len(s.List), func(i int) error {
		f := s.List[i]
		rows[i] = make([]int64, 0, len(f.Units))
		found := make([]buffers.Nulls, columns)
		err := f.Scan(ctx, len(f.Units), func(_ int, u format.Unit) error {
			rows[i] = append(rows[i], u.Rows())
			f.note(u, found)
			return nil
		})
		if err == nil {
			err = f.CheckRecords(f.Records)
		}
		mu.Lock()
		defer mu.Unlock()
		for c := range found {
			s.Nulls[c] = s.Nulls[c].Or(found[c])
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.join(rows)
}

// join makes the index of the record batches of all files.
func (s *Files) join(rows [][]int64) error {
	var all []int64
	total := int64(0)
	for i, list := range rows {
		f := s.List[i]
		f.First = len(all)
		all = append(all, list...)
		for _, n := range list {
			if total += n; total > maxRecords {
				return status.Errorf(status.ResourceExhausted, "arrowio", "%s: the dataset has more than 2^40 records", f.Path).With("path", f.Path)
			}
			if len(s.List) > 1 {
				s.Of = append(s.Of, int32(i))
			}
		}
	}
	s.Index = index.New(all)
	return nil
}

// File returns the file of a record batch.
func (s *Files) File(batch int32) *File {
	if s.Of == nil {
		return s.List[0]
	}
	return s.List[s.Of[batch]]
}

// Batches returns the number of record batches.
func (s *Files) Batches() int { return s.List[len(s.List)-1].End() }

// Bytes returns the size of all files together.
func (s *Files) Bytes() (total int64) {
	for _, f := range s.List {
		total += f.Content.Size()
	}
	return total
}

// Prepare makes the bytes of the files available to Acquire and Base.
func (s *Files) Prepare(o resident.Options) (err error) {
	contents := make([]*resident.File, len(s.List))
	for i, f := range s.List {
		contents[i] = f.Content
	}
	if o.Reads = s.Reads; s.Fetches() {
		o.Reads = nil // no rows are read far away: their units are decoded, or their files were fetched
	}
	s.Set, err = resident.NewSet(s.calls, contents, o)
	return err
}

// Base implements table.Store.
func (s *Files) Base(file int32) (uintptr, bool) { return s.List[file].Content.Base() }

// Check implements table.Store. It skips files that are not mapped, because a read
// that ends early returns an error.
func (s *Files) Check(files []int32) error {
	for _, i := range files {
		content := s.List[i].Content
		if address, _ := content.Base(); address == 0 {
			continue
		}
		if err := content.Check(); err != nil {
			return s.List[i].Named(err)
		}
	}
	return nil
}

// Named implements table.Store.
func (s *Files) Named(batch int32, err error) error { return s.File(batch).Named(err) }
