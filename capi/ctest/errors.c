/*
 * errors.c: which arguments are refused, with which texts, and what refused calls write. FILE is
 * a file of five records.
 */
#include "check.h"
#include "meshfeed_certificate.h"

static mf_error error = MF_ERROR_INIT;

static void expect_text(const char* op, const char* message, const char* hint, const char* path) {
  if (strcmp(error.op, op) || strcmp(error.message, message) || strcmp(error.hint, hint) ||
      strcmp(error.path, path)) {
    fprintf(stderr, "got  %s: %s; %s (%s)\nwant %s: %s; %s (%s)\n", error.op, error.message, error.hint,
            error.path, op, message, hint, path);
    exit(1);
  }
}

/* Functions without an mf_error refuse NULL by their status, or accept it. */
static void null_arguments(mf_batch* batch) {
  mf_tensor tensor;
  struct DLManagedTensorVersioned* exported = (struct DLManagedTensorVersioned*)&tensor;
  struct DLManagedTensor* legacy = (struct DLManagedTensor*)&tensor;
  tensor.struct_size = sizeof tensor;
  tensor.name = "x";
  CHECK(mf_batch_tensor(batch, 0, NULL) == MF_INVALID_ARGUMENT);
  CHECK(mf_batch_tensor(NULL, 0, &tensor) == MF_INVALID_ARGUMENT && !tensor.name);
  CHECK(mf_batch_dlpack(NULL, 0, &exported) == MF_INVALID_ARGUMENT && !exported);
  CHECK(mf_batch_dlpack_legacy(NULL, 0, &legacy) == MF_INVALID_ARGUMENT && !legacy);
  CHECK(mf_batch_dlpack(batch, 0, NULL) == MF_INVALID_ARGUMENT);
  CHECK(mf_batch_dlpack_legacy(batch, 0, NULL) == MF_INVALID_ARGUMENT);
  CHECK(mf_batch_arrow(batch, 0, NULL, NULL) == MF_INVALID_ARGUMENT);
  CHECK(mf_batch_record(NULL, NULL, 0, NULL, NULL) == MF_INVALID_ARGUMENT);
  CHECK(mf_batch_record(batch, NULL, 1, NULL, NULL) == MF_INVALID_ARGUMENT);
  CHECK(mf_batch_stream(batch, NULL, 0, NULL) == MF_INVALID_ARGUMENT);
  mf_batch_release(NULL);
  mf_batch_retain(NULL);
  mf_bytes_free(NULL);
  OK(mf_release(0, &error));
}

#define UNTOUCHED(text) (strspn(text, "\x5a") == sizeof(text) - 1)

/* If a caller's struct is shorter or longer than the library's, only the common part is
   read and written. */
