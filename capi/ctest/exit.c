/*
 * exit.c: a program ends while its loaders are at work. LEAVE says how:
 *
 *   return   from main, while a read hangs that nobody can end
 *   thread   calls exit() while main waits in a call for such a read
 *   memory   takes away the memory that it lent, in a function that it
 *            registered with atexit before the library's first call
 *   twice    on two threads at a time that both end all calls
 *
 * For a library that was built with the tag meshfeed_faults.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

mf_status mf_fault(uint64_t loader, char* place);
int mf_fault_late_ended(void);

static records* r;

static void pause_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

/* A gather that begins 0.1 s after the exit must not read here any more. */
static void take_away(void) {
  CHECK(mf_fault_late_ended());
  CHECK(munmap(r, sizeof *r) == 0);
}

static void* leave(void* unused) {
  (void)unused;
  pause_ms(100);
  puts("ok");
  exit(0);
}

/* Whoever comes while another waits for the gather waits for it, too. */
static void* end_all(void* unused) {
  mf_cancel_all();
  CHECK(mf_fault_late_ended());
  return unused;
}

static mf_loader faulty(char* fault) {
  mf_error error = MF_ERROR_INIT;
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.prefetch = -1});
  OK(mf_fault(loader.id, fault));
  return loader;
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  const char* how = getenv("LEAVE");
  char stuck[] = "stuck", late[] = "late";
  alarm(20); /* the promise is a second */
  r = (records*)mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(r != MAP_FAILED);
  if (strcmp(how, "memory") == 0) {
    CHECK(atexit(take_away) == 0);
    EXPECT(MF_TIMEOUT, mf_loader_next(faulty(late), 50, &batch, &error));
    puts("ok");
    return 0;
  }
  if (strcmp(how, "twice") == 0) {
    pthread_t thread;
    EXPECT(MF_TIMEOUT, mf_loader_next(faulty(late), 50, &batch, &error));
    CHECK(!pthread_create(&thread, NULL, end_all, NULL));
    end_all(NULL);
    pthread_join(thread, NULL);
    mf_cancel_all(); /* at once */
    puts("ok");
    return 0;
  }
  const mf_loader loader = faulty(stuck);
  if (strcmp(how, "thread") == 0) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, leave, NULL));
    EXPECT(MF_CANCELLED, mf_loader_next(loader, -1, &batch, &error));
    for (;;)
      pause();
  }
  EXPECT(MF_TIMEOUT, mf_loader_next(loader, 50, &batch, &error));
  puts("ok");
  return 0;
}
