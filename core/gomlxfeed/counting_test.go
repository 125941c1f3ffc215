package gomlxfeed

import (
	"errors"
	"sync"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/gomlxfeed/internal/virtual"
)

// countingBackend is a backend of virtual devices that keeps its own count of live
// buffers. A test can set the answer of HasSharedBuffers, and can make the call
// numbered failAt return an error or panic.
type countingBackend struct {
	compute.Backend
	shared bool

	mu         sync.Mutex
	live       int
	copied     int // bytes copied from host memory
	misaligned int // arrays at addresses that are not aligned for their elements
	calls      int
	failAt     int // 0: never
	panics     bool
}

func newCountingBackend(t testing.TB, devices int, shared bool) (*countingBackend, *Devices) {
	t.Helper()
	inner, err := virtual.New(devices)
	if err != nil {
		t.Fatal(err)
	}
	counts := &countingBackend{Backend: inner, shared: shared}
	d, err := newDevices(Spec{}, Opened{Name: "counting", Backend: counts})
	if err != nil {
		t.Fatal(err)
	}
	return counts, d
}

func (c *countingBackend) HasSharedBuffers() bool { return c.shared }

var errCounting = errors.New("the backend fails")

// call counts a call that creates a buffer, and fails if its number is failAt.
func (c *countingBackend) call() error {
	c.mu.Lock()
	c.calls++
	fails := c.calls == c.failAt
	c.mu.Unlock()
	if fails && c.panics {
		panic("the backend panics")
	}
	if fails {
		return errCounting
	}
	return nil
}

func (c *countingBackend) add(live, copied int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live += live
	c.copied += copied
}

// checkAddress counts data at addresses that are not multiples of the element size.
func (c *countingBackend) checkAddress(data []byte, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(size) != 0 {
		c.misaligned++
	}
}

// alive returns the number of buffers that were created and not finalized.
func (c *countingBackend) alive() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

func (c *countingBackend) BufferFromFlatData(d compute.DeviceNum, flat any, s shapes.Shape) (compute.Buffer, error) {
	if err := c.call(); err != nil {
		return nil, err
	}
	if flat == nil { // GoMLX passes nil for an empty array; XLA accepts it, the pure-Go backend does not
		flat = dtypes.MakeAnySlice(s.DType, 0)
	}
	b, err := c.Backend.BufferFromFlatData(d, flat, s)
	if err != nil {
		return nil, err
	}
	c.add(1, int(s.ByteSize()))
	c.checkAddress(dtypes.UnsafeByteSliceFromAny(flat), min(s.DType.Size(), 8)) // complex128 is aligned to 8 bytes
	return &countedBuffer{b, c}, nil
}

func (c *countingBackend) NewSharedBuffer(d compute.DeviceNum, s shapes.Shape) (compute.Buffer, any, error) {
	if err := c.call(); err != nil {
		return nil, nil, err
	}
	b, flat, err := c.Backend.NewSharedBuffer(d, s)
	if err != nil {
		return nil, nil, err
	}
	c.add(1, 0)
	return &countedBuffer{b, c}, flat, nil
}

// countedBuffer is a buffer of a countingBackend.
type countedBuffer struct {
	compute.Buffer
	counts *countingBackend
}

func (b *countedBuffer) Backend() compute.Backend { return b.counts }

func (b *countedBuffer) Finalize() error {
	b.counts.add(-1, 0)
	return b.Buffer.Finalize()
}

// nothingLives checks that both counts of live buffers are zero.
func (c *countingBackend) nothingLives(t *testing.T, d *Devices) {
	t.Helper()
	if n, bytes := d.Live(); n != 0 || bytes != 0 {
		t.Errorf("%d buffers of %d bytes are live", n, bytes)
	}
	if n := c.alive(); n != 0 {
		t.Errorf("the backend has %d live buffers", n)
	}
}
