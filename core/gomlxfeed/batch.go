package gomlxfeed

import (
	"slices"
	"sync"

	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
)

// Batch is a global batch on devices. It has one owner. The owner either calls
// Release, and a later batch reuses the memory, or Take, and keeps the tensors.
// All methods may be called from any goroutine. A tensor that was fetched before
// Release must not be used after it.
type Batch struct {
	plan *plan
	step batch.Step

	mu     sync.Mutex
	memory *memory // nil after Release or Take
}

func newBatch(m *memory, at batch.Step) *Batch {
	return &Batch{plan: m.ring.plan, step: at, memory: m}
}

// Step returns the step of the run that the batch belongs to.
func (b *Batch) Step() batch.Step { return b.step }

// Names lists the arrays, in the layout's order.
func (b *Batch) Names() []string { return b.plan.names() }

// Tensors returns the arrays in the layout's order. Each is a dtensor with shard i on the
// device at position i of the mesh. The batch owns them: pass them to an Exec, and do not
// finalize them. After Release or Take it returns nil.
func (b *Batch) Tensors() []*dtensor.Tensor {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return nil
	}
	return slices.Clone(b.memory.slot.arrays)
}

// Tensor returns the array with a name, as Tensors does, or nil.
func (b *Batch) Tensor(name string) *dtensor.Tensor {
	i, ok := b.plan.find(name)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ok || b.memory == nil {
		return nil
	}
	return b.memory.slot.arrays[i]
}

// Read copies the shard at a position of the mesh back to the host: exactly
// len(dst) bytes, in C order.
func (b *Batch) Read(name string, position int, dst []byte) error {
	return b.with(name, position, func(s *slot, array int) error {
		if size := b.plan.arrays[array].bytes; len(dst) != size {
			return fail("cannot read a tensor of %d bytes into %d", size, len(dst))
		}
		return b.memory.ring.d.read(s.shards[array][position], dst)
	})
}

// Bytes returns the memory of the shard at a position of the mesh. The memory is
// valid until Release and must not be changed. If the devices' memory is not
// shared, the error is Unsupported; use Read.
func (b *Batch) Bytes(name string, position int) (bytes []byte, err error) {
	err = b.with(name, position, func(s *slot, array int) error {
		if s.memory == nil {
			return unsupported("the memory of %s is not shared", b.memory.ring.d.Name()).WithHint("read the shard, which copies it")
		}
		bytes = s.memory[array][position]
		return nil
	})
	return bytes, err
}

// with runs do for one shard, under the lock that keeps the batch from being
// released.
func (b *Batch) with(name string, position int, do func(s *slot, array int) error) error {
	i, ok := b.plan.find(name)
	if !ok {
		return noArray(b.plan, name)
	}
	if n := len(b.plan.assignment); position < 0 || position >= n {
		return status.Errorf(status.OutOfRange, "gomlxfeed", "there is no position %d in a mesh of %d devices", position, n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return errReleased()
	}
	return do(b.memory.slot, i)
}

// Hold prevents the reuse of the batch's memory until the returned function is
// called, even after Release. A caller that exports addresses, for example through
// DLPack, needs it. A second call of the function does nothing.
func (b *Batch) Hold() (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return nil, errReleased()
	}
	m := b.memory
	m.holds.Add(1)
	return sync.OnceFunc(m.unhold), nil
}

// Release returns the memory to the [Ring]. After Release or Take it does nothing.
func (b *Batch) Release() {
	b.mu.Lock()
	m := b.memory
	b.memory = nil
	b.mu.Unlock()
	if m != nil {
		m.Free()
	}
}

// Take moves the tensors out of the batch, in the layout's order. The caller owns
// them from now on and finalizes each of them, as GoMLX's trainer does with its
// inputs. The ring does not reuse them, and Live does not count them. Afterwards
// the batch counts as released. The error is InvalidState if the batch was
// released or taken before, or is held.
func (b *Batch) Take() ([]*dtensor.Tensor, error) {
	return b.take(b.plan.all())
}

// take moves out the arrays with these numbers and frees the others.
func (b *Batch) take(arrays []int) ([]*dtensor.Tensor, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return nil, errReleased()
	}
	if b.memory.holds.Load() > 1 {
		return nil, status.New(status.InvalidState, "gomlxfeed", "the batch is held, so its tensors cannot be taken").
			WithHint("call the function that Hold returned first")
	}
	m := b.memory
	b.memory = nil
	return m.take(arrays)
}

// take moves arrays out of the slot, which is not reused. The caller makes sure
// that no other hold exists.
func (m *memory) take(arrays []int) ([]*dtensor.Tensor, error) {
	m.freed.Store(true)
	m.ring.batches.Add(-1)
	defer m.slot.drop(m.ring.d)
	list := make([]*dtensor.Tensor, len(arrays))
	for i, array := range arrays {
		list[i] = m.slot.arrays[array]
		for position := range m.slot.shards[array] {
			m.slot.shards[array][position] = nil // drop does not free it
			if err := m.ring.d.forget(m.ring.plan.arrays[array].bytes); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

func errReleased() error {
	return status.New(status.InvalidState, "gomlxfeed", "this batch was released or taken before").
		WithHint("a batch has one owner: release it or take its tensors, once")
}

func noArray(p *plan, name string) error {
	return status.Errorf(status.NotFound, "gomlxfeed", "the batch has no array %q", name).WithHint("it has %q", p.names())
}
