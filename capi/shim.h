/*
 * shim.h: the first steps of every function that enters Go. The macros use the
 * parameter names of the function that contains them.
 */
#ifndef MESHFEED_SHIM_H
#define MESHFEED_SHIM_H

#include "internal.h"

/* Returns MF_FORKED in a forked child. */
#define GUARD                                                                                                \
  if (mfi_forked())                                                                                          \
  return mfi_is_forked(error)

#define NEED(pointer)                                                                                        \
  if (!(pointer))                                                                                            \
  return mfi_is_null(error, #pointer)

/* Checks a text argument. A huge size such as (size_t)-1 is a mistake of the caller. */
#define TEXT(pointer, size)                                                                                  \
  if (!(pointer) && (size))                                                                                  \
    return mfi_is_null(error, #pointer);                                                                     \
  if ((size) > MFI_MAX_TEXT)                                                                                 \
  return mfi_is_long(error, #pointer, size)

#define FLAGS(flags, known)                                                                                  \
  if ((flags) & ~(uint32_t)(known))                                                                          \
  return mfi_is_unknown(error, flags)

/* Copies the caller's options into a struct of the library's size. */
#define OPTIONS(known, given, last)                                                                          \
  mfi_read(&(known), sizeof(known), given, MFI_SIZE_TO(__typeof__(known), last))

/* For functions that return a text: clears the result first. */
#define RETURNS_TEXT(out)                                                                                    \
  if (out)                                                                                                   \
    *(out) = (mf_bytes){NULL, 0};                                                                            \
  GUARD;                                                                                                     \
  NEED(out)

/* Defines a function that takes only a handle and returns a text. */
#define TEXT_FUNCTION(name, handle, text)                                                                    \
  mf_status mf_##name(mf_##handle handle, mf_bytes* text, mf_error* error) {                                 \
    RETURNS_TEXT(text);                                                                                      \
    return mfgo_##name(handle.id, text, error);                                                              \
  }

#define CLEAR_HANDLE(handle)                                                                                 \
  if (handle)                                                                                                \
  (handle)->id = 0

/* For functions that create an object for which goroutines run: also checks the
   program's signal handlers. */
#define CREATES(handle)                                                                                      \
  CLEAR_HANDLE(handle);                                                                                      \
  GUARD;                                                                                                     \
  mfi_keep_handlers_off_goroutines()

/* For functions that need no object, and may be the first call of a program. */
#define MAY_BE_FIRST                                                                                         \
  GUARD;                                                                                                     \
  mfi_check_handlers_once()

#endif
