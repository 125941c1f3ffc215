package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"errors"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// devicesObject is the object behind an mf_devices handle. Stop ends the opening, and
// the child process that tries a plugin.
type devicesObject struct {
	*future.Future[*gomlxfeed.Devices]
}

func (*devicesObject) String() string { return "devices" }

// Patience implements handle.Object. A call that lasts is a transfer, and a
// plugin may never end it.
func (*devicesObject) Patience() time.Duration { return patience }

// Close closes the devices. Batches on them keep what they need.
func (o *devicesObject) Close() error {
	return o.Drop(patience, func(d *gomlxfeed.Devices, err error) error {
		if err != nil {
			return nil // the calls on the handle have reported it
		}
		return guard.Call("capi", d.Close)
	})
}

// asFailure changes the code of a preflight that timed out. MF_TIMEOUT would tell the
// caller to call again, but the opening has ended.
func asFailure(err error) error {
	e, ok := errors.AsType[*status.Error](err)
	if !ok || e.Code != status.Timeout {
		return err
	}
	ended := *e
	ended.Code = status.Incompatible
	return &ended
}

//export mfgo_devices_open
func mfgo_devices_open(spec *C.mfi_text, n C.size_t, opts *C.mfi_devices_options, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		const most = 1 << 31 // milliseconds
		if opts.timeout_ms < 0 || opts.timeout_ms >= most {
			return status.Errorf(status.InvalidArgument, "devices", "timeout_ms is %d, but must be from 0 to %d", int64(opts.timeout_ms), most-1)
		}
		o := gomlxfeed.OpenOptions{
			NoPreflight: opts.flags&C.MF_NO_PREFLIGHT != 0,
			Prober:      C.GoString(opts.prober),
			Timeout:     time.Duration(opts.timeout_ms) * time.Millisecond,
		}
		name := string(text(spec, n))
		put(&devicesObject{future.Start("capi", func(ctx context.Context) (*gomlxfeed.Devices, error) {
			d, err := gomlxfeed.Open(ctx, name, o)
			return d, asFailure(err)
		})}, out)
		return nil
	})
}

// devicesInfo is the result of mf_devices_info.
type devicesInfo struct {
	gomlxfeed.Facts
	LiveBuffers int64 `json:"live_buffers"`
	LiveBytes   int64 `json:"live_bytes"`
}

//export mfgo_devices_info
func mfgo_devices_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withMade(h, e, func(_ context.Context, _ *devicesObject, d *gomlxfeed.Devices) error {
		buffers, bytes := d.Live()
		return writeJSON(out, devicesInfo{d.Facts(), buffers, bytes})
	})
}
