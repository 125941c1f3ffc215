/*
 * threads.c: eight threads use one loader and release it at random times. Released handles
 * return errors, even if a thread guesses a handle before its creator has it. No object
 * remains.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 40, CALLS = 60 };

static mf_loader current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mf_dataset dataset;
static mf_layout layout;

static mf_loader get(void) {
  pthread_mutex_lock(&lock);
  const mf_loader l = current;
  pthread_mutex_unlock(&lock);
  return l;
}

static void replace(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_loader fresh =
      make_loader(dataset, layout, &(mf_loader_options){.order = "shuffle.1", .epochs = -1});
  pthread_mutex_lock(&lock);
  const mf_loader old = current;
  current = fresh;
  pthread_mutex_unlock(&lock);
  OK(mf_release(old.id, &error));
}

/* Another thread may release the loader during any call. */
static void allowed(mf_status status, const mf_error* error) {
  if (status >= 0 || status == MF_INVALID_STATE || status == MF_CANCELLED)
    return;
  fprintf(stderr, "status %d: %s: %s\n", (int)status, error->op, error->message);
  exit(1);
}

static void one_call(unsigned* seed) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  mf_bytes bytes;
  mf_stats stats;
  mf_loader pass;
  switch (rand_r(seed) % 8) {
  case 0:
  case 1:
  case 2:
    allowed(mf_loader_next(get(), rand_r(seed) % 3 - 1, &batch, &error), &error);
    if (batch)
      CHECK(batch->live >= 1 && batch->rows == 4);
    mf_batch_release(batch);
    break;
  case 3:
    allowed(mf_loader_state(get(), &bytes, &error), &error);
    mf_bytes_free(&bytes);
    break;
  case 4:
    stats.struct_size = sizeof stats;
    allowed(mf_loader_stats(get(), &stats, &error), &error);
    break;
  case 5:
    allowed(mf_loader_seek(get(), rand_r(seed) % 5, rand_r(seed) % 90, &error), &error);
    break;
  case 6:
    allowed(mf_loader_one_epoch(get(), 1, &pass, &error), &error);
    if (pass.id && mf_loader_next(pass, -1, &batch, &error) == MF_OK)
      mf_batch_release(batch);
    if (pass.id)
      OK(mf_release(pass.id, &error));
    break;
  default:
    if (rand_r(seed) % 8 == 0)
      replace();
  }
}

static void* work(void* argument) {
  unsigned seed = (unsigned)(size_t)argument;
  for (int i = 0; i < CALLS; i++)
    one_call(&seed);
  return NULL;
}

/* ---- a call that waits while its loader is released ---- */

enum { WIDE = 1 << 18, WIDE_RECORDS = 64, OUTCOMES = 8 };

#define WIDE_DOCUMENT                                                                                        \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"wide\":{\"shape\":[\"B\",262144],"       \
  "\"dtype\":\"uint8\",\"spec\":[\"data\"]}},\"batch\":{\"size\":32},\"dataset\":{\"records\":64}}"

/* A dataset with batches that take milliseconds: 64 records that share one row of memory. */
static mf_dataset open_wide(const void* memory) {
  mf_error error = MF_ERROR_INIT;
  const int64_t shape[] = {WIDE_RECORDS, WIDE}, strides[] = {0, 1};
  mf_array array;
  memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.name = "wide";
  array.ndim = 2;
  array.data = memory;
  array.dtype.code = 1;
  array.dtype.bits = 8;
  array.dtype.lanes = 1;
  array.shape = shape;
  array.strides = strides;
  mf_dataset wide;
  OK(mf_dataset_open_arrays(&array, 1, NULL, NULL, &wide, &error));
  return wide;
}

typedef struct waiting {
  mf_loader loader;
  mf_status outcome;
  mf_error error;
  long id; /* thread id; guarded by lock */
} waiting;

