/*
 * threads.c: eight threads use one loader and release it at random; handles of
 * released loaders give errors, also where a thread guesses them before their
 * maker has them, and nothing is left over.
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <pthread.h>

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
  mf_error error = no_error();
  const mf_loader fresh = make_loader(dataset, layout, "{\"shuffle\":true,\"epochs\":-1}");
  pthread_mutex_lock(&lock);
  const mf_loader old = current;
  current = fresh;
  pthread_mutex_unlock(&lock);
  OK(mf_release(old, &error));
}

/* Any of these may meet a loader that is being released. */
static void allowed(mf_status status, const mf_error* error) {
  if (status >= 0 || status == MF_INVALID_STATE || status == MF_CANCELLED)
    return;
  fprintf(stderr, "status %d: %s: %s\n", (int)status, error->op, error->message);
  exit(1);
}

static void one_call(unsigned* seed) {
  mf_error error = no_error();
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
    if (pass && mf_loader_next(pass, -1, &batch, &error) == MF_OK)
      mf_batch_release(batch);
    if (pass)
      OK(mf_release(pass, &error));
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

static uint64_t guess; /* under lock: the handle that the next loader will have */
static int guessing = 1;

/* Releases and uses handles of loaders whose makers do not have them yet. */
static void* guesser(void* none) {
  for (;;) {
    pthread_mutex_lock(&lock);
    const uint64_t handle = guess;
    const int go_on = guessing;
    pthread_mutex_unlock(&lock);
    if (!go_on)
      return none;
    mf_batch* batch;
    mf_loader_next(handle, 0, &batch, NULL);
    mf_batch_release(batch);
    mf_release(handle, NULL);
  }
}

/* A handle is its place and, in the upper half, how often that was taken. */
static void guessed(void) {
  mf_error error = no_error();
  mf_batch* batch;
  pthread_t thread;
  mf_loader next = make_loader(dataset, layout, "");
  CHECK(!pthread_create(&thread, NULL, guesser, NULL));
  for (int i = 0; i < 300; i++) {
    mf_release(next, NULL); /* which may have been guessed */
    pthread_mutex_lock(&lock);
    guess = next + ((uint64_t)1 << 32);
    pthread_mutex_unlock(&lock);
    OK(mf_loader_create(dataset, layout, NULL, 0, &next, &error));
    allowed(mf_loader_next(next, -1, &batch, &error), &error);
    mf_batch_release(batch);
  }
  pthread_mutex_lock(&lock);
  guessing = 0;
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  mf_release(next, NULL);
}

int main(void) {
  mf_error error = no_error();
  records* r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 4, ""));
  current = make_loader(dataset, layout, "");
  OK(mf_release(dataset, &error));
  dataset = open_records(r);
  for (size_t round = 0; round < ROUNDS; round++) {
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
      CHECK(!pthread_create(&threads[i], NULL, work, (void*)(round * THREADS + i + 1)));
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
  }
  OK(mf_release(current, &error));
  guessed();
  OK(mf_release(layout, &error));
  OK(mf_release(dataset, &error));
  CHECK(r->released == 2 && mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
