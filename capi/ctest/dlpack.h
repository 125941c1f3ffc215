/*
 * dlpack.h: DLPack's structs, for programs without DLPack's header. meshfeed.h only declares
 * their names.
 */
#ifndef DLPACK_H
#define DLPACK_H

#include "meshfeed.h"

typedef struct {
  void* data;
  int32_t device_type, device_id, ndim;
  mf_dtype dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
  dl_tensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  dl_tensor tensor;
};

#endif
