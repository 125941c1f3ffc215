/*
 * errors.c: what is refused, in which words, and what is written then.
 */
#include "check.h"

static mf_error error;

static void expect_text(const char* op, const char* message, const char* hint, const char* path) {
  if (strcmp(error.op, op) || strcmp(error.message, message) || strcmp(error.hint, hint) ||
      strcmp(error.path, path)) {
    fprintf(stderr, "got  %s: %s; %s (%s)\nwant %s: %s; %s (%s)\n", error.op, error.message, error.hint,
            error.path, op, message, hint, path);
    exit(1);
  }
}

static void null_arguments(mf_loader loader) {
  uint64_t handle = 77;
  mf_batch* batch;
  mf_bytes bytes = {(char*)&batch, 5};
  mf_stats stats;
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_create(NULL, 3, &handle, &error));
  expect_text("meshfeed", "argument \"json\" is NULL", "", "");
  CHECK(handle == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_create("{}", 2, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_next(loader, 0, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_state(loader, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_stats(loader, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_record_key(0, 0, 0, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_stream(NULL, NULL, 0, &handle, &error));
  EXPECT(MF_INVALID_STATE, mf_loader_state(1, &bytes, &error));
  CHECK(bytes.data == NULL && bytes.size == 0);
  CHECK(mf_batch_tensor(NULL, 0, NULL) == MF_INVALID_ARGUMENT);
  memset(&stats, 0x5a, sizeof stats);
  stats.struct_size = 16; /* an older caller: only the epoch is written */
  OK(mf_loader_stats(loader, &stats, &error));
  CHECK(stats.epoch == 0 && stats.step == 0x5a5a5a5a5a5a5a5a);
  mf_batch_release(NULL);
  mf_batch_retain(NULL);
  mf_bytes_free(NULL);
  OK(mf_release(0, &error));
}

static void handles(mf_loader loader, mf_layout layout) {
  mf_bytes bytes;
  EXPECT(MF_INVALID_STATE, mf_wait(0, 0, &error));
  expect_text("handle", "0 is not a handle", "check the outcome of the call that should have made it", "");
  EXPECT(MF_INVALID_STATE, mf_layout_json(loader, &bytes, &error));
  CHECK(strstr(error.message, "names a loader, not a layout"));
  const mf_layout other = make_layout(DOCUMENT(100, 4, ""));
  OK(mf_release(other, &error));
  EXPECT(MF_INVALID_STATE, mf_release(other, &error));
  EXPECT(MF_INVALID_STATE, mf_layout_json(other, &bytes, &error));
  const mf_layout next = make_layout(DOCUMENT(100, 4, ""));
  CHECK(next != other && (uint32_t)next == (uint32_t)other);
  OK(mf_cancel(next, &error));
  EXPECT(MF_CANCELLED, mf_layout_json(next, &bytes, &error));
  OK(mf_release(next, &error));
  OK(mf_layout_json(layout, &bytes, &error));
  CHECK(bytes.data[bytes.size] == 0 && strlen(bytes.data) == bytes.size);
  mf_bytes_free(&bytes);
}

/* Texts that do not fit are cut between characters, and a caller with a
   shorter struct gets what fits. */
static void long_texts(mf_layout layout) {
  char json[5000] = "{\"x"; /* so that the limits fall into a character */
  for (int i = 0; i < 1500; i++)
    strcat(json, "\xc3\xa4"); /* a umlaut */
  strcat(json, "\": 1}");
  mf_bytes bytes;
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_draw(layout, json, strlen(json), &bytes, &error));
  const size_t n = strlen(error.message), p = strlen(error.path);
  CHECK(n == sizeof error.message - 2);
  CHECK(p == sizeof error.path - 2 && error.path[0] == '/');
  CHECK((unsigned char)error.message[n - 1] == 0xa4 && (unsigned char)error.message[n - 2] == 0xc3);
  CHECK((unsigned char)error.path[p - 1] == 0xa4);

  struct {
    mf_error error;
    char guard[16];
  } small;
  memset(&small, 0x5a, sizeof small);
  small.error.struct_size = offsetof(mf_error, message) + 10;
  CHECK(mf_layout_draw(layout, "{\"x\": 1}", 8, &bytes, &small.error) == MF_INVALID_ARGUMENT);
  CHECK(small.error.code == MF_INVALID_ARGUMENT && strcmp(small.error.message, "options /") == 0);
  CHECK(small.error.message[10] == 0x5a && small.guard[0] == 0x5a);
  small.error.struct_size = 0;
  CHECK(mf_layout_draw(layout, "{\"x\": 1}", 8, &bytes, &small.error) == MF_INVALID_ARGUMENT);
  CHECK(mf_layout_draw(layout, "{\"x\": 1}", 8, &bytes, NULL) == MF_INVALID_ARGUMENT);
}

static void refused(mf_dataset dataset, mf_layout layout) {
  uint64_t handle;
  const char* options = "{\"seed\": \"1\"}";
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_create(dataset, layout, options, strlen(options), &handle, &error));
  expect_text("loader", "options /seed: expected an integer, but found \"1\"", "", "/seed");
  options = "{\"epochs\": 0}";
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_create(dataset, layout, options, strlen(options), &handle, &error));
  expect_text("loader", "options /epochs: expected a number of epochs, or -1 for no end, but found 0", "",
              "/epochs");
  options = "{\"paths\": []}";
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open(options, strlen(options), &handle, &error));
  expect_text("dataset", "options /paths: expected at least one path", "", "/paths");
  options = "{\"paths\": [\"/nowhere/at/all.arrow\"]}";
  OK(mf_dataset_open(options, strlen(options), &handle, &error));
  EXPECT(MF_NOT_FOUND, mf_wait(handle, -1, &error));
  CHECK(strcmp(error.op, "arrowio") == 0 && strcmp(error.path, "/nowhere/at/all.arrow") == 0);
  mf_bytes bytes;
  EXPECT(MF_NOT_FOUND, mf_dataset_info(handle, &bytes, &error));
  OK(mf_release(handle, &error));
  CHECK(error.code == MF_OK && error.message[0] == 0 && error.path[0] == 0);

  int64_t out[4];
  EXPECT(MF_OUT_OF_RANGE, mf_order_fill("shuffle.1", 9, 0, 3, 0, 0, out, 4, &error));
  expect_text("sampler", "4 positions from 0 are not within an epoch of 3", "", "");
  EXPECT(MF_INVALID_ARGUMENT, mf_order_fill("shuffle.9", 9, 0, 4, 0, 0, out, 4, &error));
  OK(mf_order_fill("shuffle.1", 9, 0, 4, 0, 0, out, 4, &error));
  CHECK(out[0] + out[1] + out[2] + out[3] == 6);
}