static void sizes(mf_loader loader, mf_batch* batch, records* r) {
  struct {
    mf_tensor known;
    char more[25];
  } tensor;
  struct {
    mf_stats known;
    char more[25];
  } stats;
  struct {
    mf_error known;
    char more[25];
  } failure;
  struct {
    mf_array known;
    char more[24];
  } arrays[2];
  memset(&tensor, 0x5a, sizeof tensor);
  memset(&stats, 0x5a, sizeof stats);
  memset(&failure, 0x5a, sizeof failure);
  memset(arrays, 0x5a, sizeof arrays);
  tensor.more[24] = stats.more[24] = failure.more[24] = 0;
  tensor.known.struct_size = sizeof tensor;
  stats.known.struct_size = sizeof stats;
  failure.known.struct_size = sizeof failure;
  CHECK(mf_batch_tensor(batch, 1, &tensor.known) == MF_OK && tensor.known.ndim == 3 &&
        UNTOUCHED(tensor.more));
  CHECK(tensor.known.struct_size == sizeof tensor && tensor.known.n_holders == 1);
  CHECK(tensor.known.holders[0] == 1 && tensor.known.start[2] == 3 && tensor.known.shape[2] == 3);
  CHECK(tensor.known.global_shape[0] == 4 && tensor.known.global_shape[2] == 6);
  CHECK(mf_loader_stats(loader, &stats.known, &failure.known) == MF_OK && UNTOUCHED(stats.more));
  CHECK(stats.known.struct_size == sizeof stats && stats.known.batches == 1);
  CHECK(failure.known.code == MF_OK && failure.known.path[255] == 0 && UNTOUCHED(failure.more));

  memset(&stats, 0x5a, sizeof stats);
  stats.known.struct_size = 16; /* an older caller with a struct that ends after the epoch */
  OK(mf_loader_stats(loader, &stats.known, &error));
  CHECK(stats.known.epoch == 0 && stats.known.step == 0x5a5a5a5a5a5a5a5a);
  memset(&tensor, 0x5a, sizeof tensor);
  tensor.known.struct_size = offsetof(mf_tensor, name);
  CHECK(mf_batch_tensor(batch, 0, &tensor.known) == MF_OK && tensor.known.array == 0);
  CHECK(memcmp(&tensor.known.name, "ZZZZZZZZ", 8) == 0);
  tensor.known.struct_size = 4; /* no field fits */
  CHECK(mf_batch_tensor(batch, 0, &tensor.known) == MF_INVALID_ARGUMENT && tensor.known.array == 0);

  const int64_t shape[] = {RECORDS};
  const char* names[] = {"a", "b"};
  for (int i = 0; i < 2; i++) {
    memset(&arrays[i].known, 0, sizeof arrays[i].known);
    arrays[i].known.struct_size = sizeof arrays[i];
    arrays[i].known.name = names[i];
    arrays[i].known.ndim = 1;
    arrays[i].known.data = r->label;
    arrays[i].known.dtype.bits = 32;
    arrays[i].known.dtype.lanes = 1;
    arrays[i].known.shape = shape;
  }
  mf_dataset dataset;
  mf_bytes info;
  OK(mf_dataset_open_arrays(&arrays[0].known, 2, NULL, NULL, &dataset, &error));
  OK(mf_dataset_info(dataset, &info, &error));
  CHECK(strstr(info.data, "\"name\":\"a\"") && strstr(info.data, "\"name\":\"b\""));
  mf_bytes_free(&info);
  OK(mf_release(dataset.id, &error));
}

/* The two dimensions of a picture must exist and differ. */
static void dimensions(mf_layout layout) {
  const int32_t wrong[][2] = {{0, 3}, {-1, 0}, {1, 1}}, first[] = {0, 1}, last[] = {2, 0};
  mf_picture picture = MF_PICTURE_INIT;
  mf_bytes text;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    picture.dims = wrong[i];
    EXPECT(MF_INVALID_ARGUMENT, mf_layout_draw(layout, &picture, &text, &error));
    CHECK(strstr(error.message, "expected dims to be two different dimensions from 0 to 2, but found ["));
  }
  picture.dims = first;
  picture.array = "label";
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_draw(layout, &picture, &text, &error));
  expect_text("layout", "dims are for arrays of two dimensions or more", "leave them out", "");
  picture.dims = last;
  picture.array = NULL; /* label has one dimension */
  OK(mf_layout_draw(layout, &picture, &text, &error));
  mf_bytes_free(&text);
}

