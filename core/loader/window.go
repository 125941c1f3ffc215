package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
)

// lookahead is the number of steps after the current one that are announced to the
// gatherer. So it can read the rows of several steps at once, in file order.
const lookahead = 4

// window holds the record lists of the step to be gathered and of the steps after
// it, in a ring of buffers.
type window struct {
	grid     grid
	until    int64 // Options.Epochs; steps of later epochs are not announced
	rows     rows
	order    sampler.Order
	seed     int64
	announce func(draw source.Draw, records []int64)

	steps [lookahead + 1]windowStep
	first int // the slot of the oldest step
	count int
	next  batch.Cursor // position of the step after the last

	epochs [2]windowEpoch // the epochs used last, by even and odd numbers
}

// windowEpoch is an epoch of the order.
type windowEpoch struct {
	number int64
	epoch  sampler.Epoch // nil without an epoch
}

type windowStep struct {
	cursor  batch.Cursor
	records []int64
}

// setOrder sets the order of the records. If it changes, the window is emptied.
func (w *window) setOrder(order sampler.Order) {
	if order != w.order {
		w.order, w.epochs, w.count = order, [2]windowEpoch{}, 0
	}
}

// at removes the oldest step and returns the records of the step at a cursor, valid
// until the next call. If that is not the next step in the window, the window is
// emptied and begins at the cursor.
func (w *window) at(c batch.Cursor) []int64 {
	if w.count > 0 {
		w.first = (w.first + 1) % len(w.steps)
		w.count--
	}
	if w.count == 0 || w.steps[w.first].cursor != c {
		w.count, w.next = 0, c
		w.add()
	}
	return w.steps[w.first].records
}

// extend computes and announces the records of at most two later steps. It runs
// between two batches, so it must not delay the next one much.
func (w *window) extend() {
	for n := 0; n < 2 && w.hasRoom(); n++ {
		draw := w.draw(w.next.Epoch)
		w.announce(draw, w.add())
	}
}

// draw returns the draw of all records of a step, which lies in one epoch.
func (w *window) draw(epoch int64) source.Draw { return source.Draw{Seed: w.seed, Epoch: epoch} }

func (w *window) hasRoom() bool {
	return w.count < len(w.steps) && (w.until <= 0 || w.next.Epoch < w.until)
}

// add computes the records of one more step.
func (w *window) add() []int64 {
	s := &w.steps[(w.first+w.count)%len(w.steps)]
	w.count++
	s.cursor = w.next
	if s.records == nil {
		s.records = make([]int64, w.rows.count)
	}
	w.fill(s.records, w.rows, s.cursor)
	w.next = w.grid.stepAt(s.cursor).After
	return s.records
}

// fill writes the record numbers of some rows of the step at c. Padding rows get -1.
func (w *window) fill(dst []int64, rows rows, c batch.Cursor) {
	epoch := w.inEpoch(c.Epoch)
	valid := int(w.grid.stepAt(c).Valid)
	for i, r := range rows.ranges {
		list := dst[rows.first[i]:][:r[1]-r[0]]
		n := min(max(valid-r[0], 0), len(list))
		if n > 0 {
			epoch.Fill(list[:n], c.Position+int64(r[0]))
		}
		for i := n; i < len(list); i++ {
			list[i] = padding
		}
	}
}

// inEpoch returns an epoch of the order.
func (w *window) inEpoch(number int64) sampler.Epoch {
	e := &w.epochs[number%2]
	if e.epoch == nil || e.number != number {
		*e = windowEpoch{number, w.order.Epoch(number)}
	}
	return e.epoch
}
