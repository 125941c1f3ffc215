/*
 * shim.c: the public functions that lead into Go.
 *
 * Each does the same, in this order: notice a fork, refuse NULL where a
 * pointer is needed, clear the out-parameters, call Go.
 */
#include "shim.h"
#include "_cgo_export.h"
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what every function does first ---- */

mf_status mfi_is_forked(mf_error* error) {
  return mfi_fail(
      error, MF_FORKED, "meshfeed", "the library was loaded before fork() and does not work in the child",
      "create loaders in the child, with multiprocessing start method \"spawn\" or \"forkserver\"");
}

mf_status mfi_is_null(mf_error* error, const char* name) {
  char message[96];
  snprintf(message, sizeof message, "argument \"%s\" is NULL", name);
  return mfi_fail(error, MF_INVALID_ARGUMENT, "meshfeed", message, "");
}

mf_status mfi_is_long(mf_error* error, const char* name, size_t size) {
  char message[128];
  snprintf(message, sizeof message, "argument \"%s\" has %zu bytes, but a text may have at most %d", name,
           size, MFI_TEXT);
  return mfi_fail(error, MF_INVALID_ARGUMENT, "meshfeed", message, "");
}

/* ---- version ---- */

static char version[32];

static void ask_version(void) {
  mfi_look_at_handlers_once();
  mfgo_version(version, sizeof version);
}

uint32_t mf_abi_version(void) { return (uint32_t)MF_ABI_MAJOR << 16 | MF_ABI_MINOR; }

const char* mf_version(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (mfi_forked())
    return "";
  pthread_once(&once, ask_version);
  return version;
}

/* ---- handles ---- */

static atomic_int_fast64_t live_handles;

static atomic_int_fast64_t made, cancelled; /* handles so far, and how many of them before a mf_cancel_all */

static void watch_exit(void) { atexit(mf_cancel_all); }

int64_t mf_live_handles(void) { return atomic_load(&live_handles); }

void mfi_handles_add(int64_t n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  atomic_fetch_add(&live_handles, n);
  if (n > 0) {
    atomic_fetch_add(&made, n);
    pthread_once(&once, watch_exit);
  }
}

mf_status mf_wait(uint64_t id, int64_t timeout_ms, mf_error* error) {
  GUARD;
  return mfgo_wait(id, timeout_ms, error);
}

mf_status mf_cancel(uint64_t id, mf_error* error) {
  GUARD;
  mfi_queue_unbind(id);
  return mfgo_cancel(id, error);
}

/* Who comes while another cancels waits as he does. When that is over, it is not
   done again at exit, where it might take another second. */
void mf_cancel_all(void) {
  if (mfi_forked())
    return;
  const int64_t now = atomic_load(&made);
  if (now == atomic_load(&cancelled))
    return;
  mfi_queue_unbind_all();
  mfgo_cancel_all();
  atomic_store(&cancelled, now);
}

mf_status mf_release(uint64_t id, mf_error* error) {
  mfi_error_clear(error);
  if (id == 0 || mfi_forked())
    return MF_OK;
  mfi_queue_unbind(id);
  return mfgo_release(id, error);
}

/* ---- layouts ---- */

mf_status mf_layout_create(const char* json, size_t size, mf_layout* layout, mf_error* error) {
  MAKE(layout);
  TEXT(json, size);
  NEED(layout);
  return mfgo_layout_create(json, size, &layout->id, error);
}

mf_status mf_layout_json(mf_layout layout, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_layout_json(layout.id, json, error);
}

mf_status mf_layout_report(mf_layout layout, const char* options, size_t size, mf_bytes* json,
                           mf_error* error) {
  clear_bytes(json);
  GUARD;
  TEXT(options, size);
  NEED(json);
  return mfgo_layout_report(layout.id, options, size, json, error);
}

mf_status mf_layout_draw(mf_layout layout, const char* options, size_t size, mf_bytes* text,
                         mf_error* error) {
  clear_bytes(text);
  GUARD;
  TEXT(options, size);
  NEED(text);
  return mfgo_layout_draw(layout.id, options, size, text, error);
}

mf_status mf_layout_page(mf_layout layout, mf_bytes* html, mf_error* error) {
  clear_bytes(html);
  GUARD;
  NEED(html);
  return mfgo_layout_page(layout.id, html, error);
}

/* ---- datasets ---- */