/* Every field of a picture has its effect, and invalid values are refused. */
static void pictures(mf_layout layout) {
  mf_bytes all, one, svg, text;
  OK(mf_layout_draw(layout, NULL, &all, &error));
  OK(mf_layout_draw(layout, &(mf_picture){.array = "label", .width = 60}, &one, &error));
  OK(mf_layout_draw(layout, &(mf_picture){.format = MF_SVG}, &svg, &error));
  CHECK(strstr(all.data, "image") && strstr(one.data, "label") && !strstr(one.data, "image"));
  CHECK(strncmp(svg.data, "<svg", 4) == 0);
  mf_bytes_free(&all);
  mf_bytes_free(&one);
  mf_bytes_free(&svg);
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_draw(layout, &(mf_picture){.format = 2}, &text, &error));
  expect_text("layout", "format is 2, but must be MF_TEXT or MF_SVG", "", "");
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_draw(layout, &(mf_picture){.width = -1}, &text, &error));
  expect_text("layout", "width is -1, but must be positive, or 0 for 80 columns", "", "");
  EXPECT(MF_NOT_FOUND, mf_layout_draw(layout, &(mf_picture){.array = "x"}, &text, &error));
  expect_text("layout", "the layout has no array \"x\"", "its arrays: \"image\", \"label\"", "");
  OK(mf_layout_report(layout, MF_ALL_DEVICES, &text, &error));
  mf_bytes_free(&text);
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_report(layout, 6, &text, &error));
  expect_text("meshfeed", "flags are 0x6, but this function does not have all of them", "", "");
}

/* In a struct of zeros, the fields of ABI 1.0 are filled. An mf_array needs its size,
   because it is the distance to the next one. */
static void zeroed(mf_loader loader, mf_batch* batch) {
  mf_error failure;
  mf_stats stats;
  mf_tensor tensor;
  mf_array array;
  memset(&failure, 0, sizeof failure);
  memset(&stats, 0, sizeof stats);
  memset(&tensor, 0, sizeof tensor);
  memset(&array, 0, sizeof array);
  CHECK(mf_loader_seek(loader, -1, 0, &failure) == MF_OUT_OF_RANGE);
  CHECK(failure.struct_size == 0 && failure.code == MF_OUT_OF_RANGE);
  CHECK(strcmp(failure.op, "loader") == 0 && failure.message[0]);
  CHECK(mf_loader_stats(loader, &stats, &failure) == MF_OK && stats.host_bytes > 0);
  CHECK(failure.code == MF_OK && failure.message[0] == 0);
  CHECK(stats.struct_size == 0 && stats.gathered_bytes == stats.bytes && stats.bytes > 0);
  CHECK(mf_batch_tensor(batch, 1, &tensor) == MF_OK && tensor.struct_size == 0);
  CHECK(strcmp(tensor.name, "image") == 0 && tensor.n_holders == 1);
  mf_dataset dataset;
  EXPECT(MF_INCOMPATIBLE, mf_dataset_open_arrays(&array, 1, NULL, NULL, &dataset, &error));
  expect_text("arrays", "struct_size of an mf_array is 0, but must be at least 56",
              "begin every array with MF_ARRAY_INIT, or set struct_size to sizeof(mf_array)", "");
}

static void code_names(void) {
  CHECK(strcmp(mf_code_name(MF_OK), "MF_OK") == 0);
  CHECK(strcmp(mf_code_name(MF_INTERNAL), "MF_INTERNAL") == 0);
  CHECK(strcmp(mf_code_name(3), "MF_UNKNOWN") == 0 && strcmp(mf_code_name(-13), "MF_UNKNOWN") == 0);
}

/* A list that is longer than the buffer is cut, and a longer buffer is allowed. */
static void capacity(mf_loader loader) {
  int64_t list[8], count;
  memset(list, 0x5a, sizeof list);
  OK(mf_loader_records(loader, 0, 4, list, 2, &count, &error));
  CHECK(count == 4 && list[0] == 4 && list[1] == 5 && list[2] == 0x5a5a5a5a5a5a5a5a);
  OK(mf_loader_records(loader, 0, 4, list, INT64_MAX, &count, &error));
  CHECK(count == 4 && list[3] == 7 && list[4] == 0x5a5a5a5a5a5a5a5a);
  OK(mf_loader_records(loader, 0, 4, NULL, -1, &count, &error));
  CHECK(count == 4);
}

