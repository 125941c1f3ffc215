package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/loader"
)

// checkObject is what an mf_check names: a check of a certificate that runs in
// the background.
type checkObject struct {
	done   *future.Future[struct{}]
	giveUp context.CancelFunc
}

func (*checkObject) String() string { return "a check" }

// Patience implements handle.Object: a check ends as soon as it is given up.
func (*checkObject) Patience() time.Duration { return -1 }

func (o *checkObject) wait(ctx context.Context) error {
	_, err := o.done.Wait(ctx)
	return err
}

// Close ends the check.
func (o *checkObject) Close() error {
	o.giveUp()
	o.done.Drop(-1, func(struct{}, error) {})
	return nil
}

// stop implements stopper.
func (o *checkObject) stop() error { return o.Close() }

//export mfgo_loader_certificate
func mfgo_loader_certificate(h C.uint64_t, epoch, position C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return useLoader(h, func(_ *loaderObject, l *loader.Loader) error {
			c, err := l.CertificateAt(batch.Cursor{Epoch: int64(epoch), Position: int64(position)})
			if err != nil {
				return err
			}
			return giveCertificate(out, c)
		})
	})
}

func giveCertificate(out *C.mf_bytes, c certificate.Certificate) error {
	json, err := c.JSON()
	if err != nil {
		return err
	}
	return give(out, json)
}

//export mfgo_loader_rewind
func mfgo_loader_rewind(h C.uint64_t, epoch, position C.int64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		return useLoader(h, func(_ *loaderObject, l *loader.Loader) error {
			return l.Rewind(batch.Cursor{Epoch: int64(epoch), Position: int64(position)})
		})
	})
}

//export mfgo_certificate_add
func mfgo_certificate_add(a *C.mfi_text, n C.size_t, b *C.mfi_text, m C.size_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		first, err := certificate.Parse(text(a, n))
		if err != nil {
			return err
		}
		second, err := certificate.Parse(text(b, m))
		if err != nil {
			return err
		}
		sum, err := first.Add(second)
		if err != nil {
			return err
		}
		return giveCertificate(out, sum)
	})
}

// rangeOf gives the places of a range; without one, the positions from the first
// to the last that was delivered.
func rangeOf(c certificate.Certificate, r *C.mfi_range) (first, last certificate.Place) {
	if r == nil {
		return certificate.Place{}, c.Last()
	}
	return certificate.Place{Epoch: int64(r.first_epoch), Position: int64(r.first_position)},
		certificate.Place{Epoch: int64(r.last_epoch), Position: int64(r.last_position)}
}

//export mfgo_certificate_check
func mfgo_certificate_check(json *C.mfi_text, n C.size_t, r *C.mfi_range, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		c, err := certificate.Parse(text(json, n))
		if err != nil {
			return err
		}
		first, last := rangeOf(c, r)
		ctx, cancel := context.WithCancel(context.Background())
		o := &checkObject{giveUp: cancel}
		o.done = future.Start("capi", func() (struct{}, error) { return struct{}{}, c.Covers(ctx, first, last) })
		put(o, out)
		return nil
	})
}

//export mfgo_certificate_report
func mfgo_certificate_report(json *C.mfi_text, n C.size_t, r *C.mfi_range, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		c, err := certificate.Parse(text(json, n))
		if err != nil {
			return err
		}
		first, last := rangeOf(c, r)
		report, err := c.Report(first, last)
		if err != nil {
			return err
		}
		return give(out, report)
	})
}