mf_status mf_dataset_open(const char* options, size_t size, mf_dataset* dataset, mf_error* error) {
  MAKE(dataset);
  TEXT(options, size);
  NEED(dataset);
  return mfgo_dataset_open(options, size, &dataset->id, error);
}

/* The Arrow C stream interface. */
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema*);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray*);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

mf_status mf_dataset_open_stream(struct ArrowArrayStream* stream, const char* options, size_t size,
                                 mf_dataset* dataset, mf_error* error) {
  MAKE(dataset);
  NEED(stream);
  if (!stream->release)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "arrowio", "the stream was released or moved before",
                    "ask the producer for a new stream");
  mf_status status;
  if (!dataset || (!options && size))
    status = mfi_is_null(error, dataset ? "options" : "dataset");
  else if (size > MFI_TEXT)
    status = mfi_is_long(error, "options", size);
  else
    status = mfgo_dataset_open_stream(stream, options, size, &dataset->id, error);
  if (stream->release)
    stream->release(stream); /* refused before it was read */
  stream->release = NULL;
  return status;
}

mf_status mf_dataset_open_arrays(const mf_array* arrays, int32_t n, void (*release)(void*), void* context,
                                 mf_dataset* dataset, mf_error* error) {
  MAKE(dataset);
  mf_status status;
  if (!arrays || !dataset)
    status = mfi_is_null(error, arrays ? "dataset" : "arrays");
  else
    status = mfgo_dataset_open_arrays(arrays, n, release, context, &dataset->id, error);
  if (status != MF_OK && release)
    release(context);
  return status;
}

mf_status mf_dataset_info(mf_dataset dataset, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_dataset_info(dataset.id, json, error);
}

mf_status mf_dataset_fingerprint(mf_dataset dataset, int64_t timeout_ms, mf_bytes* text, mf_error* error) {
  clear_bytes(text);
  GUARD;
  NEED(text);
  return mfgo_dataset_fingerprint(dataset.id, timeout_ms, text, error);
}

mf_status mf_dataset_hash(mf_dataset dataset, int64_t timeout_ms, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_dataset_hash(dataset.id, timeout_ms, json, error);
}

mf_status mf_dataset_slice(mf_dataset dataset, int64_t start, int64_t stop, mf_dataset* slice,
                           mf_error* error) {
  MAKE(slice);
  NEED(slice);
  return mfgo_dataset_slice(dataset.id, start, stop, &slice->id, error);
}

/* ---- loaders ---- */

mf_status mf_loader_create(mf_dataset dataset, mf_layout layout, const char* options, size_t size,
                           mf_loader* loader, mf_error* error) {
  MAKE(loader);
  TEXT(options, size);
  NEED(loader);
  return mfgo_loader_create(dataset.id, layout.id, options, size, &loader->id, error);
}

mf_status mf_loader_info(mf_loader loader, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_loader_info(loader.id, json, error);
}

mf_status mf_loader_next(mf_loader loader, int64_t timeout_ms, mf_batch** batch, mf_error* error) {
  if (batch)
    *batch = NULL;
  GUARD;
  NEED(batch);
  mfi_slot* ready;
  if (mfi_queue_take(loader.id, &timeout_ms, &ready) != MF_OK)
    return mfi_fail(error, MF_CANCELLED, "handle", "the handle was released or cancelled during the call",
                    "");
  if (!ready)
    return mfgo_loader_next(loader.id, timeout_ms, batch, error);
  mfi_slot_deliver(ready, batch);
  mfi_error_clear(error);
  return MF_OK;
}

mf_status mf_loader_state(mf_loader loader, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_loader_state(loader.id, json, error);
}

mf_status mf_loader_restore(mf_loader loader, const char* state, size_t size, uint32_t flags,
                            mf_error* error) {
  GUARD;
  NEED(state);
  TEXT(state, size);
  return mfgo_loader_restore(loader.id, state, size, flags, error);
}

mf_status mf_loader_seek(mf_loader loader, int64_t epoch, int64_t position, mf_error* error) {
  GUARD;
  return mfgo_loader_seek(loader.id, epoch, position, error);
}

mf_status mf_loader_skip(mf_loader loader, int64_t steps, mf_error* error) {
  GUARD;
  return mfgo_loader_skip(loader.id, steps, error);
}

mf_status mf_loader_rewind(mf_loader loader, int64_t epoch, int64_t position, mf_error* error) {
  GUARD;
  return mfgo_loader_rewind(loader.id, epoch, position, error);
}