static void* wait_for_batch(void* argument) {
  waiting* w = (waiting*)argument;
  mf_batch* batch;
  pthread_mutex_lock(&lock);
  w->id = syscall(SYS_gettid);
  pthread_mutex_unlock(&lock);
  w->outcome = mf_loader_next(w->loader, -1, &batch, &w->error);
  mf_batch_release(batch);
  return NULL;
}

/* Reports whether the thread sleeps or has ended. */
static int sleeps(waiting* w) {
  char path[64], state = 'S';
  pthread_mutex_lock(&lock);
  const long id = w->id;
  pthread_mutex_unlock(&lock);
  if (id == 0)
    return 0;
  snprintf(path, sizeof path, "/proc/self/task/%ld/stat", id);
  FILE* f = fopen(path, "r");
  if (f) {
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
      state = 'S';
    fclose(f);
  }
  return state == 'S';
}

/* Such a call returns MF_CANCELLED, wherever it waits. A call that just woke up may
   instead find that its handle is released. */
static void released_while_waiting(void) {
  mf_error error = MF_ERROR_INIT;
  void* memory = calloc(1, WIDE);
  const mf_layout wide = make_layout(WIDE_DOCUMENT);
  int cancelled = 0, others = 0;
  while (cancelled + others < OUTCOMES) {
    const mf_dataset data = open_wide(memory);
    waiting w = {make_loader(data, wide, &(mf_loader_options){.epochs = -1}), MF_OK, MF_ERROR_INIT, 0};
    pthread_t thread;
    mf_batch* batch;
    for (int i = 0; i < 3; i++) { /* takes what is read ahead */
      OK(mf_loader_next(w.loader, -1, &batch, &error));
      mf_batch_release(batch);
    }
    CHECK(!pthread_create(&thread, NULL, wait_for_batch, &w));
    while (!sleeps(&w))
      sched_yield();
    OK(mf_release(w.loader.id, &error));
    pthread_join(thread, NULL);
    allowed(w.outcome, &w.error);
    CHECK(w.error.code == w.outcome && !w.error.message[0] == (w.outcome == MF_OK));
    cancelled += w.outcome == MF_CANCELLED;
    others += w.outcome == MF_INVALID_STATE;
    OK(mf_release(data.id, &error));
  }
  CHECK(cancelled > others);
  OK(mf_release(wide.id, &error));
  free(memory);
}

static mf_loader guess; /* the handle of the next loader; guarded by lock */
static int guessing = 1;

/* Uses and releases handles before their creators have them. */
static void* guesser(void* none) {
  for (;;) {
    pthread_mutex_lock(&lock);
    const mf_loader handle = guess;
    const int go_on = guessing;
    pthread_mutex_unlock(&lock);
    if (!go_on)
      return none;
    mf_batch* batch;
    mf_loader_next(handle, 0, &batch, NULL);
    mf_batch_release(batch);
    mf_release(handle.id, NULL);
  }
}

/* Handles are consecutive numbers. */
static void guessed(void) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  pthread_t thread;
  mf_loader next = make_loader(dataset, layout, NULL);
  CHECK(!pthread_create(&thread, NULL, guesser, NULL));
  for (int i = 0; i < 300; i++) {
    mf_release(next.id, NULL); /* the other thread may have released it */
    pthread_mutex_lock(&lock);
    guess.id = next.id + 1;
    pthread_mutex_unlock(&lock);
    OK(mf_loader_create(dataset, layout, NULL, &next, &error));
    allowed(mf_loader_next(next, -1, &batch, &error), &error);
    mf_batch_release(batch);
  }
  pthread_mutex_lock(&lock);
  guessing = 0;
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  mf_release(next.id, NULL);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 4, ""));
  current = make_loader(dataset, layout, NULL);
  OK(mf_release(dataset.id, &error));
  dataset = open_records(r);
  for (size_t round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
      CHECK(!pthread_create(&threads[i], NULL, work, (void*)(round * THREADS + i + 1)));
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  OK(mf_release(current.id, &error));
  released_while_waiting();
  guessed();
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 2 && mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
