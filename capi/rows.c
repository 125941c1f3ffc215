/*
 * rows.c: rows of a dataset as record batches, alone or as a stream.
 *
 * Go fills the buffers, and builds arrays of them, level by
 * level. Each array owns its buffers, and its release does not enter Go. A stream enters Go
 * in get_schema, get_next and release.
 */
#include "../arrowio/cstream/cstream.h"
#include "_cgo_export.h"
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- record batches ---- */

bool mfi_record_begin(struct ArrowArray* record, int64_t rows, int64_t n) {
  if (!mfi_array_new(record, NULL, rows, n))
    return false;
  mfi_array_count(record);
  return true;
}

bool mfi_record_schema(struct ArrowSchema* record, int64_t n) {
  if (!mfi_schema_new(record, "+s", "", n))
    return false;
  record->flags = 0;
  return true;
}

static struct ArrowArray* array_at(struct ArrowArray* record, int64_t column, int32_t d) {
  struct ArrowArray* a = record->children[column];
  for (; d > 0; d--)
    a = a->children[0];
  return a;
}

bool mfi_record_level(struct ArrowArray* record, int64_t column, int32_t d, int64_t length, int64_t nulls,
                      int32_t buffers, bool child) {
  struct ArrowArray* a = array_at(record, column, d);
  if (!mfi_array_new(a, NULL, length, child))
    return false;
  a->null_count = nulls;
  a->n_buffers = buffers;
  return true;
}

void mfi_record_buffer(struct ArrowArray* record, int64_t column, int32_t d, int32_t i, void* memory,
                       int64_t bytes) {
  mfi_array_take(array_at(record, column, d), i, memory, bytes);
}

bool mfi_record_type(struct ArrowSchema* record, int64_t column, int32_t d, const char* format,
                     const char* name, bool child) {
  struct ArrowSchema* s = record->children[column];
  for (; d > 0; d--)
    s = s->children[0];
  return mfi_schema_new(s, format, name, child);
}

void mfi_record_release(struct ArrowArray* record) {
  if (record->release)
    record->release(record);
}

void mfi_record_schema_release(struct ArrowSchema* record) {
  if (record->release)
    record->release(record);
}

mf_status mf_dataset_rows(mf_dataset dataset, const int64_t* records, int64_t n, struct ArrowArray* array,
                          struct ArrowSchema* schema, mf_error* error) {
  if (array)
    memset(array, 0, sizeof *array);
  if (schema)
    memset(schema, 0, sizeof *schema);
  if (mfi_forked())
    return mfi_is_forked(error);
  if (!array)
    return mfi_is_null(error, "array");
  if (n > 0 && !records)
    return mfi_is_null(error, "records");
  return mfgo_dataset_rows(dataset.id, (int64_t*)records, n, array, schema, error);
}

/* ---- streams ---- */

/* The private data of a stream. */
typedef struct {
  uint64_t handle;    /* handle of the Go object that reads the dataset */
  char message[1800]; /* last error message; empty without an error */
} stream;

static int errno_of(mf_status code) {
  switch (code) {
  case MF_CANCELLED:
    return ECANCELED;
  case MF_RESOURCE_EXHAUSTED:
    return ENOMEM;
  case MF_IO:
  case MF_DATA_LOSS:
    return EIO;
  default:
    return EINVAL;
  }
}

/* Keeps the message of an error, and returns its number. */
static int outcome(stream* s, mf_status code, const mf_error* error) {
  s->message[0] = 0;
  if (code >= 0) /* at MF_END the array has no release, which ends the stream */
    return 0;
  snprintf(s->message, sizeof s->message, "%s: %s%s%s", error->op, error->message, error->hint[0] ? "; " : "",
           error->hint);
  return errno_of(code);
}

static int stream_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  stream* s = self->private_data;
  mf_error error = MF_ERROR_INIT;
  memset(out, 0, sizeof *out);
  return outcome(s, mfi_forked() ? mfi_is_forked(&error) : mfgo_stream_schema(s->handle, out, &error),
                 &error);
}

static int stream_next(struct ArrowArrayStream* self, struct ArrowArray* out) {
  stream* s = self->private_data;
  mf_error error = MF_ERROR_INIT;
  memset(out, 0, sizeof *out);
  return outcome(s, mfi_forked() ? mfi_is_forked(&error) : mfgo_stream_next(s->handle, out, &error), &error);
}

static const char* stream_error(struct ArrowArrayStream* self) {
  const stream* s = self->private_data;
  return s->message[0] ? s->message : NULL;
}

static void stream_release(struct ArrowArrayStream* self) {
  if (!self->release)
    return;
  stream* s = self->private_data;
  mf_release(s->handle, NULL);
  free(s);
  self->release = NULL;
}

mf_status mf_dataset_stream(mf_dataset dataset, const char* const* list, int32_t n,
                            struct ArrowArrayStream* out, mf_error* error) {
  if (out)
    memset(out, 0, sizeof *out);
  if (mfi_forked())
    return mfi_is_forked(error);
  if (!out)
    return mfi_is_null(error, "stream");
  if (n < 0 || (n > 0 && !list))
    return mfi_is_null(error, "formats");
  stream* s = calloc(1, sizeof *s);
  if (!s)
    return mfi_fail(error, MF_RESOURCE_EXHAUSTED, "capi", "there is no memory for a stream", "");
  const mf_status code = mfgo_dataset_stream(dataset.id, list, n, &s->handle, error);
  if (code != MF_OK) {
    free(s);
    return code;
  }
  *out = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, s};
  return MF_OK;
}
