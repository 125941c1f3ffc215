/*
 * shim.c: the public functions that lead into Go.
 *
 * Each does the same, in this order: notice a fork, refuse NULL where a
 * pointer is needed, clear the out-parameters, call Go.
 */
#include "_cgo_export.h"
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- what every function does first ---- */

static mf_status forked(mf_error* error) {
  return mfi_fail(
      error, MF_FORKED, "meshfeed", "the library was loaded before fork() and does not work in the child",
      "create loaders in the child, with multiprocessing start method \"spawn\" or \"forkserver\"");
}

static mf_status is_null(mf_error* error, const char* name) {
  char message[96];
  snprintf(message, sizeof message, "argument \"%s\" is NULL", name);
  return mfi_fail(error, MF_INVALID_ARGUMENT, "meshfeed", message, "");
}

#define GUARD                                                                                                \
  if (mfi_forked())                                                                                          \
  return forked(error)
#define NEED(pointer)                                                                                        \
  if (!(pointer))                                                                                            \
  return is_null(error, #pointer)
#define TEXT(pointer, size)                                                                                  \
  if (!(pointer) && (size))                                                                                  \
  return is_null(error, #pointer)

static void clear_bytes(mf_bytes* bytes) {
  if (bytes)
    *bytes = (mf_bytes){NULL, 0};
}

static void clear_handle(uint64_t* handle) {
  if (handle)
    *handle = 0;
}

/* ---- version ---- */

static char version[32];

static void ask_version(void) { mfgo_version(version, sizeof version); }

uint32_t mf_abi_version(void) { return (uint32_t)MF_ABI_MAJOR << 16 | MF_ABI_MINOR; }

const char* mf_version(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (mfi_forked())
    return "";
  pthread_once(&once, ask_version);
  return version;
}

/* ---- handles ---- */

static atomic_int_fast64_t live_handles;

int64_t mf_live_handles(void) { return atomic_load(&live_handles); }
void mfi_handles_add(int64_t n) { atomic_fetch_add(&live_handles, n); }

mf_status mf_wait(uint64_t handle, int64_t timeout_ms, mf_error* error) {
  GUARD;
  return mfgo_wait(handle, timeout_ms, error);
}

mf_status mf_cancel(uint64_t handle, mf_error* error) {
  GUARD;
  return mfgo_cancel(handle, error);
}

void mf_cancel_all(void) {
  if (!mfi_forked())
    mfgo_cancel_all();
}

mf_status mf_release(uint64_t handle, mf_error* error) {
  mfi_error_clear(error);
  if (handle == 0 || mfi_forked())
    return MF_OK;
  return mfgo_release(handle, error);
}

/* ---- layouts ---- */

mf_status mf_layout_create(const char* json, size_t size, mf_layout* layout, mf_error* error) {
  clear_handle(layout);
  GUARD;
  TEXT(json, size);
  NEED(layout);
  return mfgo_layout_create(json, size, layout, error);
}

mf_status mf_layout_json(mf_layout layout, mf_bytes* json, mf_error* error) {
  clear_bytes(json);
  GUARD;
  NEED(json);
  return mfgo_layout_json(layout, json, error);
}

mf_status mf_layout_report(mf_layout layout, const char* options, size_t size, mf_bytes* json,
                           mf_error* error) {
  clear_bytes(json);
  GUARD;
  TEXT(options, size);
  NEED(json);
  return mfgo_layout_report(layout, options, size, json, error);
}

/* ---- orders ---- */

mf_status mf_order_fill(const char* order, size_t size, int64_t seed, int64_t records, int64_t epoch,
                        int64_t position, int64_t* out, int64_t count, mf_error* error) {
  GUARD;
  NEED(order);
  if (count > 0)
    NEED(out);
  return mfgo_order_fill(order, size, seed, records, epoch, position, out, count, error);
}

mf_status mf_record_key(int64_t seed, int64_t epoch, int64_t record, uint32_t key[2], mf_error* error) {
  if (key)
    key[0] = key[1] = 0;
  GUARD;
  NEED(key);
  return mfgo_record_key(seed, epoch, record, key, error);
}
