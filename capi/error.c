/*
 * error.c: copies texts and structs between the caller and the library.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

void mfi_read(void* to, size_t known, const void* from, size_t first) {
  uint32_t struct_size;
  memset(to, 0, known);
  if (!from)
    return;
  memcpy(&struct_size, from, sizeof struct_size);
  memcpy(to, from, mfi_covered(struct_size, first, known));
}

const char* mf_code_name(mf_status code) {
#define NAME(code)                                                                                           \
  case code:                                                                                                 \
    return #code
  switch (code) {
    NAME(MF_OK);
    NAME(MF_TIMEOUT);
    NAME(MF_END);
    NAME(MF_INVALID_ARGUMENT);
    NAME(MF_OUT_OF_RANGE);
    NAME(MF_NOT_FOUND);
    NAME(MF_INVALID_STATE);
    NAME(MF_INCOMPATIBLE);
    NAME(MF_DATA_LOSS);
    NAME(MF_IO);
    NAME(MF_RESOURCE_EXHAUSTED);
    NAME(MF_UNSUPPORTED);
    NAME(MF_CANCELLED);
    NAME(MF_FORKED);
    NAME(MF_INTERNAL);
  }
#undef NAME
  return "MF_UNKNOWN";
}

/* Returns how many bytes of the caller's error may be written. The caller may have been compiled
   with another version of the header. */
static size_t covered(const mf_error* error) {
  return mfi_covered(error->struct_size, MFI_SIZE_TO(mf_error, path), sizeof *error);
}

void mfi_error_clear(mf_error* error) {
  const size_t head = sizeof error->struct_size;
  if (error && covered(error) > head)
    memset((char*)error + head, 0, covered(error) - head);
}

/* Returns the length of the longest prefix of whole characters that fits into size bytes. */
static size_t cut(const char* text, size_t n, size_t size) {
  if (n <= size)
    return n;
  while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80)
    size--;
  return size;
}

/* Writes a text to the field at offset. It cuts the text at the end of the field, and at the end of
   the caller's struct. */
static void put(mf_error* error, size_t offset, size_t size, const char* text, size_t n) {
  const size_t end = covered(error);
  if (end <= offset || n == 0)
    return;
  if (size > end - offset)
    size = end - offset;
  char* to = (char*)error + offset;
  const size_t fits = cut(text, n, size - 1);
  memcpy(to, text, fits);
  to[fits] = 0;
}

mf_status mfi_error_set(mf_error* error, mf_status code, const char* op, size_t n_op, const char* message,
                        size_t n_message, const char* hint, size_t n_hint, const char* path, size_t n_path) {
  if (!error)
    return code;
  mfi_error_clear(error);
  if (covered(error) >= MFI_SIZE_TO(mf_error, code))
    error->code = code;
  put(error, offsetof(mf_error, op), sizeof error->op, op, n_op);
  put(error, offsetof(mf_error, message), sizeof error->message, message, n_message);
  put(error, offsetof(mf_error, hint), sizeof error->hint, hint, n_hint);
  put(error, offsetof(mf_error, path), sizeof error->path, path, n_path);
  return code;
}

mf_status mfi_fail(mf_error* error, mf_status code, const char* op, const char* message, const char* hint) {
  return mfi_error_set(error, code, op, strlen(op), message, strlen(message), hint, strlen(hint), "", 0);
}

bool mfi_bytes_set(mf_bytes* bytes, const char* text, size_t size) {
  char* copy = malloc(size + 1);
  if (!copy)
    return false;
  if (size)
    memcpy(copy, text, size);
  copy[size] = 0;
  *bytes = (mf_bytes){copy, size};
  return true;
}

void mf_bytes_free(mf_bytes* bytes) {
  if (!bytes)
    return;
  free(bytes->data);
  *bytes = (mf_bytes){NULL, 0};
}
