/*
 * arrow.c: blocks and batches as Arrow arrays, record batches and streams.
 *
 * Every exported array holds a reference to its batch. The callbacks are plain C, because
 * consumers call them from any thread. Only the stream of a dataset enters Go: in get_next,
 * and in release.
 */
#include "../arrowio/cstream/cstream.h"
#include "_cgo_export.h"
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A column: a block, or its first rows. */
typedef struct {
  mf_tensor block;
  int64_t rows;
  const char* format;   /* of its elements */
  const uint8_t* nulls; /* for each element: whether it is null; NULL if none is */
} column;

/* ---- types ---- */

/* Returns the format string of an element type. */
static const char* format_of(mf_dtype type) {
  static const char* const signed_integers[] = {"c", "s", "i", "l"};
  static const char* const unsigned_integers[] = {"C", "S", "I", "L"};
  static const char* const floats[] = {NULL, "e", "f", "g"};
  const int size = type.bits == 8 ? 0 : type.bits == 16 ? 1 : type.bits == 32 ? 2 : 3;
  switch (type.code) {
  case MF_INT:
    return signed_integers[size];
  case MF_UINT:
    return unsigned_integers[size];
  case MF_FLOAT:
    return floats[size];
  case MF_BFLOAT:
    return "f";
  case MF_COMPLEX:
    return type.bits == 64 ? "f" : "g";
  default:
    return "b";
  }
}

/* Returns the number of levels of a column: one for each dimension, and one for the two
   parts of complex numbers. */
static int32_t levels(const mf_tensor* block) { return block->ndim + (block->dtype.code == MF_COMPLEX); }

/* Returns the size of the lists at level d > 0. */
static int64_t list_size(const mf_tensor* block, int32_t d) { return d < block->ndim ? block->shape[d] : 2; }

/* Returns whether Arrow has a type for a block: the size of a list has 32 bits. */
static bool fits(const mf_tensor* block) {
  for (int32_t d = 1; d < block->ndim; d++)
    if (block->shape[d] > INT32_MAX)
      return false;
  return block->ndim >= 1;
}

/* ---- schemas ---- */

/* The private data of a schema: all memory that its pointers refer to. */
typedef struct {
  struct ArrowSchema** list;
  char* format;
  char* name;
  struct ArrowSchema children[];
} schema_node;

/* As the interface demands, a parent first releases the children that a consumer did not
   move out. */
static void release_schema(struct ArrowSchema* self) {
  if (!self->release)
    return;
  for (int64_t i = 0; i < self->n_children; i++)
    if (self->children[i]->release)
      self->children[i]->release(self->children[i]);
  schema_node* node = self->private_data;
  free(node->list);
  free(node->format);
  free(node->name);
  free(node);
  self->release = NULL;
}

/* Creates a schema with children that are still empty. False if out of memory. */
static bool new_schema(struct ArrowSchema* out, const char* format, const char* name, int64_t n) {
  memset(out, 0, sizeof *out);
  schema_node* node = calloc(1, sizeof *node + (size_t)n * sizeof node->children[0]);
  if (!node)
    return false;
  node->list = calloc((size_t)n + 1, sizeof *node->list);
  node->format = strdup(format);
  node->name = strdup(name);
  out->private_data = node;
  out->release = release_schema;
  if (!node->list || !node->format || !node->name) {
    release_schema(out);
    return false;
  }
  for (int64_t i = 0; i < n; i++)
    node->list[i] = &node->children[i];
  out->format = node->format;
  out->name = node->name;
  out->flags = 2; /* nullable, as Arrow's libraries declare fields by default */
  out->n_children = n;
  out->children = node->list;
  return true;
}

/* Builds the schema of level d of a column and of the levels below it. */
static bool build_schema(struct ArrowSchema* out, const column* c, int32_t d) {
  const char* name = d == 0 ? c->block.name : "item";
  if (d + 1 == levels(&c->block))
    return new_schema(out, c->format, name, 0);
  char format[24];
  snprintf(format, sizeof format, "+w:%lld", (long long)list_size(&c->block, d + 1));
  if (!new_schema(out, format, name, 1))
    return false;
  if (build_schema(out->children[0], c, d + 1))
    return true;
  release_schema(out);
  return false;
}

/* ---- arrays ---- */

/* The private data of an array: all memory that its pointers refer to. */
typedef struct {
  struct ArrowArray** list;
  const void* buffers[2];
  void* owned[2]; /* the buffers that are not memory of the batch */
  mf_batch* batch;
  struct ArrowArray children[];
} array_node;

