package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/core/sampler"
	"github.com/meshfeed/meshfeed/core/status"
)

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
