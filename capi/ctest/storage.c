/*
 * storage.c: a dataset of files that a function of the program finds and reads.
 */
#include "../../arrowio/cstream/cstream.h"
#include "check.h"

enum { ELEMENTS = 3 << 20 }; /* of two bytes, so that a read needs no more than one block of 8 MiB */

static uint16_t elements[ELEMENTS];
static int stats, reads, ends, fails;

/* Returns a text of the row that the function gets, which does not end with NUL. */
static int is(const mf_map_rows* rows, int column, const char* text) {
  const struct ArrowArray* a = rows->given->children[column];
  const int64_t* offsets = (const int64_t*)a->buffers[1];
  const int64_t size = offsets[1] - offsets[0];
  return size == (int64_t)strlen(text) &&
         (!size || !memcmp((const char*)a->buffers[2] + offsets[0], text, size));
}

static int64_t number(const mf_map_rows* rows, int column) {
  return ((const int64_t*)rows->given->children[column]->buffers[1])[0];
}

static mf_status answer(mf_map_rows* rows, const void* data, int64_t size) {
  void* to = mf_map_reserve(&rows->out[0], size);
  CHECK(to);
  memcpy(to, data, size);
  rows->out[0].lengths[0] = size;
  return MF_OK;
}

static mf_status find_or_read(void* user, mf_map_rows* rows, mf_error* error) {
  CHECK(user == elements && rows->n_rows == 1 && rows->n_out == 1 && rows->given->n_children == 5);
  if (is(rows, 0, "stat") && is(rows, 1, "bucket/tokens.bin")) {
    __atomic_add_fetch(&stats, 1, __ATOMIC_SEQ_CST);
    char entry[100];
    sprintf(entry, "[{\"name\":\"bucket/tokens.bin\",\"size\":%d,\"version\":\"v1\",\"identity\":\"x 1\"}]",
            2 * ELEMENTS);
    return answer(rows, entry, strlen(entry));
  }
  if (is(rows, 0, "stat"))
    return answer(rows, "null", 4);
  CHECK(is(rows, 0, "read") && is(rows, 1, "bucket/tokens.bin") && is(rows, 2, "v1"));
  __atomic_add_fetch(&reads, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&fails, __ATOMIC_SEQ_CST)) {
    strcpy(error->message, "the storage is closed on Sundays");
    strcpy(error->hint, "come on Monday");
    return MF_IO;
  }
  CHECK(number(rows, 4) <= 8 << 20);
  return answer(rows, (const char*)elements + number(rows, 3), number(rows, 4));
}

static void release(void* user) {
  CHECK(user == elements);
  __atomic_add_fetch(&ends, 1, __ATOMIC_SEQ_CST);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  mf_map storage = {sizeof storage, 0, find_or_read, elements, release};
  mf_dataset_options options = MF_DATASET_OPTIONS_INIT;
  options.dtype = (mf_dtype){MF_UINT, 16, 1};
  options.cache = "memory";
  options.storage = &storage;
  for (int i = 0; i < ELEMENTS; i++)
    elements[i] = (uint16_t)(i * 7);

  const char* path = "bucket/tokens.bin";
  mf_dataset dataset;
  OK(mf_dataset_open(&path, 1, &options, &dataset, &error));
  OK(mf_wait(dataset.id, -1, &error));
  const int64_t numbers[] = {ELEMENTS - 1, 5};
  struct ArrowArray rows;
  OK(mf_dataset_rows(dataset, numbers, 2, &rows, NULL, &error));
  const uint16_t* got = (const uint16_t*)rows.children[0]->buffers[1];
  CHECK(got[0] == elements[ELEMENTS - 1] && got[1] == elements[5]);
  rows.release(&rows);
  CHECK(stats == 1 && reads > 0 && ends == 0);
  OK(mf_release(dataset.id, &error));
  CHECK(ends == 1);

  const char* none = "bucket/none.bin";
  OK(mf_dataset_open(&none, 1, &options, &dataset, &error));
  EXPECT(MF_NOT_FOUND, mf_wait(dataset.id, -1, &error));
  CHECK(!strcmp(error.path, none));
  OK(mf_release(dataset.id, &error));

  fails = 1;
  OK(mf_dataset_open(&path, 1, &options, &dataset, &error));
  EXPECT(MF_IO, mf_wait(dataset.id, -1, &error));
  CHECK(!strcmp(error.message, "bucket/tokens.bin: the storage is closed on Sundays"));
  CHECK(!strcmp(error.hint, "come on Monday") && !strcmp(error.path, path));
  OK(mf_release(dataset.id, &error));
  CHECK(ends == 3);

  storage.function = NULL;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open(&path, 1, &options, &dataset, &error));
  CHECK(strstr(error.message, "no function") && ends == 3);
  CHECK(mf_live_handles() == 0);
  puts("ok");
  return 0;
}
