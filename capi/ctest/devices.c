/*
 * devices.c: batches on devices. Every shard has the right bytes, no other batch uses lent
 * memory, objects are released in any order and on any thread, and errors are reported.
 */
#define _DEFAULT_SOURCE
#include "check.h"
#include "dlpack.h"
#include "meshfeed_certificate.h"
#include "meshfeed_devices.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IMAGE, LABEL, POSITIONS = 8, BATCH = 8, SHARD_ROWS = 2, SHARD = SHARD_ROWS * 3 * 3 };

static records* r;
static mf_dataset dataset;
static mf_layout layout;
static mf_loader loader;

static mf_devices open_devices(const char* spec) {
  mf_error error = MF_ERROR_INIT;
  mf_devices devices;
  OK(mf_devices_open(spec, strlen(spec), NULL, &devices, &error));
  return devices;
}

static int64_t live(mf_devices devices) {
  mf_error error = MF_ERROR_INIT;
  mf_bytes json;
  OK(mf_devices_info(devices, &json, &error));
  const char* at = strstr(json.data, "\"live_buffers\":");
  CHECK(at);
  const int64_t n = strtoll(at + strlen("\"live_buffers\":"), NULL, 10);
  mf_bytes_free(&json);
  return n;
}

static mf_ring make_ring(mf_devices devices, mf_layout of) {
  mf_error error = MF_ERROR_INIT;
  mf_ring ring;
  OK(mf_ring_create(devices, of, &ring, &error));
  return ring;
}

/* Transfers the next batch, and returns the position of its first row. */
static mf_device_batch transfer_next(mf_ring ring, int64_t* position) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  mf_device_batch moved;
  OK(mf_loader_next(loader, -1, &batch, &error));
  *position = batch->position;
  OK(mf_ring_transfer(ring, batch, &moved, &error));
  mf_batch_release(batch);
  return moved;
}

/* Checks the image rows of mesh position p. data = p / 2 selects the rows, and
   model = p % 2 the columns. */
static void check_image(const float* shard, int64_t first, int p) {
  for (int row = 0; row < SHARD_ROWS; row++)
    for (int y = 0; y < 3; y++)
      for (int x = 0; x < 3; x++)
        CHECK(shard[(row * 3 + y) * 3 + x] ==
              r->image[first + p / 2 * SHARD_ROWS + row][y * 6 + p % 2 * 3 + x]);
}

static void check_shards(mf_device_batch moved, int64_t first) {
  mf_error error = MF_ERROR_INIT;
  for (int p = 0; p < POSITIONS; p++) {
    float image[SHARD];
    int32_t label[SHARD_ROWS];
    OK(mf_device_batch_read(moved, IMAGE, p, image, sizeof image, &error));
    check_image(image, first, p);
    OK(mf_device_batch_read(moved, LABEL, p, label, sizeof label, &error));
    for (int row = 0; row < SHARD_ROWS; row++)
      CHECK(label[row] == r->label[first + p / 2 * SHARD_ROWS + row]);
  }
}

static void check_lent(const dl_tensor* t, int64_t first, int p) {
  CHECK(t->device_type == 1 && t->device_id == 0 && t->byte_offset == 0 && t->ndim == 3);
  CHECK(t->dtype.code == 2 && t->dtype.bits == 32 && t->dtype.lanes == 1);
  CHECK(t->shape[0] == SHARD_ROWS && t->shape[1] == 3 && t->shape[2] == 3);
  CHECK(t->strides[0] == 9 && t->strides[1] == 3 && t->strides[2] == 1);
  check_image((const float*)t->data, first, p);
}

static void* delete_it(void* tensor) {
  struct DLManagedTensorVersioned* t = (struct DLManagedTensorVersioned*)tensor;
  t->deleter(t);
  return NULL;
}

static void on_a_thread(void* (*body)(void*), void* argument) {
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, body, argument));
  pthread_join(thread, NULL);
}

/* Later batches reuse the memory of earlier ones. */
static void check_many(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_devices devices = open_devices("virtual:8");
  const mf_ring ring = make_ring(devices, layout);
  int64_t position, most = 0;
  for (int i = 0; i < 200; i++) {
    const mf_device_batch moved = transfer_next(ring, &position);
    check_shards(moved, position);
    OK(mf_release(moved.id, &error));
    if (i == 0)
      most = live(devices);
  }
  CHECK(most == 16 && live(devices) == most);
  OK(mf_release(ring.id, &error));
  CHECK(live(devices) == 0);
  OK(mf_release(devices.id, &error));
}

