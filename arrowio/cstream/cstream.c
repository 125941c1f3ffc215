/*
 * cstream.c: reads an ArrowArrayStream of Arrow's C stream interface to its end.
 *
 * This is C, so that Go's garbage collector never sees a pointer that is stored
 * into memory of another owner.
 */
#include "cstream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the stream's message about an error: it ends with the stream. */
static void failed(mfcs_held* held, struct ArrowArrayStream* stream, int error) {
  held->error = error;
  const char* text = stream->get_last_error ? stream->get_last_error(stream) : NULL;
  snprintf(held->message, sizeof held->message, "%s", text && *text ? text : strerror(error));
}

/* Returns the place after the last array. It is cleared, because a producer may read it
   before it writes. NULL if out of memory. */
static struct ArrowArray* place_for_array(mfcs_held* held) {
  if (held->n == held->capacity) {
    const int64_t capacity = held->capacity ? 2 * held->capacity : 16;
    struct ArrowArray* more = realloc(held->arrays, (size_t)capacity * sizeof *more);
    if (!more)
      return NULL;
    held->arrays = more;
    held->capacity = capacity;
  }
  return memset(&held->arrays[held->n], 0, sizeof *held->arrays);
}

static void read_all(mfcs_held* held, struct ArrowArrayStream* stream) {
  int error = stream->get_schema(stream, &held->schema);
  if (error) {
    held->schema.release = NULL;
    failed(held, stream, error);
    return;
  }
  for (;;) {
    struct ArrowArray* next = place_for_array(held);
    if (!next) {
      held->error = ENOMEM;
      snprintf(held->message, sizeof held->message, "there is no memory for %lld batches",
               (long long)held->n);
      return;
    }
    error = stream->get_next(stream, next);
    if (error) {
      failed(held, stream, error);
      return;
    }
    if (!next->release)
      return; /* the end of the stream */
    held->n++;
  }
}

mfcs_held* mfcs_drain(struct ArrowArrayStream* stream) {
  struct ArrowArrayStream own = *stream;
  stream->release = NULL; /* the interface's sign that the stream was moved */
  mfcs_held* held = calloc(1, sizeof *held);
  if (held)
    read_all(held, &own);
  own.release(&own);
  return held;
}

void mfcs_release_schema(mfcs_held* held) {
  if (held->schema.release)
    held->schema.release(&held->schema);
  held->schema.release = NULL;
}

void mfcs_release(mfcs_held* held) {
  mfcs_release_schema(held);
  for (int64_t i = 0; i < held->n; i++)
    if (held->arrays[i].release)
      held->arrays[i].release(&held->arrays[i]);
  free(held->arrays);
  free(held);
}