static void handles(mf_loader loader, mf_layout layout) {
  mf_bytes bytes;
  EXPECT(MF_INVALID_STATE, mf_wait(0, 0, &error));
  expect_text("handle", "0 is not a handle", "check the outcome of the call that should have made it", "");
  EXPECT(MF_INVALID_STATE, mf_layout_json((mf_layout){loader.id}, &bytes, &error));
  CHECK(strstr(error.message, "names a loader, not a layout"));
  const mf_layout other = make_layout(DOCUMENT(100, 4, ""));
  OK(mf_release(other.id, &error));
  EXPECT(MF_INVALID_STATE, mf_release(other.id, &error));
  EXPECT(MF_INVALID_STATE, mf_layout_json(other, &bytes, &error));
  const mf_layout next = make_layout(DOCUMENT(100, 4, ""));
  CHECK(next.id != other.id);
  OK(mf_cancel(next.id, &error));
  EXPECT(MF_CANCELLED, mf_layout_json(next, &bytes, &error));
  OK(mf_release(next.id, &error));
  OK(mf_layout_json(layout, &bytes, &error));
  CHECK(bytes.data[bytes.size] == 0 && strlen(bytes.data) == bytes.size);
  mf_bytes_free(&bytes);
}

/* Texts that do not fit are cut at character boundaries, and a caller with a shorter
   struct gets what fits. */
static void long_texts(mf_layout layout) {
  char path[2400] = "xx"; /* two one-byte characters, so that the limits are within a later one */
  const char* const file = path;
  for (int i = 0; i < 1100; i++)
    strcat(path, "\xc3\xa4"); /* one character of two bytes */
  mf_dataset dataset;
  OK(mf_dataset_open(&file, 1, NULL, &dataset, &error));
  CHECK(mf_wait(dataset.id, -1, &error) < 0);
  OK(mf_release(dataset.id, NULL));
  const size_t n = strlen(error.message), p = strlen(error.path);
  CHECK(n == sizeof error.message - 2);
  CHECK(p == sizeof error.path - 2 && error.path[0] == 'x');
  CHECK((unsigned char)error.message[n - 1] == 0xa4 && (unsigned char)error.message[n - 2] == 0xc3);
  CHECK((unsigned char)error.path[p - 1] == 0xa4);

  struct {
    mf_error error;
    char guard[16];
  } small;
  memset(&small, 0x5a, sizeof small);
  small.error.struct_size = offsetof(mf_error, message) + 10;
  mf_bytes bytes;
  CHECK(mf_layout_report(layout, 2, &bytes, &small.error) == MF_INVALID_ARGUMENT);
  CHECK(small.error.code == MF_INVALID_ARGUMENT && strcmp(small.error.message, "flags are") == 0);
  CHECK(small.error.message[10] == 0x5a && small.guard[0] == 0x5a);
  CHECK(mf_layout_report(layout, 2, &bytes, NULL) == MF_INVALID_ARGUMENT);
}

/* A file may be listed twice only with a flag. The hint is the same in all languages. */
static void duplicates(const char* file) {
  const char* const twice[] = {file, file};
  mf_dataset dataset;
  mf_bytes info;
  OK(mf_dataset_open(twice, 2, NULL, &dataset, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_wait(dataset.id, -1, &error));
  CHECK(strstr(error.message, "are the same file") && strcmp(error.path, file) == 0);
  CHECK(strcmp(error.hint,
               "leave one out, or pass duplicates=\"allow\" (Go: Duplicates, C: MF_ALLOW_DUPLICATES)") == 0);
  OK(mf_release(dataset.id, &error));
  OK(mf_dataset_open(twice, 2, &(mf_dataset_options){.flags = MF_ALLOW_DUPLICATES}, &dataset, &error));
  OK(mf_dataset_info(dataset, &info, &error));
  CHECK(strncmp(info.data, "{\"records\":10,", 14) == 0);
  mf_bytes_free(&info);
  OK(mf_release(dataset.id, &error));
}

/* Only chosen columns become fields. */
static void columns(const char* file) {
  const char* const names[] = {"bytes", "none"};
  mf_dataset_options options = MF_DATASET_OPTIONS_INIT;
  mf_dataset dataset;
  mf_bytes info;
  options.columns = names;
  options.n_columns = 1;
  OK(mf_dataset_open(&file, 1, &options, &dataset, &error));
  OK(mf_dataset_info(dataset, &info, &error));
  CHECK(strstr(info.data, "\"bytes\"") && !strstr(info.data, "\"image\""));
  mf_bytes_free(&info);
  OK(mf_release(dataset.id, &error));
  options.n_columns = 2;
  OK(mf_dataset_open(&file, 1, &options, &dataset, &error));
  EXPECT(MF_NOT_FOUND, mf_wait(dataset.id, -1, &error));
  CHECK(strstr(error.message, "there is no column \"none\""));
  OK(mf_release(dataset.id, &error));
  options.n_columns = -1;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open(&file, 1, &options, &dataset, &error));
  CHECK(strstr(error.message, "columns has -1 elements at "));
}

