package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/loader"
)

// checkObject is a check of a certificate that runs in the background.
type checkObject struct{ *future.Future[struct{}] }

func (*checkObject) String() string { return "a check" }

// Patience implements handle.Object. A check ends soon after it is cancelled.
func (*checkObject) Patience() time.Duration { return -1 }

// Close ends the check.
func (o *checkObject) Close() error {
	o.Drop(-1, func(struct{}, error) {})
	return nil
}

// stop implements stopper.
func (o *checkObject) stop() error {
	o.Cancel()
	return o.Ready(context.Background())
}

//export mfgo_loader_certificate
func mfgo_loader_certificate(h C.uint64_t, epoch, position C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error {
		c, err := l.CertificateAt(cursor(epoch, position))
		if err != nil {
			return err
		}
		return giveCertificate(out, c)
	})
}

func giveCertificate(out *C.mf_bytes, c certificate.Certificate) error {
	json, err := c.JSON()
	if err != nil {
		return err
	}
	return give(out, json)
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

// parseRange parses a certificate and the range of positions that a call is
// about. Without a range it is everything up to the last delivered position.
func parseRange(json *C.mfi_text, n C.size_t, r *C.mfi_range) (c certificate.Certificate, first, last certificate.Cursor, err error) {
	c, err = certificate.Parse(text(json, n))
	switch {
	case err != nil:
	case r == nil:
		last = c.Last()
	default:
		first = certificate.Cursor{Epoch: int64(r.first_epoch), Position: int64(r.first_position)}
		last = certificate.Cursor{Epoch: int64(r.last_epoch), Position: int64(r.last_position)}
	}
	return c, first, last, err
}

//export mfgo_certificate_check
func mfgo_certificate_check(json *C.mfi_text, n C.size_t, r *C.mfi_range, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		c, first, last, err := parseRange(json, n, r)
		if err != nil {
			return err
		}
		put(&checkObject{future.Start("capi", func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.Covers(ctx, first, last)
		})}, out)
		return nil
	})
}

//export mfgo_certificate_report
func mfgo_certificate_report(json *C.mfi_text, n C.size_t, r *C.mfi_range, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		c, first, last, err := parseRange(json, n, r)
		if err != nil {
			return err
		}
		report, err := c.Report(first, last)
		if err != nil {
			return err
		}
		return give(out, report)
	})
}
