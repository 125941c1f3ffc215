/*
 * map.c: functions of a program that compute rows, called directly and through a queue.
 */
#include "../../arrowio/cstream/cstream.h"
#include "check.h"
#include "meshfeed_certificate.h"

#include <pthread.h>
#include <sched.h>

static int calls, ends, blocks, unblocked; /* of several threads */

#define GET(number) __atomic_load_n(&(number), __ATOMIC_SEQ_CST)
#define SET(number, value) __atomic_store_n(&(number), value, __ATOMIC_SEQ_CST)
#define ADD(number) (void)__atomic_add_fetch(&(number), 1, __ATOMIC_SEQ_CST)

/* Waits until another thread has counted. */
static void await(int* number) {
  while (GET(*number) == 0)
    sched_yield();
}

static int32_t at(const mf_map_rows* rows, int64_t i) {
  const struct ArrowArray* label = rows->given->children[0];
  return ((const int32_t*)label->buffers[1])[i];
}

/* From each label L: "twice", which is 2 L and a word of the key, and "few", a list of L % 3 bytes. */
static mf_status compute(void* user, mf_map_rows* rows, mf_error* error) {
  CHECK(user == &calls && rows->n_out == 2 && rows->given->length == rows->n_rows && rows->keys);
  ADD(calls);
  while (GET(blocks) && !GET(unblocked))
    sched_yield();
  int32_t* twice = (int32_t*)rows->out[0].data;
  CHECK(rows->out[0].size == rows->n_rows * 8 && !rows->out[0].lengths);
  CHECK(!mf_map_reserve(&rows->out[0], 1));
  int64_t size = 0, i, k;
  for (i = 0; i < rows->n_rows; i++) {
    if (at(rows, i) == 7 * 99 + 1) {
      strcpy(error->message, "the last label is not taken");
      strcpy(error->hint, "take another");
      return MF_DATA_LOSS;
    }
    twice[2 * i] = 2 * at(rows, i);
    twice[2 * i + 1] = (int32_t)rows->keys[2 * i];
    size += rows->out[1].lengths[i] = at(rows, i) % 3;
  }
  char* few = (char*)mf_map_reserve(&rows->out[1], size);
  CHECK(few && rows->out[1].size == size);
  for (i = 0; i < rows->n_rows; i++)
    for (k = 0; k < rows->out[1].lengths[i]; k++)
      *few++ = (char)at(rows, i);
  return MF_OK;
}

static void release(void* user) {
  CHECK(user == &calls);
  ADD(ends);
}

#define OUT                                                                                                  \
  "{\"fields\":[\"label\"],\"keys\":true,\"name\":\"compute\",\"workers\":2,\"out\":["                       \
  "{\"name\":\"twice\",\"dtype\":\"int32\",\"shape\":[2]},"                                                  \
  "{\"name\":\"few\",\"dtype\":\"uint8\",\"ragged\":true,\"kind\":\"string\"}]}"

static mf_dataset mapped(mf_dataset dataset, const mf_map* map) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset view;
  OK(mf_dataset_view("map", OUT, strlen(OUT), &dataset, 1, map, 1, &view, 1, &error));
  OK(mf_release(dataset.id, &error));
  return view;
}

/* Reads records [0, n) and compares what compute returned for them. */
static void expect_rows(mf_dataset view, int n) {
  mf_error error = MF_ERROR_INIT;
  struct ArrowArray rows;
  int64_t numbers[RECORDS];
  uint32_t key[2];
  for (int i = 0; i < n; i++)
    numbers[i] = i;
  OK(mf_dataset_rows(view, numbers, n, &rows, NULL, &error));
  CHECK(rows.n_children == 4 && rows.length == n);
  const int32_t* twice = (const int32_t*)rows.children[2]->children[0]->buffers[1];
  const struct ArrowArray* few = rows.children[3];
  const int64_t* ends = (const int64_t*)few->buffers[1];
  for (int i = 0; i < n; i++) {
    const int32_t label = i * 7 + 1;
    OK(mf_record_key(0, 0, i, key, &error));
    CHECK(twice[2 * i] == 2 * label && twice[2 * i + 1] == (int32_t)key[0]);
    CHECK(ends[i + 1] - ends[i] == label % 3);
    for (int64_t k = ends[i]; k < ends[i + 1]; k++)
      CHECK(((const char*)few->buffers[2])[k] == (char)label);
  }
  rows.release(&rows);
}