/* Calls on a loader with wrong options report them. */
static void refused_options(mf_dataset dataset, mf_layout layout, mf_loader_options options,
                            const char* message) {
  mf_loader loader;
  OK(mf_loader_create(dataset, layout, &options, &loader, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_wait(loader.id, -1, &error));
  CHECK(strcmp(error.op, "loader") == 0 && strcmp(error.message, message) == 0);
  OK(mf_release(loader.id, &error));
}

static void refused(mf_dataset dataset, mf_layout layout) {
  mf_dataset handle;
  mf_loader loader;
  refused_options(dataset, layout, (mf_loader_options){.epochs = -2},
                  "epochs is -2, but must be positive, 0 for one epoch per loop, or -1 for no end");
  refused_options(dataset, layout, (mf_loader_options){.prefetch = -2},
                  "prefetch is -2, but must be from -1 to 65536");
  refused_options(dataset, layout, (mf_loader_options){.workers = 65},
                  "workers is 65, but must be from 1 to 64, or 0 to choose");
  EXPECT(MF_INVALID_ARGUMENT,
         mf_loader_create(dataset, layout, &(mf_loader_options){.flags = 2}, &loader, &error));
  expect_text("meshfeed", "flags are 0x2, but this function does not have all of them", "", "");
  EXPECT(MF_INVALID_ARGUMENT,
         mf_loader_create(dataset, layout, &(mf_loader_options){.n_fill = 1}, &loader, &error));
  CHECK(strncmp(error.message, "fill has 1 elements at ", 23) == 0 && loader.id == 0);

  const char* path = "";
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open(&path, 0, NULL, &handle, &error));
  expect_text("dataset", "expected at least one path, but n is 0", "", "");
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open(&path, 1, &(mf_dataset_options){.io = 3}, &handle, &error));
  expect_text("meshfeed", "io is 3, but must be from 0 to 2", "", "");
  path = "/nowhere/at/all.arrow";
  OK(mf_dataset_open(&path, 1, NULL, &handle, &error));
  EXPECT(MF_NOT_FOUND, mf_wait(handle.id, -1, &error));
  CHECK(strcmp(error.op, "arrowio") == 0 && strcmp(error.path, "/nowhere/at/all.arrow") == 0);
  mf_bytes bytes;
  EXPECT(MF_NOT_FOUND, mf_dataset_info(handle, &bytes, &error));
  mf_batch* batch; /* a loader of a failed dataset must be released, too */
  OK(mf_loader_create(handle, layout, NULL, &loader, &error));
  EXPECT(MF_NOT_FOUND, mf_loader_next(loader, -1, &batch, &error));
  OK(mf_release(loader.id, &error));
  OK(mf_release(handle.id, &error));
  CHECK(error.code == MF_OK && error.message[0] == 0 && error.path[0] == 0);

  const char* document = "{\"a\\u0000b\": 1}"; /* a NUL cannot be in a text of C */
  mf_layout none;
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_create(document, strlen(document), &none, &error));
  CHECK(strcmp(error.path, "/a\\0b") == 0);

  int64_t out[4];
  EXPECT(MF_OUT_OF_RANGE, mf_order_fill("shuffle.1", 9, 0, 3, 0, 0, out, 4, &error));
  expect_text("sampler", "4 positions from 0 are not within an epoch of 3", "", "");
  EXPECT(MF_INVALID_ARGUMENT, mf_order_fill("shuffle.9", 9, 0, 4, 0, 0, out, 4, &error));
  OK(mf_order_fill("shuffle.1", 9, 0, 4, 0, 0, out, 4, &error));
  CHECK(out[0] + out[1] + out[2] + out[3] == 6);
}

