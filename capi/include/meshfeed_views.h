/*
 * meshfeed_views.h: a function for each kind of view, in the header alone. meshfeed.h includes it. A
 * function writes the document of mf_dataset_view, which says what the view is.
 */
#ifndef MESHFEED_VIEWS_H
#define MESHFEED_VIEWS_H

#include "meshfeed.h"

/* Makes one view of one dataset, and frees the document. */
static inline mf_status mf_dataset_view_of(mf_dataset dataset, const char* kind, mf_bytes* json,
                                           const void* values, int64_t n_values, mf_dataset* view,
                                           mf_error* error) {
  const mf_status status =
      mf_dataset_view(kind, json->data, json->size, &dataset, 1, values, n_values, view, 1, error);
  mf_bytes_free(json);
  return status;
}

/* Appends a list of names, or null without a list. */
static inline void mf_json_append_names(mf_bytes* json, const char* const* names, int64_t n) {
  int64_t i;
  if (!names || n < 0) {
    mf_json_append(json, "null");
    return;
  }
  mf_json_append(json, "[");
  for (i = 0; i < n; i++)
    mf_json_append(json, i ? ", %s" : "%s", names[i]);
  mf_json_append(json, "]");
}

/* The records [start, stop). */
static inline mf_status mf_dataset_slice(mf_dataset dataset, int64_t start, int64_t stop, mf_dataset* slice,
                                         mf_error* error) {
  mf_bytes json = {NULL, 0};
  mf_json_append(&json, "{'start': %d, 'stop': %d}", start, stop);
  return mf_dataset_view_of(dataset, "slice", &json, NULL, 0, slice, error);
}

/* n fields, in this order. */
static inline mf_status mf_dataset_select(mf_dataset dataset, const char* const* fields, int32_t n,
                                          mf_dataset* selected, mf_error* error) {
  mf_bytes json = {NULL, 0};
  mf_json_append(&json, "{'fields': ");
  mf_json_append_names(&json, fields, n);
  mf_json_append(&json, "}");
  return mf_dataset_view_of(dataset, "select", &json, NULL, 0, selected, error);
}

/* Record indices[k] as record k. MF_OUT_OF_RANGE names the first index out of range, and its
   position. */
static inline mf_status mf_dataset_take(mf_dataset dataset, const int64_t* indices, int64_t n,
                                        mf_dataset* taken, mf_error* error) {
  mf_bytes json = {NULL, 0};
  return mf_dataset_view_of(dataset, "take", &json, indices, n, taken, error);
}

/* The records with bit 1. n counts bits, and is the number of records. */
static inline mf_status mf_dataset_filter(mf_dataset dataset, const uint8_t* bits, int64_t n,
                                          mf_dataset* filtered, mf_error* error) {
  mf_bytes json = {NULL, 0};
  return mf_dataset_view_of(dataset, "filter", &json, bits, n, filtered, error);
}

/* The records of n datasets, one dataset after the other. */
static inline mf_status mf_dataset_concat(const mf_dataset* datasets, int32_t n, mf_dataset* joined,
                                          mf_error* error) {
  return mf_dataset_view("concat", NULL, 0, datasets, n, NULL, 0, joined, 1, error);
}

/* Flags of mf_dataset_pad: add elements in front of a row, not after it; keep the first
   elements of a row that is too long, which is an error otherwise. */
enum { MF_PAD_LEFT = 1, MF_PAD_TRUNCATE = 2 };

/* The rows of a field at one length. padding names the field, and holds the value of added
   elements. */
static inline mf_status mf_dataset_pad(mf_dataset dataset, const mf_fill* padding, int64_t length,
                                       uint32_t flags, mf_dataset* padded, mf_error* error) {
  mf_bytes json = {NULL, 0};
  mf_json_append(&json, "{'field': %s, 'length': %d, 'value': %v, 'side': %s, 'too_long': %s}",
                 padding ? padding->field : NULL, length, padding,
                 flags > 3             ? NULL
                 : flags & MF_PAD_LEFT ? "left"
                                       : "right",
                 flags & MF_PAD_TRUNCATE ? "truncate" : "error");
  return mf_dataset_view_of(dataset, "pad", &json, NULL, 0, padded, error);
}

/* The rows of a field in a shape. */
static inline mf_status mf_dataset_reshape(mf_dataset dataset, const mf_row_shape* shape,
                                           mf_dataset* reshaped, mf_error* error) {
  mf_bytes json = {NULL, 0};
  int64_t i, n = shape && shape->shape ? shape->ndim : -1;
  mf_json_append(&json, "{'field': %s, 'shape': ", shape ? shape->field : NULL);
  mf_json_append(&json, n < 0 ? "null" : "[");
  for (i = 0; i < n; i++)
    mf_json_append(&json, i ? ", %d" : "%d", shape->shape[i]);
  mf_json_append(&json, n < 0 ? "" : "]");
  if (shape && (shape->dtype.code || shape->dtype.bits))
    mf_json_append(&json, ", 'dtype': %t", &shape->dtype);
  mf_json_append(&json, "}");
  return mf_dataset_view_of(dataset, "reshape", &json, NULL, 0, reshaped, error);
}

