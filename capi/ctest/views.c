/*
 * views.c: every view of a dataset, views over views, and the ownership of their records.
 */
#include "check.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>

/* Ten records; label k of dataset d is 100 * d + k, and patient k is k / 4. */
enum { N = 10 };
typedef struct table {
  int32_t label[N], patient[N];
  float a[N], b[N];
  int released;
} table;

static void drop(void* context) { ((table*)context)->released++; }

static mf_dataset open_table(table* t, int d) {
  mf_error error = MF_ERROR_INIT;
  const char* const fields[] = {"label", "patient", "a", "b"};
  const void* const data[] = {t->label, t->patient, t->a, t->b};
  const int64_t n = N;
  mf_array arrays[4];
  mf_dataset dataset;
  t->released = 0;
  for (int k = 0; k < N; k++) {
    t->label[k] = 100 * d + k;
    t->patient[k] = k / 4;
    t->a[k] = (float)k;
    t->b[k] = (float)k + 0.5f;
  }
  for (int i = 0; i < 4; i++) {
    arrays[i] = (mf_array)MF_ARRAY_INIT;
    arrays[i].name = fields[i];
    arrays[i].ndim = 1;
    arrays[i].data = data[i];
    arrays[i].dtype.code = i < 2 ? MF_INT : MF_FLOAT;
    arrays[i].dtype.bits = 32;
    arrays[i].shape = &n;
  }
  arrays[1].logical = "patient number";
  OK(mf_dataset_open_arrays(arrays, 4, drop, t, &dataset, &error));
  return dataset;
}

/* The next step of a chain of views: the dataset below is released at once. */
static mf_dataset over(mf_dataset below, mf_dataset made) {
  mf_error error = MF_ERROR_INIT;
  OK(mf_release(below.id, &error));
  OK(mf_wait(made.id, -1, &error));
  return made;
}

static char* info(mf_dataset dataset) {
  mf_error error = MF_ERROR_INIT;
  mf_bytes json;
  OK(mf_dataset_info(dataset, &json, &error));
  return json.data;
}

static void expect_info(mf_dataset dataset, const char* part) {
  mf_bytes json = {info(dataset), 0};
  if (!strstr(json.data, part))
    fprintf(stderr, "%s\nlacks %s\n", json.data, part);
  CHECK(strstr(json.data, part));
  mf_bytes_free(&json);
}

/* Reads n records of the field "label", each of `width` numbers, in order. */
static void expect_labels(mf_dataset dataset, int n, int width, const int32_t* want) {
  mf_error error = MF_ERROR_INIT;
  char document[300];
  snprintf(document, sizeof document,
           "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"label\":{\"shape\":[\"B\"%s],"
           "\"dtype\":\"int32\",\"spec\":[\"data\"]}},\"batch\":{\"size\":%d},\"dataset\":{\"records\":%d,"
           "\"order\":\"sequential.1\"}}",
           width == 1 ? "" : ",3", n, n);
  const mf_layout layout = make_layout(document);
  const mf_loader loader = make_loader(dataset, layout, NULL);
  mf_batch* batch;
  mf_tensor tensor = MF_TENSOR_INIT;
  OK(mf_loader_next(loader, -1, &batch, &error));
  OK(mf_batch_tensor(batch, 0, &tensor));
  CHECK(tensor.shape[0] == n && memcmp(tensor.data, want, (size_t)(n * width) * sizeof *want) == 0);
  mf_batch_release(batch);
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
}