/* Lent memory does not change until its deleter is called, whatever else is released. */
static void check_lending(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_devices devices = open_devices("virtual:8");
  const mf_ring ring = make_ring(devices, layout);
  int64_t first, other;
  const mf_device_batch moved = transfer_next(ring, &first);
  struct DLManagedTensorVersioned* lent[2];
  struct DLManagedTensor* legacy;
  OK(mf_device_batch_dlpack(moved, IMAGE, 5, &lent[0], &error));
  OK(mf_device_batch_dlpack(moved, IMAGE, 5, &lent[1], &error));
  OK(mf_device_batch_dlpack_legacy(moved, IMAGE, 2, &legacy, &error));
  CHECK(lent[0]->major == 1 && lent[0]->minor == 0 && lent[0]->flags == 1);
  CHECK(lent[0]->tensor.data == lent[1]->tensor.data);
  OK(mf_release(moved.id, &error));
  for (int i = 0; i < 30; i++) {
    const mf_device_batch next = transfer_next(ring, &other);
    check_shards(next, other);
    OK(mf_release(next.id, &error));
  }
  check_lent(&lent[0]->tensor, first, 5);
  check_lent(&legacy->tensor, first, 2);
  CHECK(live(devices) == 32); /* the lent batch, and the one in use */
  on_a_thread(delete_it, lent[0]);
  OK(mf_release(ring.id, &error));
  CHECK(live(devices) == 16);
  legacy->deleter(legacy);
  CHECK(live(devices) == 16);
  check_lent(&lent[1]->tensor, first, 5);
  OK(mf_release(devices.id, &error));
  check_lent(&lent[1]->tensor, first, 5); /* all handles are released */
  on_a_thread(delete_it, lent[1]);
}

/* Devices, a ring, two batches and a lent shard are released in every order. */
static void check_orders(void) {
  mf_error error = MF_ERROR_INIT;
  for (int order = 0; order < 120; order++) {
    int64_t first[2];
    const mf_devices devices = open_devices("virtual:8");
    const mf_ring ring = make_ring(devices, layout);
    const mf_device_batch one = transfer_next(ring, &first[0]), two = transfer_next(ring, &first[1]);
    const uint64_t handles[] = {devices.id, ring.id, one.id, two.id};
    struct DLManagedTensorVersioned* lent;
    OK(mf_device_batch_dlpack(one, IMAGE, 3, &lent, &error));
    int left[] = {0, 1, 2, 3, 4};
    for (int n = 5, rest = order; n > 0; rest /= n, n--) {
      const int i = rest % n, which = left[i];
      left[i] = left[n - 1];
      if (which < 4) {
        OK(mf_release(handles[which], &error));
        EXPECT(MF_INVALID_STATE, mf_release(handles[which], &error));
      } else {
        check_lent(&lent->tensor, first[0], 3);
        lent->deleter(lent);
      }
    }
  }
}

/* Threads transfer, read and lend while the devices are closed. */
typedef struct {
  mf_ring ring;
  int moved;
} worker;

static void* work(void* argument) {
  worker* w = (worker*)argument;
  mf_error error = MF_ERROR_INIT;
  for (;;) {
    mf_batch* batch;
    OK(mf_loader_next(loader, -1, &batch, &error));
    const int64_t first = batch->position;
    mf_device_batch moved;
    mf_status status = mf_ring_transfer(w->ring, batch, &moved, &error);
    mf_batch_release(batch);
    if (status == MF_OK) {
      struct DLManagedTensorVersioned* lent;
      OK(mf_device_batch_dlpack(moved, IMAGE, 7, &lent, &error));
      OK(mf_release(moved.id, &error));
      check_lent(&lent->tensor, first, 7);
      lent->deleter(lent);
      w->moved++;
      continue;
    }
    CHECK(status == MF_INVALID_STATE || status == MF_CANCELLED);
    return NULL;
  }
}

static void check_threads(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_devices devices = open_devices("virtual:8");
  worker workers[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    workers[i].ring = make_ring(devices, layout);
    workers[i].moved = 0;
    CHECK(!pthread_create(&threads[i], NULL, work, &workers[i]));
  }
  int64_t first;
  for (int i = 0; i < 100; i++) {
    const mf_device_batch moved = transfer_next(workers[i % 4].ring, &first);
    check_shards(moved, first);
    OK(mf_release(moved.id, &error));
  }
  OK(mf_release(devices.id, &error));
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    OK(mf_release(workers[i].ring.id, &error));
  }
}

