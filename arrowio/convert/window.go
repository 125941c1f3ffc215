package convert

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/internal/columns"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// errLarge is the error of a window that takes too much memory.
var errLarge = errors.New("the window takes more memory than expected")

// batch holds the levels of some rows, by column.
type batch struct {
	rows   int
	levels [][]columns.Level
}

// windows reads windows. One goroutine reads a column of a window from its first row to its
// last, so that each unit is decoded once. Columns are read at the same time. Computed columns are
// read together, so that each record is computed once.
type windows struct {
	readers []*columns.Reader // one for each field, or one for all if some are computed
	weights []int64           // by reader: bytes of its largest unit; measured as they are read
	batch   int64             // rows of a record batch
	most    int64             // bytes of all windows
	unit    int64             // rows of the largest unit

	workers chan struct{}
	memory  *semaphore.Weighted // the windows that are read or written must fit into it
	row     int64               // bytes of a row, as measured so far
	room    int64               // bytes of the cache of decoded units
	cache   *semaphore.Weighted // the units of the columns that are being read must fit into it
	mu      sync.Mutex          // guards weights and row
}

// newWindows returns a reader of some fields of a source.
func newWindows(src source.Source, p plan) (*windows, error) {
	w := &windows{batch: p.batchRows(), most: p.most, room: math.MaxInt64, workers: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if bytes := source.CacheOf(src); bytes > 0 {
		w.room = bytes
	}
	w.cache, w.memory, w.row = semaphore.NewWeighted(w.room), semaphore.NewWeighted(p.most), p.rowBytes
	for _, n := range p.units {
		w.unit = max(w.unit, n)
	}
	fields := src.Schema().Fields
	groups := make([][]int, len(fields))
	for number := range fields {
		groups[number] = []int{number}
	}
	if slices.ContainsFunc(fields, func(f source.Field) bool { return f.Mapped }) {
		groups = [][]int{slices.Concat(groups...)}
	}
	for _, numbers := range groups {
		r, err := columns.New(plain{src}, numbers, columns.Options{})
		if err != nil {
			return nil, cmp.Or(err, w.close())
		}
		w.readers = append(w.readers, r)
		w.weights = append(w.weights, w.unit*max(p.rowBytes/int64(len(groups)), int64(r.RowBytes())))
	}
	return w, nil
}

// close closes the readers. No window may be in progress.
func (w *windows) close() (err error) {
	for _, r := range w.readers {
		err = cmp.Or(r.Close(), err)
	}
	return err
}

// window is a run of records that is being read.
type window struct {
	*windows
	start, stop int64
	step        int64 // rows of a record batch
	reserved    int64 // bytes of memory
	columns     [][]*columns.Batch
	done        sync.WaitGroup

	mu    sync.Mutex
	bytes int64
	err   error
}

// begin begins to read a window. It returns once every column has begun. The caller calls end
// after the use of the window.
func (w *windows) begin(ctx context.Context, start, stop int64) *window {
	reserved := w.expected(stop - start)
	if err := w.memory.Acquire(ctx, reserved); err != nil {
		return &window{windows: w, start: start, stop: stop, err: err}
	}
	win := w.read(ctx, start, stop)
	win.reserved = reserved
	return win
}

// read begins to read a window that has memory already.
func (w *windows) read(ctx context.Context, start, stop int64) *window {
	win := &window{windows: w, start: start, stop: stop, step: max(1, min(w.batch, stop-start)), columns: make([][]*columns.Batch, len(w.readers))}
	for i := range w.readers {
		w.workers <- struct{}{}
		weight := w.weight(i)
		if err := w.cache.Acquire(ctx, weight); err != nil {
			<-w.workers
			win.fail(err)
			break
		}
		win.done.Add(1)
		end := func() {
			w.cache.Release(weight)
			<-w.workers
			win.done.Done()
		}
		guard.Go("convert", func() error {
			if err := win.column(ctx, i); err != nil {
				return err
			}
			end()
			return nil
		}, func(err error) {
			win.fail(err)
			end()
		})
	}
	return win
}

// end waits until nothing reads the window, and drops it.
func (w *window) end() {
	w.done.Wait()
	w.memory.Release(w.reserved)
	w.reserved, w.columns = 0, nil
}

// expected returns the bytes that some rows probably take.
func (w *windows) expected(rows int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(w.most, rows*w.row)
}

// weight returns the bytes that a unit of a column takes in the cache.
func (w *windows) weight(column int) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(w.room, w.weights[column])
}

// measure extrapolates the bytes of some rows of a column to its largest unit.
func (w *windows) measure(column int, bytes, rows int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.weights[column] = int64(float64(bytes) / float64(max(1, rows)) * float64(w.unit))
}

func (w *window) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = cmp.Or(w.err, err)
}

// add counts bytes. It returns the error of the window.
func (w *window) add(bytes int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes += bytes; w.bytes > w.most && w.stop-w.start > 1 {
		w.err = cmp.Or(w.err, errLarge)
	}
	return w.err
}

// column reads a column.
func (w *window) column(ctx context.Context, i int) error {
	total := int64(0)
	records := make([]int64, 0, w.step)
	for start := w.start; start < w.stop || start == w.start; start += w.step {
		records = records[:0]
		for r := start; r < min(start+w.step, w.stop); r++ {
			records = append(records, r)
		}
		b, err := w.readers[i].Read(ctx, records, 0)
		if err != nil {
			return err
		}
		w.columns[i] = append(w.columns[i], b)
		bytes := sizeOf(b)
		total += bytes
		if err := w.add(bytes); err != nil {
			return err
		}
		if b.Rows < len(records) { // offsets of 32 bits have no room for more rows
			return errLarge
		}
	}
	w.measure(i, total, w.stop-w.start)
	return nil
}

func sizeOf(b *columns.Batch) (bytes int64) {
	for _, c := range b.Columns {
		for _, l := range c.Levels {
			bytes += int64(len(l.Validity) + len(l.Offsets) + len(l.Data))
		}
	}
	return bytes
}

// wait waits until the window is read, and returns its record batches.
func (w *window) wait(fields []field) ([]batch, error) {
	w.done.Wait()
	if w.err != nil {
		return nil, w.err
	}
	w.windows.mu.Lock()
	w.row = max(w.row, w.bytes/max(1, w.stop-w.start))
	w.windows.mu.Unlock()
	var list []batch
	for k, first := range w.columns[0] {
		b := batch{rows: first.Rows}
		for i := range w.columns {
			for _, column := range w.columns[i][k].Columns {
				b.levels = append(b.levels, fields[len(b.levels)].levels(column.Levels))
			}
		}
		list = append(list, b)
	}
	return list, nil
}