/* A process that the layout does not have is an error. It does not get empty batches. */
static void processes(mf_dataset dataset, mf_layout layout) {
  mf_batch* batch;
  mf_loader loader;
  OK(mf_loader_create(dataset, layout, &(mf_loader_options){.process = 1}, &loader, &error));
  EXPECT(MF_OUT_OF_RANGE, mf_wait(loader.id, -1, &error));
  expect_text(
      "loader", "process is 1, but the layout has process 0 alone",
      "number processes from 0; if the run has processes outside the mesh, say in processes how many it has",
      "");
  EXPECT(MF_OUT_OF_RANGE, mf_loader_next(loader, -1, &batch, &error));
  OK(mf_release(loader.id, &error));
  loader = make_loader(dataset, layout, &(mf_loader_options){.process = 1, .processes = 2});
  OK(mf_loader_next(loader, -1, &batch, &error));
  CHECK(batch->tensors == 0 && batch->rows == 4);
  mf_batch_release(batch);
  OK(mf_release(loader.id, &error));
}

/* Refused arrays are released before the call returns. */
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
  array.dtype.code = 0;
  array.dtype.bits = 32;
  array.dtype.lanes = 2;
  array.shape = shape;
  EXPECT(MF_UNSUPPORTED, mf_dataset_open_arrays(&array, 1, released, r, &dataset, &error));
  expect_text("arrays",
              "array \"label\" has an element type of DLPack code 0, 32 bits, 2 lanes, which is not one of "
              "meshfeed's",
              "", "");
  CHECK(r->released == 1 && dataset.id == 0);
  array.dtype.code = 9;
  array.dtype.lanes = 1;
  EXPECT(MF_UNSUPPORTED, mf_dataset_open_arrays(&array, 1, NULL, NULL, &dataset, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(NULL, 1, released, r, &dataset, &error));
  CHECK(r->released == 2);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(&array, 0, NULL, NULL, &dataset, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(&array, INT32_MAX, NULL, NULL, &dataset, &error));
  expect_text("arrays", "a dataset has from 1 to 65536 arrays, but there are 2147483647", "", "");
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(&array, 1, released, r, NULL, &error));
  CHECK(r->released == 3);
  mf_array pair[2] = {array, array};
  pair[1].struct_size++;
  pair[0].dtype.code = pair[1].dtype.code = 0;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_arrays(pair, 2, NULL, NULL, &dataset, &error));
  CHECK(strcmp(error.message, "struct_size of array 1 is 57, but of the first one 56") == 0);
  array.struct_size = 8;
  EXPECT(MF_INCOMPATIBLE, mf_dataset_open_arrays(&array, 1, released, r, &dataset, &error));
  CHECK(r->released == 4);
  free(r);
}

int main(void) {
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, NULL);
  mf_batch* batch;
  OK(mf_loader_next(loader, -1, &batch, &error));
  null_arguments(batch);
  sizes(loader, batch, r);
  zeroed(loader, batch);
  code_names();
  mf_batch_release(batch);
  capacity(loader);
  dimensions(layout);
  pictures(layout);
  handles(loader, layout);
  long_texts(layout);
  duplicates(getenv("FILE"));
  columns(getenv("FILE"));
  refused(dataset, layout);
  processes(dataset, layout);
  refused_arrays();
  mf_cancel_all();
  EXPECT(MF_CANCELLED, mf_loader_next(loader, -1, &batch, &error));
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