static void release_array(struct ArrowArray* self) {
  if (!self->release)
    return;
  for (int64_t i = 0; i < self->n_children; i++)
    if (self->children[i]->release)
      self->children[i]->release(self->children[i]);
  array_node* node = self->private_data;
  mf_batch_release(node->batch);
  free(node->owned[0]);
  free(node->owned[1]);
  free(node->list);
  free(node);
  self->release = NULL;
}

/* Creates an array with children that are still empty. False if out of memory. */
static bool new_array(struct ArrowArray* out, mf_batch* batch, int64_t length, int64_t n) {
  memset(out, 0, sizeof *out);
  array_node* node = calloc(1, sizeof *node + (size_t)n * sizeof node->children[0]);
  struct ArrowArray** list = calloc((size_t)n + 1, sizeof *list);
  if (!node || !list) {
    free(node);
    free(list);
    return false;
  }
  for (int64_t i = 0; i < n; i++)
    list[i] = &node->children[i];
  node->list = list;
  node->batch = batch;
  mf_batch_retain(batch);
  out->length = length;
  out->n_buffers = 1;
  out->n_children = n;
  out->buffers = node->buffers;
  out->children = list;
  out->private_data = node;
  out->release = release_array;
  return true;
}

/* Sets a buffer to memory that the array owns. False if out of memory. */
static bool own(struct ArrowArray* a, int i, void* memory) {
  array_node* node = a->private_data;
  node->buffers[i] = node->owned[i] = memory;
  return memory != NULL;
}

static void* bitmap(int64_t bits) { return calloc((size_t)bits / 8 + 1, 1); }

/* Packs booleans, one byte each, into bits. NULL if out of memory. */
static void* packed(const uint8_t* from, int64_t n) {
  uint8_t* bits = bitmap(n);
  if (bits)
    for (int64_t i = 0; i < n; i++)
      bits[i / 8] |= (uint8_t)((from[i] != 0) << (i % 8));
  return bits;
}

/* Converts bfloat16 to float32, which has 16 more bits in the fraction. NULL if out of
   memory. */
static void* widened(const uint16_t* from, int64_t n) {
  uint32_t* to = malloc((size_t)n * sizeof *to + 1);
  if (to)
    for (int64_t i = 0; i < n; i++)
      to[i] = (uint32_t)from[i] << 16;
  return to;
}

/* Sets the data buffer of the lowest level. False if out of memory. */
static bool set_data(struct ArrowArray* a, const mf_tensor* block) {
  a->n_buffers = 2;
  switch (block->dtype.code) {
  case MF_BOOL:
    return own(a, 1, packed(block->data, a->length));
  case MF_BFLOAT:
    return own(a, 1, widened(block->data, a->length));
  default:
    a->buffers[1] = block->data;
    return true;
  }
}

/* Sets the validity bitmap of an array whose entries have `size` elements each. An entry
   is null if all its elements are. False if out of memory. */
static bool set_validity(struct ArrowArray* a, const uint8_t* nulls, int64_t size) {
  uint8_t* bits = bitmap(a->length);
  if (!bits)
    return false;
  for (int64_t i = 0; i < a->length; i++) {
    const uint8_t* element = nulls + i * size;
    const bool valid = size == 0 || memchr(element, 0, (size_t)size) != NULL;
    bits[i / 8] |= (uint8_t)(valid << (i % 8));
    a->null_count += !valid;
  }
  if (a->null_count > 0)
    return own(a, 0, bits);
  free(bits);
  return true;
}

/* Builds the array of level d of a column and of the levels below it. Rows and elements
   can be null; the lists between them are not. */
static bool build_array(struct ArrowArray* out, mf_batch* batch, const column* c, int32_t d, int64_t above) {
  const mf_tensor* block = &c->block;
  const bool lowest = d + 1 == levels(block);
  if (!new_array(out, batch, above * (d == 0 ? c->rows : list_size(block, d)), !lowest))
    return false;
  int64_t size = 1; /* of an entry of this level, in elements */
  for (int32_t inner = d + 1; inner < block->ndim; inner++)
    size *= block->shape[inner];
  const bool nullable = c->nulls && (d == 0 || d + 1 == block->ndim);
  if ((!nullable || set_validity(out, c->nulls, size)) &&
      (lowest ? set_data(out, block) : build_array(out->children[0], batch, c, d + 1, out->length)))
    return true;
  release_array(out);
  return false;
}