#define FAILS(status, text, call)                                                                            \
  do {                                                                                                       \
    EXPECT(status, call);                                                                                    \
    if (strcmp(error.message, text) != 0) {                                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, error.message);                                     \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static void check_open_errors(void) {
  mf_error error = MF_ERROR_INIT;
  mf_devices devices;
  FAILS(MF_INVALID_ARGUMENT, "timeout_ms is -1, but must be from 0 to 2147483647",
        mf_devices_open("go", 2, &(mf_devices_options){.timeout_ms = -1}, &devices, &error));
  CHECK(devices.id == 0 && strcmp(error.op, "devices") == 0);
  FAILS(MF_INVALID_ARGUMENT, "flags are 0x3, but this function does not have all of them",
        mf_devices_open("go", 2, &(mf_devices_options){.flags = 3}, &devices, &error));
  FAILS(MF_INVALID_ARGUMENT, "argument \"spec\" is NULL", mf_devices_open(NULL, 2, NULL, &devices, &error));
  FAILS(MF_INVALID_ARGUMENT, "argument \"devices\" is NULL", mf_devices_open("go", 2, NULL, NULL, &error));
  devices = open_devices("virtual:0");
  FAILS(MF_INVALID_ARGUMENT, "\"virtual:0\": the number of devices must be 1 to 1048576, but is \"0\"",
        mf_wait(devices.id, -1, &error));
  mf_bytes json;
  FAILS(MF_INVALID_ARGUMENT, "\"virtual:0\": the number of devices must be 1 to 1048576, but is \"0\"",
        mf_devices_info(devices, &json, &error));
  mf_ring ring;
  EXPECT(MF_INVALID_ARGUMENT, mf_ring_create(devices, layout, &ring, &error));
  OK(mf_release(devices.id, &error));
  FAILS(MF_INVALID_STATE, "0 is not a handle", mf_ring_create((mf_devices){0}, layout, &ring, &error));
  EXPECT(MF_INVALID_STATE, mf_ring_create((mf_devices){loader.id}, layout, &ring, &error));
  CHECK(ring.id == 0 && strstr(error.message, "names a loader, not devices"));
}

static void check_ring_errors(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_devices few = open_devices("virtual:4"), devices = open_devices("virtual:8");
  mf_ring ring;
  EXPECT(MF_OUT_OF_RANGE, mf_ring_create(few, layout, &ring, &error));
  CHECK(ring.id == 0 && strstr(error.message, "is device 4"));
  OK(mf_release(few.id, &error));
  const mf_layout wide = make_layout(DOCUMENT(100, 16, ""));
  ring = make_ring(devices, wide);
  mf_batch* batch;
  OK(mf_loader_next(loader, -1, &batch, &error));
  mf_device_batch moved;
  FAILS(MF_INVALID_ARGUMENT,
        "block 0 of the batch is not the part of array \"image\" that the ring has there",
        mf_ring_transfer(ring, batch, &moved, &error));
  CHECK(moved.id == 0 && live(devices) == 0);
  OK(mf_release(ring.id, &error));
  OK(mf_release(wide.id, &error));
  const mf_layout more = make_layout(DOCUMENT(100, 8, ",\"extras\":[\"key\"]"));
  ring = make_ring(devices, more);
  FAILS(MF_INVALID_ARGUMENT, "the batch has 12 blocks, and the ring is for 16",
        mf_ring_transfer(ring, batch, &moved, &error));
  FAILS(MF_INVALID_ARGUMENT, "argument \"batch\" is NULL", mf_ring_transfer(ring, NULL, &moved, &error));
  FAILS(MF_INVALID_ARGUMENT, "argument \"device_batch\" is NULL",
        mf_ring_transfer(ring, batch, NULL, &error));
  OK(mf_release(ring.id, &error));
  OK(mf_release(more.id, &error));
  mf_batch_release(batch);
  OK(mf_release(devices.id, &error));
}

#define LABELS(axes, spec)                                                                                   \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":" axes                                                                 \
  "},\"arrays\":{\"label\":{\"shape\":[\"B\"],\"dtype\":\"int32\",\"spec\":[" spec "]}},"                    \
  "\"batch\":{\"size\":8},\"dataset\":{\"records\":100}}"

/* A batch with the same shapes in the same order, but other blocks than the ring. */
static void check_other_blocks(const char* loaded, const char* in_ring, const char* message) {
  mf_error error = MF_ERROR_INIT;
  const mf_layout one = make_layout(loaded), other = make_layout(in_ring);
  const mf_loader labels = make_loader(dataset, one, NULL);
  const mf_devices devices = open_devices("virtual:8");
  const mf_ring ring = make_ring(devices, other);
  mf_batch* batch;
  mf_device_batch moved;
  OK(mf_loader_next(labels, -1, &batch, &error));
  FAILS(MF_INVALID_ARGUMENT, message, mf_ring_transfer(ring, batch, &moved, &error));
  mf_batch_release(batch);
  const uint64_t all[] = {ring.id, devices.id, labels.id, one.id, other.id};
  for (int i = 0; i < 5; i++)
    OK(mf_release(all[i], &error));
}

/* Other mesh positions hold the blocks. */
static void check_other_holders(void) {
  check_other_blocks(LABELS("[[\"data\",4],[\"model\",2]]", "\"data\""),
                     LABELS("[[\"model\",2],[\"data\",4]]", "\"data\""),
                     "block 0 of the batch is not the part of array \"label\" that the ring has there");
}

/* The blocks begin at other rows: position 1 holds row 1, but row 4 in the ring. */
static void check_other_rows(void) {
  check_other_blocks(LABELS("[[\"data\",4],[\"model\",2]]", "[\"data\",\"model\"]"),
                     LABELS("[[\"data\",4],[\"model\",2]]", "[\"model\",\"data\"]"),
                     "block 1 of the batch is not the part of array \"label\" that the ring has there");
}

static void check_read_errors(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_devices devices = open_devices("virtual:8");
  const mf_ring ring = make_ring(devices, layout);
  int64_t first;
  const mf_device_batch moved = transfer_next(ring, &first);
  float image[SHARD + 1];
  struct DLManagedTensorVersioned* lent;
  FAILS(MF_INVALID_ARGUMENT, "a shard of array \"image\" has 72 bytes, but size is 76",
        mf_device_batch_read(moved, IMAGE, 0, image, sizeof image, &error));
  FAILS(MF_INVALID_ARGUMENT, "a shard of array \"image\" has 72 bytes, but size is 0",
        mf_device_batch_read(moved, IMAGE, 0, NULL, 0, &error));
  FAILS(MF_INVALID_ARGUMENT, "argument \"size\" is negative",
        mf_device_batch_read(moved, IMAGE, 0, image, -1, &error));
  FAILS(MF_INVALID_ARGUMENT, "argument \"data\" is NULL",
        mf_device_batch_read(moved, IMAGE, 0, NULL, 72, &error));
  FAILS(MF_OUT_OF_RANGE, "there is no array 2 among the 2 of the layout",
        mf_device_batch_read(moved, 2, 0, image, 72, &error));
  FAILS(MF_OUT_OF_RANGE, "there is no array -1 among the 2 of the layout",
        mf_device_batch_dlpack(moved, -1, 0, &lent, &error));
  FAILS(MF_OUT_OF_RANGE, "there is no position 8 in a mesh of 8 devices",
        mf_device_batch_read(moved, IMAGE, 8, image, 72, &error));
  FAILS(MF_OUT_OF_RANGE, "there is no position -1 in a mesh of 8 devices",
        mf_device_batch_dlpack(moved, IMAGE, -1, &lent, &error));
  CHECK(lent == NULL);
  FAILS(MF_INVALID_ARGUMENT, "argument \"tensor\" is NULL",
        mf_device_batch_dlpack(moved, IMAGE, 0, NULL, &error));
  OK(mf_release(moved.id, &error));
  EXPECT(MF_INVALID_STATE, mf_device_batch_read(moved, IMAGE, 0, image, 72, &error));
  EXPECT(MF_INVALID_STATE, mf_device_batch_dlpack(moved, IMAGE, 0, &lent, &error));
  OK(mf_release(devices.id, &error));
  mf_batch* batch;
  mf_device_batch late;
  OK(mf_loader_next(loader, -1, &batch, &error));
  FAILS(MF_INVALID_STATE, "cannot place a batch: the devices are closed",
        mf_ring_transfer(ring, batch, &late, &error));
  mf_batch_release(batch);
  OK(mf_release(ring.id, &error));
}

static void check_info(void) {
  mf_error error = MF_ERROR_INIT;
  const mf_devices devices = open_devices("virtual:8");
  mf_bytes json;
  OK(mf_wait(devices.id, -1, &error));
  OK(mf_devices_info(devices, &json, &error));
  CHECK(strstr(json.data, "\"name\":\"virtual\",\"platform\":\"go\"") &&
        strstr(json.data, "\"shared\":true"));
  mf_bytes_free(&json);
  const mf_ring ring = make_ring(devices, layout);
  OK(mf_ring_info(ring, &json, &error));
  CHECK(strstr(json.data, "{\"name\":\"label\",\"kind\":\"data\",\"dtype\":\"int32\",\"shape\":[8],\"spec\":"
                          "[\"data\"],\"shard_shape\":[2],\"shards\":[{\"position\":0,\"device\":0,\"index\":"
                          "[[0,2]]},{\"position\":1,\"device\":1,\"index\":[[0,2]]},{\"position\":2,"));
  mf_bytes_free(&json);
  OK(mf_release(ring.id, &error));
  OK(mf_release(devices.id, &error));
}

static void in_child(mf_devices devices, mf_ring ring, mf_device_batch moved,
                     struct DLManagedTensorVersioned* lent, int64_t first) {
  alarm(10); /* ends the child if a call hangs in Go */
  mf_error error = MF_ERROR_INIT;
  mf_devices other;
  mf_ring none;
  mf_device_batch made;
  mf_bytes json;
  float image[SHARD];
  struct DLManagedTensorVersioned* more;
  EXPECT(MF_FORKED, mf_devices_open("go", 2, NULL, &other, &error));
  EXPECT(MF_FORKED, mf_devices_info(devices, &json, &error));
  EXPECT(MF_FORKED, mf_ring_create(devices, layout, &none, &error));
  EXPECT(MF_FORKED, mf_ring_info(ring, &json, &error));
  EXPECT(MF_FORKED, mf_ring_transfer(ring, (mf_batch*)image, &made, &error));
  EXPECT(MF_FORKED, mf_device_batch_read(moved, IMAGE, 0, image, sizeof image, &error));
  EXPECT(MF_FORKED, mf_device_batch_dlpack(moved, IMAGE, 0, &more, &error));
  CHECK(strcmp(error.message, "the library was loaded before fork() and does not work in the child") == 0);
  CHECK(other.id == 0 && none.id == 0 && made.id == 0 && json.data == NULL && more == NULL);
  check_lent(&lent->tensor, first, 1);
  lent->deleter(lent);
  OK(mf_release(moved.id, &error));
  OK(mf_release(ring.id, &error));
  OK(mf_release(devices.id, &error));
  _exit(0);
}

static void expect_success(pid_t child) {
  int outcome;
  CHECK(child > 0 && waitpid(child, &outcome, 0) == child);
  CHECK(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
}

/* Runs this program again, so that the fork test has its own process. */
static void check_fork_apart(void) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("GOMAXPROCS", "1", 1);
    execl("/proc/self/exe", "devices", "fork", (char*)NULL);
    _exit(1);
  }
  expect_success(child);
}

