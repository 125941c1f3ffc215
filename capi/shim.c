/*
 * shim.c: the public functions that enter Go.
 *
 * Each function has the same steps: clear the out-parameters, fail in a forked child,
 * check the arguments, call Go. shim.h defines the macros of these steps.
 */
#include "shim.h"
#include "../arrowio/cstream/cstream.h"
#include "_cgo_export.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors of arguments ---- */

mf_status mfi_is_forked(mf_error* error) {
  return mfi_fail(
      error, MF_FORKED, "meshfeed", "the library was loaded before fork() and does not work in the child",
      "start the child by exec (in Python: multiprocessing start method \"spawn\" or \"forkserver\")");
}

static mf_status invalid(mf_error* error, const char* message) {
  return mfi_fail(error, MF_INVALID_ARGUMENT, "meshfeed", message, "");
}

mf_status mfi_is_null(mf_error* error, const char* name) {
  char message[96];
  snprintf(message, sizeof message, "argument \"%s\" is NULL", name);
  return invalid(error, message);
}

mf_status mfi_is_long(mf_error* error, const char* name, size_t size) {
  char message[128];
  snprintf(message, sizeof message, "argument \"%s\" has %zu bytes, but a text may have at most %d", name,
           size, MFI_MAX_TEXT);
  return invalid(error, message);
}

mf_status mfi_is_unknown(mf_error* error, uint32_t flags) {
  char message[96];
  snprintf(message, sizeof message, "flags are 0x%x, but this function does not have all of them", flags);
  return invalid(error, message);
}

/* ---- version ---- */

static char version[32], jpeg[32];

static void read_names(void) {
  mfi_check_handlers_once();
  mfgo_version(version, sizeof version);
  mfgo_jpeg_decoder(jpeg, sizeof jpeg);
}

static const char* named(const char* name) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (mfi_forked())
    return "";
  pthread_once(&once, read_names);
  return name;
}

uint32_t mf_abi_version(void) { return (uint32_t)MF_ABI_MAJOR << 16 | MF_ABI_MINOR; }

const char* mf_version(void) { return named(version); }

const char* mf_jpeg_decoder(void) { return named(jpeg); }

/* ---- handles ---- */

static atomic_int_fast64_t live_handles;

/* The number of handles created so far, and that number at the last mf_cancel_all. */
static atomic_int_fast64_t created, cancelled;

static void register_exit(void) { atexit(mf_cancel_all); }

int64_t mf_live_handles(void) { return atomic_load(&live_handles); }

void mfi_handles_add(int64_t n) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  atomic_fetch_add(&live_handles, n);
  if (n > 0) {
    atomic_fetch_add(&created, n);
    pthread_once(&once, register_exit);
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

/* Concurrent calls of this function all wait. If no handle was created since the last call,
   it returns immediately. So a program that calls it before exit does not wait again in the
   exit handler. */
void mf_cancel_all(void) {
  if (mfi_forked())
    return;
  const int64_t now = atomic_load(&created);
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
  CREATES(layout);
  TEXT(json, size);
  NEED(layout);
  return mfgo_layout_create(json, size, &layout->id, error);
}

TEXT_FUNCTION(layout_json, layout, json)

mf_status mf_layout_report(mf_layout layout, uint32_t flags, mf_bytes* json, mf_error* error) {
  RETURNS_TEXT(json);
  FLAGS(flags, MF_ALL_DEVICES);
  return mfgo_layout_report(layout.id, flags, json, error);
}

mf_status mf_layout_draw(mf_layout layout, const mf_picture* picture, mf_bytes* text, mf_error* error) {
  mf_picture known;
  RETURNS_TEXT(text);
  OPTIONS(known, picture, width);
  return mfgo_layout_draw(layout.id, &known, text, error);
}

mf_status mf_diagram(const char* json, size_t size, int32_t format, int64_t width, mf_bytes* text,
                     mf_error* error) {
  RETURNS_TEXT(text);
  MAY_BE_FIRST;
  TEXT(json, size);
  return mfgo_diagram(json, size, format, width, text, error);
}

TEXT_FUNCTION(layout_page, layout, html)

/* ---- models ---- */

mf_status mf_memory(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error) {
  RETURNS_TEXT(text);
  MAY_BE_FIRST;
  TEXT(json, size);
  return mfgo_memory(json, size, format, text, error);
}

mf_status mf_diagnose(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error) {
  RETURNS_TEXT(text);
  MAY_BE_FIRST;
  TEXT(json, size);
  return mfgo_diagnose(json, size, format, text, error);
}

mf_status mf_advise(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error) {
  RETURNS_TEXT(text);
  MAY_BE_FIRST;
  TEXT(json, size);
  return mfgo_advise(json, size, format, text, error);
}

/* ---- datasets ---- */

mf_status mf_dataset_open_tensors(const char* path, mf_dataset* dataset, mf_error* error) {
  CREATES(dataset);
  NEED(path);
  NEED(dataset);
  return mfgo_dataset_open_tensors(path, &dataset->id, error);
}

mf_status mf_dataset_open(const char* const* paths, int32_t n, const mf_dataset_options* options,
                          mf_dataset* dataset, mf_error* error) {
  mf_dataset_options known;
  CREATES(dataset);
  NEED(paths);
  NEED(dataset);
  OPTIONS(known, options, shapes);
  FLAGS(known.flags, MF_ALLOW_DUPLICATES | MF_IMAGES);
  return mfgo_dataset_open(paths, n, &known, &dataset->id, error);
}

mf_status mf_dataset_open_stream(struct ArrowArrayStream* stream, const mf_dataset_options* options,
                                 mf_dataset* dataset, mf_error* error) {
  mf_dataset_options known;
  CREATES(dataset);
  NEED(stream);
  if (!stream->release)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "arrowio", "the stream was released or moved before",
                    "ask the producer for a new stream");
  OPTIONS(known, options, shapes);
  mf_status status;
  if (dataset)
    status = mfgo_dataset_open_stream(stream, &known, &dataset->id, error);
  else
    status = mfi_is_null(error, "dataset");
  if (stream->release)
    stream->release(stream); /* the stream was not read */
  stream->release = NULL;
  return status;
}