mf_status mf_batch_arrow(mf_batch* batch, int32_t i, struct ArrowArray* array, struct ArrowSchema* schema) {
  if (array)
    memset(array, 0, sizeof *array);
  if (schema)
    memset(schema, 0, sizeof *schema);
  column c = {.nulls = NULL};
  if (!batch || !array || !schema)
    return MF_INVALID_ARGUMENT;
  if (!mfi_batch_block(batch, i, &c.block))
    return MF_OUT_OF_RANGE;
  if (!fits(&c.block))
    return MF_UNSUPPORTED;
  c.rows = c.block.shape[0];
  c.format = format_of(c.block.dtype);
  if (!build_schema(schema, &c, 0))
    return MF_RESOURCE_EXHAUSTED;
  if (build_array(array, batch, &c, 0, 1))
    return MF_OK;
  release_schema(schema);
  return MF_RESOURCE_EXHAUSTED;
}

/* ---- record batches ---- */

/* The format strings that replace those of the element types, by the number of an array. */
typedef struct {
  const char* const* list;
  int32_t n;
} formats;

/* Lists the columns of the batches of a pool. data is the memory of a batch, or NULL.
   Returns how many there are; -1 if out of memory; -2 if an array is no column: it is not
   whole, or has not one row for each record. */
static int64_t columns_of(const mfi_pool* pool, const char* data, int64_t rows, formats given, column** out) {
  mf_tensor block;
  int64_t n = 0;
  int32_t blocks = 0, next = 0;
  while (mfi_pool_block(pool, blocks, &block))
    blocks++;
  column* list = *out = calloc((size_t)blocks + 1, sizeof *list);
  if (!list)
    return -1;
  for (int32_t i = 0; i < blocks; i++) {
    const mfi_role role = mfi_pool_block_role(pool, i);
    const char* memory = data ? data + mfi_pool_block_offset(pool, i) : NULL;
    mfi_pool_block(pool, i, &block);
    if (role == MFI_MASK)
      continue;
    if (role == MFI_NULLS) {
      list[n - 1].nulls = (const uint8_t*)memory;
      continue;
    }
    bool whole = fits(&block) && block.array >= next && block.shape[0] == mfi_pool_rows(pool);
    for (int32_t d = 0; whole && d < block.ndim; d++)
      whole = block.shape[d] == block.global_shape[d];
    if (!whole) {
      free(list);
      return -2;
    }
    next = block.array + 1;
    block.data = (void*)memory;
    const char* format = block.array < given.n ? given.list[block.array] : NULL;
    list[n++] = (column){.block = block, .rows = rows, .format = format ? format : format_of(block.dtype)};
  }
  return n;
}

static bool record_schema(struct ArrowSchema* out, const column* list, int64_t n) {
  if (!new_schema(out, "+s", "", n))
    return false;
  out->flags = 0;
  for (int64_t i = 0; i < n; i++)
    if (!build_schema(out->children[i], &list[i], 0)) {
      release_schema(out);
      return false;
    }
  return true;
}

static bool record_array(struct ArrowArray* out, mf_batch* batch, int64_t rows, const column* list,
                         int64_t n) {
  if (!new_array(out, batch, rows, n))
    return false;
  for (int64_t i = 0; i < n; i++)
    if (!build_array(out->children[i], batch, &list[i], 0, 1)) {
      release_array(out);
      return false;
    }
  return true;
}

/* Exports a batch, or only the schema of a pool's batches if batch is NULL. array and
   schema may be NULL. */
static mf_status record(const mfi_pool* pool, mf_batch* batch, formats given, struct ArrowArray* array,
                        struct ArrowSchema* schema) {
  column* list;
  const int64_t rows = batch ? batch->rows : 0;
  const int64_t n = columns_of(pool, batch ? batch->data : NULL, rows, given, &list);
  if (n < 0)
    return n == -1 ? MF_RESOURCE_EXHAUSTED : MF_UNSUPPORTED;
  mf_status code = MF_OK;
  if (schema && !record_schema(schema, list, n))
    code = MF_RESOURCE_EXHAUSTED;
  if (code == MF_OK && array && !record_array(array, batch, rows, list, n)) {
    if (schema)
      release_schema(schema);
    code = MF_RESOURCE_EXHAUSTED;
  }
  free(list);
  return code;
}

mf_status mf_batch_record(mf_batch* batch, const char* const* list, int32_t n, struct ArrowArray* array,
                          struct ArrowSchema* schema) {
  if (array)
    memset(array, 0, sizeof *array);
  if (schema)
    memset(schema, 0, sizeof *schema);
  if (!batch || n < 0 || (n > 0 && !list))
    return MF_INVALID_ARGUMENT;
  return record(mfi_batch_pool(batch), batch, (formats){list, n}, array, schema);
}

/* ---- streams ---- */

