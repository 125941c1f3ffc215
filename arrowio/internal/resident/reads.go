package resident

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/arrowio/blob"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Reads plans and bounds the reads of one storage as its hints say.
type Reads struct {
	blob.Hints
	slots *semaphore.Weighted // one for each read in progress
}

// diskReads are the reads of files without a storage of their own.
var diskReads = NewReads(blob.Disk)

// NewReads returns the reads of a storage.
func NewReads(h blob.Hints) *Reads {
	return &Reads{h, semaphore.NewWeighted(int64(h.AtOnce))}
}

// Each calls do for 0 to n-1, AtOnce calls at a time because each waits for the storage. It
// returns the error of the lowest number that failed.
func (r *Reads) Each(n int, do func(i int) error) error {
	return guard.Parallel(context.Background(), "arrowio", n, r.AtOnce, do)
}

func (e Extent) end() int64 { return e.Offset + e.Length }

// Piece is a range of a file.
type Piece struct {
	File *File
	Extent
}

// sparseGap bounds the gap between headers or samples that are read together. There are many of
// them with all data in between, which is not needed.
const sparseGap = 64 << 10

// Read reads headers or samples, several at a time. It calls use with the bytes of each as soon as
// they are there, also several at a time. One read takes pieces of a file that lie close together.
func (r *Reads) Read(ctx context.Context, pieces []Piece, use func(i int, data []byte)) error {
	list := r.plan(pieces, min(r.Gap, sparseGap))
	return r.Each(len(list), func(k int) error {
		s := &list[k]
		data, err := r.read(ctx, s.file, s.Extent)
		if err != nil {
			return err
		}
		for _, i := range s.pieces {
			p := &pieces[i]
			use(i, data[p.Offset-s.Offset:][:p.Length])
		}
		return nil
	})
}

// planned is one read of several pieces.
type planned struct {
	file *File
	Extent
	pieces []int // their numbers
}

// plan joins pieces of a file that lie at most gap bytes apart, up to the size that the storage
// serves well. Files come in the order of their first pieces.
func (r *Reads) plan(pieces []Piece, gap int64) (list []planned) {
	files, order := map[*File]int{}, make([]int, len(pieces))
	for i := range pieces {
		if _, known := files[pieces[i].File]; !known {
			files[pieces[i].File] = i
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		p, q := &pieces[a], &pieces[b]
		return cmp.Or(cmp.Compare(files[p.File], files[q.File]), cmp.Compare(p.Offset, q.Offset))
	})
	for _, i := range order {
		p := &pieces[i]
		if n := len(list); n > 0 && list[n-1].file == p.File {
			last := &list[n-1]
			length := max(last.end(), p.end()) - last.Offset
			if p.Offset <= last.end()+gap && length <= max(r.Size, last.Length) {
				last.Length, last.pieces = length, append(last.pieces, i)
				continue
			}
		}
		list = append(list, planned{p.File, p.Extent, []int{i}})
	}
	return list
}

// read reads a range, when fewer than AtOnce others are being read. Errors name the file.
func (r *Reads) read(ctx context.Context, f *File, e Extent) ([]byte, error) {
	if err := r.slots.Acquire(ctx, 1); err != nil {
		return nil, blob.ReadError(f.Name(), err)
	}
	defer r.slots.Release(1)
	data := make([]byte, e.Length)
	err := blob.ReadFull(ctx, f.Blob, data, e.Offset)
	if err != nil && ctx.Err() != nil {
		return nil, blob.ReadError(f.Name(), ctx.Err())
	}
	return data, f.explain(err)
}