/* All views over each other. Only the last handle is left, and it keeps both tables. */
static void chain(void) {
  mf_error error = MF_ERROR_INIT;
  table one, two;
  mf_dataset both[2], made;
  both[0] = open_table(&one, 0), both[1] = open_table(&two, 1);
  OK(mf_dataset_concat(both, 2, &made, &error));
  OK(mf_release(both[0].id, &error));
  mf_dataset v = over(both[1], made); /* labels 0 to 9, 100 to 109 */
  const char* const ab[] = {"b", "a"};
  const mf_stack stack = {"x", ab, 2};
  OK(mf_dataset_stack(v, &stack, 1, &made, &error));
  v = over(v, made);
  expect_info(v, "{\"name\":\"x\",\"dtype\":\"float32\",\"shape\":[2],\"nullable\":false}");
  expect_info(v, "\"name\":\"patient\",\"dtype\":\"int32\",\"shape\":[],\"nullable\":false,\"logical\":"
                 "\"patient number\"");
  const uint8_t bits[] = {0xff, 0xdf, 0x0f}; /* without record 13, label 103 */
  OK(mf_dataset_filter(v, bits, 2 * N, &made, &error));
  v = over(v, made);
  const mf_renaming names[] = {{"patient", "label"}, {"label", "patient"}};
  OK(mf_dataset_rename(v, names, 2, &made, &error));
  v = over(v, made);
  OK(mf_dataset_rename(v, names, 2, &made, &error));
  v = over(v, made);
  const mf_windows windows = {sizeof windows, 0, 3, 0, "patient"};
  OK(mf_dataset_window(v, &windows, &made, &error));
  v = over(v, made); /* they begin at 0, 1, 4, 5, 100, 104 and 105; both patients 2 have two records */
  expect_labels(v, 7, 3,
                (int32_t[]){0, 1, 2, 1, 2, 3, 4, 5, 6, 5, 6, 7, 100, 101, 102, 104, 105, 106, 105, 106, 107});
  const int64_t last[] = {6, 1};
  OK(mf_dataset_take(v, last, 2, &made, &error));
  v = over(v, made);
  expect_labels(v, 2, 3, (int32_t[]){105, 106, 107, 1, 2, 3});
  CHECK(one.released == 0 && two.released == 0 && mf_live_handles() == 1);
  OK(mf_release(v.id, &error));
  CHECK(one.released == 1 && two.released == 1);
}

/* A dataset may occur several times. 10,000 datasets are one. */
static void many(void) {
  mf_error error = MF_ERROR_INIT;
  table t;
  mf_dataset made;
  mf_dataset* const list = (mf_dataset*)malloc(10000 * sizeof *list);
  const mf_dataset all = open_table(&t, 7);
  for (int i = 0; i < 10000; i++)
    OK(mf_dataset_slice(all, i % N, i % N + 1, &list[i], &error));
  OK(mf_release(all.id, &error));
  OK(mf_dataset_concat(list, 10000, &made, &error));
  for (int i = 0; i < 10000; i++)
    OK(mf_release(list[i].id, &error));
  expect_info(made, "\"records\":10000,");
  OK(mf_dataset_concat((mf_dataset[]){made, made}, 2, list, &error));
  OK(mf_release(made.id, &error));
  OK(mf_dataset_slice(list[0], 9999, 10002, &made, &error));
  expect_labels(made, 3, 1, (int32_t[]){709, 700, 701});
  CHECK(t.released == 0);
  OK(mf_release(made.id, &error));
  CHECK(t.released == 0);
  OK(mf_release(list[0].id, &error));
  CHECK(t.released == 1);
  free(list);
}

