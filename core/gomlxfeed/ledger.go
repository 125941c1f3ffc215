package gomlxfeed

import (
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/meshfeed/meshfeed/core/status"
)

// placed is what is known about a live tensor.
type placed struct {
	bytes   int
	leaving bool // somebody is freeing it or handing it over
}

// own counts a new tensor. It is called within the call that made it, so that
// Close sees the tensor when that call has ended.
func (d *Devices) own(t *tensors.Tensor, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[t] = &placed{bytes: bytes}
	d.bytes += int64(bytes)
}

// sizeOf gives the bytes of a live tensor.
func (d *Devices) sizeOf(doing string, t *tensors.Tensor) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(doing, t)
	if err != nil {
		return 0, err
	}
	return p.bytes, nil
}

// begin claims a live tensor for the one who frees it or hands it over.
func (d *Devices) begin(doing string, t *tensors.Tensor) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(doing, t)
	if err != nil {
		return err
	}
	p.leaving = true
	return nil
}

// find needs d.mu.
func (d *Devices) find(doing string, t *tensors.Tensor) (*placed, error) {
	p, live := d.live[t]
	if !live || p.leaving {
		return nil, status.Errorf(status.InvalidState, "gomlxfeed", "cannot %s a tensor that was freed or handed over, or is not of these devices", doing)
	}
	return p, nil
}

// forget ends the count of a tensor that begin claimed. If it was the last one
// and the devices are closed, the backend ends.
func (d *Devices) forget(t *tensors.Tensor) error {
	d.mu.Lock()
	d.bytes -= int64(d.live[t].bytes)
	delete(d.live, t)
	d.mu.Unlock()
	return d.endIfIdle()
}
