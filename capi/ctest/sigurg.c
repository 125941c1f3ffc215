/*
 * sigurg.c: Go interrupts its threads by SIGURG. If the program blocks, ignores or handles that
 * signal, a garbage collection waits until the running gathers have ended, and everything
 * continues. The environment variable SIGURG selects what the program does. With "inherited",
 * the program that starts this one blocks and ignores the signal. The library moves handlers
 * off the stacks of goroutines, because the frame of a handler may be larger than such a stack.
 *
 * For a library that was built with the tag meshfeed_faults.
 */
#define _DEFAULT_SOURCE
#include "check.h"
#include "meshfeed_certificate.h"
#include "meshfeed_devices.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

void mf_fault_collect(void);

enum { THREADS = 2, COLLECTIONS = 20 };

static volatile sig_atomic_t seen;
static volatile int done;
static records* r;
static mf_dataset dataset;
static mf_layout layout;
static mf_loader loader;

#define OK_RELEASED(handle)                                                                                  \
  mf_error error = MF_ERROR_INIT;                                                                            \
  OK(mf_release(handle.id, &error))

#define MADE(type, call)                                                                                     \
  mf_error error = MF_ERROR_INIT;                                                                            \
  type made;                                                                                                 \
  OK(call);                                                                                                  \
  OK(mf_release(made.id, &error))

static void note(int number) { seen = number; }

static void block(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static void prepare(const char* what, char** arguments) {
  if (strcmp(what, "handled") == 0)
    CHECK(signal(SIGURG, note) != SIG_ERR);
  if (strcmp(what, "ignored") == 0)
    CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
  if (strcmp(what, "blocked") == 0)
    block();
  if (strcmp(what, "inherited") == 0) {
    block();
    CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
    CHECK(setenv("SIGURG", "started so", 1) == 0);
    execv(arguments[0], arguments);
  }
}

/* ---- functions that create an object check the handlers ---- */

static void of_layout(void) { OK_RELEASED(make_layout(DOCUMENT(100, 4, ""))); }
static void of_arrays(void) { OK_RELEASED(open_records(r)); }
static void of_files(void) {
  const char* const path = "/";
  MADE(mf_dataset, mf_dataset_open(&path, 1, NULL, &made, &error));
}

static void of_slice(void) { MADE(mf_dataset, mf_dataset_slice(dataset, 0, 50, &made, &error)); }
static void of_loader(void) { MADE(mf_loader, mf_loader_create(dataset, layout, NULL, &made, &error)); }
static void of_pass(void) { MADE(mf_loader, mf_loader_one_epoch(loader, 0, &made, &error)); }
static void of_remesh(void) { MADE(mf_loader, mf_loader_remesh(loader, layout, 0, &made, &error)); }
static void of_devices(void) { MADE(mf_devices, mf_devices_open("go", 2, NULL, &made, &error)); }

static void of_stream(void) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset made;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_stream(NULL, NULL, &made, &error));
}

static void of_record_batch(void) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset made;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_record_batch(NULL, NULL, NULL, &made, &error));
}

static void of_ring(void) {
  mf_error error = MF_ERROR_INIT;
  mf_ring made;
  EXPECT(MF_INVALID_STATE, mf_ring_create((mf_devices){0}, layout, &made, &error));
}

static void of_check(void) {
  mf_error error = MF_ERROR_INIT;
  mf_check made;
  EXPECT(MF_INVALID_ARGUMENT, mf_certificate_check("{", 1, NULL, (mf_dataset){0}, &made, &error));
}

static void (*const creators[])(void) = {of_layout, of_arrays,       of_files,  of_slice,
                                         of_loader, of_pass,         of_remesh, of_devices,
                                         of_stream, of_record_batch, of_ring,   of_check};

/* ---- so do functions that need no object, in their first call ---- */

static void of_order(void) {
  mf_error error = MF_ERROR_INIT;
  int64_t record;
  OK(mf_order_fill("shuffle.1", 9, 0, 4, 0, 0, &record, 1, &error));
}

static void of_key(void) {
  mf_error error = MF_ERROR_INIT;
  uint32_t key[2];
  OK(mf_record_key(0, 0, 0, key, &error));
}

static void of_sum(void) {
  mf_error error = MF_ERROR_INIT;
  mf_bytes sum;
  EXPECT(MF_INVALID_ARGUMENT, mf_certificate_add("{", 1, "{", 1, &sum, &error));
}

static void of_version(void) { CHECK(mf_version()[0]); }

/* Selects the first call of this process. */
static void (*first_of(const char* what))(void) {
  return strcmp(what, "handled") == 0   ? of_order
         : strcmp(what, "ignored") == 0 ? of_key
         : strcmp(what, "blocked") == 0 ? of_sum
                                        : of_version;
}

/* After a call, every handler has the flag SA_ONSTACK, and nothing else has changed. A
   signal without a handler stays as it is. */
static void check_handlers(void (*call)(void)) {
  const int numbers[] = {SIGURG, SIGUSR1, SIGUSR2, SIGPROF};
  struct sigaction before[4], after;
  struct sigaction mine;
  memset(&mine, 0, sizeof mine);
  mine.sa_handler = note;
  mine.sa_flags = SA_RESTART;
  sigaddset(&mine.sa_mask, SIGALRM);
  CHECK(sigaction(SIGUSR1, &mine, NULL) == 0 && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
  for (int i = 0; i < 4; i++)
    CHECK(sigaction(numbers[i], NULL, &before[i]) == 0);
  call();
  for (int i = 0; i < 4; i++) {
    CHECK(sigaction(numbers[i], NULL, &after) == 0 && after.sa_handler == before[i].sa_handler);
    const int flag = before[i].sa_handler == SIG_DFL || before[i].sa_handler == SIG_IGN ? 0 : SA_ONSTACK;
    CHECK(after.sa_flags == (before[i].sa_flags | flag));
    CHECK(sigismember(&after.sa_mask, SIGALRM) == sigismember(&before[i].sa_mask, SIGALRM));
  }
}

/* Reads epochs until the main thread has collected garbage COLLECTIONS times. */
static void* work(void* unused) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  (void)unused;
  while (!done) {
    const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.epochs = 1});
    for (int64_t step = 0; mf_loader_next(loader, -1, &batch, &error) == MF_OK; step++) {
      const int64_t order[] = {step * 4, step * 4 + 1, step * 4 + 2, step * 4 + 3};
      check_batch(batch, r, order);
      mf_batch_release(batch);
    }
    CHECK(error.code == MF_OK);
    OK(mf_release(loader.id, &error));
  }
  return NULL;
}

int main(int count, char** arguments) {
  mf_error error = MF_ERROR_INIT;
  pthread_t threads[THREADS];
  (void)count;
  alarm(60);
  prepare(getenv("SIGURG"), arguments);
  check_handlers(first_of(getenv("SIGURG")));
  r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 4, ""));
  loader = make_loader(dataset, layout, NULL);
  for (size_t i = 0; i < sizeof creators / sizeof *creators; i++)
    check_handlers(creators[i]);
  r->released = 0;
  OK(mf_release(loader.id, &error));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, work, NULL));
  for (int i = 0; i < COLLECTIONS; i++)
    mf_fault_collect();
  done = 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0 && mf_live_batches() == 0);
  free(r);
  puts("ok");
  return 0;
}
