package gomlxfeed

import (
	"slices"
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/status"
)

// Batch is a global batch on devices. It has one owner, who releases it, so
// that its memory serves a later batch, or takes its tensors away for good.
// All methods may be called from any goroutine; but a tensor that was fetched
// before Release must not be used after it.
type Batch struct {
	plan  *plan
	place batch.Place

	mu     sync.Mutex
	memory *memory // nil when released or taken
}

func newBatch(m *memory, at batch.Place) *Batch {
	return &Batch{plan: m.ring.plan, place: at, memory: m}
}

// Place says which batch of the run this is.
func (b *Batch) Place() batch.Place { return b.place }

// Names lists the arrays, in the layout's order.
func (b *Batch) Names() []string { return b.plan.names() }

// Tensors gives the arrays, in the layout's order: each a dtensor whose shard i
// is on the device at position i of the mesh. They belong to the batch: pass
// them to an Exec, and do not finalize them. It gives nil for a batch that was
// released or taken.
func (b *Batch) Tensors() []*dtensor.Tensor {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return nil
	}
	return slices.Clone(b.memory.slot.arrays)
}

// Tensor gives an array by its name, as Tensors does; nil if there is none.
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
		return b.memory.ring.d.read(s.shards[array][position], dst)
	})
}

// Bytes gives the memory of the shard at a position of the mesh, which is valid
// until Release and must not be changed. It is Unsupported where the devices'
// memory is not shared; Read works there.
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

// with runs do for one shard while the batch is not released.
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
		return gone()
	}
	return do(b.memory.slot, i)
}

// Hold keeps the memory of the batch from serving another, also beyond Release,
// until the function that it gives is called: for whoever hands out addresses,
// as DLPack does. Calling that function again does nothing.
func (b *Batch) Hold() (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return nil, gone()
	}
	m := b.memory
	m.holds.Add(1)
	return sync.OnceFunc(m.leave), nil
}

// Release gives the memory back. Releasing a batch again, or one that was
// taken, does nothing.
func (b *Batch) Release() {
	b.mu.Lock()
	m := b.memory
	b.memory = nil
	b.mu.Unlock()
	if m != nil {
		m.Free()
	}
}

// Take moves the tensors out of the batch, in the layout's order: from now on
// the caller owns them and finalizes each of them, as GoMLX's trainer does with
// what it is given. They leave the ring and the devices' count. The batch is
// then as good as released. The error is InvalidState where it was released or
// taken before, or is held.
func (b *Batch) Take() ([]*dtensor.Tensor, error) {
	return b.take(b.plan.all())
}

// take moves out some of the arrays, by number, and frees the others.
func (b *Batch) take(arrays []int) ([]*dtensor.Tensor, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.memory == nil {
		return nil, gone()
	}
	if b.memory.holds.Load() > 1 {
		return nil, status.New(status.InvalidState, "gomlxfeed", "the batch is held, so its tensors cannot be taken").
			WithHint("end what Hold began first")
	}
	m := b.memory
	b.memory = nil
	return m.take(arrays)
}

// take ends the memory: it is the one hold left. The slot is used up.
func (m *memory) take(arrays []int) ([]*dtensor.Tensor, error) {
	m.freed.Store(true)
	m.ring.count(-1)
	defer m.slot.drop(m.ring.d)
	list := make([]*dtensor.Tensor, len(arrays))
	for i, array := range arrays {
		list[i] = m.slot.arrays[array]
		if err := m.handOver(array); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// handOver makes the shards of an array somebody else's.
func (m *memory) handOver(array int) error {
	shards := m.slot.shards[array]
	for i, t := range shards {
		if err := m.ring.d.disown(t); err != nil {
			return err
		}
		shards[i] = (*tensors.Tensor)(nil)
	}
	return nil
}

func gone() error {
	return status.New(status.InvalidState, "gomlxfeed", "this batch was released or taken before").
		WithHint("a batch has one owner: release it or take its tensors, once")
}

func noArray(p *plan, name string) error {
	return status.Errorf(status.NotFound, "gomlxfeed", "the batch has no array %q", name).WithHint("it has %q", p.names())
}
