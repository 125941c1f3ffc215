package convert

import (
	"context"
	"errors"
	"io"

	"github.com/meshfeed/meshfeed/arrowio/internal/ipcfile"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/arrowmeta"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// folder is where files appear whole or not at all: local.Folder.
type folder interface {
	Has(name string) bool
	Create(name string) (file, error)
}

// file is one that is being written.
type file interface {
	io.Writer
	Commit() error
	Discard()
}

// ahead is how many windows may be read before they are written.
const ahead = 2

// writer writes the files of a part.
type writer struct {
	conversion
	windows *windows
	folder  folder
	fields  []field
	schema  arrowmeta.Schema
	part    *Part
}

// conversion is what a run converts.
type conversion struct {
	plan    plan
	records []int64 // by file
	names   []string
	total   int64 // records of all files of the part
	done    int64
	show    func(done, total int64)
}

// piece is a window of a file.
type piece struct {
	file   int
	window *window // nil for a file that is there already
	last   bool    // the last piece of its file
}

// run writes the files first to last-1, unless they are there.
func (w *writer) run(ctx context.Context, first, last int) error {
	ctx, cancel := context.WithCancel(ctx)
	pieces, ended := make(chan piece, ahead-1), make(chan error, 1)
	guard.Go("convert", func() error {
		defer close(pieces)
		w.read(ctx, first, last, pieces)
		ended <- nil
		return nil
	}, func(err error) { ended <- err })
	err := w.write(ctx, pieces)
	cancel()
	for p := range pieces { // no reader may be in use when they are closed
		if p.window != nil {
			p.window.end()
		}
	}
	if panicked := <-ended; panicked != nil {
		return panicked
	}
	return err
}

// read begins to read the windows of the files, in order.
func (w *writer) read(ctx context.Context, first, last int, pieces chan<- piece) {
	start := int64(0)
	for i, n := range w.records[:last] {
		if i < first {
			start += n
			continue
		}
		if w.folder.Has(w.names[i]) {
			pieces <- piece{file: i, last: true}
			start += n
			continue
		}
		stop := start + n
		sizes := w.plan.windows(start, stop)
		if len(sizes) == 0 {
			sizes = []int64{0}
		}
		for _, size := range sizes {
			p := piece{file: i, window: w.windows.begin(ctx, start, start+size), last: start+size == stop}
			start += size
			pieces <- p
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// write writes the windows that come.
func (w *writer) write(ctx context.Context, pieces <-chan piece) error {
	var out *output
	defer func() {
		if out != nil {
			out.file.Discard()
		}
	}()
	for p := range pieces {
		if p.window == nil {
			w.part.Present++
			w.progress(w.records[p.file])
			continue
		}
		if err := w.piece(ctx, p, &out); err != nil {
			return w.explain(err, out)
		}
	}
	return ctx.Err()
}

// piece writes a window. It creates the file before the first one, and ends it after the last.
func (w *writer) piece(ctx context.Context, p piece, out **output) (err error) {
	defer p.window.end()
	p.window.done.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	if *out == nil {
		if *out, err = w.create(p.file); err != nil {
			return err
		}
	}
	if err := w.put(ctx, *out, p.window); err != nil || !p.last {
		return err
	}
	if err := (*out).finish(); err != nil {
		return err
	}
	w.part.Written++
	w.part.Bytes += (*out).writer.Size()
	*out = nil
	return nil
}

// output is a file that is being written.
type output struct {
	file   file
	writer *ipcfile.Writer
	rows   int64
}

func (w *writer) create(i int) (*output, error) {
	f, err := w.folder.Create(w.names[i])
	if err != nil {
		return nil, err
	}
	out := &output{file: f}
	out.writer, err = ipcfile.New(f, &w.schema)
	return out, err
}

func (o *output) finish() error {
	if err := o.writer.Close(); err != nil {
		return err
	}
	return o.file.Commit()
}

// put writes the record batches of a window. If it takes too much memory, it reads and writes
// one half after the other.
func (w *writer) put(ctx context.Context, out *output, win *window) error {
	list, err := win.wait(w.fields)
	if errors.Is(err, errLarge) {
		win.columns = nil
		middle := win.start + (win.stop-win.start)/2
		if err := w.half(ctx, out, win, win.start, middle); err != nil {
			return err
		}
		return w.half(ctx, out, win, middle, win.stop)
	}
	if err != nil {
		return err
	}
	for _, b := range list {
		if err := out.writer.Write(b.rows, b.levels); err != nil {
			return err
		}
		out.rows += int64(b.rows)
		w.progress(int64(b.rows))
	}
	return nil
}

// half reads and writes a part of a window, in its place in the memory.
func (w *writer) half(ctx context.Context, out *output, of *window, start, stop int64) error {
	win := w.windows.read(ctx, start, stop)
	defer win.end()
	return w.put(ctx, out, win)
}

func (w *writer) progress(records int64) {
	if w.done += records; w.show != nil {
		w.show(w.done, w.total)
	}
}

// explain adds to the error of a full disk how much room is needed.
func (w *writer) explain(err error, out *output) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok || e.Attr("full") == nil {
		return err
	}
	rowBytes, left := float64(w.plan.rowBytes), w.total-w.done
	if out != nil && out.rows > 0 {
		rowBytes = float64(out.writer.Size()) / float64(out.rows)
		left += out.rows // the file is removed
	}
	return e.WithHint("what is left takes about %.0f MB: make room, then run the same command, which continues", rowBytes*float64(left)/1e6+1)
}