typedef struct {
  struct ArrowArray* array;
  struct ArrowSchema* schema;
} record_batch;

/* The callbacks of a stream that moves the structs of one record batch to its reader. */
static int move_schema(struct ArrowArrayStream* stream, struct ArrowSchema* out) {
  struct ArrowSchema* schema = ((record_batch*)stream->private_data)->schema;
  *out = *schema;
  schema->release = NULL;
  return 0;
}

static int move_array(struct ArrowArrayStream* stream, struct ArrowArray* out) {
  struct ArrowArray* array = ((record_batch*)stream->private_data)->array;
  *out = *array; /* in the second call release is NULL, which means the end of the stream */
  array->release = NULL;
  return 0;
}

static void end_stream(struct ArrowArrayStream* stream) { stream->release = NULL; }

mf_status mf_dataset_open_record_batch(struct ArrowArray* array, struct ArrowSchema* schema,
                                       const mf_dataset_options* options, mf_dataset* dataset,
                                       mf_error* error) {
  CREATES(dataset);
  NEED(array);
  NEED(schema);
  if (!array->release || !schema->release)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "arrowio", "the record batch was released or moved before",
                    "ask the producer for a new one");
  record_batch batch = {array, schema};
  struct ArrowArrayStream stream = {move_schema, move_array, NULL, end_stream, &batch};
  const mf_status status = mf_dataset_open_stream(&stream, options, dataset, error);
  if (array->release)
    array->release(array); /* the stream was not read */
  if (schema->release)
    schema->release(schema);
  return status;
}

mf_status mf_dataset_open_arrays(const mf_array* arrays, int32_t n, void (*release)(void*), void* context,
                                 mf_dataset* dataset, mf_error* error) {
  CREATES(dataset);
  mf_status status;
  if (!arrays || !dataset)
    status = mfi_is_null(error, arrays ? "dataset" : "arrays");
  else
    status = mfgo_dataset_open_arrays(arrays, n, release, context, &dataset->id, error);
  if (status != MF_OK && release)
    release(context);
  return status;
}

TEXT_FUNCTION(dataset_info, dataset, json)

mf_status mf_dataset_fingerprint(mf_dataset dataset, int64_t timeout_ms, mf_bytes* text, mf_error* error) {
  RETURNS_TEXT(text);
  return mfgo_dataset_fingerprint(dataset.id, timeout_ms, text, error);
}

mf_status mf_dataset_hash(mf_dataset dataset, int64_t timeout_ms, mf_bytes* json, mf_error* error) {
  RETURNS_TEXT(json);
  return mfgo_dataset_hash(dataset.id, timeout_ms, json, error);
}

mf_status mf_dataset_lengths(mf_dataset dataset, const char* field, int64_t start, int64_t stop,
                             int64_t* lengths, mf_error* error) {
  GUARD;
  NEED(field);
  NEED(lengths);
  return mfgo_dataset_lengths(dataset.id, (char*)field, start, stop, lengths, error);
}

mf_status mf_dataset_convert(mf_dataset dataset, const char* folder, const char* json, size_t size,
                             mf_bytes* report, mf_error* error) {
  RETURNS_TEXT(report);
  NEED(folder);
  NEED(json);
  return mfgo_dataset_convert(dataset.id, (char*)folder, (char*)json, size, report, error);
}