mf_status mf_loader_len(mf_loader loader, int64_t* batches, mf_error* error) {
  if (batches)
    *batches = 0;
  GUARD;
  NEED(batches);
  return mfgo_loader_len(loader.id, batches, error);
}

mf_status mf_loader_one_epoch(mf_loader loader, int64_t epoch, mf_loader* pass, mf_error* error) {
  MAKE(pass);
  NEED(pass);
  return mfgo_loader_one_epoch(loader.id, epoch, &pass->id, error);
}

mf_status mf_loader_remesh(mf_loader loader, mf_layout layout, int64_t process, mf_loader* next,
                           mf_error* error) {
  MAKE(next);
  NEED(next);
  return mfgo_loader_remesh(loader.id, layout.id, process, &next->id, error);
}

mf_status mf_loader_records(mf_loader loader, int64_t epoch, int64_t position, int64_t* records,
                            int64_t capacity, int64_t* count, mf_error* error) {
  if (count)
    *count = 0;
  GUARD;
  NEED(count);
  if (capacity > 0)
    NEED(records);
  return mfgo_loader_records(loader.id, epoch, position, records, capacity, count, error);
}

/* Bytes of an mf_stats in ABI 1.0. */
enum { STATS_1_0 = offsetof(mf_stats, gathered_bytes) + sizeof(int64_t) };

mf_status mf_loader_stats(mf_loader loader, mf_stats* stats, mf_error* error) {
  const size_t head = sizeof stats->struct_size;
  size_t size = 0;
  if (stats) {
    size = mfi_covered(stats->struct_size, STATS_1_0, sizeof *stats);
    if (size > head)
      memset((char*)stats + head, 0, size - head);
  }
  GUARD;
  NEED(stats);
  if (size <= head)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "meshfeed",
                    "struct_size of the mf_stats is too small for anything", "set it to sizeof(mf_stats)");
  mf_stats full = {.struct_size = sizeof full};
  const mf_status status = mfgo_loader_stats(loader.id, &full, error);
  if (status == MF_OK)
    memcpy((char*)stats + head, (char*)&full + head, size - head);
  return status;
}

/* ---- certificates ---- */

mf_status mf_loader_certificate(mf_loader loader, int64_t epoch, int64_t position, mf_bytes* json,
                                mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_loader_certificate(loader.id, epoch, position, json, error);
}

mf_status mf_certificate_add(const char* a, size_t a_size, const char* b, size_t b_size, mf_bytes* sum,
                             mf_error* error) {
  clear_bytes(sum);
  FIRST;
  TEXT(a, a_size);
  TEXT(b, b_size);
  NEED(sum);
  return mfgo_certificate_add(a, a_size, b, b_size, sum, error);
}

mf_status mf_certificate_check(const char* json, size_t size, const mf_range* range, mf_check* check,
                               mf_error* error) {
  MAKE(check);
  TEXT(json, size);
  NEED(check);
  return mfgo_certificate_check(json, size, range, &check->id, error);
}

mf_status mf_certificate_report(const char* json, size_t size, const mf_range* range, mf_bytes* report,
                                mf_error* error) {
  clear_bytes(report);
  FIRST;
  TEXT(json, size);
  NEED(report);
  return mfgo_certificate_report(json, size, range, report, error);
}

/* ---- batches ---- */

mf_status mf_digest(const mf_batch* batch, const int32_t* tensors, int32_t n, uint8_t* digests,
                    mf_error* error) {
  GUARD;
  NEED(batch);
  if (n < 0)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "batch", "argument \"n\" is negative", "");
  if (n > 0) {
    NEED(tensors);
    NEED(digests);
  }
  return mfgo_digest(batch, tensors, n, digests, error);
}

/* ---- orders ---- */

mf_status mf_order_fill(const char* order, size_t size, int64_t seed, int64_t records, int64_t epoch,
                        int64_t position, int64_t* out, int64_t count, mf_error* error) {
  FIRST;
  NEED(order);
  TEXT(order, size);
  if (count > 0)
    NEED(out);
  return mfgo_order_fill(order, size, seed, records, epoch, position, out, count, error);
}

mf_status mf_record_key(int64_t seed, int64_t epoch, int64_t record, uint32_t key[2], mf_error* error) {
  if (key)
    key[0] = key[1] = 0;
  FIRST;
  NEED(key);
  return mfgo_record_key(seed, epoch, record, key, error);
}
