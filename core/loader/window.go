package loader

import (
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/sampler"
)

// lookahead is how many steps beyond the one being gathered are announced to
// the gatherer, so that it can read rows in the order in which they lie. A
// read that waits for a disk then waits for several steps at once.
const lookahead = 4

// window holds the record lists of the step to be gathered and of the next
// ones. Its buffers go round, so it allocates nothing once it is full.
type window struct {
	grid     grid
	until    int64 // Options.Epochs: nothing is announced beyond
	rows     rows
	order    sampler.Order
	announce func(records []int64)

	steps [lookahead + 1]windowStep
	first int // the slot of the oldest step
	count int
	next  batch.Cursor // of the step behind the last one

	epoch  int64 // of keeper
	keeper sampler.Epoch
}

type windowStep struct {
	cursor  batch.Cursor
	records []int64
}

// follow takes records of another order from now on.
func (w *window) follow(order sampler.Order) {
	if order != w.order {
		w.order, w.keeper, w.count = order, nil, 0
	}
}

// at gives the records of the step at a settled cursor, valid until the next
// call. A cursor that does not follow the one before it starts afresh.
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

// extend computes the records of later steps and announces them. It is called
// behind a batch, when nobody waits for it, and grows the window slowly, since
// the next batch is wanted soon.
func (w *window) extend() {
	for n := 0; n < 2 && w.room(); n++ {
		w.announce(w.add())
	}
}

func (w *window) room() bool {
	return w.count < len(w.steps) && (w.until <= 0 || w.next.Epoch < w.until)
}

// add computes one more step.
func (w *window) add() []int64 {
	s := &w.steps[(w.first+w.count)%len(w.steps)]
	w.count++
	s.cursor = w.next
	if s.records == nil {
		s.records = make([]int64, w.rows.count)
	}
	w.fill(s.records, w.rows, s.cursor)
	w.next = w.grid.place(s.cursor).After
	return s.records
}

// fill writes the records of some rows of a step; -1 for padding.
func (w *window) fill(dst []int64, rows rows, c batch.Cursor) {
	if w.keeper == nil || w.epoch != c.Epoch {
		w.epoch, w.keeper = c.Epoch, w.order.Epoch(c.Epoch)
	}
	valid := int(w.grid.place(c).Valid)
	for i, r := range rows.ranges {
		list := dst[rows.first[i]:][:r[1]-r[0]]
		n := min(max(valid-r[0], 0), len(list))
		if n > 0 {
			w.keeper.Fill(list[:n], c.Position+int64(r[0]))
		}
		for i := range list[n:] {
			list[n+i] = padding
		}
	}
}
