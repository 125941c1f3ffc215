package gomlxfeed

import (
	"errors"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
	"github.com/meshfeed/meshfeed/internal/wording"
)

// call runs fn, which calls into the backend. doing completes the error text
// "cannot …", for example "place on device 3". A panic becomes an error and marks
// the backend as broken.
func (d *Devices) call(doing string, fn func() error) error {
	if err := d.enter(doing); err != nil {
		return err
	}
	defer d.calls.Done()
	return d.reword(doing, guard.Call("gomlxfeed", fn))
}

func (d *Devices) enter(doing string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return d.closedError(doing)
	case d.broken != nil:
		return d.brokenError(doing)
	}
	d.calls.Add(1)
	return nil
}

func (d *Devices) closedError(doing string) error {
	return status.Closed("gomlxfeed", "cannot %s: the devices are closed", doing)
}

func (d *Devices) brokenError(doing string) error {
	return status.Errorf(status.InvalidState, "gomlxfeed", "cannot %s: the backend panicked earlier (%s)", doing, wording.FirstLine(d.broken.Error())).
		WithHint("close these devices and open them again")
}

// reword converts an error of GoMLX to a status.Error and passes on errors of
// this module. Only the first line of GoMLX's error is kept, because further
// lines contain stacks or values. If the error is a panic, reword marks the
// backend as broken.
func (d *Devices) reword(doing string, err error) error {
	if err == nil {
		return nil
	}
	ours, ok := errors.AsType[*status.Error](err)
	if !ok {
		return status.Errorf(status.Internal, "gomlxfeed", "cannot %s: %s", doing, wording.FirstLine(err.Error()))
	}
	if _, panicked := ours.Attr("stack").(string); !panicked {
		return err
	}
	cause := wording.FirstLine(strings.TrimPrefix(ours.Msg, "panic: "))
	d.mu.Lock()
	if d.broken == nil {
		d.broken = errors.New(cause)
	}
	d.mu.Unlock()
	return status.Errorf(status.Internal, "gomlxfeed", "cannot %s: the backend panicked: %s", doing, cause).
		WithHint("close these devices and open them again: a backend is not used after a panic").
		With("stack", ours.Attr("stack"))
}
