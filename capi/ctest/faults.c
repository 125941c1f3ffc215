/*
 * faults.c: a panic becomes an error of its loader. The process, other calls on the loader, and
 * other loaders continue. For a library that was built with the tag meshfeed_faults.
 */
#include "check.h"

mf_status mf_fault(uint64_t loader, char* fault);

static void expect_batch(mf_loader loader, int64_t position, const records* r) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  OK(mf_loader_next(loader, -1, &batch, &error));
  const int64_t order[] = {position, position + 1, position + 2, position + 3};
  CHECK(batch->position == position);
  check_batch(batch, r, order);
  mf_batch_release(batch);
}

static void expect_panic(mf_status status, const mf_error* error, const char* step) {
  char want[64];
  snprintf(want, sizeof want, "panic: injected in %s", step);
  CHECK(status == MF_INTERNAL && error->code == MF_INTERNAL);
  CHECK(strstr(error->message, want) && strstr(error->hint, "bug in meshfeed"));
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader broken = make_loader(dataset, layout, &(mf_loader_options){.prefetch = -1});
  const mf_loader sound = make_loader(dataset, layout, NULL);
  mf_batch* batch;
  mf_bytes state;
  char next[] = "next", restore[] = "restore", worker[] = "worker";

  expect_batch(broken, 0, r);
  expect_batch(sound, 0, r);
  OK(mf_loader_state(broken, &state, &error));

  OK(mf_fault(broken.id, next));
  expect_panic(mf_loader_next(broken, -1, &batch, &error), &error, "next");
  CHECK(batch == NULL);
  expect_batch(broken, 4, r); /* no batch is lost */
  expect_batch(sound, 4, r);

  OK(mf_fault(broken.id, worker));
  expect_panic(mf_loader_next(broken, -1, &batch, &error), &error, "worker");
  expect_batch(sound, 8, r);
  expect_batch(broken, 8, r); /* the loader repeats the step */

  OK(mf_fault(broken.id, restore));
  expect_panic(mf_loader_restore(broken, state.data, state.size, 0, &error), &error, "restore");
  OK(mf_loader_restore(broken, state.data, state.size, 0, &error));
  expect_batch(broken, 4, r);
  expect_batch(sound, 12, r);

  mf_bytes_free(&state);
  OK(mf_release(broken.id, &error));
  OK(mf_release(sound.id, &error));
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
