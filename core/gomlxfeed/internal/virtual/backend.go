// Package virtual simulates any number of devices over GoMLX's pure-Go backend.
//
// All virtual devices share the memory of this process and one GoMLX backend. So a
// program for eight devices can be run and tested on any machine. Every buffer has
// the number of its device, and an input on the wrong device is an error. A sharded
// program takes one shard per device and returns one per device. Memory and speed of
// real devices are not modeled.
package virtual

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"

	"github.com/meshfeed/meshfeed/core/status"
)

// Backend is the pure-Go backend with n devices.
type Backend struct {
	compute.Backend
	n int
}

// New returns a backend with n ≥ 1 devices.
func New(n int) (*Backend, error) {
	if n < 1 {
		return nil, status.Errorf(status.InvalidArgument, "virtual", "a backend needs at least 1 device, got %d", n)
	}
	engine, err := gobackend.New("")
	if err != nil {
		return nil, err
	}
	return &Backend{engine, n}, nil
}

// Name returns "virtual".
func (b *Backend) Name() string { return "virtual" }

// String returns "virtual".
func (b *Backend) String() string { return "virtual" }

// Description returns the number of devices and the text of the backend below.
func (b *Backend) Description() string {
	return fmt.Sprintf("%d virtual devices over: %s", b.n, b.Backend.Description())
}

// NumDevices returns the number of devices.
func (b *Backend) NumDevices() int { return b.n }

// DeviceDescription returns the name of a device.
func (b *Backend) DeviceDescription(d compute.DeviceNum) string {
	return fmt.Sprintf("virtual device %d of %d", d, b.n)
}

func (b *Backend) checkDevice(d compute.DeviceNum) error {
	if d < 0 || int(d) >= b.n {
		return status.Errorf(status.OutOfRange, "virtual", "there is no device %d: the backend has %d", d, b.n)
	}
	return nil
}

// BufferFromFlatData copies flat to a new buffer on device d.
func (b *Backend) BufferFromFlatData(d compute.DeviceNum, flat any, s shapes.Shape) (compute.Buffer, error) {
	if err := b.checkDevice(d); err != nil {
		return nil, err
	}
	inner, err := b.Backend.BufferFromFlatData(0, flat, s)
	if err != nil {
		return nil, err
	}
	return &buffer{inner, b, d}, nil
}

// NewSharedBuffer returns a new buffer on device d and its memory, which is not
// zeroed.
func (b *Backend) NewSharedBuffer(d compute.DeviceNum, s shapes.Shape) (compute.Buffer, any, error) {
	if err := b.checkDevice(d); err != nil {
		return nil, nil, err
	}
	inner, flat, err := b.Backend.NewSharedBuffer(0, s)
	if err != nil {
		return nil, nil, err
	}
	return &buffer{inner, b, d}, flat, nil
}

// buffer is a buffer of the pure-Go backend with a device number.
type buffer struct {
	compute.Buffer
	on  *Backend
	dev compute.DeviceNum
}

func (v *buffer) Backend() compute.Backend { return v.on }

func (v *buffer) DeviceNum() (compute.DeviceNum, error) { return v.dev, nil }

func (v *buffer) CopyToDevice(d compute.DeviceNum) (compute.Buffer, error) {
	if err := v.on.checkDevice(d); err != nil {
		return nil, err
	}
	shape, err := v.Shape()
	if err != nil {
		return nil, err
	}
	flat, err := v.Data()
	if err != nil {
		return nil, err
	}
	return v.on.BufferFromFlatData(d, flat, shape)
}
