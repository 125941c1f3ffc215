// Package handle names objects by numbers that a foreign program may keep.
//
// No number is used twice. A released handle therefore stays invalid, and a
// program that keeps one gets an error instead of another object.
//
// A call pins the handle of the object that it uses. [Table.Release] refuses
// new pins, cancels the context of the existing ones, and waits until they end
// before it closes the object.
package handle

import (
	"context"
	"sync"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/status"
)

// Table holds objects by handle. The zero value is ready to use. It is safe
// for concurrent use.
type Table struct {
	mu      sync.Mutex
	entries map[uint64]*Entry
	created uint64        // handles so far
	pins    int           // pins of all entries, including released ones
	idle    chan struct{} // closed when pins is 0; nil if no caller waits for it
}

// first is the first handle. It is large, so that a number that is not a handle
// is unlikely to name an object.
const first = 1 << 32

// Entry is an object with a handle.
type Entry struct {
	Object Object

	// Context ends when the handle is cancelled or released.
	Context context.Context

	table    *Table
	cancel   context.CancelCauseFunc
	pins     int
	released bool
	unused   chan struct{} // closed when released and pins is 0
}

// Object is a Go object that a C caller refers to by a handle.
type Object interface {
	// Patience returns how long a release waits for calls that use the object;
	// negative is without limit. After that time the object is closed in the
	// background, when the last of these calls returns.
	Patience() time.Duration

	// Close ends the object. No call uses it any more.
	Close() error
}

var errReleased = status.New(status.Cancelled, "handle", "the handle was released or cancelled during the call")

// Put adds an object and returns its handle, which is never 0.
func (t *Table) Put(o Object) uint64 {
	ctx, cancel := context.WithCancelCause(context.Background())
	e := &Entry{Object: o, Context: ctx, table: t, cancel: cancel, unused: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.entries == nil {
		t.entries = map[uint64]*Entry{}
	}
	h := first + t.created
	t.created++
	t.entries[h] = e
	return h
}

// find returns the entry of a handle. The caller holds the lock.
func (t *Table) find(h uint64) (*Entry, error) {
	if e, ok := t.entries[h]; ok {
		return e, nil
	}
	if h == 0 {
		return nil, status.New(status.InvalidState, "handle", "0 is not a handle").
			WithHint("check the outcome of the call that should have made it")
	}
	return nil, status.Errorf(status.InvalidState, "handle", "there is no object under handle %#x", h).
		WithHint("it was released, or it did not come from this library")
}

// Pin finds an object and keeps it until Unpin.
func (t *Table) Pin(h uint64) (*Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(h)
	if err != nil {
		return nil, err
	}
	e.pins++
	t.pins++
	return e, nil
}

// Unpin ends a Pin.
func (e *Entry) Unpin() {
	e.table.mu.Lock()
	defer e.table.mu.Unlock()
	e.pins--
	if e.pins == 0 && e.released {
		close(e.unused)
	}
	e.table.pins--
	if e.table.pins == 0 && e.table.idle != nil {
		close(e.table.idle)
		e.table.idle = nil
	}
}

// Cancel ends the context of a handle, which stays valid.
func (t *Table) Cancel(h uint64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(h)
	if err == nil {
		e.cancel(errReleased)
	}
	return err
}

// CancelAll ends the contexts of all handles, and returns their objects.
func (t *Table) CancelAll() []Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Object
	for _, e := range t.entries {
		e.cancel(errReleased)
		all = append(all, e.Object)
	}
	return all
}

// Idle waits until no object is pinned, or ctx ends.
func (t *Table) Idle(ctx context.Context) {
	t.mu.Lock()
	if t.pins == 0 {
		t.mu.Unlock()
		return
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// Release removes a handle and closes its object when no call uses it. It reports whether
// there was such a handle. The error may come from Close.
func (t *Table) Release(h uint64) (gone bool, err error) {
	e, err := t.remove(h)
	if err != nil {
		return false, err
	}
	return true, future.After(e.unused, e.Object.Patience(), e.Object.Close)
}

// remove makes a handle invalid.
func (t *Table) remove(h uint64) (*Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, err := t.find(h)
	if err != nil {
		return nil, err
	}
	delete(t.entries, h)
	e.cancel(errReleased)
	e.released = true
	if e.pins == 0 {
		close(e.unused)
	}
	return e, nil
}
