/*
 * every.c: the first steps of all functions that enter Go. Each detects a fork, refuses NULL,
 * impossible sizes and foreign handles, and always clears its out-parameters.
 */
#define _DEFAULT_SOURCE
#include "../../arrowio/cstream/cstream.h"
#include "check.h"
#include "meshfeed_certificate.h"
#include "meshfeed_devices.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static bool forked; /* this process is a child of the one that loaded the library */
static mf_error error;

/* A handle of any kind. */
typedef union any {
  uint64_t id;
  mf_dataset dataset;
  mf_layout layout;
  mf_loader loader;
  mf_check check;
  mf_devices devices;
  mf_ring ring;
  mf_device_batch device_batch;
  mf_splitter splitter;
} any;

/* The out-parameters of a call, filled with arbitrary bytes. */
static struct {
  any handle;
  mf_bytes bytes;
  int64_t number;
  mf_batch* batch;
  uint32_t key[2];
  mf_stats stats;
  struct DLManagedTensorVersioned* tensor;
  struct DLManagedTensor* legacy;
  struct ArrowArrayStream stream;
  struct ArrowArray record;
} out;

static void fill(void) {
  memset(&out, 0x5a, sizeof out);
  memset(&error, 0x5a, sizeof error);
  error.struct_size = sizeof error;
  out.stats.struct_size = sizeof out.stats;
}

static const void* const address = &error;

static const char zeros[sizeof(mf_stats)];

#define CLEARED(what) (memcmp(&(what), zeros, sizeof(what)) == 0)

/* A call must return a status with a message, or MF_FORKED in a forked child. */
#define GIVES(status, call)                                                                                  \
  do {                                                                                                       \
    fill();                                                                                                  \
    EXPECT(forked ? MF_FORKED : (status), call);                                                             \
    CHECK(error.code == (forked ? MF_FORKED : (status)) && error.op[0] && error.message[0]);                 \
  } while (0)

/* The same for a call with an out-parameter, which it clears. */
#define CLEARS(status, what, call)                                                                           \
  do {                                                                                                       \
    GIVES(status, call);                                                                                     \
    CHECK(CLEARED(out.what));                                                                                \
  } while (0)

/* A call that gets NULL for a pointer must name the pointer. */
#define NAMES(name, call)                                                                                    \
  do {                                                                                                       \
    GIVES(MF_INVALID_ARGUMENT, call);                                                                        \
    CHECK(forked || strcmp(error.message, "argument \"" name "\" is NULL") == 0);                            \
  } while (0)

/* A call that gets an impossible size of a text. */
#define BOUNDS(call)                                                                                         \
  do {                                                                                                       \
    GIVES(MF_INVALID_ARGUMENT, call);                                                                        \
    CHECK(forked || strstr(error.message, "but a text may have at most 67108864"));                          \
  } while (0)

enum { NO_HANDLE = MF_INVALID_STATE, NO_TEXT = MF_INVALID_ARGUMENT };

