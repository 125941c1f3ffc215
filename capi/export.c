/*
 * export.c: blocks of batches as DLPack tensors and Arrow arrays.
 *
 * Every export holds a reference to its batch. The callbacks are plain C, because
 * consumers call them from any thread. JAX calls them from its own threads without
 * the interpreter lock.
 */
#include "../arrowio/cstream/cstream.h"
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- DLPack (dlpack.h, version 1.0) ---- */

typedef struct {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  mf_dtype dtype;
  int64_t* shape;
  int64_t* strides; /* in elements */
  uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
  dl_tensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  dl_tensor tensor;
};

enum { DL_CPU = 1, DL_READ_ONLY = 1 };

/* A DLPack tensor, with what its deleter releases. The tensor comes first, because the
   deleter gets its address. */
typedef struct {
  union {
    struct DLManagedTensorVersioned versioned;
    struct DLManagedTensor legacy;
  } tensor;
  mfi_release release;
  void* context;
  int64_t dims[]; /* shape, strides */
} export;

static void delete_export(void* tensor) {
  export* self = tensor;
  self->release(self->context);
  free(self);
}

static void delete_versioned(struct DLManagedTensorVersioned* self) { delete_export(self); }
static void delete_legacy(struct DLManagedTensor* self) { delete_export(self); }

static void fill_tensor(dl_tensor* to, const mf_tensor* from, int64_t* dims) {
  to->data = from->data;
  to->device.type = DL_CPU;
  to->ndim = from->ndim;
  to->dtype = from->dtype;
  to->shape = dims;
  to->strides = dims + from->ndim;
  int64_t step = 1;
  for (int32_t d = from->ndim - 1; d >= 0; d--) {
    to->shape[d] = from->shape[d];
    to->strides[d] = step;
    step *= from->shape[d];
  }
}

bool mfi_dlpack(const mf_tensor* block, mfi_release release, void* context,
                struct DLManagedTensorVersioned** versioned, struct DLManagedTensor** legacy) {
  export* self = calloc(1, sizeof *self + 2 * (size_t)block->ndim * sizeof(int64_t));
  if (!self)
    return false;
  self->release = release;
  self->context = context;
  if (versioned) {
    struct DLManagedTensorVersioned* tensor = *versioned = &self->tensor.versioned;
    tensor->version.major = 1;
    tensor->flags = DL_READ_ONLY;
    tensor->deleter = delete_versioned;
    fill_tensor(&tensor->tensor, block, self->dims);
  } else {
    struct DLManagedTensor* tensor = *legacy = &self->tensor.legacy;
    tensor->deleter = delete_legacy;
    fill_tensor(&tensor->tensor, block, self->dims);
  }
  return true;
}

static void release_batch(void* batch) { mf_batch_release(batch); }

/* Exports a block of a batch to one of the out-parameters. The other one is NULL. */
static mf_status export_block(mf_batch* batch, int32_t i, struct DLManagedTensorVersioned** versioned,
                              struct DLManagedTensor** legacy) {
  mf_tensor block;
  if (versioned)
    *versioned = NULL;
  if (legacy)
    *legacy = NULL;
  if (!batch || (!versioned && !legacy))
    return MF_INVALID_ARGUMENT;
  if (!mfi_batch_block(batch, i, &block))
    return MF_OUT_OF_RANGE;
  if (!mfi_dlpack(&block, release_batch, batch, versioned, legacy))
    return MF_RESOURCE_EXHAUSTED;
  mf_batch_retain(batch);
  return MF_OK;
}

mf_status mf_batch_dlpack(mf_batch* batch, int32_t i, struct DLManagedTensorVersioned** tensor) {
  return export_block(batch, i, tensor, NULL);
}

mf_status mf_batch_dlpack_legacy(mf_batch* batch, int32_t i, struct DLManagedTensor** tensor) {
  return export_block(batch, i, NULL, tensor);
}

/* ---- Arrow C data interface ---- */

/* The private data of a node: all memory that its pointers refer to. */
typedef struct {
  struct ArrowSchema child;
  struct ArrowSchema* children[1];
  char format[24];
  char name[]; /* of the root; empty below */
} schema_node;

