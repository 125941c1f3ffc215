package gomlxfeed

import (
	"errors"
	"slices"
	"sync"

	"github.com/gomlx/compute"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Devices are the devices of one opened backend. All methods may be called from
// any goroutine.
//
// If a call into the backend panics, the error has code Internal. The state of
// the backend is then unknown, so every later call fails with InvalidState.
type Devices struct {
	facts   Facts
	backend compute.Backend
	calls   sync.WaitGroup // calls into the backend that have not returned
	meshes  meshes

	mu      sync.Mutex
	live    int64 // tensors placed by meshfeed and not freed
	bytes   int64 // bytes of all live tensors
	broken  error // the panic that broke the backend
	closed  bool
	drained bool               // closed, and all calls have returned
	rings   map[*Ring]struct{} // open rings; nil after Close
	ended   sync.Once
	endErr  error
}

// newDevices checks an opened backend and takes ownership of it.
func newDevices(s Spec, o Opened) (*Devices, error) {
	d := &Devices{backend: o.Backend, rings: map[*Ring]struct{}{}}
	err := d.call("describe the devices", func() error {
		d.facts = describe(o)
		return nil
	})
	if n := d.Num(); err == nil && n < 1 {
		err = status.Errorf(status.Incompatible, "gomlxfeed", "%q has no devices", s)
	} else if err == nil && s.Devices > 0 && n != s.Devices {
		err = status.Errorf(status.Incompatible, "gomlxfeed", "%q has %d devices instead of %d", s, n, s.Devices).
			WithHint("ask for devices=%d, or omit it", n)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func describe(o Opened) Facts {
	f := Facts{Name: o.Name, Platform: o.Platform, API: o.API, Shared: o.Backend.HasSharedBuffers(), DTypes: o.DTypes}
	if f.DTypes == nil {
		f.DTypes = dtype.All()
	}
	for i := range o.Backend.NumDevices() {
		f.Devices = append(f.Devices, o.Backend.DeviceDescription(compute.DeviceNum(i)))
	}
	return f
}

// Name returns the kind of backend: "go", "virtual", "xla-cpu", "xla-cuda" or
// "xla-tpu".
func (d *Devices) Name() string { return d.facts.Name }

// Num returns the number of devices, at least 1. They are numbered from 0.
func (d *Devices) Num() int { return len(d.facts.Devices) }

// Shared reports whether the host can write a buffer's memory directly. Then blocks
// are gathered into buffers of devices, and copied only to their other holders.
func (d *Devices) Shared() bool { return d.facts.Shared }

// Facts describes the backend.
func (d *Devices) Facts() Facts {
	f := d.facts
	f.Devices, f.DTypes = slices.Clone(f.Devices), slices.Clone(f.DTypes)
	return f
}

// Describe returns the backend's description of device i, or "" for an unknown device.
func (d *Devices) Describe(i int) string {
	if i < 0 || i >= d.Num() {
		return ""
	}
	return d.facts.Devices[i]
}

// Backend returns the backend, for graph.NewExec and train.NewTrainer, or nil
// after Close. d owns it: do not finalize it.
func (d *Devices) Backend() compute.Backend {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	return d.backend
}

// Live returns the number and the bytes of the buffers that meshfeed placed and
// did not free. Buffers that a trainer took over are not counted.
func (d *Devices) Live() (buffers, bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live, d.bytes
}

// count adds to the numbers of Live. For a new tensor, count must run within the call
// that created the tensor. Close waits for that call, and then sees the tensor.
func (d *Devices) count(buffers int64, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live += buffers
	d.bytes += int64(bytes)
}

// forget subtracts a tensor that was freed or handed over from the numbers of Live. If
// it is the last one and the devices are closed, forget finalizes the backend.
func (d *Devices) forget(bytes int) error {
	d.count(-1, -bytes)
	return d.endIfIdle()
}

// Close frees the idle buffers of all rings. Every later call fails with
// InvalidState. Batches in use stay valid until they are released. The release of the
// last one finalizes the backend. Graphs and trainers must no longer use the backend
// when Close is called. A second Close does nothing.
func (d *Devices) Close() error {
	d.mu.Lock()
	rings := d.rings
	d.closed, d.rings = true, nil
	d.mu.Unlock()
	for r := range rings {
		r.drain()
	}
	d.calls.Wait()
	d.mu.Lock()
	d.drained = true
	d.mu.Unlock()
	return d.endIfIdle()
}

// endIfIdle finalizes the backend if Close has waited for all calls and no buffer
// of meshfeed is left.
func (d *Devices) endIfIdle() error {
	d.mu.Lock()
	idle := d.drained && d.live == 0
	d.mu.Unlock()
	if !idle {
		return nil
	}
	d.ended.Do(func() { d.endErr = d.end() })
	return d.endErr
}

func (d *Devices) end() error {
	return d.reword("close", guard.Call("gomlxfeed", func() error {
		d.backend.Finalize()
		return nil
	}))
}

// addRing registers a ring for Close to drain. After Close it returns an error.
func (d *Devices) addRing(r *Ring) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return d.closedError("allocate")
	}
	d.rings[r] = struct{}{}
	return nil
}

func (d *Devices) removeRing(r *Ring) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rings, r)
}
