package main

/*
#include "internal.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/meshfeed/meshfeed/capi/internal/future"
	"github.com/meshfeed/meshfeed/core/certificate"
	"github.com/meshfeed/meshfeed/core/loader"
	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// checkObject is the object behind an mf_check handle: a check that runs in the
// background.
type checkObject struct{ *future.Future[struct{}] }

func (*checkObject) String() string { return "a check" }

// Patience implements handle.Object. A check ends soon after it is cancelled.
func (*checkObject) Patience() time.Duration { return -1 }

// Close ends the check.
func (o *checkObject) Close() error {
	return o.Drop(-1, func(struct{}, error) error { return nil })
}

//export mfgo_loader_certificate
func mfgo_loader_certificate(h C.uint64_t, epoch, position C.int64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error {
		c, err := l.CertificateAt(cursor(epoch, position))
		if err != nil {
			return err
		}
		return writeCertificate(out, c)
	})
}

func writeCertificate(out *C.mf_bytes, c certificate.Certificate) error {
	json, err := c.JSON()
	if err != nil {
		return err
	}
	return writeText(out, json)
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
		return writeCertificate(out, sum)
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
func mfgo_certificate_check(json *C.mfi_text, n C.size_t, r *C.mfi_range, h C.uint64_t, out *C.uint64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		c, first, last, err := parseRange(json, n, r)
		if err == nil && h != 0 {
			c, err = ofDataset(c, h)
		}
		if err != nil {
			return err
		}
		put(&checkObject{future.Start("capi", func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.Covers(ctx, first, last)
		})}, out)
		return nil
	})
}

// ofDataset returns a certificate with the units of its dataset, if its order needs them.
func ofDataset(c certificate.Certificate, h C.uint64_t) (of certificate.Certificate, err error) {
	err = use(h, func(ctx context.Context, d *dataset) error {
		src, err := d.Wait(ctx)
		if err != nil || !sampler.NeedsUnits(c.Order) {
			of = c
			return err
		}
		units, err := source.UnitsOf(src)
		if err == nil {
			of, err = c.Of(units)
		}
		return err
	})
	return of, err
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
		return writeText(out, report)
	})
}

//export mfgo_order_fill
func mfgo_order_fill(order *C.mfi_text, n C.size_t, seed, records, epoch, position C.int64_t, out *C.int64_t, count C.int64_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		o, err := sampler.New(string(text(order, n)), int64(seed), int64(records))
		if err != nil {
			return err
		}
		if position < 0 || count < 0 || count > records || position > records-count {
			return status.Errorf(status.OutOfRange, "sampler", "%d positions from %d are not within an epoch of %d", count, position, records)
		}
		o.Epoch(int64(epoch)).Fill(unsafe.Slice((*int64)(unsafe.Pointer(out)), int(count)), int64(position))
		return nil
	})
}

//export mfgo_record_key
func mfgo_record_key(seed, epoch, record C.int64_t, key *C.uint32_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		*(*[2]uint32)(unsafe.Pointer(key)) = sampler.RecordKey(int64(seed), int64(epoch), int64(record))
		return nil
	})
}

// maxPiece bounds how many bytes are hashed at once. The hash is assembly, which
// Go's collector cannot preempt, and a block may have gigabytes.
const maxPiece = 1 << 20

//export mfgo_digest
func mfgo_digest(batch *C.mfi_batch, tensors *C.mfi_int32, n C.int32_t, out *C.uint8_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		digests := unsafe.Slice((*[16]byte)(unsafe.Pointer(out)), int(n))
		for i, tensor := range unsafe.Slice((*int32)(unsafe.Pointer(tensors)), int(n)) {
			var t C.mf_tensor
			if !C.mfi_batch_block(batch, C.int32_t(tensor), &t) {
				return status.Errorf(status.OutOfRange, "batch", "there is no block %d among the %d of the batch", tensor, int(batch.tensors))
			}
			digests[i] = digest(unsafe.Slice((*byte)(t.data), int(t.bytes)))
		}
		return nil
	})
}

//export mfgo_digest_memory
func mfgo_digest_memory(data *C.mfi_memory, size C.size_t, out *C.uint8_t, e *C.mf_error) C.mf_status {
	return call(e, func() error {
		*(*[16]byte)(unsafe.Pointer(out)) = digest(unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size)))
		return nil
	})
}

// digest returns XXH3-128 with seed 0, in canonical byte order.
func digest(block []byte) [16]byte {
	if len(block) <= maxPiece {
		return xxh3.Hash128(block).Bytes()
	}
	hash := xxh3.New()
	for len(block) > 0 {
		n := min(len(block), maxPiece)
		hash.Write(block[:n])
		block = block[n:]
	}
	return hash.Sum128().Bytes()
}