typedef struct {
  struct ArrowArray child;
  struct ArrowArray* children[1];
  const void* buffers[2];
  mf_batch* batch;
} array_node;

/* As the interface demands, a parent first releases the children that a consumer did not
   move out. */
static void release_schema(struct ArrowSchema* self) {
  if (!self->release)
    return;
  for (int64_t i = 0; i < self->n_children; i++)
    if (self->children[i]->release)
      self->children[i]->release(self->children[i]);
  free(self->private_data);
  self->release = NULL;
}

static void release_array(struct ArrowArray* self) {
  if (!self->release)
    return;
  for (int64_t i = 0; i < self->n_children; i++)
    if (self->children[i]->release)
      self->children[i]->release(self->children[i]);
  array_node* node = self->private_data;
  mf_batch_release(node->batch);
  free(node);
  self->release = NULL;
}

/* The metadata of the extension type arrow.bool8: the number of pairs, then keys and
   values with their lengths, as little-endian 32-bit integers. */
static const char bool8[] = "\2\0\0\0"
                            "\24\0\0\0ARROW:extension:name"
                            "\13\0\0\0arrow.bool8"
                            "\30\0\0\0ARROW:extension:metadata"
                            "\0\0\0";

/* Returns the format string of an element type, or NULL if Arrow has no such type. */
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
  case MF_BOOL:
    return "c";
  default:
    return NULL;
  }
}

/* Builds the schema of dimension d of a block and of the dimensions below it. */
static bool build_schema(struct ArrowSchema* out, const mf_tensor* block, int32_t d) {
  schema_node* node = calloc(1, sizeof *node + strlen(block->name) + 1);
  if (!node)
    return false;
  memset(out, 0, sizeof *out);
  out->format = node->format;
  out->name = node->name;
  out->private_data = node;
  out->release = release_schema;
  if (d == 0)
    strcpy(node->name, block->name);
  if (d + 1 == block->ndim) {
    strcpy(node->format, format_of(block->dtype));
    if (block->dtype.code == MF_BOOL)
      out->metadata = bool8;
    return true;
  }
  snprintf(node->format, sizeof node->format, "+w:%lld", (long long)block->shape[d + 1]);
  node->children[0] = &node->child;
  if (!build_schema(&node->child, block, d + 1)) {
    free(node);
    return false;
  }
  out->children = node->children;
  out->n_children = 1;
  return true;
}

/* Builds the array of dimension d of a block and of the dimensions below it. */
static bool build_array(struct ArrowArray* out, mf_batch* batch, const mf_tensor* block, int32_t d,
                        int64_t above) {
  array_node* node = calloc(1, sizeof *node);
  if (!node)
    return false;
  memset(out, 0, sizeof *out);
  out->length = above * block->shape[d];
  out->n_buffers = 1;
  out->buffers = node->buffers;
  out->private_data = node;
  out->release = release_array;
  if (d + 1 == block->ndim) {
    out->n_buffers = 2;
    node->buffers[1] = block->data;
  } else {
    node->children[0] = &node->child;
    if (!build_array(&node->child, batch, block, d + 1, out->length)) {
      free(node);
      return false;
    }
    out->children = node->children;
    out->n_children = 1;
  }
  node->batch = batch;
  mf_batch_retain(batch);
  return true;
}

mf_status mf_batch_arrow(mf_batch* batch, int32_t i, struct ArrowArray* array, struct ArrowSchema* schema) {
  if (array)
    memset(array, 0, sizeof *array);
  if (schema)
    memset(schema, 0, sizeof *schema);
  mf_tensor block;
  if (!batch || !array || !schema)
    return MF_INVALID_ARGUMENT;
  if (!mfi_batch_block(batch, i, &block))
    return MF_OUT_OF_RANGE;
  if (!format_of(block.dtype) || block.ndim < 1)
    return MF_UNSUPPORTED;
  if (!build_schema(schema, &block, 0)) {
    memset(schema, 0, sizeof *schema);
    return MF_RESOURCE_EXHAUSTED;
  }
  if (!build_array(array, batch, &block, 0, 1)) {
    schema->release(schema);
    memset(schema, 0, sizeof *schema);
    memset(array, 0, sizeof *array);
    return MF_RESOURCE_EXHAUSTED;
  }
  return MF_OK;
}
