/*
 * devices.c: the public functions about devices, and shards that are lent as
 * DLPack tensors.
 */
#include "_cgo_export.h"
#include "internal.h"
#include "shim.h"

#include <string.h>

mf_status mf_devices_open(const char* spec, size_t spec_size, const char* options, size_t size,
                          mf_devices* devices, mf_error* error) {
  MAKE(devices);
  TEXT(spec, spec_size);
  TEXT(options, size);
  NEED(devices);
  return mfgo_devices_open(spec, spec_size, options, size, &devices->id, error);
}

mf_status mf_devices_info(mf_devices devices, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_devices_info(devices.id, json, error);
}

mf_status mf_ring_create(mf_devices devices, mf_layout layout, mf_ring* ring, mf_error* error) {
  MAKE(ring);
  NEED(ring);
  return mfgo_ring_create(devices.id, layout.id, &ring->id, error);
}

mf_status mf_ring_info(mf_ring ring, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_ring_info(ring.id, json, error);
}

mf_status mf_batch_place(const mf_batch* batch, mf_ring ring, mf_placed* placed, mf_error* error) {
  CLEAR_HANDLE(placed);
  GUARD;
  NEED(batch);
  NEED(placed);
  return mfgo_batch_place(batch, ring.id, &placed->id, error);
}

mf_status mf_placed_read(mf_placed placed, int32_t array, int64_t position, void* data, int64_t size,
                         mf_error* error) {
  GUARD;
  if (size < 0)
    return mfi_fail(error, MF_INVALID_ARGUMENT, "devices", "argument \"size\" is negative", "");
  TEXT(data, size);
  return mfgo_placed_read(placed.id, array, position, data, size, error);
}

/* ---- DLPack ---- */

void mfi_loan_set(mfi_loan* loan, void* data, uint64_t number, mf_dtype dtype, int32_t ndim,
                  const int64_t* shape) {
  loan->data = data;
  loan->number = number;
  loan->dtype = dtype;
  loan->ndim = ndim;
  memcpy(loan->shape, shape, (size_t)ndim * sizeof *shape);
}

/* Ends a loan. The number is the context of the DLPack tensor. In a forked child
   the memory is a copy that ends with the process. */
static void end_loan(void* number) {
  if (!mfi_forked())
    mfgo_placed_end((uint64_t)(uintptr_t)number);
}

static mf_status lend(mf_placed placed, int32_t array, int64_t position, mfi_loan* loan, mf_tensor* block,
                      mf_error* error) {
  const mf_status status = mfgo_placed_lend(placed.id, array, position, loan, error);
  if (status == MF_OK)
    *block = (mf_tensor){.data = loan->data, .dtype = loan->dtype, .ndim = loan->ndim, .shape = loan->shape};
  return status;
}

static mf_status take_back(const mfi_loan* loan, mf_error* error) {
  end_loan((void*)(uintptr_t)loan->number);
  return mfi_fail(error, MF_RESOURCE_EXHAUSTED, "devices", "there is no memory for a DLPack tensor", "");
}

mf_status mf_placed_dlpack(mf_placed placed, int32_t array, int64_t position,
                           struct DLManagedTensorVersioned** tensor, mf_error* error) {
  if (tensor)
    *tensor = NULL;
  GUARD;
  NEED(tensor);
  mfi_loan loan;
  mf_tensor block;
  const mf_status status = lend(placed, array, position, &loan, &block, error);
  if (status != MF_OK)
    return status;
  *tensor = mfi_dlpack(&block, end_loan, (void*)(uintptr_t)loan.number);
  return *tensor ? MF_OK : take_back(&loan, error);
}

mf_status mf_placed_dlpack_legacy(mf_placed placed, int32_t array, int64_t position,
                                  struct DLManagedTensor** tensor, mf_error* error) {
  if (tensor)
    *tensor = NULL;
  GUARD;
  NEED(tensor);
  mfi_loan loan;
  mf_tensor block;
  const mf_status status = lend(placed, array, position, &loan, &block, error);
  if (status != MF_OK)
    return status;
  *tensor = mfi_dlpack_legacy(&block, end_loan, (void*)(uintptr_t)loan.number);
  return *tensor ? MF_OK : take_back(&loan, error);
}
