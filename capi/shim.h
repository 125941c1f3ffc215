/*
 * shim.h: what every function that leads into Go does first. A macro's names are
 * the parameters of the function that it stands in.
 */
#ifndef MESHFEED_SHIM_H
#define MESHFEED_SHIM_H

#include "internal.h"

#define GUARD                                                                                                \
  if (mfi_forked())                                                                                          \
  return mfi_is_forked(error)
#define NEED(pointer)                                                                                        \
  if (!(pointer))                                                                                            \
  return mfi_is_null(error, #pointer)
#define TEXT(pointer, size)                                                                                  \
  if (!(pointer) && (size))                                                                                  \
    return mfi_is_null(error, #pointer);                                                                     \
  if ((size) > MFI_TEXT)                                                                                     \
  return mfi_is_long(error, #pointer, size)

#define CLEAR_HANDLE(handle)                                                                                 \
  if (handle)                                                                                                \
  (handle)->id = 0

/* Of the functions that make what Go works for: what GUARD does, and a look at
   the program's signal handlers. */
#define MAKE(handle)                                                                                         \
  CLEAR_HANDLE(handle);                                                                                      \
  GUARD;                                                                                                     \
  mfi_keep_handlers_off_goroutines()

/* Of those that need nothing that was made, and may be short: the same, but that
   only the first call of any of them looks. */
#define FIRST                                                                                                \
  GUARD;                                                                                                     \
  mfi_look_at_handlers_once()

static inline void clear_bytes(mf_bytes* bytes) {
  if (bytes)
    *bytes = (mf_bytes){NULL, 0};
}

#endif