/* The private data of a stream. */
typedef struct {
  const mfi_pool* pool; /* describes the batches */
  uint64_t handle;      /* of the object in Go that reads the dataset; 0 for a single batch */
  mf_batch* batch;      /* the single batch, until it is delivered */
  mf_batch* described;  /* keeps the pool of a single batch alive */
  char message[1800];   /* of the last error; empty if there was none */
  int32_t n;
  char* formats[]; /* as in mf_batch_record */
} stream;

static int stream_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  stream* s = self->private_data;
  s->message[0] = 0;
  memset(out, 0, sizeof *out);
  const mf_status code = record(s->pool, NULL, (formats){(const char* const*)s->formats, s->n}, NULL, out);
  if (code == MF_OK)
    return 0;
  snprintf(s->message, sizeof s->message, "there is no memory for a schema");
  return ENOMEM;
}

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

/* Gets the next batch of a stream, which the caller releases. */
static mf_status next_batch(stream* s, mf_batch** batch, mf_error* error) {
  if (s->handle)
    return mfi_forked() ? mfi_is_forked(error) : mfgo_stream_next(s->handle, batch, error);
  *batch = s->batch;
  s->batch = NULL;
  return *batch ? MF_OK : MF_END;
}

static int stream_next(struct ArrowArrayStream* self, struct ArrowArray* out) {
  stream* s = self->private_data;
  mf_batch* batch = NULL;
  mf_error error = MF_ERROR_INIT;
  s->message[0] = 0;
  memset(out, 0, sizeof *out);
  mf_status code = next_batch(s, &batch, &error);
  if (code == MF_OK) {
    code = record(s->pool, batch, (formats){(const char* const*)s->formats, s->n}, out, NULL);
    mf_batch_release(batch);
    if (code != MF_OK)
      mfi_fail(&error, code, "capi", "there is no memory for a record batch", "");
  }
  if (code >= 0) /* MF_END leaves out->release NULL, which ends the stream */
    return 0;
  snprintf(s->message, sizeof s->message, "%s: %s%s%s", error.op, error.message, error.hint[0] ? "; " : "",
           error.hint);
  return errno_of(code);
}

static const char* stream_error(struct ArrowArrayStream* self) {
  const stream* s = self->private_data;
  return s->message[0] ? s->message : NULL;
}

static void free_stream(stream* s) {
  for (int32_t i = 0; i < s->n; i++)
    free(s->formats[i]);
  free(s);
}

static void stream_release(struct ArrowArrayStream* self) {
  if (!self->release)
    return;
  stream* s = self->private_data;
  mf_release(s->handle, NULL);
  mf_batch_release(s->batch);
  mf_batch_release(s->described);
  free_stream(s);
  self->release = NULL;
}

/* Creates the private data of a stream. NULL if out of memory. */
static stream* new_stream(const char* const* list, int32_t n) {
  stream* s = calloc(1, sizeof *s + (size_t)n * sizeof s->formats[0]);
  if (!s)
    return NULL;
  for (; s->n < n; s->n++)
    if (list[s->n] && !(s->formats[s->n] = strdup(list[s->n]))) {
      free_stream(s);
      return NULL;
    }
  return s;
}

void mfi_set_pool(mfi_pool** out, mfi_pool* pool) { *out = pool; }

static void start(struct ArrowArrayStream* out, stream* s) {
  *out = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, s};
}

mf_status mf_batch_stream(mf_batch* batch, const char* const* list, int32_t n, struct ArrowArrayStream* out) {
  struct ArrowSchema schema;
  if (out)
    memset(out, 0, sizeof *out);
  if (!out)
    return MF_INVALID_ARGUMENT;
  const mf_status code = mf_batch_record(batch, list, n, NULL, &schema);
  if (code != MF_OK)
    return code;
  release_schema(&schema);
  stream* s = new_stream(list, n);
  if (!s)
    return MF_RESOURCE_EXHAUSTED;
  s->pool = mfi_batch_pool(batch);
  s->batch = s->described = batch;
  mf_batch_retain(batch);
  mf_batch_retain(batch);
  start(out, s);
  return MF_OK;
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
  stream* s = new_stream(list, n);
  if (!s)
    return mfi_fail(error, MF_RESOURCE_EXHAUSTED, "capi", "there is no memory for a stream", "");
  mfi_pool* pool = NULL;
  const mf_status code = mfgo_dataset_stream(dataset.id, &pool, &s->handle, error);
  if (code != MF_OK) {
    free_stream(s);
    return code;
  }
  s->pool = pool;
  start(out, s);
  return MF_OK;
}
