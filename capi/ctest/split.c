/*
 * split.c: arrays of the program become batches, whole or as the part of one process.
 */
#include "check.h"

/* Two processes of four devices each: the first half of the rows belongs to process 0. */
#define TWO                                                                                                  \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",4],[\"model\",2]],\"processes\":2},"                        \
  "\"arrays\":{\"image\":{\"shape\":[\"B\",3,6],\"dtype\":\"float32\",\"spec\":[\"data\",null,\"model\"]},"  \
  "\"label\":{\"shape\":[\"B\"],\"dtype\":\"int32\",\"spec\":[\"data\"]}},\"batch\":{\"size\":8}}"

enum { ROWS = 8 };

static mf_error error = MF_ERROR_INIT;

/* Describes the arrays: images of this many rows, and labels of 64 bits that lie in
   reverse order. */
static void describe(mf_array* arrays, const int64_t* image_shape, const int64_t* strides) {
  arrays[0] = arrays[1] = (mf_array)MF_ARRAY_INIT;
  arrays[0].name = "image";
  arrays[0].ndim = 3;
  arrays[0].dtype = (mf_dtype){MF_FLOAT, 32, 1};
  arrays[1].name = "label";
  arrays[1].ndim = 1;
  arrays[1].dtype = (mf_dtype){MF_INT, 64, 1};
  arrays[1].strides = strides;
  arrays[0].shape = arrays[1].shape = image_shape;
}

/* Every block must have the values of the records of its index. */
static void check_rows(const mf_batch* batch, const records* r) {
  int64_t order[ROWS];
  for (int i = 0; i < ROWS; i++)
    order[i] = i;
  check_batch(batch, r, order);
  CHECK(batch->state_size == 0 && batch->step == 0);
}

/* Splits the rows from first on into the blocks of a process. */
static void split(mf_layout layout, int64_t process, int first, int64_t rows, int blocks, const records* r) {
  int64_t labels[ROWS];
  for (int i = 0; i < rows; i++)
    labels[rows - 1 - i] = r->label[first + i];
  const int64_t shape[] = {rows, 3, 6}, strides[] = {-(int64_t)sizeof *labels};
  mf_array arrays[2];
  describe(arrays, shape, strides);
  mf_splitter splitter;
  OK(mf_splitter_create(layout, process, arrays, 2, &splitter, &error));
  mf_bytes info;
  OK(mf_splitter_info(splitter, &info, &error));
  CHECK(strstr(info.data, "\"batch_bytes\":") && strstr(info.data, "\"name\":\"label\""));
  mf_bytes_free(&info);
  const void* data[] = {r->image[first], &labels[rows - 1]};
  mf_batch *batch, *other;
  OK(mf_split(splitter, data, 2, &batch, &error));
  for (int i = 0; i < rows; i++)
    labels[i] = (int64_t)1 << 40;
  CHECK(batch->tensors == blocks && mf_live_batches() == 1);
  check_rows(batch, r);
  if (blocks > 0) {
    EXPECT(MF_OUT_OF_RANGE, mf_split(splitter, data, 2, &other, &error));
    CHECK(strcmp(error.message, "array \"label\" holds 1099511627776, which int32 cannot") == 0);
    CHECK(other == NULL && mf_live_batches() == 1);
  }
  EXPECT(MF_INVALID_ARGUMENT, mf_split(splitter, data, 1, &other, &error));
  CHECK(strcmp(error.message, "n is 1, but the splitter was created for 2 arrays") == 0);
  OK(mf_release(splitter.id, &error));
  check_rows(batch, r); /* a batch outlives its splitter */
  mf_batch_release(batch);
  CHECK(mf_live_batches() == 0 && mf_live_bytes() == 0);
}

static void refused(mf_layout layout) {
  const int64_t shape[] = {5, 3, 6};
  mf_array arrays[2];
  describe(arrays, shape, NULL);
  mf_splitter splitter;
  EXPECT(MF_INVALID_ARGUMENT, mf_splitter_create(layout, 0, arrays, 2, &splitter, &error));
  CHECK(strcmp(
            error.message,
            "dimension 0 of array \"image\" has the size 5: expected 8, or 4 for the part of this process") ==
        0);
  EXPECT(MF_INVALID_ARGUMENT, mf_splitter_create(layout, 0, arrays, 1, &splitter, &error));
  CHECK(strcmp(error.message, "the layout has 2 arrays, but 1 were given") == 0);
  EXPECT(MF_OUT_OF_RANGE, mf_splitter_create(layout, -1, arrays, 2, &splitter, &error));
  CHECK(splitter.id == 0);
}

int main(void) {
  records* r = make_records();
  const mf_layout layout = make_layout(TWO);
  split(layout, 0, 0, 8, 6, r); /* the whole arrays: 2 x 2 blocks of images, 2 of labels */
  split(layout, 1, 0, 8, 6, r);
  split(layout, 0, 0, 4, 6, r); /* the rows of each process */
  split(layout, 1, 4, 4, 6, r);
  split(layout, 5, 0, 8, 0, r); /* a process without devices */
  refused(layout);
  OK(mf_release(layout.id, &error));
  CHECK(mf_live_handles() == 0);
  free(r);
  puts("ok");
  return 0;
}
