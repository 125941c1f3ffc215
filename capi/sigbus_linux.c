/*
 * sigbus_linux.c: a mapped file that is cut while rows are copied from it.
 *
 * Sizes are checked before and after every gather, but a file can be cut in
 * between. Reading beyond its new end is then SIGBUS. Go's own handler would
 * make an error of it, unless the program has put another in its place, as
 * Python's faulthandler does when it is enabled after this library was opened.
 *
 * So there is a handler here, too. It knows the mappings. Where the address
 * lies in one, it marks the mapping as faulted and puts zeros in place of the
 * rest of it; the copy goes on, and the check after the gather finds the mark.
 * Every other SIGBUS goes to the handler that was there before, as if this one
 * were not.
 *
 * Somebody may install a handler on top. It will pass on to ours what it does
 * not know, or end the process first, as faulthandler does. Hence
 * mfi_watch_arm, which is called before every gather from a mapping and takes
 * the top place again. (A handler that comes in the middle of a gather is on
 * top until the next one: a file cut in just that gather is not survived.) The
 * handler below has ours as the next one, so each place in this chain needs a
 * handler of its own that remembers its own next.
 *
 * The handler runs on the thread that faulted, on its signal stack, and calls
 * nothing but mmap and sigaction.
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

/* A mapping, or room for one. It is never freed: the handler may look at it. */
struct mfi_watch {
  mfi_watch* next;              /* of all */
  mfi_watch* idle;              /* of those that watch nothing */
  _Atomic uintptr_t begin, end; /* begin is 0 if it watches nothing */
  _Atomic uint32_t faulted;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all but the handler */
static _Atomic(mfi_watch*) all;
static mfi_watch* idle;
static uintptr_t page;

static mfi_watch* make(void) {
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
  mfi_watch* w = idle;
  if (w)
    idle = w->idle;
  else
    w = make();
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
  w->idle = idle;
  idle = w;
  pthread_mutex_unlock(&lock);
}

/* ---- the handler ---- */

/* Finds the mapping of an address, and where it ends. Another thread may be
   changing other entries: one is believed if its begin is the same before and
   after its end was read. */
static mfi_watch* find(uintptr_t address, uintptr_t* end) {
  for (mfi_watch* w = all; w; w = w->next) {
    const uintptr_t begin = w->begin;
    *end = w->end;
    if (begin != 0 && begin <= address && address < *end && w->begin == begin)
      return w;
  }
  return NULL;
}

/* Puts zeros from the page of an address to the end of its mapping. The mark
   comes first: whoever reads zeros finds it. */
static bool mend(uintptr_t address) {
  uintptr_t end;
  mfi_watch* w = find(address, &end);
  if (!w)
    return false;
  w->faulted = 1;
  const uintptr_t from = address & ~(page - 1);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return mmap((void*)from, end - from, PROT_READ, flags, -1, 0) != MAP_FAILED;
}

/* Does what would have happened without our handler. */
static void pass_on(const struct sigaction* next, int number, siginfo_t* info, void* context) {
  if (next->sa_handler == SIG_DFL || next->sa_handler == SIG_IGN) {
    sigaction(number, next, NULL); /* the instruction faults again when we return */
    if (info->si_code <= 0)
      raise(number); /* it was no fault */
  } else if (next->sa_flags & SA_SIGINFO) {
    next->sa_sigaction(number, info, context);
  } else {
    next->sa_handler(number);
  }
}

enum { PLACES = 8 };

static struct sigaction next[PLACES]; /* of each place in the chain */
static int taken;                     /* places */

static void on_bus(int place, int number, siginfo_t* info, void* context) {
  const int before = errno;
  const bool mended = info->si_code == BUS_ADRERR && mend((uintptr_t)info->si_addr);
  errno = before;
  if (!mended)
    pass_on(&next[place], number, info, context);
}

#define PLACE(i)                                                                                             \
  static void on_bus_##i(int number, siginfo_t* info, void* context) { on_bus(i, number, info, context); }
PLACE(0)
PLACE(1)
PLACE(2)
PLACE(3)
PLACE(4)
PLACE(5)
PLACE(6)
PLACE(7)

typedef void (*handler)(int, siginfo_t*, void*);
static const handler handlers[PLACES] = {on_bus_0, on_bus_1, on_bus_2, on_bus_3,
                                         on_bus_4, on_bus_5, on_bus_6, on_bus_7};

static bool is_ours(const struct sigaction* action) {
  for (int i = 0; i < PLACES; i++)
    if (action->sa_sigaction == handlers[i])
      return true;
  return false;
}

/* Gives the place on top of a handler: the one it had before, if it was taken
   out and came back, else a new one. -1 if there is none left. */
static int place_above(const struct sigaction* below) {
  for (int i = 0; i < taken; i++)
    if (next[i].sa_sigaction == below->sa_sigaction)
      return i;
  if (taken == PLACES)
    return -1;
  next[taken] = *below;
  return taken++;
}

/* Flags and mask stay those of the handler below, for which ours stands in. */
static void install(const struct sigaction* below) {
  const int place = place_above(below);
  if (place < 0)
    return;
  struct sigaction action = *below;
  action.sa_sigaction = handlers[place];
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