/* ---- loaders ---- */

mf_status mf_loader_create(mf_dataset dataset, mf_layout layout, const mf_loader_options* options,
                           mf_loader* loader, mf_error* error) {
  mf_loader_options known;
  CREATES(loader);
  NEED(loader);
  OPTIONS(known, options, workers);
  FLAGS(known.flags, MF_IGNORE_DATASET);
  return mfgo_loader_create(dataset.id, layout.id, &known, &loader->id, error);
}

TEXT_FUNCTION(loader_info, loader, json)

TEXT_FUNCTION(loader_components, loader, json)

/* Delivers a batch of the loader's ready queue without a call of Go, if there is one. */
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

TEXT_FUNCTION(loader_state, loader, json)

mf_status mf_loader_restore(mf_loader loader, const char* state, size_t size, uint32_t flags,
                            mf_error* error) {
  GUARD;
  NEED(state);
  TEXT(state, size);
  FLAGS(flags, MF_IGNORE_DATASET);
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
  CREATES(pass);
  NEED(pass);
  return mfgo_loader_one_epoch(loader.id, epoch, &pass->id, error);
}

mf_status mf_loader_remesh(mf_loader loader, mf_layout layout, int64_t process, mf_loader* next,
                           mf_error* error) {
  CREATES(next);
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

/* Writes only the fields that the caller's mf_stats has by its struct_size: the caller may
   be compiled against an older header. */
mf_status mf_loader_stats(mf_loader loader, mf_stats* stats, mf_error* error) {
  const size_t head = sizeof stats->struct_size;
  size_t size = 0;
  if (stats) {
    size = mfi_covered(stats->struct_size, MFI_SIZE_TO(mf_stats, gathered_bytes), sizeof *stats);
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

/* ---- splitters ---- */

mf_status mf_splitter_create(mf_layout layout, int64_t process, const mf_array* arrays, int32_t n,
                             mf_splitter* splitter, mf_error* error) {
  CREATES(splitter);
  NEED(arrays);
  NEED(splitter);
  return mfgo_splitter_create(layout.id, process, arrays, n, &splitter->id, error);
}

TEXT_FUNCTION(splitter_info, splitter, json)

mf_status mf_split(mf_splitter splitter, const void* const* data, int32_t n, mf_batch** batch,
                   mf_error* error) {
  if (batch)
    *batch = NULL;
  GUARD;
  NEED(data);
  NEED(batch);
  return mfgo_split(splitter.id, data, n, batch, error);
}

/* ---- certificates ---- */

mf_status mf_loader_certificate(mf_loader loader, int64_t epoch, int64_t position, mf_bytes* json,
                                mf_error* error) {
  RETURNS_TEXT(json);
  return mfgo_loader_certificate(loader.id, epoch, position, json, error);
}

mf_status mf_certificate_add(const char* a, size_t a_size, const char* b, size_t b_size, mf_bytes* sum,
                             mf_error* error) {
  RETURNS_TEXT(sum);
  MAY_BE_FIRST;
  TEXT(a, a_size);
  TEXT(b, b_size);
  return mfgo_certificate_add(a, a_size, b, b_size, sum, error);
}

mf_status mf_certificate_check(const char* json, size_t size, const mf_range* range, mf_dataset dataset,
                               mf_check* check, mf_error* error) {
  CREATES(check);
  TEXT(json, size);
  NEED(check);
  return mfgo_certificate_check(json, size, range, dataset.id, &check->id, error);
}

mf_status mf_certificate_report(const char* json, size_t size, const mf_range* range, mf_bytes* report,
                                mf_error* error) {
  RETURNS_TEXT(report);
  MAY_BE_FIRST;
  TEXT(json, size);
  return mfgo_certificate_report(json, size, range, report, error);
}

/* ---- digests and orders ---- */

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

mf_status mf_digest_memory(const void* data, size_t size, uint8_t* digest, mf_error* error) {
  MAY_BE_FIRST;
  if (size > 0)
    NEED(data);
  NEED(digest);
  return mfgo_digest_memory(data, size, digest, error);
}

mf_status mf_order_fill(const char* order, size_t size, int64_t seed, int64_t records, int64_t epoch,
                        int64_t position, int64_t* out, int64_t count, mf_error* error) {
  MAY_BE_FIRST;
  NEED(order);
  TEXT(order, size);
  if (count > 0)
    NEED(out);
  return mfgo_order_fill(order, size, seed, records, epoch, position, out, count, error);
}

mf_status mf_record_key(int64_t seed, int64_t epoch, int64_t record, uint32_t key[2], mf_error* error) {
  if (key)
    key[0] = key[1] = 0;
  MAY_BE_FIRST;
  NEED(key);
  return mfgo_record_key(seed, epoch, record, key, error);
}
