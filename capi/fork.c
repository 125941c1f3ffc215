/*
 * fork.c: detects that this process is a forked child.
 *
 * There are two detectors, because each has a gap. A handler of pthread_atfork does not
 * see a fork by a bare system call. A page that the kernel wipes in children
 * (MADV_WIPEONFORK) needs Linux 4.14.
 */
#include "internal.h"

#include <pthread.h>
#include <sys/mman.h>

static volatile int in_child_flag; /* set by pthread_atfork in a child */
static volatile int* alive;        /* 1 in this process; the kernel makes it 0 in a child */

static void in_child(void) { in_child_flag = 1; }

__attribute__((constructor)) static void watch(void) {
  pthread_atfork(NULL, NULL, in_child);
#ifdef MADV_WIPEONFORK
  const size_t page = 4096;
  void* p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p != MAP_FAILED && madvise(p, page, MADV_WIPEONFORK) == 0) {
    alive = p;
    *alive = 1;
  }
#endif
}

bool mfi_forked(void) { return in_child_flag || (alive && !*alive); }
