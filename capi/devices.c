/*
 * devices.c: the public functions for devices, and shards as DLPack tensors. The macros
 * in capital letters check arguments; see shim.h.
 */
#include "_cgo_export.h"
#include "shim.h"

#include <string.h>

mf_status mf_devices_open(const char* spec, size_t spec_size, const mf_devices_options* options,
                          mf_devices* devices, mf_error* error) {
  mf_devices_options known;
  CREATES(devices);
  TEXT(spec, spec_size);
  NEED(devices);
  OPTIONS(known, options, timeout_ms);
  FLAGS(known.flags, MF_NO_PREFLIGHT);
  return mfgo_devices_open(spec, spec_size, &known, &devices->id, error);
}

TEXT_FUNCTION(devices_info, devices, json)

mf_status mf_ring_create(mf_devices devices, mf_layout layout, mf_ring* ring, mf_error* error) {
  CREATES(ring);
  NEED(ring);
  return mfgo_ring_create(devices.id, layout.id, &ring->id, error);
}

TEXT_FUNCTION(ring_info, ring, json)

mf_status mf_ring_transfer(mf_ring ring, const mf_batch* batch, mf_device_batch* device_batch,
                           mf_error* error) {
  CLEAR_HANDLE(device_batch);
  GUARD;
  NEED(batch);
  NEED(device_batch);
  return mfgo_ring_transfer(ring.id, batch, &device_batch->id, error);
}

mf_status mf_device_batch_read(mf_device_batch device_batch, int32_t array, int64_t position, void* data,
                               int64_t size, mf_error* error) {
  GUARD;
  if (size < 0)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "devices", "argument \"size\" is negative", "");
  if (size > 0)
    NEED(data);
  return mfgo_device_batch_read(device_batch.id, array, position, data, size, error);
}

/* ---- DLPack ---- */

void mfi_loan_set(mfi_loan* loan, void* data, uint64_t handle, mf_dtype dtype, int32_t ndim,
                  const int64_t* shape) {
  loan->data = data;
  loan->handle = handle;
  loan->dtype = dtype;
  loan->ndim = ndim;
  memcpy(loan->shape, shape, (size_t)ndim * sizeof *shape);
}

/* Ends a loan: a DLPack tensor no longer uses a shard's memory. handle is the context
   of the tensor. In a forked child the memory is a copy that ends with the process. */
static void end_loan(void* handle) {
  if (!mfi_forked())
    mfgo_loan_end((uint64_t)(uintptr_t)handle);
}

/* Makes a DLPack tensor of a shard, in the one of the two out-parameters that is not
   NULL. */
static mf_status lend(mf_device_batch device_batch, int32_t array, int64_t position,
                      struct DLManagedTensorVersioned** versioned, struct DLManagedTensor** legacy,
                      mf_error* error) {
  mfi_loan loan;
  const mf_status status = mfgo_device_batch_lend(device_batch.id, array, position, &loan, error);
  if (status != MF_OK)
    return status;
  void* const handle = (void*)(uintptr_t)loan.handle;
  const mf_tensor block = {.data = loan.data, .dtype = loan.dtype, .ndim = loan.ndim, .shape = loan.shape};
  if (mfi_dlpack(&block, end_loan, handle, versioned, legacy))
    return MF_OK;
  end_loan(handle);
  return mfi_fail(error, MF_RESOURCE_EXHAUSTED, "devices", "there is no memory for a DLPack tensor", "");
}

mf_status mf_device_batch_dlpack(mf_device_batch device_batch, int32_t array, int64_t position,
                                 struct DLManagedTensorVersioned** tensor, mf_error* error) {
  if (tensor)
    *tensor = NULL;
  GUARD;
  NEED(tensor);
  return lend(device_batch, array, position, tensor, NULL, error);
}

mf_status mf_device_batch_dlpack_legacy(mf_device_batch device_batch, int32_t array, int64_t position,
                                        struct DLManagedTensor** tensor, mf_error* error) {
  if (tensor)
    *tensor = NULL;
  GUARD;
  NEED(tensor);
  return lend(device_batch, array, position, NULL, tensor, error);
}
