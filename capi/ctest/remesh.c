/*
 * remesh.c: a loader continues at the position of another one, on another mesh and as another
 * process. The batches and passes of the first loader stay valid.
 */
#include "check.h"

/* Two processes; process 1 holds rows 4 to 8 of a batch of 8. */
#define HALVES                                                                                               \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",2]],\"processes\":2},"                                      \
  "\"arrays\":{\"image\":{\"shape\":[\"B\",3,6],\"dtype\":\"float32\",\"spec\":[\"data\"]}},"                \
  "\"batch\":{\"size\":8},\"dataset\":{\"records\":100}}"

static mf_error error = MF_ERROR_INIT;
static records* r;

static mf_batch* next(mf_loader loader) {
  mf_batch* batch;
  OK(mf_loader_next(loader, -1, &batch, &error));
  int64_t order[8];
  for (int i = 0; i < 8; i++)
    order[i] = batch->position + i;
  check_batch(batch, r, order);
  return batch;
}

#define NUMBER_FROM_0                                                                                        \
  "number processes from 0; if the run has processes outside the mesh, say in processes how many it has"

static void refused(mf_loader loader, mf_layout halves) {
  mf_loader out = {7};
  const int64_t outside[] = {-1, 2, INT64_MAX};
  const char* const complaints[] = {"process is -1, but the layout has processes 0 to 1",
                                    "process is 2, but the layout has processes 0 to 1",
                                    "process is 9223372036854775807, but the layout has processes 0 to 1"};
  for (int i = 0; i < 3; i++) {
    EXPECT(MF_OUT_OF_RANGE, mf_loader_remesh(loader, halves, outside[i], &out, &error));
    CHECK(out.id == 0 && strcmp(error.message, complaints[i]) == 0 && strcmp(error.hint, NUMBER_FROM_0) == 0);
  }
  const mf_layout other = make_layout(DOCUMENT(101, 8, ""));
  EXPECT(MF_INCOMPATIBLE, mf_loader_remesh(loader, other, 0, &out, &error));
  OK(mf_release(other.id, &error));
  const mf_layout odd = make_layout(DOCUMENT(100, 6, ""));
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_remesh(loader, odd, 0, &out, &error));
  CHECK(strstr(error.message, "6 % 4 = 2"));
  OK(mf_release(odd.id, &error));
  EXPECT(MF_INVALID_STATE, mf_loader_remesh(loader, (mf_layout){loader.id}, 0, &out, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_remesh(loader, halves, 0, NULL, &error));
}

int main(void) {
  r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout whole = make_layout(DOCUMENT(100, 8, "")), halves = make_layout(HALVES);
  const mf_loader first = make_loader(dataset, whole, &(mf_loader_options){.prefetch = 3});
  mf_batch* before = next(first);
  mf_loader pass, second;
  OK(mf_loader_one_epoch(first, 0, &pass, &error));
  refused(first, halves);
  OK(mf_loader_remesh(first, halves, 1, &second, &error));
  OK(mf_release(first.id, &error));
  OK(mf_release(whole.id, &error));
  OK(mf_release(halves.id, &error));
  OK(mf_release(dataset.id, &error));

  mf_batch* after = next(second);
  CHECK(after->position == 8 && after->tensors == 1 && after->bytes == 4 * ROW * 4 + 32);
  mf_stats stats;
  stats.struct_size = sizeof stats;
  OK(mf_loader_stats(second, &stats, &error));
  CHECK(stats.batches == 2 && stats.live_batches == 1);
  mf_batch* evaluated = next(pass);
  CHECK(evaluated->position == 0 && evaluated->tensors == before->tensors);
  int64_t order[] = {0, 1, 2, 3, 4, 5, 6, 7};
  check_batch(before, r, order);
  mf_batch_release(before);
  mf_batch_release(evaluated);
  OK(mf_release(pass.id, &error));
  CHECK(r->released == 0);
  OK(mf_release(second.id, &error));
  CHECK(r->released == 1); /* by the release of the last loader */
  mf_batch_release(after);
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