/* Arrays that cannot be right give their memory back at once. */
static void refused_arrays(void) {
  records* r = make_records();
  mf_dataset dataset;
  const int64_t shape[] = {RECORDS};
  mf_array array;
  memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.name = "label";
  array.ndim = 1;
  array.data = r->label;
  array.dtype.code = 9;
  array.dtype.bits = 32;
  array.dtype.lanes = 1;
  array.shape = shape;
  EXPECT(MF_UNSUPPORTED, mf_dataset_open_arrays(&array, 1, released, r, &dataset, &error));
  expect_text("arrays",
              "array \"label\" has an element type of DLPack code 9, 32 bits, 1 lanes, which is not one of "
              "meshfeed's",
              "", "");
  CHECK(r->released == 1 && dataset == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(NULL, 1, released, r, &dataset, &error));
  CHECK(r->released == 2);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(&array, 0, NULL, NULL, &dataset, &error));
  mf_array pair[2] = {array, array};
  pair[1].struct_size++;
  pair[0].dtype.code = pair[1].dtype.code = 0;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(pair, 2, NULL, NULL, &dataset, &error));
  CHECK(strcmp(error.message, "struct_size of array 1 is 49, but of the first one 48") == 0);
  array.struct_size = 8;
  EXPECT(MF_INCOMPATIBLE, mf_dataset_open_arrays(&array, 1, released, r, &dataset, &error));
  CHECK(r->released == 3);
  free(r);
}

int main(void) {
  error = no_error();
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, "");
  null_arguments(loader);
  handles(loader, layout);
  long_texts(layout);
  refused(dataset, layout);
  refused_arrays();
  mf_cancel_all();
  mf_batch* batch;
  EXPECT(MF_CANCELLED, mf_loader_next(loader, -1, &batch, &error));
  OK(mf_release(loader, &error));
  OK(mf_release(layout, &error));
  OK(mf_release(dataset, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
