/*
 * urgent.c: Go interrupts its threads by SIGURG. A program may have blocked,
 * ignored or taken that signal: a collection then waits until every gather
 * under way has ended, and all goes on. URGENT says what the program did;
 * "inherited" is blocked and ignored by the program that started this one.
 * A handler that would run on a goroutine's stack is moved off it: its frame
 * may be larger than that stack.
 *
 * For a library that was built with the tag meshfeed_faults.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

void mf_fault_collect(void);

enum { THREADS = 2, COLLECTIONS = 20 };

static volatile sig_atomic_t seen;
static volatile int over;
static records* r;
static mf_dataset dataset;
static mf_layout layout;

static void note(int number) { seen = number; }

static void block(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGURG);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static void prepare(const char* what, char** arguments) {
  if (strcmp(what, "taken") == 0)
    CHECK(signal(SIGURG, note) != SIG_ERR);
  if (strcmp(what, "ignored") == 0)
    CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
  if (strcmp(what, "blocked") == 0)
    block();
  if (strcmp(what, "inherited") == 0) {
    block();
    CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
    CHECK(setenv("URGENT", "started so", 1) == 0);
    execv(arguments[0], arguments);
  }
}

/* Handlers that were installed in any way are not on a goroutine's stack, and
   nothing else of them changed; what is no handler stays so. */
static void check_handlers(void) {
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
  mf_error error = no_error();
  const mf_layout made = make_layout(DOCUMENT(100, 4, ""));
  OK(mf_release(made, &error));
  for (int i = 0; i < 4; i++) {
    CHECK(sigaction(numbers[i], NULL, &after) == 0 && after.sa_handler == before[i].sa_handler);
    const int flag = before[i].sa_handler == SIG_DFL || before[i].sa_handler == SIG_IGN ? 0 : SA_ONSTACK;
    CHECK(after.sa_flags == (before[i].sa_flags | flag));
    CHECK(sigismember(&after.sa_mask, SIGALRM) == sigismember(&before[i].sa_mask, SIGALRM));
  }
}

/* Reads epochs until the main thread has collected often enough. */
static void* work(void* unused) {
  mf_error error = no_error();
  mf_batch* batch;
  (void)unused;
  while (!over) {
    const mf_loader loader = make_loader(dataset, layout, "{\"epochs\":1}");
    for (int64_t step = 0; mf_loader_next(loader, -1, &batch, &error) == MF_OK; step++) {
      const int64_t order[] = {step * 4, step * 4 + 1, step * 4 + 2, step * 4 + 3};
      check_batch(batch, r, order);
      mf_batch_release(batch);
    }
    CHECK(error.code == MF_OK);
    OK(mf_release(loader, &error));
  }
  return NULL;
}

int main(int count, char** arguments) {
  mf_error error = no_error();
  pthread_t threads[THREADS];
  (void)count;
  alarm(60);
  prepare(getenv("URGENT"), arguments);
  check_handlers();
  r = make_records();
  dataset = open_records(r);
  layout = make_layout(DOCUMENT(100, 4, ""));
  for (int i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, work, NULL));
  for (int i = 0; i < COLLECTIONS; i++)
    mf_fault_collect();
  over = 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  OK(mf_release(layout, &error));
  OK(mf_release(dataset, &error));
  CHECK(r->released == 1 && mf_live_handles() == 0 && mf_live_batches() == 0);
  free(r);
  puts("ok");
  return 0;
}
