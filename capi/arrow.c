/*
 * arrow.c: blocks and batches as Arrow arrays, record batches and streams.
 *
 * Every exported array holds a reference to its batch, or owns its buffers. The callbacks are
 * plain C, because consumers call them from any thread. rows.c exports rows of a dataset.
 */
#include "../arrowio/cstream/cstream.h"
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A column: a block, or its first rows. */
typedef struct {
  mf_tensor block;
  int64_t rows;
  const char* format; /* element type */
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
  char* metadata;
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
  free(node->metadata);
  free(node);
  self->release = NULL;
}

/* Writes a text after its length, and returns the end of it. */
static char* put_text(char* at, const char* text, int32_t length) {
  memcpy(at, &length, sizeof length);
  memcpy(at + sizeof length, text, (size_t)length);
  return at + sizeof length + length;
}

bool mfi_schema_metadata(struct ArrowSchema* schema, const char* key, const char* value) {
  const size_t keys = strlen(key), values = strlen(value);
  const int32_t pairs = 1;
  if (keys > INT32_MAX || values > INT32_MAX)
    return false;
  schema_node* node = schema->private_data;
  node->metadata = malloc(3 * sizeof pairs + keys + values);
  if (!node->metadata)
    return false;
  memcpy(node->metadata, &pairs, sizeof pairs);
  put_text(put_text(node->metadata + sizeof pairs, key, (int32_t)keys), value, (int32_t)values);
  schema->metadata = node->metadata;
  return true;
}

bool mfi_schema_new(struct ArrowSchema* out, const char* format, const char* name, int64_t n) {
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
    return mfi_schema_new(out, c->format, name, 0);
  char format[24];
  snprintf(format, sizeof format, "+w:%lld", (long long)list_size(&c->block, d + 1));
  if (!mfi_schema_new(out, format, name, 1))
    return false;
  if (build_schema(out->children[0], c, d + 1))
    return true;
  release_schema(out);
  return false;
}

/* ---- arrays ---- */

enum { BUFFERS = 3 };

/* The private data of an array: all memory that its pointers refer to. */
typedef struct {
  struct ArrowArray** list;
  const void* buffers[BUFFERS];
  void* owned[BUFFERS]; /* the buffers that are not memory of the batch */
  bool taken;           /* whether the owned buffers are memory of mfi_buffer_new */
  int64_t live_bytes;   /* bytes of the owned buffers, counted by mf_live_bytes */
  int64_t live_batches; /* 1 if mf_live_batches counts the array */
  mf_batch* batch;      /* NULL if all buffers are owned */
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
  mfi_live_add(-node->live_batches, -node->live_bytes);
  for (int i = 0; i < BUFFERS; i++)
    (node->taken ? mfi_buffer_free : free)(node->owned[i]);
  free(node->list);
  free(node);
  self->release = NULL;
}

bool mfi_array_new(struct ArrowArray* out, mf_batch* batch, int64_t length, int64_t n) {
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

void mfi_array_take(struct ArrowArray* a, int32_t i, void* memory, int64_t bytes) {
  array_node* node = a->private_data;
  own(a, i, memory);
  node->taken = true;
  node->live_bytes += bytes;
  mfi_live_add(0, bytes);
}

void mfi_array_count(struct ArrowArray* a) {
  array_node* node = a->private_data;
  node->live_batches = 1;
  mfi_live_add(1, 0);
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

/* Builds the array of level d of a column and of the levels below it. */
static bool build_array(struct ArrowArray* out, mf_batch* batch, const column* c, int32_t d, int64_t above) {
  const mf_tensor* block = &c->block;
  const bool lowest = d + 1 == levels(block);
  if (!mfi_array_new(out, batch, above * (d == 0 ? c->rows : list_size(block, d)), !lowest))
    return false;
  if (lowest ? set_data(out, block) : build_array(out->children[0], batch, c, d + 1, out->length))
    return true;
  release_array(out);
  return false;
}

mf_status mf_batch_arrow(mf_batch* batch, int32_t i, struct ArrowArray* array, struct ArrowSchema* schema) {
  if (array)
    memset(array, 0, sizeof *array);
  if (schema)
    memset(schema, 0, sizeof *schema);
  column c;
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

/* Format strings that replace the default ones of the element types, indexed by array. */
typedef struct {
  const char* const* list;
  int32_t n;
} formats;

/* Lists the columns of the batches of a pool. data is the memory of a batch, or NULL.
   Returns how many there are; -1 if out of memory; -2 if an array cannot be a column: it is
   not whole, or does not have one row per record. */
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
  if (!mfi_schema_new(out, "+s", "", n))
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
  if (!mfi_array_new(out, batch, rows, n))
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

/* The private data of a stream of one batch. */
typedef struct {
  mf_batch* batch;     /* until it is delivered */
  mf_batch* described; /* keeps the pool alive, which describes the batch */
  bool failed;         /* the last call was out of memory */
  int32_t n;
  char* formats[]; /* as in mf_batch_record */
} stream;

static int stream_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  stream* s = self->private_data;
  memset(out, 0, sizeof *out);
  const formats given = {(const char* const*)s->formats, s->n};
  s->failed = record(mfi_batch_pool(s->described), NULL, given, NULL, out) != MF_OK;
  return s->failed ? ENOMEM : 0;
}

static int stream_next(struct ArrowArrayStream* self, struct ArrowArray* out) {
  stream* s = self->private_data;
  memset(out, 0, sizeof *out);
  s->failed = false;
  if (!s->batch) /* out->release is NULL, which ends the stream */
    return 0;
  const formats given = {(const char* const*)s->formats, s->n};
  s->failed = record(mfi_batch_pool(s->batch), s->batch, given, out, NULL) != MF_OK;
  mf_batch_release(s->batch);
  s->batch = NULL;
  return s->failed ? ENOMEM : 0;
}

static const char* stream_error(struct ArrowArrayStream* self) {
  const stream* s = self->private_data;
  return s->failed ? "there is no memory for a record batch" : NULL;
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
  s->batch = s->described = batch;
  mf_batch_retain(batch);
  mf_batch_retain(batch);
  *out = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, s};
  return MF_OK;
}
