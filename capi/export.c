/*
 * export.c: blocks of batches as DLPack tensors. arrow.c exports them as Arrow arrays.
 *
 * Every export holds a reference to its batch. The callbacks are plain C, because
 * consumers call them from any thread. JAX calls them from its own threads without
 * the interpreter lock.
 */
#include "internal.h"

#include <stdlib.h>

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
