/*
 * life.c: the whole life of a loader, with meshfeed.h only.
 */
#include "check.h"

static void deliver_one_epoch(mf_loader loader, const records* r) {
  mf_error error = MF_ERROR_INIT;
  int64_t order[8], count, length;
  int batches = 0;
  OK(mf_loader_len(loader, &length, &error));
  CHECK(length == 12);
  for (;; batches++) {
    mf_batch* batch;
    const mf_status status = mf_loader_next(loader, -1, &batch, &error);
    if (status == MF_END) {
      CHECK(batch == NULL && error.code == MF_OK && error.message[0] == 0);
      break;
    }
    EXPECT(MF_OK, status);
    CHECK(batch->step == batches && batch->position == 8 * batches && batch->rows == 8);
    CHECK(batch->live == 1 && batch->tensors == 12);
    OK(mf_loader_records(loader, batch->epoch, batch->position, order, 8, &count, &error));
    CHECK(count == 8);
    check_batch(batch, r, order);
    mf_bytes state;
    OK(mf_loader_state(loader, &state, &error));
    CHECK((int64_t)state.size == batch->state_size && strcmp(state.data, batch->state) == 0);
    mf_bytes_free(&state);
    mf_bytes_free(&state);
    mf_batch_release(batch);
  }
  CHECK(batches == 12);
}

/* A cancelled handle delivers nothing, even if batches are ready. */
static void cancel(mf_dataset dataset, mf_layout layout) {
  mf_error error = MF_ERROR_INIT;
  for (int round = 0; round < 50; round++) {
    const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.epochs = -1});
    mf_batch* batch;
    for (int step = 0; step < 30; step++) {
      OK(mf_loader_next(loader, -1, &batch, &error));
      CHECK(batch->step == step % 12 && batch->live == 1);
      mf_batch_release(batch);
    }
    OK(mf_cancel(loader.id, &error));
    EXPECT(MF_CANCELLED, mf_loader_next(loader, -1, &batch, &error));
    CHECK(batch == NULL);
    OK(mf_release(loader.id, &error));
    EXPECT(MF_INVALID_STATE, mf_loader_next(loader, -1, &batch, &error));
  }
}

/* A batch keeps its memory after the loader and the dataset are released. */
static void outlive(mf_loader loader, mf_dataset dataset, records* r) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  int64_t order[8], count;
  OK(mf_loader_next(loader, -1, &batch, &error));
  OK(mf_loader_records(loader, batch->epoch, batch->position, order, 8, &count, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 0);
  OK(mf_release(loader.id, &error));
  CHECK(r->released == 1);
  EXPECT(MF_INVALID_STATE, mf_loader_seek(loader, 0, 0, &error));
  check_batch(batch, r, order);
  mf_batch_retain(batch);
  mf_batch_release(batch);
  CHECK(mf_live_batches() == 1 && mf_live_bytes() > 0);
  check_batch(batch, r, order);
  mf_batch_release(batch);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  CHECK(mf_abi_version() >> 16 == MF_ABI_MAJOR);
  CHECK(strlen(mf_version()) >= 5 && strlen(mf_jpeg_decoder()) >= 5);
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 8, ""));
  const mf_loader loader =
      make_loader(dataset, layout, &(mf_loader_options){.order = "shuffle.1", .seed = 5});
  cancel(dataset, layout);
  OK(mf_release(layout.id, &error));
  deliver_one_epoch(loader, r);
  OK(mf_loader_seek(loader, 0, 0, &error));
  deliver_one_epoch(loader, r);
  outlive(loader, dataset, r);
  CHECK(mf_live_batches() == 0 && mf_live_bytes() == 0 && mf_live_handles() == 0);
  free(r);
  puts("ok");
  return 0;
}