/* Keeps Go's only processor busy. A call that entered Go in a forked child would hang. */
static void* keep_busy(void* stop) {
  mf_error error = MF_ERROR_INIT;
  enum { MANY = 1000000 };
  int64_t* order = (int64_t*)malloc(MANY * sizeof *order);
  while (!*(volatile int*)stop)
    OK(mf_order_fill("shuffle.1", 9, 7, MANY, 0, 0, order, MANY, &error));
  free(order);
  return NULL;
}

static void check_fork(void) {
  mf_error error = MF_ERROR_INIT;
  volatile int stop = 0;
  pthread_t busy;
  const mf_devices devices = open_devices("virtual:8");
  const mf_ring ring = make_ring(devices, layout);
  int64_t first;
  const mf_device_batch moved = transfer_next(ring, &first);
  struct DLManagedTensorVersioned* lent;
  OK(mf_device_batch_dlpack(moved, IMAGE, 1, &lent, &error));
  CHECK(!pthread_create(&busy, NULL, keep_busy, (void*)&stop));
  for (int i = 0; i < 5; i++) {
    usleep(20000); /* usually enough for the thread to enter Go; there are five rounds */
    const pid_t child = fork();
    if (child == 0)
      in_child(devices, ring, moved, lent, first);
    expect_success(child);
  }
  stop = 1;
  pthread_join(busy, NULL);
  check_lent(&lent->tensor, first, 1);
  lent->deleter(lent);
  OK(mf_release(moved.id, &error));
  OK(mf_release(ring.id, &error));
  CHECK(live(devices) == 0);
  OK(mf_release(devices.id, &error));
}

static void check_all(void) {
  check_many();
  check_lending();
  check_orders();
  check_threads();
  check_open_errors();
  check_ring_errors();
  check_other_holders();
  check_other_rows();
  check_read_errors();
  check_info();
  check_fork_apart();
}

int main(int argc, char** argv) {
  mf_error error = MF_ERROR_INIT;
  alarm(100);
  r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 8, ""));
  loader = make_loader(dataset, layout, &(mf_loader_options){.epochs = -1});
  const bool apart = argc > 1 && strcmp(argv[1], "fork") == 0;
  if (apart)
    check_fork();
  else
    check_all();
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  free(r);
  if (!apart)
    puts("ok");
  return 0;
}
