/*
 * exit.c: a program exits while its loaders work. The environment variable EXIT selects
 * how:
 *
 *   return   main returns while a read hangs that nothing can end
 *   thread   another thread calls exit() while main waits for such a read
 *   memory   a function that was registered with atexit before the first call to the
 *            library unmaps the memory of borrowed arrays
 *   twice    two threads call mf_cancel_all at the same time
 *
 * For a library that was built with the tag meshfeed_faults.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

mf_status mf_fault(uint64_t loader, char* fault);
int mf_fault_late_ended(void);

static records* r;

static void pause_ms(long ms) {
  const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

/* Unmaps the memory of the arrays. The late gather must have ended by now. */
static void unmap_arrays(void) {
  CHECK(mf_fault_late_ended());
  CHECK(munmap(r, sizeof *r) == 0);
}

static void* exit_soon(void* unused) {
  (void)unused;
  pause_ms(100);
  puts("ok");
  exit(0);
}

/* Concurrent calls of mf_cancel_all all wait for the gather. */
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
  const char* how = getenv("EXIT");
  char stuck[] = "stuck", late[] = "late";
  alarm(20); /* 20 times the promise */
  r = (records*)mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(r != MAP_FAILED);
  if (strcmp(how, "memory") == 0) {
    CHECK(atexit(unmap_arrays) == 0);
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
    mf_cancel_all(); /* returns immediately */
    puts("ok");
    return 0;
  }
  const mf_loader loader = faulty(stuck);
  if (strcmp(how, "thread") == 0) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, exit_soon, NULL));
    EXPECT(MF_CANCELLED, mf_loader_next(loader, -1, &batch, &error));
    for (;;)
      pause();
  }
  EXPECT(MF_TIMEOUT, mf_loader_next(loader, 50, &batch, &error));
  puts("ok");
  return 0;
}
