/*
 * sigbus_linux.c: survives a mapped file that is truncated while rows are copied.
 *
 * The size of a file is checked before and after every gather. If the file is truncated
 * in between, reading beyond its new end raises SIGBUS. Go's handler turns SIGBUS into
 * an error, but the program may replace Go's handler. Python's faulthandler does, if it
 * is enabled after this library was loaded.
 *
 * The handler in this file has a list of all mappings. If the faulting address lies in
 * one, it marks the mapping and puts zeros in place of the rest of it. The copy continues, and
 * the check after the gather finds the mark. Any other SIGBUS goes to the handler that
 * was installed before.
 *
 * The program may install another handler on top of this one. That handler passes the
 * signal on, or ends the process, as faulthandler does. Therefore mfi_watch_arm, which
 * runs before every gather from a mapping, installs this handler on top again. The next
 * handler in the chain may then call this one as its own next handler. So each level of
 * the chain has its own function with its own next handler. A handler that is installed
 * during a gather stays on top until the next gather: truncation in that one gather ends
 * the process.
 *
 * The handler runs on the thread that faulted, on its signal stack, and calls only mmap,
 * sigaction and raise.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A mapping, or an unused entry. Entries are never freed, because the handler may read
   them at any time. */
struct mfi_watch {
  mfi_watch* next;              /* in the list of all entries */
  mfi_watch* unused;            /* in the list of unused entries */
  _Atomic uintptr_t begin, end; /* begin is 0 in an unused entry */
  _Atomic uint32_t faulted;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* not used by the handler */
static _Atomic(mfi_watch*) all;
static mfi_watch* unused;
static uintptr_t page;

static mfi_watch* new_entry(void) {
  page = (uintptr_t)sysconf(_SC_PAGESIZE);
  mfi_watch* w = calloc(1, sizeof *w);
  if (w) {
    w->next = all;
    all = w;
  }
  return w;
}

mfi_watch* mfi_watch_add(const void* begin, size_t size) {
  pthread_mutex_lock(&lock);
  mfi_watch* w = unused;
  if (w)
    unused = w->unused;
  else
    w = new_entry();
  pthread_mutex_unlock(&lock);
  if (w) {
    w->faulted = 0;
    w->end = ((uintptr_t)begin + size + page - 1) & ~(page - 1);
    w->begin = (uintptr_t)begin;
  }
  return w;
}

uint32_t* mfi_watch_mark(mfi_watch* w) { return (uint32_t*)&w->faulted; }

void mfi_watch_remove(mfi_watch* w) {
  w->begin = 0;
  pthread_mutex_lock(&lock);
  w->unused = unused;
  unused = w;
  pthread_mutex_unlock(&lock);
}

/* ---- the handler ---- */

/* Finds the mapping of an address, and its end. Other threads may change other entries
   meanwhile. An end is valid if begin is the same before and after it is read. */
static mfi_watch* find(uintptr_t address, uintptr_t* end) {
  for (mfi_watch* w = all; w; w = w->next) {
    const uintptr_t begin = w->begin;
    *end = w->end;
    if (begin != 0 && begin <= address && address < *end && w->begin == begin)
      return w;
  }
  return NULL;
}

/* Puts zeros from the page of an address to the end of its mapping. The mark is set
   first, so that a reader of zeros finds it. */
static bool replace_by_zeros(uintptr_t address) {
  uintptr_t end;
  mfi_watch* w = find(address, &end);
  if (!w)
    return false;
  w->faulted = 1;
  const uintptr_t from = address & ~(page - 1);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return mmap((void*)from, end - from, PROT_READ, flags, -1, 0) != MAP_FAILED;
}

/* Does what would happen without this handler. */
static void pass_on(const struct sigaction* next, int number, siginfo_t* info, void* context) {
  if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN) {
    sigaction(number, next, NULL); /* the instruction faults again after this handler */
    if (info->si_code <= 0)
      raise(number); /* the signal was sent; it is not a fault */
  } else if (next->sa_flags & SA_SIGINFO) {
    next->sa_sigaction(number, info, context);
  } else {
    next->sa_handler(number);
  }
}

enum { LEVELS = 8 };

static struct sigaction next[LEVELS]; /* the next handler of each level of the chain */
static int levels;                    /* in use */

static void on_bus(int level, int number, siginfo_t* info, void* context) {
  const int before = errno;
  const bool done = info->si_code == BUS_ADRERR && replace_by_zeros((uintptr_t)info->si_addr);
  errno = before;
  if (!done)
    pass_on(&next[level], number, info, context);
}

#define LEVEL(i)                                                                                             \
  static void on_bus_##i(int number, siginfo_t* info, void* context) { on_bus(i, number, info, context); }
LEVEL(0)
LEVEL(1)
LEVEL(2)
LEVEL(3)
LEVEL(4)
LEVEL(5)
LEVEL(6)
LEVEL(7)

typedef void (*handler)(int, siginfo_t*, void*);
static const handler handlers[LEVELS] = {on_bus_0, on_bus_1, on_bus_2, on_bus_3,
                                         on_bus_4, on_bus_5, on_bus_6, on_bus_7};

static bool is_ours(const struct sigaction* action) {
  for (int i = 0; i < LEVELS; i++)
    if (action->sa_sigaction == handlers[i])
      return true;
  return false;
}

/* Returns the level above a handler. A handler that was removed and installed again
   keeps its level. -1 if no level is left. */
static int level_above(const struct sigaction* below) {
  for (int i = 0; i < levels; i++)
    if (next[i].sa_sigaction == below->sa_sigaction)
      return i;
  if (levels == LEVELS)
    return -1;
  next[levels] = *below;
  return levels++;
}

/* Installs the handler above another one, and keeps that one's flags and mask. */
static void install(const struct sigaction* below) {
  const int level = level_above(below);
  if (level < 0)
    return;
  struct sigaction action = *below;
  action.sa_sigaction = handlers[level];
  action.sa_flags = (int)((unsigned)action.sa_flags & ~(unsigned)SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGBUS, &action, NULL);
}

void mfi_watch_arm(void) {
  struct sigaction now;
  if (sigaction(SIGBUS, NULL, &now) != 0 || is_ours(&now))
    return;
  pthread_mutex_lock(&lock);
  if (sigaction(SIGBUS, NULL, &now) == 0 && !is_ours(&now))
    install(&now);
  pthread_mutex_unlock(&lock);
}
