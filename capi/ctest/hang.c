/*
 * hang.c: a file system that does not respond blocks neither waits, nor releases, nor other
 * datasets, nor the exit. For a library that was built with the tag meshfeed_faults.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <time.h>
#include <unistd.h>

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static mf_dataset open_hanging(void) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset dataset;
  const char* const path = "hang";
  OK(mf_dataset_open(&path, 1, NULL, &dataset, &error));
  return dataset;
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  alarm(60);
  records* r = make_records();
  const mf_dataset stuck = open_hanging();
  EXPECT(MF_TIMEOUT, mf_wait(stuck.id, 0, &error));
  EXPECT(MF_TIMEOUT, mf_wait(stuck.id, 50, &error));
  mf_bytes text;
  EXPECT(MF_TIMEOUT, mf_dataset_fingerprint(stuck, 50, &text, &error));
  CHECK(error.code == MF_OK && error.message[0] == 0 && text.data == NULL);

  /* Its loader waits, too. Other datasets do not. */
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  mf_loader waiting;
  mf_batch* batch;
  OK(mf_loader_create(stuck, layout, NULL, &waiting, &error));
  EXPECT(MF_TIMEOUT, mf_loader_next(waiting, 50, &batch, &error));
  const mf_dataset dataset = open_records(r);
  const mf_loader loader = make_loader(dataset, layout, NULL);
  OK(mf_loader_next(loader, -1, &batch, &error));
  mf_batch_release(batch);

  /* The promise is one second for each release. The bound is ten times that. */
  const double began = seconds();
  OK(mf_release(stuck.id, &error));
  OK(mf_release(waiting.id, &error));
  CHECK(seconds() - began < 20);
  CHECK(mf_live_handles() == 3);
  OK(mf_release(loader.id, &error));
  OK(mf_release(dataset.id, &error));
  OK(mf_release(layout.id, &error));

  open_hanging();
  mf_cancel_all();
  free(r);
  puts("ok");
  return 0; /* while two opens hang */
}
