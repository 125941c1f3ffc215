package gomlxfeed

import (
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/meshfeed/meshfeed/core/status"
)

// placed is the record of a live tensor.
type placed struct {
	bytes   int
	claimed bool // a caller is freeing it or handing it over
}

// own records a new tensor. It runs within the backend call that created the
// tensor, so that Close finds the tensor after it waited for that call.
func (d *Devices) own(t *tensors.Tensor, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[t] = &placed{bytes: bytes}
	d.bytes += int64(bytes)
}

// sizeOf returns the bytes of a live tensor.
func (d *Devices) sizeOf(doing string, t *tensors.Tensor) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(doing, t)
	if err != nil {
		return 0, err
	}
	return p.bytes, nil
}

// claim reserves a live tensor for one caller, which frees it or hands it over.
func (d *Devices) claim(doing string, t *tensors.Tensor) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(doing, t)
	if err != nil {
		return err
	}
	p.claimed = true
	return nil
}

// find returns the record of a live tensor. The caller holds d.mu.
func (d *Devices) find(doing string, t *tensors.Tensor) (*placed, error) {
	p, live := d.live[t]
	if !live || p.claimed {
		return nil, status.Errorf(status.InvalidState, "gomlxfeed", "cannot %s a tensor that was freed or handed over, or that belongs to other devices", doing)
	}
	return p, nil
}

// forget deletes the record of a claimed tensor. If it is the last one and the
// devices are closed, the backend ends.
func (d *Devices) forget(t *tensors.Tensor) error {
	d.mu.Lock()
	d.bytes -= int64(d.live[t].bytes)
	delete(d.live, t)
	d.mu.Unlock()
	return d.endIfIdle()
}