static void direct(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  const mf_map map = {sizeof map, 0, compute, &calls, release};
  const mf_dataset view = mapped(open_records(r), &map);
  expect_rows(view, 99);
  struct ArrowArray rows;
  const int64_t last[] = {3, 99};
  EXPECT(MF_DATA_LOSS, mf_dataset_rows(view, last, 2, &rows, NULL, &error));
  CHECK(!strcmp(error.message, "record 99: the function compute failed: the last label is not taken"));
  CHECK(!strcmp(error.hint, "take another"));
  CHECK(GET(ends) == 0);
  OK(mf_release(view.id, &error));
  await(&ends); /* beside the call that fails, another one may still be under way */
  await(&r->released);
  CHECK(GET(ends) == 1 && GET(r->released) == 1);
  free(r);
}

static void* serve(void* queue) {
  mf_map_rows* rows;
  while ((rows = mf_map_queue_next((mf_map_queue*)queue))) {
    mf_error error = MF_ERROR_INIT;
    const mf_status code = compute(&calls, rows, &error);
    mf_map_queue_done((mf_map_queue*)queue, rows, code, error.message, error.hint);
  }
  return NULL;
}

static void queued(void) {
  mf_error error = MF_ERROR_INIT;
  pthread_t threads[3];
  records* r = make_records();
  CHECK(!mf_map_queue_new(0));
  mf_map_queue* queue = mf_map_queue_new(3);
  for (int i = 0; i < 3; i++)
    CHECK(pthread_create(&threads[i], NULL, serve, queue) == 0);
  const mf_map map = {sizeof map, 0, mf_map_queue_run, queue, mf_map_queue_close};
  const mf_dataset view = mapped(open_records(r), &map);
  for (int round = 0; round < 50; round++)
    expect_rows(view, 99);
  struct ArrowArray rows;
  const int64_t last = 99;
  EXPECT(MF_DATA_LOSS, mf_dataset_rows(view, &last, 1, &rows, NULL, &error));
  CHECK(strstr(error.message, "the last label is not taken"));
  OK(mf_release(view.id, &error));
  for (int i = 0; i < 3; i++)
    CHECK(pthread_join(threads[i], NULL) == 0);
  await(&r->released);
  free(r);
}

/* A function that does not return: the release of its loader returns, and the function is released
   after it. */
static void blocked(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  const mf_map map = {sizeof map, 0, compute, &calls, release};
  const mf_dataset view = mapped(open_records(r), &map);
  const mf_layout layout = make_layout(
      "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"twice\":{\"shape\":[\"B\",2],"
      "\"dtype\":\"int32\",\"spec\":[\"data\"]}},\"batch\":{\"size\":4},\"dataset\":{\"records\":100}}");
  SET(calls, 0);
  SET(ends, 0);
  SET(blocks, 1);
  const mf_loader loader = make_loader(view, layout, NULL);
  mf_batch* batch;
  EXPECT(MF_TIMEOUT, mf_loader_next(loader, 1, &batch, &error));
  await(&calls);
  OK(mf_release(loader.id, &error));
  OK(mf_release(view.id, &error));
  OK(mf_release(layout.id, &error));
  await(&r->released);
  CHECK(GET(ends) == 0);
  SET(unblocked, 1);
  await(&ends);
  free(r);
}

static void refused(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  const mf_map map = MF_MAP_INIT;
  const mf_dataset dataset = open_records(r);
  mf_dataset view;
  EXPECT(MF_INVALID_ARGUMENT,
         mf_dataset_view("map", OUT, strlen(OUT), &dataset, 1, NULL, 0, &view, 1, &error));
  EXPECT(MF_INVALID_ARGUMENT,
         mf_dataset_view("map", OUT, strlen(OUT), &dataset, 1, &map, 1, &view, 1, &error));
  CHECK(strstr(error.message, "a map takes a function"));
  OK(mf_release(dataset.id, &error));
  free(r);
}

int main(void) {
  direct();
  queued();
  blocked();
  refused();
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  puts("ok");
  return 0;
}
