package gomlxfeed

import (
	"errors"
	"strings"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// call runs fn, which calls into the backend. doing says what it does, as in
// "place on device 3". A panic becomes an error and breaks the backend; errors
// of GoMLX are worded anew. fn may call call: it fails rather than waits once
// Close has begun.
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
	return status.Errorf(status.InvalidState, "gomlxfeed", "cannot %s: the backend panicked earlier (%s)", doing, firstLine(d.broken.Error())).
		WithHint("close these devices and open them again")
}

// reword gives an error of GoMLX our form. Our own errors pass. The text of a
// foreign one ends at its first line, because further lines are stacks or
// values.
func (d *Devices) reword(doing string, err error) error {
	if err == nil {
		return nil
	}
	var ours *status.Error
	if !errors.As(err, &ours) {
		return status.Errorf(status.Internal, "gomlxfeed", "cannot %s: %s", doing, firstLine(err.Error()))
	}
	if _, panicked := ours.Attr("stack").(string); !panicked {
		return err
	}
	cause := firstLine(strings.TrimPrefix(ours.Msg, "panic: "))
	d.mu.Lock()
	if d.broken == nil {
		d.broken = errors.New(cause)
	}
	d.mu.Unlock()
	return status.Errorf(status.Internal, "gomlxfeed", "cannot %s: the backend panicked: %s", doing, cause).
		WithHint("close these devices and open them again: what panicked once is not used further").
		With("stack", ours.Attr("stack"))
}

// firstLine gives the first line of a foreign text, and no more of it than a
// message can hold.
func firstLine(text string) string {
	const most = 300
	line, _, _ := strings.Cut(text, "\n")
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most]) + "…"
	}
	return strings.TrimSpace(line)
}
