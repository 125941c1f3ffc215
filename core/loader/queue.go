package loader

import "github.com/meshfeed/meshfeed/internal/guard"

// queue holds answers first in, first out. Its list is used again, so a steady
// loop allocates nothing.
type queue struct {
	list []answer
	head int
}

func (q *queue) len() int { return len(q.list) - q.head }

func (q *queue) push(a answer) {
	if q.head > 0 && len(q.list) == cap(q.list) {
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, a)
}

func (q *queue) pop() answer {
	a := q.list[q.head]
	q.list[q.head] = answer{} // the batch is its owner's alone
	if q.head++; q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return a
}

// discard gives back what nobody will get. A panic of the allocator has no
// caller here whose fault it could be.
func discard(a answer) {
	if a.batch != nil {
		_ = guard.Call("loader", func() error { a.batch.Release(); return nil })
	}
}
