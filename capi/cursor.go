package main

/*
#include "internal.h"
*/
import "C"

import (
	"unsafe"

	"github.com/meshfeed/meshfeed/core/batch"
	"github.com/meshfeed/meshfeed/core/loader"
)

func cursor(epoch, position C.int64_t) batch.Cursor {
	return batch.Cursor{Epoch: int64(epoch), Position: int64(position)}
}

//export mfgo_loader_state
func mfgo_loader_state(h C.uint64_t, out *C.mf_bytes, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error { return writeText(out, l.State().JSON()) })
}

//export mfgo_loader_restore
func mfgo_loader_restore(h C.uint64_t, state *C.mfi_text, n C.size_t, flags C.uint32_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(o *loaderObject, l *loader.Loader) error {
		o.inject("restore") // only in test builds, see faults.go
		return l.Restore(text(state, n), flags&C.MF_IGNORE_DATASET != 0)
	})
}

//export mfgo_loader_seek
func mfgo_loader_seek(h C.uint64_t, epoch, position C.int64_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error { return l.Seek(cursor(epoch, position)) })
}

//export mfgo_loader_rewind
func mfgo_loader_rewind(h C.uint64_t, epoch, position C.int64_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error { return l.Rewind(cursor(epoch, position)) })
}

//export mfgo_loader_skip
func mfgo_loader_skip(h C.uint64_t, steps C.int64_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error { return l.Skip(int64(steps)) })
}

//export mfgo_loader_len
func mfgo_loader_len(h C.uint64_t, out *C.int64_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error {
		*out = C.int64_t(l.Len())
		return nil
	})
}

//export mfgo_loader_records
func mfgo_loader_records(h C.uint64_t, epoch, position C.int64_t, out *C.int64_t, capacity C.int64_t, count *C.int64_t, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(_ *loaderObject, l *loader.Loader) error {
		records, err := l.Records(cursor(epoch, position))
		if err != nil {
			return err
		}
		*count = C.int64_t(len(records))
		copy(unsafe.Slice((*int64)(unsafe.Pointer(out)), int(min(max(capacity, 0), *count))), records)
		return nil
	})
}

//export mfgo_loader_stats
func mfgo_loader_stats(h C.uint64_t, out *C.mf_stats, e *C.mf_error) C.mf_status {
	return withLoader(h, e, func(o *loaderObject, l *loader.Loader) error {
		s, memory := l.Stats(), o.pool.counts()
		*out = C.mf_stats{
			struct_size: out.struct_size,
			epoch:       C.int64_t(s.Epoch), step: C.int64_t(s.Step), position: C.int64_t(s.Position),
			batches: C.int64_t(s.Batches), rows: C.int64_t(s.Rows), bytes: C.int64_t(s.Bytes),
			wait_ns: C.int64_t(s.ConsumerWait), stall_ns: C.int64_t(s.ProducerWait),
			build_ns: C.int64_t(s.Build), gather_ns: C.int64_t(s.Gather),
			storage_ns: C.int64_t(s.Storage), decode_ns: C.int64_t(s.Decode), map_ns: C.int64_t(s.Map),
			queued: C.int64_t(s.Queued), live_batches: memory.live, idle_batches: memory.idle,
			host_bytes: memory.all * C.int64_t(o.pool.bytes()), gathered_bytes: C.int64_t(s.GatheredBytes),
			decoding_ns: C.int64_t(s.Decoding.Running), delayed_ns: C.int64_t(s.Decoding.Waiting), bad: C.int64_t(s.Bad),
			requests: C.int64_t(s.Fetched.Requests), retries: C.int64_t(s.Fetched.Retries),
			planned_bytes: C.int64_t(s.Fetched.Planned), fetched_bytes: C.int64_t(s.Fetched.Bytes),
		}
		return nil
	})
}
