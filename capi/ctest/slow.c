/*
 * slow.c: a program with a slow file system. It opens FILE, which has an int32 field "x" of shape [256],
 * prints "made" and waits for a line. After that, reads of rows hang. Calls that wait for
 * them do not block others: threads read another dataset while Go's garbage collector runs.
 * The program then returns from main during the reads.
 *
 * tests/python/native/test_slow.py runs it, with a library that was built with the tag
 * meshfeed_faults.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <pthread.h>
#include <unistd.h>

void mf_fault_collect(void);

enum { THREADS = 4, ROUNDS = 20 };

#define SLOW                                                                                                 \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"x\":{\"shape\":[\"B\",256],"             \
  "\"dtype\":\"int32\",\"spec\":[\"data\"]}},\"batch\":{\"size\":256},\"dataset\":{\"records\":32768}}"

static records* r;
static mf_dataset dataset;
static mf_layout layout;

static mf_loader open_slow(void) {
  mf_error error = MF_ERROR_INIT;
  const char* const path = getenv("FILE");
  mf_dataset file;
  OK(mf_dataset_open(&path, 1, &(mf_dataset_options){.io = MF_IO_READ}, &file, &error));
  return make_loader(file, make_layout(SLOW),
                     &(mf_loader_options){.order = "shuffle.1", .epochs = -1, .prefetch = -1});
}

/* Waits for a batch that never comes. The exit of the process ends the call. */
static void* wait_for_rows(void* slow) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  EXPECT(MF_CANCELLED, mf_loader_next(*(mf_loader*)slow, -1, &batch, &error));
  return NULL;
}

static void* read_others(void* unused) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  (void)unused;
  const mf_loader loader = make_loader(dataset, layout, NULL);
  for (int64_t step = 0; step < 25; step++) {
    const int64_t order[] = {step * 4, step * 4 + 1, step * 4 + 2, step * 4 + 3};
    OK(mf_loader_next(loader, -1, &batch, &error));
    check_batch(batch, r, order);
    mf_batch_release(batch);
  }
  OK(mf_release(loader.id, &error));
  return NULL;
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  char line[16];
  pthread_t waiting, others[THREADS];
  r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 4, ""));
  mf_loader slow = open_slow();
  puts("made");
  fflush(stdout);
  CHECK(fgets(line, sizeof line, stdin));

  CHECK(!pthread_create(&waiting, NULL, wait_for_rows, &slow));
  EXPECT(MF_TIMEOUT, mf_loader_next(slow, 300, &batch, &error));
  for (int round = 0; round < ROUNDS; round++) {
    for (int i = 0; i < THREADS; i++)
      CHECK(!pthread_create(&others[i], NULL, read_others, NULL));
    mf_fault_collect();
    for (int i = 0; i < THREADS; i++)
      pthread_join(others[i], NULL);
  }
  EXPECT(MF_TIMEOUT, mf_loader_next(slow, 0, &batch, &error));
  puts("leaving");
  return 0;
}
