/*
 * check.h: helpers of the test programs, in C99 and C++17.
 */
#ifndef CHECK_H
#define CHECK_H

#include "meshfeed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                        \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

/* A call must return a status. If not, the program prints the error and ends. */
#define EXPECT(status, call)                                                                                 \
  do {                                                                                                       \
    const mf_status got_ = (call);                                                                           \
    if (got_ != (status)) {                                                                                  \
      fprintf(stderr, "%s:%d: %s\n  returned %d: %s: %s; %s (%s)\n", __FILE__, __LINE__, #call, (int)got_,   \
              error.op, error.message, error.hint, error.path);                                              \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

#define OK(call) EXPECT(MF_OK, call)

/* A layout document: eight devices of one process, 4 x 2, an image with columns split over
   "model", and a label. `more` is appended to the members of the batch. */
#define DOCUMENT(records, batch, more)                                                                       \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",4],[\"model\",2]]},"                                        \
  "\"arrays\":{\"image\":{\"shape\":[\"B\",3,6],\"dtype\":\"float32\",\"spec\":[\"data\",null,\"model\"]},"  \
  "\"label\":{\"shape\":[\"B\"],\"dtype\":\"int32\",\"spec\":[\"data\"]}},"                                  \
  "\"batch\":{\"size\":" #batch more "},\"dataset\":{\"records\":" #records "}}"

/* The records of that document, in memory of this program. */
enum { RECORDS = 100, ROW = 18 };

typedef struct records {
  float image[RECORDS][ROW];
  int32_t label[RECORDS];
  int released;
} records;

static inline records* make_records(void) {
  records* r = (records*)calloc(1, sizeof *r);
  for (int i = 0; i < RECORDS; i++) {
    r->label[i] = i * 7 + 1;
    for (int j = 0; j < ROW; j++)
      r->image[i][j] = (float)(i * 100 + j);
  }
  return r;
}

static inline void released(void* context) { ((records*)context)->released++; }

static inline mf_dataset open_records(records* r) {
  mf_error error = MF_ERROR_INIT;
  const int64_t image_shape[] = {RECORDS, 3, 6};
  const int64_t label_shape[] = {RECORDS};
  mf_array arrays[] = {MF_ARRAY_INIT, MF_ARRAY_INIT};
  arrays[0].name = "image";
  arrays[0].ndim = 3;
  arrays[0].data = r->image;
  arrays[0].dtype.code = MF_FLOAT;
  arrays[0].shape = image_shape;
  arrays[1].name = "label";
  arrays[1].ndim = 1;
  arrays[1].data = r->label;
  arrays[1].dtype.code = MF_INT;
  arrays[1].shape = label_shape;
  arrays[0].dtype.bits = arrays[1].dtype.bits = 32;
  mf_dataset dataset;
  OK(mf_dataset_open_arrays(arrays, 2, released, r, &dataset, &error));
  return dataset;
}

static inline mf_layout make_layout(const char* document) {
  mf_error error = MF_ERROR_INIT;
  mf_layout layout;
  OK(mf_layout_create(document, strlen(document), &layout, &error));
  return layout;
}

static inline mf_loader make_loader(mf_dataset dataset, mf_layout layout, const mf_loader_options* options) {
  mf_error error = MF_ERROR_INIT;
  mf_loader loader;
  OK(mf_loader_create(dataset, layout, options, &loader, &error));
  OK(mf_wait(loader.id, -1, &error));
  return loader;
}

/* Every block of a batch must have the values of its records. */
static inline void check_batch(const mf_batch* batch, const records* r, const int64_t* order) {
  mf_tensor t = MF_TENSOR_INIT;
  for (int i = 0; i < batch->tensors; i++) {
    CHECK(mf_batch_tensor(batch, i, &t) == MF_OK);
    CHECK((uintptr_t)t.data % 64 == 0);
    for (int64_t row = 0; row < t.shape[0]; row++) {
      const int64_t record = order[t.start[0] + row];
      if (t.ndim == 1) {
        CHECK(((int32_t*)t.data)[row] == r->label[record]);
        continue;
      }
      for (int64_t y = 0; y < t.shape[1]; y++)
        for (int64_t x = 0; x < t.shape[2]; x++)
          CHECK(((float*)t.data)[(row * t.shape[1] + y) * t.shape[2] + x] ==
                r->image[record][y * 6 + t.start[2] + x]);
    }
  }
}

#endif
