/*
 * every.c: what every function that leads into Go does alike: it notices a fork,
 * refuses NULL and sizes that cannot be, refuses what is no handle of its, and
 * clears its out-parameters in any case.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static bool forked; /* this process is a child of one that has loaded the library */
static mf_error error;

/* The out-parameters of a call, full of what was never written. */
static struct {
  uint64_t handle;
  mf_bytes bytes;
  int64_t number;
  mf_batch* batch;
  uint32_t key[2];
  mf_stats stats;
  struct DLManagedTensorVersioned* tensor;
  struct DLManagedTensor* legacy;
} out;

static void fill(void) {
  memset(&out, 0x5a, sizeof out);
  memset(&error, 0x5a, sizeof error);
  error.struct_size = sizeof error;
  out.stats.struct_size = sizeof out.stats;
}

static const char zeros[sizeof(mf_stats)];

#define CLEARED(what) (memcmp(&(what), zeros, sizeof(what)) == 0)

/* A call must give a status with a text, or MF_FORKED in a forked child. */
#define GIVES(status, call)                                                                                  \
  do {                                                                                                       \
    fill();                                                                                                  \
    EXPECT(forked ? MF_FORKED : (status), call);                                                             \
    CHECK(error.code == (forked ? MF_FORKED : (status)) && error.op[0] && error.message[0]);                 \
  } while (0)

/* The same for one with an out-parameter, which is cleared. */
#define CLEARS(status, what, call)                                                                           \
  do {                                                                                                       \
    GIVES(status, call);                                                                                     \
    CHECK(CLEARED(out.what));                                                                                \
  } while (0)

/* One that is given NULL for a pointer, and names it. */
#define NAMES(name, call)                                                                                    \
  do {                                                                                                       \
    GIVES(MF_INVALID_ARGUMENT, call);                                                                        \
    CHECK(forked || strcmp(error.message, "argument \"" name "\" is NULL") == 0);                            \
  } while (0)

/* One that is given a size that no text has. */
#define BOUNDS(call)                                                                                         \
  do {                                                                                                       \
    GIVES(MF_INVALID_ARGUMENT, call);                                                                        \
    CHECK(forked || strstr(error.message, "but a text may have at most 67108864"));                          \
  } while (0)

enum { NO_HANDLE = MF_INVALID_STATE, NO_TEXT = MF_INVALID_ARGUMENT };

