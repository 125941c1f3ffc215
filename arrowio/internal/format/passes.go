package format

import (
	"context"
	"slices"
	"sync"

	"github.com/meshfeed/meshfeed/arrowio/internal/buffers"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// maxWaiting bounds the bytes of columns that were decoded together with another column, and that
// no call has asked for yet.
const maxWaiting = 128 << 20

// Passes decode units of a format that stores rows and not columns: each unit once for all of its
// columns. The caller keeps a column that it has taken, so the pass forgets it.
type Passes struct {
	// Decode decodes all columns of a unit.
	Decode func(ctx context.Context, unit int) ([]*buffers.Decoded, error)

	mu    sync.Mutex
	list  []*pass // the oldest first
	bytes int64   // of the columns that wait
}

// pass is the decoding of a unit. The lock of the passes guards its columns.
type pass struct {
	unit    int
	done    chan struct{}
	columns []*buffers.Decoded // nil before the end of the decoding; an element is nil once it is taken
	err     error              // read after done
}

// Column returns a column of a unit. It decodes the unit unless another call has done so or is doing
// so. If lists is true, it leaves out the values, and a later call may take them.
func (p *Passes) Column(ctx context.Context, unit, column int, lists bool) (*buffers.Decoded, error) {
	for {
		of, added := p.find(unit, column)
		if added {
			p.run(ctx, of)
		}
		select {
		case <-of.done:
		case <-ctx.Done():
			return nil, status.Ended("arrowio", "the gather", ctx.Err())
		}
		if of.err != nil {
			return nil, of.err
		}
		if out := p.take(of, column, lists); out != nil {
			return out, nil
		}
	}
}

// find returns a pass that has a column of a unit or will have it. Added reports that it is new, so
// that the caller has to run it.
func (p *Passes) find(unit, column int) (of *pass, added bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, of := range p.list {
		if of.unit == unit && (of.columns == nil || of.columns[column] != nil) {
			return of, false
		}
	}
	of = &pass{unit: unit, done: make(chan struct{})}
	p.list = append(p.list, of)
	return of, true
}

// run decodes the unit of a pass. Older passes make room for its columns.
func (p *Passes) run(ctx context.Context, of *pass) {
	var columns []*buffers.Decoded
	err := guard.Call("arrowio", func() (err error) {
		columns, err = p.Decode(ctx, of.unit)
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(of.done)
	if of.err = err; err != nil {
		p.drop(of)
		return
	}
	of.columns = columns
	p.bytes += of.bytes()
	for _, old := range slices.Clone(p.list) {
		if p.bytes > maxWaiting && old != of && old.columns != nil {
			p.drop(old)
		}
	}
}

// take removes a column from a pass, and the pass with its last column. It returns nil if another
// call took the column.
func (p *Passes) take(of *pass, column int, lists bool) *buffers.Decoded {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := of.columns[column]
	switch {
	case out == nil:
		return nil
	case lists:
		return withoutValues(out)
	}
	of.columns[column] = nil
	if slices.Contains(p.list, of) {
		p.bytes -= out.Bytes
		if of.bytes() == 0 {
			p.drop(of)
		}
	}
	return out
}

// drop forgets a pass. The caller holds the lock.
func (p *Passes) drop(of *pass) {
	p.bytes -= of.bytes()
	p.list = slices.DeleteFunc(p.list, func(other *pass) bool { return other == of })
}

// bytes returns the bytes of the columns that wait.
func (of *pass) bytes() (total int64) {
	for _, c := range of.columns {
		if c != nil {
			total += c.Bytes
		}
	}
	return total
}

// withoutValues returns a column with its offsets and bitmaps alone.
func withoutValues(d *buffers.Decoded) *buffers.Decoded {
	levels := slices.Clone(d.Levels)
	values := &levels[len(levels)-1]
	bytes := d.Bytes - int64(len(values.Data))
	values.Data = nil
	return &buffers.Decoded{Levels: levels, Bytes: bytes, Unpacking: d.Unpacking}
}
