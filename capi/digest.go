package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/meshfeed/meshfeed/core/status"
)

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