/* Nothing is a handle, and no text is one that is understood. */
static void foreign(uint64_t h, const mf_batch* batch) {
  char data[4];
  int64_t records[4];
  const int32_t block = -1;
  uint8_t digest[16];
  GIVES(NO_HANDLE, mf_wait(h, -1, &error));
  GIVES(NO_HANDLE, mf_cancel(h, &error));
  CLEARS(NO_TEXT, handle, mf_layout_create("{", 1, &out.handle, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_json(h, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_report(h, NULL, 0, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_draw(h, NULL, 0, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_page(h, &out.bytes, &error));
  CLEARS(NO_TEXT, handle, mf_dataset_open("{", 1, &out.handle, &error));
  CLEARS(NO_HANDLE, bytes, mf_dataset_info(h, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_dataset_fingerprint(h, -1, &out.bytes, &error));
  CLEARS(NO_HANDLE, handle, mf_dataset_slice(h, 0, 1, &out.handle, &error));
  CLEARS(NO_HANDLE, handle, mf_loader_create(h, h, NULL, 0, &out.handle, &error));
  CLEARS(NO_HANDLE, bytes, mf_loader_info(h, &out.bytes, &error));
  CLEARS(NO_HANDLE, batch, mf_loader_next(h, -1, &out.batch, &error));
  CLEARS(NO_HANDLE, bytes, mf_loader_state(h, &out.bytes, &error));
  GIVES(NO_HANDLE, mf_loader_restore(h, "{}", 2, 0, &error));
  GIVES(NO_HANDLE, mf_loader_seek(h, 0, 0, &error));
  GIVES(NO_HANDLE, mf_loader_rewind(h, 0, 0, &error));
  CLEARS(NO_HANDLE, number, mf_loader_len(h, &out.number, &error));
  CLEARS(NO_HANDLE, handle, mf_loader_one_epoch(h, 0, &out.handle, &error));
  CLEARS(NO_HANDLE, handle, mf_loader_remesh(h, h, 0, &out.handle, &error));
  CLEARS(NO_HANDLE, number, mf_loader_records(h, 0, 0, records, 4, &out.number, &error));
  CLEARS(NO_HANDLE, stats.epoch, mf_loader_stats(h, &out.stats, &error));
  CHECK(CLEARED(out.stats.gathered_bytes) && out.stats.struct_size == sizeof out.stats);
  CLEARS(NO_HANDLE, bytes, mf_loader_certificate(h, 0, 0, &out.bytes, &error));
  CLEARS(NO_TEXT, bytes, mf_certificate_add("{", 1, "{", 1, &out.bytes, &error));
  CLEARS(NO_TEXT, handle, mf_certificate_check("{", 1, &out.handle, &error));
  GIVES(MF_OUT_OF_RANGE, mf_digest(batch, &block, 1, digest, &error));
  CLEARS(NO_TEXT, handle, mf_devices_open("go", 2, "{", 1, &out.handle, &error));
  CLEARS(NO_HANDLE, bytes, mf_devices_info(h, &out.bytes, &error));
  CLEARS(NO_HANDLE, handle, mf_ring_create(h, h, &out.handle, &error));
  CLEARS(NO_HANDLE, bytes, mf_ring_info(h, &out.bytes, &error));
  CLEARS(NO_HANDLE, handle, mf_batch_place(batch, h, &out.handle, &error));
  GIVES(NO_HANDLE, mf_placed_read(h, 0, 0, data, 4, &error));
  CLEARS(NO_HANDLE, tensor, mf_placed_dlpack(h, 0, 0, &out.tensor, &error));
  CLEARS(NO_HANDLE, legacy, mf_placed_dlpack_legacy(h, 0, 0, &out.legacy, &error));
  GIVES(NO_TEXT, mf_order_fill("", 0, 0, 4, 0, 0, records, 4, &error));
  if (forked) /* any record has a key */
    CLEARS(MF_OK, key, mf_record_key(0, 0, 0, out.key, &error));
}

static void null_pointers(uint64_t h, const mf_batch* batch) {
  const int32_t block = 0;
  NAMES("layout", mf_layout_create("{}", 2, NULL, &error));
  CLEARS(NO_TEXT, handle, mf_layout_create(NULL, 3, &out.handle, &error));
  NAMES("json", mf_layout_create(NULL, 3, &out.handle, &error));
  NAMES("json", mf_layout_json(h, NULL, &error));
  NAMES("options", mf_layout_report(h, NULL, 1, &out.bytes, &error));
  NAMES("json", mf_layout_report(h, NULL, 0, NULL, &error));
  NAMES("options", mf_layout_draw(h, NULL, 1, &out.bytes, &error));
  NAMES("text", mf_layout_draw(h, NULL, 0, NULL, &error));
  NAMES("html", mf_layout_page(h, NULL, &error));
  NAMES("options", mf_dataset_open(NULL, 1, &out.handle, &error));
  NAMES("dataset", mf_dataset_open("{}", 2, NULL, &error));
  NAMES("stream", mf_dataset_open_stream(NULL, NULL, 0, &out.handle, &error));
  NAMES("arrays", mf_dataset_open_arrays(NULL, 1, NULL, NULL, &out.handle, &error));
  NAMES("json", mf_dataset_info(h, NULL, &error));
  NAMES("text", mf_dataset_fingerprint(h, 0, NULL, &error));
  NAMES("slice", mf_dataset_slice(h, 0, 1, NULL, &error));
  NAMES("options", mf_loader_create(h, h, NULL, 1, &out.handle, &error));
  NAMES("loader", mf_loader_create(h, h, NULL, 0, NULL, &error));
  NAMES("json", mf_loader_info(h, NULL, &error));
  NAMES("batch", mf_loader_next(h, 0, NULL, &error));
  NAMES("json", mf_loader_state(h, NULL, &error));
  NAMES("state", mf_loader_restore(h, NULL, 0, 0, &error));
  NAMES("batches", mf_loader_len(h, NULL, &error));
  NAMES("pass", mf_loader_one_epoch(h, 0, NULL, &error));
  NAMES("next", mf_loader_remesh(h, h, 0, NULL, &error));
  NAMES("count", mf_loader_records(h, 0, 0, NULL, 0, NULL, &error));
  NAMES("records", mf_loader_records(h, 0, 0, NULL, 1, &out.number, &error));
  NAMES("stats", mf_loader_stats(h, NULL, &error));
  NAMES("json", mf_loader_certificate(h, 0, 0, NULL, &error));
  NAMES("a", mf_certificate_add(NULL, 1, "{}", 2, &out.bytes, &error));
  NAMES("b", mf_certificate_add("{}", 2, NULL, 1, &out.bytes, &error));
  NAMES("sum", mf_certificate_add("{}", 2, "{}", 2, NULL, &error));
  NAMES("json", mf_certificate_check(NULL, 1, &out.handle, &error));
  NAMES("check", mf_certificate_check("{}", 2, NULL, &error));
  NAMES("batch", mf_digest(NULL, NULL, 0, NULL, &error));
  NAMES("tensors", mf_digest(batch, NULL, 1, NULL, &error));
  NAMES("digests", mf_digest(batch, &block, 1, NULL, &error));
  NAMES("spec", mf_devices_open(NULL, 1, NULL, 0, &out.handle, &error));
  NAMES("options", mf_devices_open("go", 2, NULL, 1, &out.handle, &error));
  NAMES("devices", mf_devices_open("go", 2, NULL, 0, NULL, &error));
  NAMES("json", mf_devices_info(h, NULL, &error));
  NAMES("ring", mf_ring_create(h, h, NULL, &error));
  NAMES("json", mf_ring_info(h, NULL, &error));
  NAMES("batch", mf_batch_place(NULL, h, &out.handle, &error));
  NAMES("placed", mf_batch_place(batch, h, NULL, &error));
  NAMES("data", mf_placed_read(h, 0, 0, NULL, 4, &error));
  NAMES("tensor", mf_placed_dlpack(h, 0, 0, NULL, &error));
  NAMES("tensor", mf_placed_dlpack_legacy(h, 0, 0, NULL, &error));
  NAMES("order", mf_order_fill(NULL, 0, 0, 0, 0, 0, NULL, 0, &error));
  NAMES("out", mf_order_fill("shuffle.1", 9, 0, 4, 0, 0, NULL, 4, &error));
  NAMES("key", mf_record_key(0, 0, 0, NULL, &error));
}

/* A size of -1 comes from a length that could not be found. */
static void sizes(uint64_t h) {
  const size_t none = (size_t)-1, most = 64 << 20;
  int64_t record;
  BOUNDS(mf_layout_create("", none, &out.handle, &error));
  BOUNDS(mf_layout_create("", most + 1, &out.handle, &error));
  BOUNDS(mf_layout_report(h, "", none, &out.bytes, &error));
  BOUNDS(mf_layout_draw(h, "", none, &out.bytes, &error));
  BOUNDS(mf_dataset_open("", none, &out.handle, &error));
  BOUNDS(mf_loader_create(h, h, "", none, &out.handle, &error));
  BOUNDS(mf_loader_restore(h, "", none, 0, &error));
  BOUNDS(mf_certificate_add("", none, "", 0, &out.bytes, &error));
  BOUNDS(mf_certificate_add("", 0, "", none, &out.bytes, &error));
  BOUNDS(mf_certificate_check("", none, &out.handle, &error));
  BOUNDS(mf_devices_open("", none, NULL, 0, &out.handle, &error));
  BOUNDS(mf_devices_open("", 0, "", none, &out.handle, &error));
  BOUNDS(mf_order_fill("", none, 0, 1, 0, 0, &record, 1, &error));
  fill();
  out.stats.struct_size = 4;
  EXPECT(forked ? MF_FORKED : MF_INVALID_ARGUMENT, mf_loader_stats(h, &out.stats, &error));
  CHECK(forked || strstr(error.hint, "sizeof(mf_stats)"));
}

static void everything(uint64_t h, const mf_batch* batch) {
  foreign(h, batch);
  null_pointers(h, batch);
  sizes(h);
}

static void in_a_child(uint64_t h, const mf_batch* batch) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    forked = true;
    CHECK(mf_version()[0] == 0);
    everything(h, batch);
    _exit(0);
  }
  int outcome;
  CHECK(waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
}

int main(void) {
  mf_batch* batch;
  alarm(60);                             /* a child that hangs ends the program */
  in_a_child(0, (const mf_batch*)zeros); /* this process has used nothing yet */
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, "");
  OK(mf_loader_next(loader, -1, &batch, &error));
  OK(mf_release(layout, &error));
  everything(0, batch);
  everything(layout, batch); /* which is released */
  everything(~(uint64_t)0, batch);
  in_a_child(loader, batch);
  mf_batch_release(batch);
  OK(mf_release(loader, &error));
  OK(mf_release(dataset, &error));
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
