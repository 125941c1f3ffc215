package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/capi/internal/options"
	"github.com/meshfeed/meshfeed/core/gomlxfeed"
	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// devicesObject is what an mf_devices names.
type devicesObject struct {
	opened *future.Future[*gomlxfeed.Devices]
	giveUp context.CancelFunc // ends the opening
}

func (*devicesObject) String() string { return "devices" }

// Patience implements handle.Object: what keeps a call is a transfer, and a
// plugin may never end one.
func (*devicesObject) Patience() time.Duration { return patience }

func (o *devicesObject) wait(ctx context.Context) error {
	_, err := o.opened.Wait(ctx)
	return err
}

// Close closes the devices. Batches on them keep what they need.
func (o *devicesObject) Close() error {
	o.giveUp()
	var failed error
	o.opened.Drop(patience, func(d *gomlxfeed.Devices, err error) {
		if err == nil {
			failed = guard.Call("capi", d.Close)
		}
	})
	return failed
}

// stop implements stopper: it ends the opening, and the child process that
// tries a plugin.
func (o *devicesObject) stop() error {
	o.giveUp()
	_, err := o.opened.Wait(context.Background())
	return err
}

// openDevices begins to open devices.
func openDevices(spec string, how gomlxfeed.OpenOptions) *devicesObject {
	ctx, cancel := context.WithCancel(context.Background())
	return &devicesObject{giveUp: cancel, opened: future.Start("capi", func() (*gomlxfeed.Devices, error) {
		d, err := gomlxfeed.Open(ctx, spec, how)
		return d, heard(err)
	})}
}

// words are the names of options here, by those that Go programs write.
var words = strings.NewReplacer(
	"OpenOptions.Timeout; --timeout of the command", `"timeout_ms"`,
	"OpenOptions.NoPreflight loads", `"preflight": false loads`,
	"set OpenOptions.Prober", `set "prober"`,
	"call gomlxfeed.RunProbe first in main, or put", "put",
)

// heard gives an error of opening as callers of C hear it. Timeout would tell
// them to ask again, but the opening has ended.
func heard(err error) error {
	var known *status.Error
	if !errors.As(err, &known) {
		return err
	}
	e := *known
	if e.Code == status.Timeout {
		e.Code = status.Incompatible
	}
	e.Hint = words.Replace(e.Hint)
	return &e
}

// devicesOptions reads the options of mf_devices_open.
func devicesOptions(json []byte) (gomlxfeed.OpenOptions, error) {
	o := options.Parse("devices", json)
	how := gomlxfeed.OpenOptions{
		NoPreflight: !o.Bool("preflight", true),
		Prober:      o.String("prober", ""),
		Timeout:     time.Duration(o.IntFrom("timeout_ms", 1, 20_000)) * time.Millisecond,
	}
	return how, o.Err()
}

//export mfgo_devices_open
func mfgo_devices_open(spec *C.mfi_text, nSpec C.size_t, opts *C.mfi_text, n C.size_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		how, err := devicesOptions(text(opts, n))
		if err != nil {
			return err
		}
		put(openDevices(string(text(spec, nSpec)), how), out)
		return nil
	})
}

// useDevices finds opened devices.
func useDevices(h C.uint64_t, fn func(context.Context, *gomlxfeed.Devices) error) error {
	return use(h, func(ctx context.Context, o *devicesObject) error {
		d, err := o.opened.Wait(ctx)
		if err != nil {
			return err
		}
		return fn(ctx, d)
	})
}

// devicesInfo is the answer of mf_devices_info.
type devicesInfo struct {
	gomlxfeed.Facts
	LiveBuffers int64 `json:"live_buffers"`
	LiveBytes   int64 `json:"live_bytes"`
}

//export mfgo_devices_info
func mfgo_devices_info(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return useDevices(h, func(_ context.Context, d *gomlxfeed.Devices) error {
			buffers, bytes := d.Live()
			text, err := json.Marshal(devicesInfo{d.Facts(), buffers, bytes})
			if err != nil {
				return err
			}
			return give(out, text)
		})
	})
}
