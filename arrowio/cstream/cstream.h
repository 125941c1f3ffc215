/*
 * cstream.h: the Arrow C data and stream interfaces, as their specification
 * defines them, and the list of arrays that were read from a stream.
 */
#ifndef MESHFEED_CSTREAM_H
#define MESHFEED_CSTREAM_H

#include <stdint.h>

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

/* Owns the schema and the arrays that were read from a stream. */
typedef struct mfcs_held {
  struct ArrowSchema schema;
  struct ArrowArray* arrays;
  int64_t n, capacity;
  int error;          /* an errno, 0 for none */
  char message[1024]; /* the stream's text for the error */
} mfcs_held;

/* Reads a stream to its end and releases it, even after an error. Returns NULL if
   memory runs out. Every callback runs on this thread. */
mfcs_held* mfcs_drain(struct ArrowArrayStream* stream);

/* Releases the schema alone, after the Go code has parsed it. */
void mfcs_release_schema(mfcs_held* held);

/* Releases everything. Every callback runs on this thread. */
void mfcs_release(mfcs_held* held);

#endif
