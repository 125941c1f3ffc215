/*
 * memory.c: the memory of batches. It stays valid until the batch is released, is reused afterwards,
 * is counted, and has a limit if the caller sets one.
 */
#include "check.h"

/* The default prefetch, and the number of idle batches that the pool keeps in addition to it. */
enum { PREFETCH = 2, SPARE = 3 };

/* The number of batches that keep holds, and the memory of a batch in bytes: 8 blocks of 2 x 9 floats and
   4 blocks of 2 integers, each rounded up to 64 bytes. */
enum { KEPT = 12, SLOT = 8 * 128 + 4 * 64 };

static mf_error error = MF_ERROR_INIT;
static records* r;

static mf_stats stats_of(mf_loader loader) {
  mf_stats stats;
  stats.struct_size = sizeof stats;
  OK(mf_loader_stats(loader, &stats, &error));
  return stats;
}

static mf_batch* next(mf_loader loader) {
  mf_batch* batch;
  OK(mf_loader_next(loader, -1, &batch, &error));
  return batch;
}

static void check_at(const mf_batch* batch) {
  int64_t order[8];
  for (int i = 0; i < 8; i++)
    order[i] = batch->position + i;
  check_batch(batch, r, order);
}

/* A batch that is not released never changes, however many batches follow. */
static void keep(mf_loader loader) {
  mf_batch* kept[KEPT];
  for (int i = 0; i < KEPT; i++) {
    kept[i] = next(loader);
    CHECK(kept[i]->live == i + 1 && kept[i]->bytes == SLOT);
    CHECK((uintptr_t)kept[i]->data % 4096 == 0);
  }
  for (int i = 0; i < 500; i++)
    mf_batch_release(next(loader));
  for (int i = 0; i < KEPT; i++)
    check_at(kept[i]);
  CHECK(stats_of(loader).live_batches == KEPT && mf_live_batches() == KEPT);
  for (int i = 0; i < KEPT; i++)
    mf_batch_release(kept[i]);
  const mf_stats stats = stats_of(loader);
  CHECK(stats.live_batches == 0 && stats.idle_batches <= PREFETCH + SPARE);
  CHECK(stats.host_bytes <= (2 * PREFETCH + SPARE + 1) * SLOT); /* idle, ready, and in production */
  CHECK(stats.batches == KEPT + 500 && stats.bytes == stats.batches * (8 * 72 + 4 * 8));
}

/* A loop that releases every batch before the next one reuses the same memory. */
static void reuse(mf_loader loader) {
  const int64_t before = mf_live_bytes();
  void* seen[16];
  int n = 0;
  for (int i = 0; i < 300; i++) {
    mf_batch* batch = next(loader);
    int known = 0;
    for (int k = 0; k < n; k++)
      known = known || seen[k] == batch->data;
    if (!known) {
      CHECK(n < PREFETCH + SPARE + 2);
      seen[n++] = batch->data;
    }
    mf_batch_release(batch);
  }
  CHECK(mf_live_bytes() <= before + 2 * SLOT);
}

/* At max_host_bytes, mf_loader_next fails. After a release, it succeeds. */
static void limit(mf_dataset dataset, mf_layout layout) {
  const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.max_host_bytes = 3 * SLOT});
  mf_batch *kept[3], *batch;
  for (int i = 0; i < 3; i++)
    kept[i] = next(loader);
  EXPECT(MF_RESOURCE_EXHAUSTED, mf_loader_next(loader, -1, &batch, &error));
  CHECK(strstr(error.message, "max_host_bytes") && strcmp(error.op, "loader") == 0);
  mf_batch_release(kept[1]);
  batch = next(loader);
  CHECK(batch->position == 24);
  check_at(batch);
  mf_batch_release(batch);
  mf_batch_release(kept[0]);
  mf_batch_release(kept[2]);
  OK(mf_release(loader.id, &error));
}

/* The state of a batch, given to a new loader or to mf_loader_restore, leads to the next batch. A loader
   from mf_loader_one_epoch has its own position, but its batches count in the first loader's stats. */
static void resume(mf_loader loader, mf_dataset dataset, mf_layout layout) {
  OK(mf_loader_seek(loader, 3, 40, &error));
  mf_batch* batch = next(loader);
  const mf_loader other = make_loader(dataset, layout, &(mf_loader_options){.state = batch->state});
  mf_batch *here = next(loader), *there = next(other);
  CHECK(there->epoch == 3 && there->position == 48 && here->position == 48);
  CHECK(memcmp(here->data, there->data, 72) == 0 && here->data != there->data);
  OK(mf_loader_restore(other, batch->state, (size_t)batch->state_size, 0, &error));
  mf_batch_release(there);
  there = next(other);
  CHECK(there->position == 48);
  mf_loader pass;
  OK(mf_loader_one_epoch(loader, 0, &pass, &error));
  int64_t n;
  OK(mf_loader_len(pass, &n, &error));
  CHECK(n == 12);
  OK(mf_loader_len(loader, &n, &error));
  CHECK(n == -1);
  mf_batch* first = next(pass);
  CHECK(first->position == 0 && stats_of(loader).position == 56);
  CHECK(first->live == 3 && stats_of(loader).live_batches == 3); /* including batch and here */
  OK(mf_release(other.id, &error));
  OK(mf_release(pass.id, &error));
  check_at(first);
  mf_batch_release(first);
  mf_batch_release(here);
  mf_batch_release(there);
  mf_batch_release(batch);
}

/* The release callback of a dataset may call the library. For example, a garbage collector that runs in it
   may release other handles. */
static mf_loader released_by_callback;

static void release_more(void* context) {
  released(context);
  OK(mf_release(released_by_callback.id, &error));
  OK(mf_release(make_layout(DOCUMENT(100, 8, "")).id, &error));
}

static void nested(mf_layout layout) {
  const int64_t shape[] = {RECORDS};
  mf_array array;
  memset(&array, 0, sizeof array);
  array.struct_size = sizeof array;
  array.name = "label";
  array.ndim = 1;
  array.data = r->label;
  array.dtype.bits = 32;
  array.dtype.lanes = 1;
  array.shape = shape;
  mf_dataset outer;
  OK(mf_dataset_open_arrays(&array, 1, release_more, r, &outer, &error));
  const mf_dataset inner = open_records(r);
  released_by_callback = make_loader(inner, layout, NULL);
  mf_batch_release(next(released_by_callback));
  OK(mf_release(inner.id, &error));
  OK(mf_release(outer.id, &error));
  CHECK(r->released == 2);
  r->released = 0;
}

int main(void) {
  r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 8, ""));
  const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.epochs = -1});
  keep(loader);
  reuse(loader);
  limit(dataset, layout);
  resume(loader, dataset, layout);
  nested(layout);
  OK(mf_release(loader.id, &error));
  CHECK(mf_live_bytes() == 0 && mf_live_batches() == 0);
  OK(mf_release(dataset.id, &error));
  OK(mf_release(layout.id, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0);
  free(r);
  puts("ok");
  return 0;
}
