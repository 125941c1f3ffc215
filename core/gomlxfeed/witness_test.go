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

// witness is a backend of virtual devices that keeps its own count of live
// buffers. A test can make its memory count as not shared, and can make the call
// with the number failAt fail or panic.
type witness struct {
	compute.Backend
	shared bool

	mu     sync.Mutex
	live   int
	copied int // bytes that came in from the host
	odd    int // arrays at addresses that are not aligned for their elements
	calls  int
	failAt int // 0: never
	panics bool
}

func newWitness(t testing.TB, devices int, shared bool) (*witness, *Devices) {
	t.Helper()
	inner, err := virtual.New(devices)
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{Backend: inner, shared: shared}
	d, err := newDevices(Spec{}, Opened{Name: "witness", Backend: w})
	if err != nil {
		t.Fatal(err)
	}
	return w, d
}

func (w *witness) HasSharedBuffers() bool { return w.shared }

var errWitness = errors.New("the witness fails")

// call counts a call.
func (w *witness) call() error {
	w.mu.Lock()
	w.calls++
	fails := w.calls == w.failAt
	w.mu.Unlock()
	if fails && w.panics {
		panic("the witness panics")
	}
	if fails {
		return errWitness
	}
	return nil
}

func (w *witness) add(live, copied int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live += live
	w.copied += copied
}

// look counts data whose address is not a multiple of the element size.
func (w *witness) look(data []byte, size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(size) != 0 {
		w.odd++
	}
}

// alive returns the number of buffers that were created and not finalized.
func (w *witness) alive() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live
}

func (w *witness) BufferFromFlatData(d compute.DeviceNum, flat any, s shapes.Shape) (compute.Buffer, error) {
	if err := w.call(); err != nil {
		return nil, err
	}
	if flat == nil { // GoMLX passes nil for an empty array; XLA accepts it, the pure-Go backend does not
		flat = dtypes.MakeAnySlice(s.DType, 0)
	}
	b, err := w.Backend.BufferFromFlatData(d, flat, s)
	if err != nil {
		return nil, err
	}
	w.add(1, int(s.ByteSize()))
	w.look(dtypes.UnsafeByteSliceFromAny(flat), min(s.DType.Size(), 8))
	return &witnessed{b, w}, nil
}

func (w *witness) NewSharedBuffer(d compute.DeviceNum, s shapes.Shape) (compute.Buffer, any, error) {
	if err := w.call(); err != nil {
		return nil, nil, err
	}
	b, flat, err := w.Backend.NewSharedBuffer(d, s)
	if err != nil {
		return nil, nil, err
	}
	w.add(1, 0)
	return &witnessed{b, w}, flat, nil
}

// witnessed is a buffer that is counted.
type witnessed struct {
	compute.Buffer
	w *witness
}

func (b *witnessed) Backend() compute.Backend { return b.w }

func (b *witnessed) Finalize() error {
	b.w.add(-1, 0)
	return b.Buffer.Finalize()
}

// nothingLives checks that both counts of live buffers are zero.
func (w *witness) nothingLives(t *testing.T, d *Devices) {
	t.Helper()
	if n, bytes := d.Live(); n != 0 || bytes != 0 {
		t.Errorf("%d buffers of %d bytes are live", n, bytes)
	}
	if n := w.alive(); n != 0 {
		t.Errorf("the backend has %d live buffers", n)
	}
}