static void errors(void) {
  mf_error error = MF_ERROR_INIT;
  table t;
  mf_dataset made, renamed;
  const mf_dataset all = open_table(&t, 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_filter(all, (uint8_t[]){0}, 3, &made, &error));
  CHECK(!made.id && strcmp(error.message, "the filter is for 3 records, but the dataset has 10") == 0);
  OK(mf_dataset_rename(all, &(mf_renaming){"a", "c"}, 1, &renamed, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_concat((mf_dataset[]){all, all, renamed}, 3, &made, &error));
  CHECK(!made.id && strcmp(error.message, "datasets 0 and 2 differ: only dataset 0 has field \"a\"") == 0);
  OK(mf_release(renamed.id, &error));
  EXPECT(MF_INVALID_STATE, mf_dataset_concat((mf_dataset[]){all, renamed}, 2, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_concat(&all, 0, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT,
         mf_dataset_rename(all, (mf_renaming[]){{"a", "c"}, {"a", "d"}}, 2, &made, &error));
  CHECK(strcmp(error.message, "/names/a: key \"a\" occurs twice") == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_rename(all, &(mf_renaming){NULL, NULL}, 1, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_rename(all, &(mf_renaming){"a", "b"}, -1, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_stack(all, &(mf_stack){"x", NULL, 1}, 1, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_stack(all, &(mf_stack){NULL, NULL, 0}, 1, &made, &error));
  const int64_t first = 0;
  const char* const slice = "{\"start\":0,\"stop\":1}";
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_take(all, NULL, 1, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_take(all, &first, -1, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_filter(all, NULL, N, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_select(all, NULL, 1, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_pad(all, NULL, 1, 0, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_pad(all, &(mf_fill){.field = "a"}, 1, 4, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_window(all, NULL, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_split(all, NULL, &made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_view("slize", slice, 20, &all, 1, NULL, 0, &made, 1, &error));
  CHECK(strcmp(error.hint, "did you mean \"slice\"?") == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_view("slice", slice, 20, &all, 1, &first, 1, &made, 1, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_view("slice", slice, 20, &all, 1, NULL, 0, &made, 0, &error));
  mf_dataset two[] = {all, all};
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_view("slice", slice, 20, &all, 1, NULL, 0, two, 2, &error));
  CHECK(!two[0].id && !two[1].id && mf_live_handles() == 1);
  OK(mf_dataset_window(all, &(mf_windows){.length = 11}, &made, &error)); /* struct_size 0 is ABI 1.0 */
  EXPECT(MF_INVALID_ARGUMENT, mf_wait(made.id, -1, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_slice(made, 0, 1, &renamed, &error));
  CHECK(strcmp(error.message, "a window takes 11 records, but the dataset has 10") == 0);
  OK(mf_release(made.id, &error));
  OK(mf_release(all.id, &error));
  CHECK(t.released == 1);
}

/* Bytes are numbers in a shape, and numbers have another shape. */
static void shapes(void) {
  mf_error error = MF_ERROR_INIT;
  const int32_t numbers[] = {1, 2, 3, -4, 5, 6};
  mf_dataset v, made;
  mf_array array = MF_ARRAY_INIT;
  array.name = "label", array.data = numbers;
  array.dtype = (mf_dtype){MF_UINT, 8, 1};
  array.ndim = 2, array.shape = (int64_t[]){2, 12};
  OK(mf_dataset_open_arrays(&array, 1, NULL, NULL, &v, &error));
  mf_row_shape rows = {"label", (int64_t[]){3, 1}, 2, {MF_INT, 32, 1}, 0};
  OK(mf_dataset_reshape(v, &rows, &made, &error));
  v = over(v, made);
  expect_info(v, "\"dtype\":\"int32\",\"shape\":[3,1]");
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_reshape(v, &(mf_row_shape){0}, &made, &error));
  rows.ndim = -1;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_reshape(v, &rows, &made, &error));
  rows.ndim = 2;
  rows.dtype.bits = 24;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_reshape(v, &rows, &made, &error));
  rows.dtype.bits = 16;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_reshape(v, &rows, &made, &error));
  rows = (mf_row_shape){"label", (int64_t[]){3}, 1, {0}, 0};
  OK(mf_dataset_reshape(v, &rows, &made, &error));
  v = over(v, made);
  expect_labels(v, 2, 3, numbers);
  OK(mf_release(v.id, &error));
}

/* Every record is in one part, patients stay together, and the memory of the dataset stays
   until the last part is released, also while the field is read. */
static void parts(void) {
  mf_error error = MF_ERROR_INIT;
  table t;
  mf_dataset made[2];
  mf_dataset all = open_table(&t, 0);
  const mf_share shares[] = {{"train", 0.7}, {"test", 0.3}};
  mf_division division = {sizeof division, 2, shares, 0, NULL};
  OK(mf_dataset_split(all, &division, made, &error));
  expect_labels(made[0], 7, 1, (int32_t[]){0, 2, 3, 5, 7, 8, 9});
  expect_labels(made[1], 3, 1, (int32_t[]){1, 4, 6}); /* frozen, as in Go and Python */
  OK(mf_release(made[0].id, &error));
  OK(mf_release(made[1].id, &error));
  division.within = "patient";
  for (int i = 0; i < 100; i++) {
    OK(mf_dataset_split(all, &division, made, &error));
    if (i % 2)
      OK(mf_wait(made[i % 4 / 2].id, -1, &error));
    if (i == 99)
      OK(mf_release(all.id, &error));
    CHECK(t.released == 0);
    OK(mf_release(made[0].id, &error));
    CHECK(t.released == 0);
    OK(mf_release(made[1].id, &error));
  }
  CHECK(t.released == 1);
  all = open_table(&t, 0);
  division.n_parts = 1;
  OK(mf_dataset_split(all, &division, made, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_wait(made[0].id, -1, &error));
  CHECK(strcmp(error.message, "the shares of the parts add up to 0.7") == 0);
  OK(mf_release(made[0].id, &error));
  division.n_parts = 0;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_split(all, &division, made, &error));
  division.n_parts = -1;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_split(all, &division, made, &error));
  OK(mf_release(all.id, &error));
  CHECK(t.released == 1);
}

/* Views of one dataset are made and released on several threads, and the dataset is released
   among them. */
static void* make_views(void* dataset) {
  mf_error error = MF_ERROR_INIT;
  for (int i = 0; i < 200; i++) {
    mf_dataset made, pair, window;
    if (mf_dataset_slice(*(mf_dataset*)dataset, 0, 9, &made, &error) != MF_OK)
      break;
    OK(mf_dataset_concat((mf_dataset[]){made, made}, 2, &pair, &error));
    OK(mf_dataset_window(pair, &(mf_windows){.length = 2, .within = "patient"}, &window, &error));
    OK(mf_release(made.id, &error));
    OK(mf_release(pair.id, &error));
    if (i % 2)
      OK(mf_wait(window.id, -1, &error));
    OK(mf_release(window.id, &error));
  }
  return NULL;
}

static void threads(void) {
  mf_error error = MF_ERROR_INIT;
  table t;
  pthread_t other[4];
  mf_dataset all = open_table(&t, 0);
  for (int i = 0; i < 4; i++)
    CHECK(pthread_create(&other[i], NULL, make_views, &all) == 0);
  CHECK(pthread_join(other[0], NULL) == 0);
  OK(mf_release(all.id, &error));
  for (int i = 1; i < 4; i++)
    CHECK(pthread_join(other[i], NULL) == 0);
  CHECK(t.released == 1);
}

/* Texts and numbers of the program in a document. */
static void documents(void) {
  mf_bytes json = {NULL, 0};
  const float tenth = 0.1f;
  const uint64_t most = UINT64_MAX;
  const double parts[] = {1.5, -HUGE_VAL};
  const mf_fill fills[] = {{"x", &tenth, {MF_FLOAT, 32, 1}, 0},
                           {"x", &most, {MF_UINT, 64, 1}, 0},
                           {"x", parts, {MF_COMPLEX, 128, 1}, 0},
                           {"x", &most, {MF_FLOAT, 16, 1}, 0}};
  const mf_dtype types[] = {{MF_INT, 8, 1}, {MF_BOOL, 8, 1}, {MF_BFLOAT, 16, 1}, {3, 8, 1}};
  if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
    CHECK(setlocale(LC_NUMERIC, "C")); /* the machine has no locale with a decimal comma */
  mf_json_append(&json, "{'a': %s, 'b': [%d, %g, %g]", "'q\"\\\n\xc3\xa9", INT64_MIN, 0.25, (double)NAN);
  for (int i = 0; i < 4; i++)
    mf_json_append(&json, ", %v %t", &fills[i], &types[i]);
  mf_json_append(&json, ", %s %v %t%", (const char*)NULL, (const mf_fill*)NULL, (const mf_dtype*)NULL);
  CHECK(json.size == strlen(json.data));
  if (strcmp(json.data, "{\"a\": \"'q\\\"\\\\\\u000a\xc3\xa9\", \"b\": [-9223372036854775808, 0.25, \"nan\"]"
                        ", 0.10000000149011612 \"int8\", 18446744073709551615 \"bool\""
                        ", [1.5,\"-inf\"] \"bfloat16\", null null, null null null%") != 0) {
    fprintf(stderr, "%s\n", json.data);
    CHECK(false);
  }
  mf_bytes_free(&json);
}

int main(void) {
  documents();
  chain();
  many();
  errors();
  shapes();
  parts();
  threads();
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  puts("ok");
  return 0;
}
