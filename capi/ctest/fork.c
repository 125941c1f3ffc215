/*
 * fork.c: in a forked child every call returns MF_FORKED, inherited objects can be dropped, and
 * no callback runs. The parent continues.
 */
#define _DEFAULT_SOURCE
#include "../../arrowio/cstream/cstream.h"
#include "check.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static records* r;
static mf_dataset dataset;
static mf_layout layout;
static mf_loader loader;
static mf_batch* batch;

/* A callback that must not run in a child. */
static struct ArrowArrayStream stream;
static void release_stream(struct ArrowArrayStream* s) { s->release = NULL; }

static void in_child(void) {
  mf_error error = MF_ERROR_INIT;
  mf_bytes bytes;
  mf_batch* other;
  mf_loader made;
  mf_dataset opened;
  mf_tensor tensor;
  EXPECT(MF_FORKED, mf_loader_next(loader, -1, &other, &error));
  CHECK(strcmp(error.message, "the library was loaded before fork() and does not work in the child") == 0);
  CHECK(other == NULL);
  EXPECT(MF_FORKED, mf_loader_state(loader, &bytes, &error));
  EXPECT(MF_FORKED, mf_loader_create(dataset, layout, NULL, &made, &error));
  EXPECT(MF_FORKED, mf_dataset_concat(&dataset, 1, &opened, &error));
  EXPECT(MF_FORKED, mf_diagram("{}", 2, MF_TEXT, 0, &bytes, &error));
  EXPECT(MF_FORKED, mf_layout_page(layout, &bytes, &error));
  EXPECT(MF_FORKED, mf_memory("{}", 2, MF_TEXT, &bytes, &error));
  EXPECT(MF_FORKED, mf_diagnose("{}", 2, MF_TEXT, &bytes, &error));
  EXPECT(MF_FORKED, mf_advise("{}", 2, MF_TEXT, &bytes, &error));
  EXPECT(MF_FORKED, mf_wait(loader.id, -1, &error));
  CHECK(mf_abi_version() >> 16 == MF_ABI_MAJOR && mf_version()[0] == 0);
  tensor.struct_size = sizeof tensor;
  OK(mf_batch_tensor(batch, 0, &tensor));
  CHECK(mf_live_batches() == 1);
  mf_batch_retain(batch);
  mf_batch_release(batch);
  mf_batch_release(batch);
  CHECK(mf_live_batches() == 0);
  OK(mf_release(loader.id, &error));
  OK(mf_release(dataset.id, &error));
  mf_cancel_all();
  stream.release = release_stream;
  EXPECT(MF_FORKED, mf_dataset_open_stream(&stream, NULL, &opened, &error));
  EXPECT(MF_FORKED, mf_dataset_open_record_batch(NULL, NULL, NULL, &opened, &error));
  EXPECT(MF_FORKED, mf_dataset_open_arrays(NULL, 0, released, r, &opened, &error));
  CHECK(r->released == 0 && stream.release == release_stream);
  _exit(0);
}

static void expect_success(pid_t child) {
  int outcome;
  CHECK(child > 0);
  CHECK(waitpid(child, &outcome, 0) == child);
  CHECK(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  alarm(60); /* ends the program if a child hangs */
  r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 4, ""));
  loader = make_loader(dataset, layout, NULL);
  OK(mf_loader_next(loader, -1, &batch, &error));
  pid_t child = fork();
  if (child == 0)
    in_child();
  expect_success(child);
  child = (pid_t)syscall(SYS_fork); /* does not run handlers of pthread_atfork */
  if (child == 0)
    in_child();
  expect_success(child);
  mf_batch* next;
  OK(mf_loader_next(loader, -1, &next, &error));
  mf_batch_release(next);
  mf_batch_release(batch);
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 1);
  free(r);
  puts("ok");
  return 0;
}