/* A new name for one field. */
typedef struct mf_renaming {
  const char* field;
  const char* name;
} mf_renaming;

/* Other names of n fields. */
static inline mf_status mf_dataset_rename(mf_dataset dataset, const mf_renaming* names, int32_t n,
                                          mf_dataset* renamed, mf_error* error) {
  mf_bytes json = {NULL, 0};
  int32_t i;
  mf_json_append(&json, names && n >= 0 ? "{'names': {" : "{'names': null");
  for (i = 0; names && i < n; i++)
    mf_json_append(&json, i ? ", %s: %s" : "%s: %s", names[i].field ? names[i].field : "", names[i].name);
  mf_json_append(&json, names && n >= 0 ? "}}" : "}");
  return mf_dataset_view_of(dataset, "rename", &json, NULL, 0, renamed, error);
}

/* Which records a window joins. */
typedef struct mf_windows {
  uint32_t struct_size; /* MF_WINDOWS_INIT sets it */
  int32_t reserved;
  int64_t length;     /* records in a window */
  int64_t stride;     /* records from the start of a window to the start of the next; 0: 1 */
  const char* within; /* a field that has one value in each window; NULL: none */
} mf_windows;

#define MF_WINDOWS_INIT {sizeof(mf_windows), 0, 0, 0, NULL}

/* Windows of consecutive records, for time series. Returns before it reads the field `within`; see
   mf_wait. */
static inline mf_status mf_dataset_window(mf_dataset dataset, const mf_windows* windows, mf_dataset* windowed,
                                          mf_error* error) {
  mf_bytes json = {NULL, 0};
  if (windows)
    mf_json_append(&json, "{'length': %d, 'stride': %d, 'within': %s}", windows->length, windows->stride,
                   windows->within ? windows->within : "");
  return mf_dataset_view_of(dataset, "window", &json, NULL, 0, windowed, error);
}

/* A part of a dataset, and its share of the records, above 0. */
typedef struct mf_share {
  const char* name; /* for errors */
  double share;
} mf_share;

/* How a dataset is split. */
typedef struct mf_division {
  uint32_t struct_size; /* MF_DIVISION_INIT sets it */
  int32_t n_parts;
  const mf_share* parts; /* the shares add up to 1 */
  int64_t seed;          /* within +-2^53 */
  const char* within;    /* a field; records with equal values stay together; NULL: none */
} mf_division;

#define MF_DIVISION_INIT {sizeof(mf_division), 0, NULL, 0, NULL}

/* n_parts datasets, such as one for training and one for tests, which it writes to the array
   `parts`. Returns before it reads the field `within`; see mf_wait. */
static inline mf_status mf_dataset_split(mf_dataset dataset, const mf_division* division, mf_dataset* parts,
                                         mf_error* error) {
  mf_bytes json = {NULL, 0};
  mf_status status;
  int32_t i;
  if (division) {
    mf_json_append(&json, "{'seed': %d, 'within': %s, 'parts': [", division->seed,
                   division->within ? division->within : "");
    for (i = 0; division->parts && i < division->n_parts; i++)
      mf_json_append(&json, i ? ", {'name': %s, 'share': %g}" : "{'name': %s, 'share': %g}",
                     division->parts[i].name ? division->parts[i].name : "", division->parts[i].share);
    mf_json_append(&json, "]}");
  }
  status = mf_dataset_view("split", json.data, json.size, &dataset, 1, NULL, 0, parts,
                           division ? division->n_parts : 0, error);
  mf_bytes_free(&json);
  return status;
}

/* A field that consists of several fields of one type and shape. */
typedef struct mf_stack {
  const char* name;
  const char* const* fields; /* none of them is a field of the view by itself */
  int64_t n_fields;
} mf_stack;

/* n stacks in place of their fields. The other fields stay in their order, and the stacks follow. */
static inline mf_status mf_dataset_stack(mf_dataset dataset, const mf_stack* stacks, int32_t n,
                                         mf_dataset* stacked, mf_error* error) {
  mf_bytes json = {NULL, 0};
  int32_t i;
  mf_json_append(&json, stacks && n >= 0 ? "{'stacks': [" : "{'stacks': null");
  for (i = 0; stacks && i < n; i++) {
    mf_json_append(&json, i ? ", {'name': %s, 'fields': " : "{'name': %s, 'fields': ", stacks[i].name);
    mf_json_append_names(&json, stacks[i].fields, stacks[i].n_fields);
    mf_json_append(&json, "}");
  }
  mf_json_append(&json, stacks && n >= 0 ? "]}" : "}");
  return mf_dataset_view_of(dataset, "stack", &json, NULL, 0, stacked, error);
}

#endif