/* Every handle is foreign, and every text is invalid. */
static void foreign(any h, const mf_batch* batch) {
  char data[4];
  int64_t records[4];
  const int32_t block = -1;
  const char* const path = "";
  uint8_t digest[16];
  GIVES(NO_HANDLE, mf_wait(h.id, -1, &error));
  GIVES(NO_HANDLE, mf_cancel(h.id, &error));
  CLEARS(NO_TEXT, handle, mf_layout_create("{", 1, &out.handle.layout, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_json(h.layout, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_report(h.layout, 0, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_draw(h.layout, NULL, &out.bytes, &error));
  CLEARS(NO_TEXT, bytes, mf_diagram("{", 1, MF_TEXT, 0, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_layout_page(h.layout, &out.bytes, &error));
  CLEARS(NO_TEXT, bytes, mf_memory("{", 1, MF_JSON, &out.bytes, &error));
  CLEARS(NO_TEXT, bytes, mf_diagnose("{", 1, MF_JSON, &out.bytes, &error));
  CLEARS(NO_TEXT, bytes, mf_advise("{", 1, MF_JSON, &out.bytes, &error));
  CLEARS(NO_TEXT, handle, mf_dataset_open(&path, 0, NULL, &out.handle.dataset, &error));
  CLEARS(NO_HANDLE, bytes, mf_dataset_info(h.dataset, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_dataset_fingerprint(h.dataset, -1, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_dataset_hash(h.dataset, -1, &out.bytes, &error));
  CLEARS(NO_HANDLE, stream, mf_dataset_stream(h.dataset, NULL, 0, &out.stream, &error));
  CLEARS(NO_HANDLE, record, mf_dataset_rows(h.dataset, records, 0, &out.record, NULL, &error));
  CLEARS(NO_HANDLE, handle,
         mf_dataset_view("slice", "{\"start\":0,\"stop\":1}", 20, &h.dataset, 1, NULL, 0, &out.handle.dataset,
                         1, &error));
  CLEARS(NO_HANDLE, bytes, mf_dataset_convert(h.dataset, "x", "{}", 2, &out.bytes, &error));
  GIVES(NO_HANDLE, mf_dataset_lengths(h.dataset, "", 0, 4, records, &error));
  CLEARS(NO_HANDLE, handle, mf_loader_create(h.dataset, h.layout, NULL, &out.handle.loader, &error));
  CLEARS(NO_HANDLE, bytes, mf_loader_info(h.loader, &out.bytes, &error));
  CLEARS(NO_HANDLE, bytes, mf_loader_components(h.loader, &out.bytes, &error));
  CLEARS(NO_HANDLE, batch, mf_loader_next(h.loader, -1, &out.batch, &error));
  CLEARS(NO_HANDLE, bytes, mf_loader_state(h.loader, &out.bytes, &error));
  GIVES(NO_HANDLE, mf_loader_restore(h.loader, "{}", 2, 0, &error));
  GIVES(NO_HANDLE, mf_loader_seek(h.loader, 0, 0, &error));
  GIVES(NO_HANDLE, mf_loader_skip(h.loader, 1, &error));
  GIVES(NO_HANDLE, mf_loader_rewind(h.loader, 0, 0, &error));
  CLEARS(NO_HANDLE, number, mf_loader_len(h.loader, &out.number, &error));
  CLEARS(NO_HANDLE, handle, mf_loader_one_epoch(h.loader, 0, &out.handle.loader, &error));
  CLEARS(NO_HANDLE, handle, mf_loader_remesh(h.loader, h.layout, 0, &out.handle.loader, &error));
  CLEARS(NO_HANDLE, number, mf_loader_records(h.loader, 0, 0, records, 4, &out.number, &error));
  CLEARS(NO_HANDLE, stats.epoch, mf_loader_stats(h.loader, &out.stats, &error));
  CHECK(CLEARED(out.stats.gathered_bytes) && out.stats.struct_size == sizeof out.stats);
  CLEARS(NO_HANDLE, bytes, mf_loader_certificate(h.loader, 0, 0, &out.bytes, &error));
  CLEARS(NO_TEXT, bytes, mf_certificate_add("{", 1, "{", 1, &out.bytes, &error));
  CLEARS(NO_TEXT, handle, mf_certificate_check("{", 1, NULL, (mf_dataset){0}, &out.handle.check, &error));
  CLEARS(NO_TEXT, bytes, mf_certificate_report("{", 1, NULL, &out.bytes, &error));
  GIVES(MF_OUT_OF_RANGE, mf_digest(batch, &block, 1, digest, &error));
  CLEARS(NO_TEXT, handle,
         mf_devices_open("go", 2, &(mf_devices_options){.timeout_ms = -1}, &out.handle.devices, &error));
  CLEARS(NO_HANDLE, bytes, mf_devices_info(h.devices, &out.bytes, &error));
  CLEARS(NO_HANDLE, handle, mf_ring_create(h.devices, h.layout, &out.handle.ring, &error));
  CLEARS(NO_HANDLE, bytes, mf_ring_info(h.ring, &out.bytes, &error));
  CLEARS(NO_HANDLE, handle, mf_ring_transfer(h.ring, batch, &out.handle.device_batch, &error));
  GIVES(NO_HANDLE, mf_device_batch_read(h.device_batch, 0, 0, data, 4, &error));
  CLEARS(NO_HANDLE, tensor, mf_device_batch_dlpack(h.device_batch, 0, 0, &out.tensor, &error));
  CLEARS(NO_HANDLE, legacy, mf_device_batch_dlpack_legacy(h.device_batch, 0, 0, &out.legacy, &error));
  CLEARS(NO_HANDLE, handle,
         mf_splitter_create(h.layout, 0, &(mf_array)MF_ARRAY_INIT, 1, &out.handle.splitter, &error));
  CLEARS(NO_HANDLE, bytes, mf_splitter_info(h.splitter, &out.bytes, &error));
  CLEARS(NO_HANDLE, batch, mf_split(h.splitter, &address, 1, &out.batch, &error));
  GIVES(NO_TEXT, mf_order_fill("", 0, 0, 4, 0, 0, records, 4, &error));
  if (forked) { /* otherwise every argument is valid */
    CLEARS(MF_OK, key, mf_record_key(0, 0, 0, out.key, &error));
    GIVES(MF_OK, mf_digest_memory("", 0, digest, &error));
    CLEARS(MF_OK, handle, mf_dataset_open_tensors("", &out.handle.dataset, &error));
  }
}

static void null_pointers(any h, const mf_batch* batch) {
  struct ArrowArray array;
  struct ArrowSchema schema;
  const int32_t block = 0;
  const char* const path = "";
  uint8_t digest[16];
  NAMES("layout", mf_layout_create("{}", 2, NULL, &error));
  CLEARS(NO_TEXT, handle, mf_layout_create(NULL, 3, &out.handle.layout, &error));
  NAMES("json", mf_layout_create(NULL, 3, &out.handle.layout, &error));
  NAMES("json", mf_layout_json(h.layout, NULL, &error));
  NAMES("json", mf_layout_report(h.layout, 0, NULL, &error));
  NAMES("text", mf_layout_draw(h.layout, NULL, NULL, &error));
  NAMES("json", mf_diagram(NULL, 3, MF_TEXT, 0, &out.bytes, &error));
  NAMES("text", mf_diagram("{}", 2, MF_TEXT, 0, NULL, &error));
  NAMES("html", mf_layout_page(h.layout, NULL, &error));
  NAMES("json", mf_memory(NULL, 3, MF_JSON, &out.bytes, &error));
  NAMES("text", mf_memory("{}", 2, MF_JSON, NULL, &error));
  NAMES("json", mf_diagnose(NULL, 3, MF_JSON, &out.bytes, &error));
  NAMES("text", mf_diagnose("{}", 2, MF_JSON, NULL, &error));
  NAMES("json", mf_advise(NULL, 3, MF_JSON, &out.bytes, &error));
  NAMES("text", mf_advise("{}", 2, MF_JSON, NULL, &error));
  NAMES("paths", mf_dataset_open(NULL, 1, NULL, &out.handle.dataset, &error));
  NAMES("dataset", mf_dataset_open(&path, 1, NULL, NULL, &error));
  NAMES("path", mf_dataset_open_tensors(NULL, &out.handle.dataset, &error));
  NAMES("dataset", mf_dataset_open_tensors(path, NULL, &error));
  NAMES("stream", mf_dataset_open_stream(NULL, NULL, &out.handle.dataset, &error));
  NAMES("stream", mf_dataset_stream(h.dataset, NULL, 0, NULL, &error));
  NAMES("formats", mf_dataset_stream(h.dataset, NULL, 1, &out.stream, &error));
  NAMES("array", mf_dataset_rows(h.dataset, &out.number, 1, NULL, NULL, &error));
  NAMES("records", mf_dataset_rows(h.dataset, NULL, 1, &out.record, NULL, &error));
  NAMES("array", mf_dataset_open_record_batch(NULL, &schema, NULL, &out.handle.dataset, &error));
  NAMES("schema", mf_dataset_open_record_batch(&array, NULL, NULL, &out.handle.dataset, &error));
  NAMES("arrays", mf_dataset_open_arrays(NULL, 1, NULL, NULL, &out.handle.dataset, &error));
  NAMES("json", mf_dataset_info(h.dataset, NULL, &error));
  NAMES("text", mf_dataset_fingerprint(h.dataset, 0, NULL, &error));
  NAMES("json", mf_dataset_hash(h.dataset, 0, NULL, &error));
  NAMES("kind", mf_dataset_view(NULL, NULL, 0, &h.dataset, 1, NULL, 0, &out.handle.dataset, 1, &error));
  NAMES("json", mf_dataset_view("take", NULL, 3, &h.dataset, 1, NULL, 0, &out.handle.dataset, 1, &error));
  NAMES("datasets", mf_dataset_view("take", NULL, 0, NULL, 1, NULL, 0, &out.handle.dataset, 1, &error));
  NAMES("views", mf_dataset_view("take", NULL, 0, &h.dataset, 1, NULL, 0, NULL, 1, &error));
  NAMES("report", mf_dataset_convert(h.dataset, "x", "{}", 2, NULL, &error));
  NAMES("folder", mf_dataset_convert(h.dataset, NULL, "{}", 2, &out.bytes, &error));
  NAMES("json", mf_dataset_convert(h.dataset, "x", NULL, 0, &out.bytes, &error));
  NAMES("field", mf_dataset_lengths(h.dataset, NULL, 0, 1, &out.number, &error));
  NAMES("lengths", mf_dataset_lengths(h.dataset, "x", 0, 1, NULL, &error));
  NAMES("loader", mf_loader_create(h.dataset, h.layout, NULL, NULL, &error));
  NAMES("json", mf_loader_info(h.loader, NULL, &error));
  NAMES("json", mf_loader_components(h.loader, NULL, &error));
  NAMES("batch", mf_loader_next(h.loader, 0, NULL, &error));
  NAMES("json", mf_loader_state(h.loader, NULL, &error));
  NAMES("state", mf_loader_restore(h.loader, NULL, 0, 0, &error));
  NAMES("batches", mf_loader_len(h.loader, NULL, &error));
  NAMES("pass", mf_loader_one_epoch(h.loader, 0, NULL, &error));
  NAMES("next", mf_loader_remesh(h.loader, h.layout, 0, NULL, &error));
  NAMES("count", mf_loader_records(h.loader, 0, 0, NULL, 0, NULL, &error));
  NAMES("records", mf_loader_records(h.loader, 0, 0, NULL, 1, &out.number, &error));
  NAMES("stats", mf_loader_stats(h.loader, NULL, &error));
  NAMES("json", mf_loader_certificate(h.loader, 0, 0, NULL, &error));
  NAMES("a", mf_certificate_add(NULL, 1, "{}", 2, &out.bytes, &error));
  NAMES("b", mf_certificate_add("{}", 2, NULL, 1, &out.bytes, &error));
  NAMES("sum", mf_certificate_add("{}", 2, "{}", 2, NULL, &error));
  NAMES("json", mf_certificate_check(NULL, 1, NULL, (mf_dataset){0}, &out.handle.check, &error));
  NAMES("check", mf_certificate_check("{}", 2, NULL, (mf_dataset){0}, NULL, &error));
  NAMES("json", mf_certificate_report(NULL, 1, NULL, &out.bytes, &error));
  NAMES("report", mf_certificate_report("{}", 2, NULL, NULL, &error));
  NAMES("batch", mf_digest(NULL, NULL, 0, NULL, &error));
  NAMES("tensors", mf_digest(batch, NULL, 1, NULL, &error));
  NAMES("digests", mf_digest(batch, &block, 1, NULL, &error));
  NAMES("data", mf_digest_memory(NULL, 1, digest, &error));
  NAMES("digest", mf_digest_memory("", 1, NULL, &error));
  NAMES("spec", mf_devices_open(NULL, 1, NULL, &out.handle.devices, &error));
  NAMES("devices", mf_devices_open("go", 2, NULL, NULL, &error));
  NAMES("json", mf_devices_info(h.devices, NULL, &error));
  NAMES("ring", mf_ring_create(h.devices, h.layout, NULL, &error));
  NAMES("json", mf_ring_info(h.ring, NULL, &error));
  NAMES("batch", mf_ring_transfer(h.ring, NULL, &out.handle.device_batch, &error));
  NAMES("device_batch", mf_ring_transfer(h.ring, batch, NULL, &error));
  NAMES("data", mf_device_batch_read(h.device_batch, 0, 0, NULL, 4, &error));
  NAMES("tensor", mf_device_batch_dlpack(h.device_batch, 0, 0, NULL, &error));
  NAMES("tensor", mf_device_batch_dlpack_legacy(h.device_batch, 0, 0, NULL, &error));
  NAMES("arrays", mf_splitter_create(h.layout, 0, NULL, 1, &out.handle.splitter, &error));
  NAMES("splitter", mf_splitter_create(h.layout, 0, &(mf_array)MF_ARRAY_INIT, 1, NULL, &error));
  NAMES("json", mf_splitter_info(h.splitter, NULL, &error));
  NAMES("data", mf_split(h.splitter, NULL, 1, &out.batch, &error));
  NAMES("batch", mf_split(h.splitter, &address, 1, NULL, &error));
  NAMES("order", mf_order_fill(NULL, 0, 0, 0, 0, 0, NULL, 0, &error));
  NAMES("out", mf_order_fill("shuffle.1", 9, 0, 4, 0, 0, NULL, 4, &error));
  NAMES("key", mf_record_key(0, 0, 0, NULL, &error));
}

/* A size of -1 comes from a failed function that returns a length. */
static void sizes(any h) {
  const size_t none = (size_t)-1, most = 64 << 20;
  int64_t record;
  BOUNDS(mf_diagram("", none, MF_TEXT, 0, &out.bytes, &error));
  BOUNDS(mf_dataset_view("take", "", none, &h.dataset, 1, NULL, 0, &out.handle.dataset, 1, &error));
  BOUNDS(mf_layout_create("", none, &out.handle.layout, &error));
  BOUNDS(mf_layout_create("", most + 1, &out.handle.layout, &error));
  BOUNDS(mf_memory("", none, MF_TEXT, &out.bytes, &error));
  BOUNDS(mf_diagnose("", none, MF_TEXT, &out.bytes, &error));
  BOUNDS(mf_advise("", none, MF_TEXT, &out.bytes, &error));
  BOUNDS(mf_loader_restore(h.loader, "", none, 0, &error));
  BOUNDS(mf_certificate_add("", none, "", 0, &out.bytes, &error));
  BOUNDS(mf_certificate_add("", 0, "", none, &out.bytes, &error));
  BOUNDS(mf_certificate_check("", none, NULL, (mf_dataset){0}, &out.handle.check, &error));
  BOUNDS(mf_certificate_report("", none, NULL, &out.bytes, &error));
  BOUNDS(mf_devices_open("", none, NULL, &out.handle.devices, &error));
  BOUNDS(mf_order_fill("", none, 0, 1, 0, 0, &record, 1, &error));
  fill();
  out.stats.struct_size = 4;
  EXPECT(forked ? MF_FORKED : MF_INVALID_ARGUMENT, mf_loader_stats(h.loader, &out.stats, &error));
  CHECK(forked || strstr(error.hint, "sizeof(mf_stats)"));
}

static void everything(any h, const mf_batch* batch) {
  foreign(h, batch);
  null_pointers(h, batch);
  sizes(h);
}

static void in_a_child(any h, const mf_batch* batch) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    forked = true;
    CHECK(mf_version()[0] == 0 && mf_jpeg_decoder()[0] == 0);
    everything(h, batch);
    _exit(0);
  }
  int outcome;
  CHECK(waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
}

int main(void) {
  mf_batch* batch;
  alarm(60);                                    /* ends the program if a child hangs */
  in_a_child((any){0}, (const mf_batch*)zeros); /* before this process has called anything */
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, NULL);
  OK(mf_loader_next(loader, -1, &batch, &error));
  OK(mf_release(layout.id, &error));
  everything((any){0}, batch);
  everything((any){layout.id}, batch); /* a released handle */
  everything((any){~(uint64_t)0}, batch);
  in_a_child((any){loader.id}, batch);
  mf_batch_release(batch);
  OK(mf_release(loader.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
