/*
 * views.c: mf_dataset_view, and the JSON texts of C programs.
 */
#include "_cgo_export.h"
#include "shim.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mf_status mf_dataset_view(const char* kind, const char* json, size_t size, const mf_dataset* datasets,
                          int32_t n_datasets, const void* values, int64_t n_values, mf_dataset* views,
                          int32_t n_views, mf_error* error) {
  for (int32_t i = 0; views && i < n_views; i++)
    views[i].id = 0;
  GUARD;
  mfi_keep_handlers_off_goroutines();
  NEED(kind);
  TEXT(json, size);
  NEED(datasets);
  NEED(views);
  return mfgo_dataset_view((char*)kind, (char*)json, size, datasets, n_datasets, values, n_values, views,
                           n_views, error);
}

/* Appends n bytes. Without memory, the text becomes empty. */
static void append(mf_bytes* json, const char* text, size_t n) {
  char* grown = realloc(json->data, json->size + n + 1);
  if (!grown) {
    mf_bytes_free(json);
    return;
  }
  memcpy(grown + json->size, text, n);
  json->data = grown;
  json->size += n;
  grown[json->size] = 0;
}

static void append_text(mf_bytes* json, const char* text) { append(json, text, strlen(text)); }

/* Appends a text as a JSON string. The reader of the document checks that it is UTF-8. */
static void append_string(mf_bytes* json, const char* text) {
  append_text(json, "\"");
  for (; *text; text++) {
    char escaped[8] = {*text, 0};
    if (*text == '"' || *text == '\\')
      snprintf(escaped, sizeof escaped, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      snprintf(escaped, sizeof escaped, "\\u%04x", *text);
    append_text(json, escaped);
  }
  append_text(json, "\"");
}

/* Appends a number, or its name as a string if JSON does not have it. */
static void append_double(mf_bytes* json, double number) {
  char text[32];
  if (isnan(number))
    snprintf(text, sizeof text, "\"nan\"");
  else if (isinf(number))
    snprintf(text, sizeof text, number < 0 ? "\"-inf\"" : "\"inf\"");
  else {
    snprintf(text, sizeof text, "%.17g", number);
    text[strcspn(text, ",")] = strchr(text, ',') ? '.' : 0; /* the decimal point of some locales */
  }
  append_text(json, text);
}

static void append_integer(mf_bytes* json, int64_t number) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)number);
  append_text(json, text);
}

static void append_complex(mf_bytes* json, double real, double imaginary) {
  append_text(json, "[");
  append_double(json, real);
  append_text(json, ",");
  append_double(json, imaginary);
  append_text(json, "]");
}

/* DLPack's code and bits as one number. */
#define KIND(code, bits) ((code) << 8 | (bits))

/* Appends the value of a fill, or null: without a fill, or if its type has no values. */
static void append_value(mf_bytes* json, const mf_fill* fill) {
  const void* const at = fill ? fill->value : NULL;
  char unsigned64[32];
  switch (at ? KIND(fill->dtype.code, fill->dtype.bits) : 0) {
#define INTEGER(code, bits, type)                                                                            \
  case KIND(code, bits):                                                                                     \
    append_integer(json, *(const type*)at);                                                                  \
    break
    INTEGER(MF_INT, 8, int8_t);
    INTEGER(MF_INT, 16, int16_t);
    INTEGER(MF_INT, 32, int32_t);
    INTEGER(MF_INT, 64, int64_t);
    INTEGER(MF_UINT, 8, uint8_t);
    INTEGER(MF_UINT, 16, uint16_t);
    INTEGER(MF_UINT, 32, uint32_t);
  case KIND(MF_UINT, 64):
    snprintf(unsigned64, sizeof unsigned64, "%llu", *(const unsigned long long*)at);
    append_text(json, unsigned64);
    break;
  case KIND(MF_FLOAT, 32):
    append_double(json, *(const float*)at);
    break;
  case KIND(MF_FLOAT, 64):
    append_double(json, *(const double*)at);
    break;
  case KIND(MF_COMPLEX, 64):
    append_complex(json, ((const float*)at)[0], ((const float*)at)[1]);
    break;
  case KIND(MF_COMPLEX, 128):
    append_complex(json, ((const double*)at)[0], ((const double*)at)[1]);
    break;
  case KIND(MF_BOOL, 8):
    append_text(json, *(const uint8_t*)at ? "true" : "false");
    break;
  default:
    append_text(json, "null");
  }
}

/* Appends the name of an element type. */
static void append_type(mf_bytes* json, const mf_dtype* dtype) {
  static const char* const names[] = {[MF_INT] = "int",       [MF_UINT] = "uint",       [MF_FLOAT] = "float",
                                      [MF_BFLOAT] = "bfloat", [MF_COMPLEX] = "complex", [MF_BOOL] = "bool"};
  char text[32] = "null";
  if (dtype && dtype->code < sizeof names / sizeof *names && names[dtype->code])
    snprintf(text, sizeof text, "\"%s%.0d\"", names[dtype->code],
             dtype->code == MF_BOOL && dtype->bits == 8 ? 0 : dtype->bits);
  append_text(json, text);
}

void mf_json_append(mf_bytes* json, const char* format, ...) {
  va_list arguments;
  if (!json || !format)
    return;
  va_start(arguments, format);
  for (; *format; format++) {
    const char* text;
    if (*format != '%') {
      append(json, *format == '\'' ? "\"" : format, 1);
      continue;
    }
    switch (*++format) {
    case 's':
      text = va_arg(arguments, const char*);
      if (text)
        append_string(json, text);
      else
        append_text(json, "null");
      break;
    case 'd':
      append_integer(json, va_arg(arguments, int64_t));
      break;
    case 'g':
      append_double(json, va_arg(arguments, double));
      break;
    case 'v':
      append_value(json, va_arg(arguments, const mf_fill*));
      break;
    case 't':
      append_type(json, va_arg(arguments, const mf_dtype*));
      break;
    default: /* a mistake; the reader refuses the text */
      append_text(json, "%");
      format -= !*format;
    }
  }
  va_end(arguments);
}
