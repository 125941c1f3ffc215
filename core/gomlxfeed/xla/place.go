//go:build cgo && (linux || darwin)

package xla

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/pjrt"

	"github.com/meshfeed/meshfeed/core/dtype"
	"github.com/meshfeed/meshfeed/core/status"
)

// elements is the length of the arrays that are placed and read back.
const elements = 6

// place places an array on every device and reads it back: by a transfer, and by
// writing if devices share memory with the host. On the first device it tests which
// element types can be placed.
func (p *probe) place() error {
	for i := range p.facts.Devices {
		if err := p.roundTrip(i, dtype.Float32, p.transferred); err != nil {
			return err
		}
		if !p.facts.Shared {
			continue
		}
		if err := p.roundTrip(i, dtype.Float32, p.written); err != nil {
			return err
		}
	}
	for _, t := range dtype.All() {
		if p.roundTrip(0, t, p.transferred) == nil {
			p.facts.DTypes = append(p.facts.DTypes, t)
		}
	}
	return nil
}

// A putter creates a buffer with data on a device.
type putter func(device int, t dtypes.DType, data []byte) (*pjrt.Buffer, error)

// transferred creates the buffer by a transfer from host memory, as for a GPU.
func (p *probe) transferred(device int, t dtypes.DType, data []byte) (*pjrt.Buffer, error) {
	return p.client.BufferFromHost().FromRawData(data, t, []int{elements}).ToDeviceNum(device).Done()
}

// written creates the buffer in memory shared with the host, and writes there.
func (p *probe) written(device int, t dtypes.DType, data []byte) (*pjrt.Buffer, error) {
	b, _, err := p.client.NewSharedBuffer(t, []int{elements}, p.client.AddressableDevices()[device])
	if err != nil {
		return nil, err
	}
	memory, err := b.UnsafePointer()
	if err != nil {
		return nil, errors.Join(err, b.Destroy())
	}
	copy(unsafe.Slice((*byte)(memory), len(data)), data)
	return b, nil
}

func (p *probe) roundTrip(device int, t dtype.Type, put putter) error {
	data := pattern(t, device)
	b, err := put(device, dtypes.MapOfNames[t.String()], data)
	if err != nil {
		return failed(fmt.Sprintf("place on device %d", device), err)
	}
	err = p.comesBack(b, device, data)
	if freeErr := b.Destroy(); err == nil && freeErr != nil {
		return failed(fmt.Sprintf("free a buffer of device %d", device), freeErr)
	}
	return err
}

// comesBack returns an error unless the buffer is on the device and holds data.
func (p *probe) comesBack(b *pjrt.Buffer, device int, data []byte) error {
	on, err := b.Device()
	if err != nil {
		return failed(fmt.Sprintf("name the device of a buffer on device %d", device), err)
	}
	if got := p.client.NumForDevice(on); got != device {
		return fail(status.Unsupported, "data placed on device %d is on device %d", device, got)
	}
	got := make([]byte, len(data))
	if err := b.ToHost(got); err != nil {
		return failed(fmt.Sprintf("read from device %d", device), err)
	}
	if !bytes.Equal(got, data) {
		return fail(status.DataLoss, "data placed on device %d comes back changed", device)
	}
	return nil
}

// pattern returns bytes that are valid for every type, and that differ between a
// device and the next.
func pattern(t dtype.Type, device int) []byte {
	data := make([]byte, elements*t.Size())
	for i := range data {
		data[i] = byte(i+device) & 1
	}
	return data
}
