/*
 * certificate.c: the certificates of two processes add up to a complete one, incomplete ones
 * are reported, skipped steps are listed, and a check can be ended early.
 */
#include "check.h"
#include "meshfeed_certificate.h"

/* Two processes, each with half of the rows of a batch of 8. */
#define HALVES                                                                                               \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",2]],\"processes\":2},"                                      \
  "\"arrays\":{\"image\":{\"shape\":[\"B\",3,6],\"dtype\":\"float32\",\"spec\":[\"data\"]}},"                \
  "\"batch\":{\"size\":8},\"dataset\":{\"records\":100}}"

static mf_error error = MF_ERROR_INIT;

/* Takes some batches and returns the certificate of all but the last. */
static mf_bytes certified(mf_loader loader, int batches) {
  int64_t epoch = 0, position = 0;
  for (int i = 0; i < batches; i++) {
    mf_batch* batch;
    OK(mf_loader_next(loader, -1, &batch, &error));
    if (i + 2 == batches) {
      epoch = batch->next_epoch;
      position = batch->next_position;
    }
    mf_batch_release(batch);
  }
  mf_bytes json;
  OK(mf_loader_certificate(loader, epoch, position, &json, &error));
  return json;
}

static mf_status checked(mf_bytes json) {
  mf_check check;
  OK(mf_certificate_check(json.data, json.size, NULL, (mf_dataset){0}, &check, &error));
  const mf_status outcome = mf_wait(check.id, -1, &error);
  OK(mf_release(check.id, NULL));
  return outcome;
}

static mf_status covers(mf_bytes json, mf_range range) {
  mf_check check;
  OK(mf_certificate_check(json.data, json.size, &range, (mf_dataset){0}, &check, &error));
  const mf_status outcome = mf_wait(check.id, -1, &error);
  OK(mf_release(check.id, NULL));
  return outcome;
}

static void reported(mf_bytes json, const char* want) {
  mf_bytes report;
  OK(mf_certificate_report(json.data, json.size, NULL, &report, &error));
  CHECK(strstr(report.data, want));
  mf_bytes_free(&report);
}

static mf_bytes sum(mf_bytes a, mf_bytes b) {
  mf_bytes total;
  OK(mf_certificate_add(a.data, a.size, b.data, b.size, &total, &error));
  return total;
}

static void refused(mf_loader loader, mf_bytes json) {
  mf_bytes out = {error.op, 7};
  mf_check check = {7};
  EXPECT(MF_OUT_OF_RANGE, mf_loader_certificate(loader, 0, 4, &out, &error));
  CHECK(out.data == NULL && out.size == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_loader_certificate(loader, 0, 8, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_certificate_add(json.data, json.size, "{}", 2, &out, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_certificate_add(NULL, 2, "{}", 2, &out, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_certificate_check("{", 1, NULL, (mf_dataset){0}, &check, &error));
  CHECK(check.id == 0);
}

/* A check of 10^15 positions would take months. */
static void ended_early(void) {
  const char* json =
      "{\"meshfeed\":2,\"order\":\"shuffle.1\",\"dataset\":\"00000000000000000000000000000000\","
      "\"records\":1000000,\"seed\":0,\"runs\":[{\"mesh\":[[0,1]],\"processes\":[[0,1]],\"parts\":1,"
      "\"delivered\":[[0,1000000000,0,1000000]],\"dropped\":[],\"skipped\":[],\"rows\":1000000000000000,"
      "\"digest\":\"00000000000000000000000000000000\"}]}";
  mf_check check;
  OK(mf_certificate_check(json, strlen(json), NULL, (mf_dataset){0}, &check, &error));
  CHECK(mf_wait(check.id, 1, &error) == MF_TIMEOUT);
  OK(mf_release(check.id, &error));
}

int main(void) {
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout halves = make_layout(HALVES);
  mf_loader loaders[2];
  mf_bytes parts[2];
  for (int i = 0; i < 2; i++) {
    const mf_loader_options options = {.process = i, .order = "local", .epochs = -1};
    loaders[i] = make_loader(dataset, halves, &options);
    parts[i] = certified(loaders[i], 20);
    CHECK(strstr(parts[i].data, "\"order\":\"local.1:2:8\"") &&
          strstr(parts[i].data, "\"delivered\":[[0,1,0,96],[1,1,0,56]],\"dropped\":[[0,1,96,100]],"
                                "\"skipped\":[],\"rows\":76"));
  }
  mf_bytes both = sum(parts[0], parts[1]), twice = sum(parts[0], parts[0]);
  CHECK(checked(both) == MF_OK);
  CHECK(covers(both, (mf_range){0, 0, 1, 0}) == MF_OK);
  CHECK(covers(both, (mf_range){0, 0, 2, 0}) == MF_DATA_LOSS &&
        strstr(error.message, "44 positions are missing: [56, 100) of epoch 1"));
  CHECK(covers(both, (mf_range){0, 101, 2, 0}) == MF_OUT_OF_RANGE);
  CHECK(checked(parts[1]) == MF_DATA_LOSS &&
        strstr(error.message, "process 0 of 2 did not deliver 152 positions that others did"));
  CHECK(checked(twice) == MF_DATA_LOSS &&
        strstr(error.message, "process 0 of 2 delivered 152 positions more than once"));
  reported(twice, "\"absent\":[{\"processes\":[[1,2]],\"positions\":[[0,1,0,96],[1,1,0,56]]}]");
  refused(loaders[0], parts[0]);

  OK(mf_loader_rewind(loaders[0], 1, 56, &error));
  mf_bytes again = certified(loaders[0], 2);
  CHECK(strstr(again.data, "[[0,1,0,96],[1,1,0,64]]"));
  OK(mf_loader_seek(loaders[0], 1, 56, &error));
  mf_bytes seeked = certified(loaders[0], 2);
  CHECK(strstr(seeked.data, "[[0,1,0,96],[1,1,0,72]]") && strstr(seeked.data, "[[1,1,56,64]]"));
  OK(mf_loader_skip(loaders[0], 2, &error));
  EXPECT(MF_OUT_OF_RANGE, mf_loader_skip(loaders[0], -1, &error));
  mf_bytes skipped = certified(loaders[0], 2);
  CHECK(strstr(skipped.data, "\"skipped\":[[1,1,72,88]]"));
  reported(skipped, "\"skipped\":[[1,1,72,88]]");
  ended_early();

  mf_bytes* all[] = {&parts[0], &parts[1], &both, &twice, &again, &seeked, &skipped};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    mf_bytes_free(all[i]);
  OK(mf_release(loaders[0].id, &error));
  OK(mf_release(loaders[1].id, &error));
  OK(mf_release(halves.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0 && mf_live_batches() == 0);
  free(r);
  puts("ok");
  return 0;
}
