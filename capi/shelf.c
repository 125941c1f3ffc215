/*
 * shelf.c: batches that stand ready, for callers who do not enter Go, and where
 * the two sides wait for each other.
 *
 * One lock guards everything: it is held for a few instructions, and a caller
 * who finds a shelf by its handle must be done before the handle is gone. Who is
 * woken needs the lock, so nobody is woken under it; until that is done, the one
 * who wakes is an owner of the shelf.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Who has waited for PATIENCE_MS waits on in Go. */
enum { ROOM = 8, PLACES = 256, PATIENCE_MS = 20, MILLISECOND = 1000000 };

struct mfi_shelf {
  mfi_slot* slots[ROOM];
  int32_t first, end; /* of those that lie there */
  int64_t taken, waited_ns;
  int32_t owners;
  int32_t waiting; /* callers, for a piece that is expected */
  bool expected;
  bool forgotten; /* by its handle, which was cancelled or released */
  bool resting;   /* the loader, until it is woken */
  bool woken;
  pthread_cond_t laid, left; /* the first is for callers, the other for the loader */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Handles that were made together differ in their low bits. */
static struct {
  uint64_t handle;
  mfi_shelf* shelf;
} places[PLACES];

/* ---- time ---- */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int make_condition(pthread_cond_t* c) {
#ifdef __APPLE__
  return pthread_cond_init(c, NULL);
#else
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  const int failed = pthread_cond_init(c, &attributes);
  pthread_condattr_destroy(&attributes);
  return failed;
#endif
}

/* Waits under the lock; false when the time is over. */
static bool wait_until(pthread_cond_t* c, int64_t end) {
#ifdef __APPLE__
  const int64_t left = end - now();
  const struct timespec t = {left / 1000000000, left % 1000000000};
  return left > 0 && pthread_cond_timedwait_relative_np(c, &lock, &t) == 0;
#else
  const struct timespec t = {end / 1000000000, end % 1000000000};
  return pthread_cond_timedwait(c, &lock, &t) == 0;
#endif
}

/* Ends the loader's rest, under the lock; true if it has to be told. */
static bool wake(mfi_shelf* shelf) {
  if (shelf->woken)
    return false;
  shelf->woken = true;
  return true;
}

/* ---- owners ---- */

mfi_shelf* mfi_shelf_new(void) {
  mfi_shelf* shelf = calloc(1, sizeof *shelf);
  if (!shelf)
    return NULL;
  shelf->owners = 3;
  if (make_condition(&shelf->laid) || make_condition(&shelf->left)) {
    free(shelf);
    return NULL;
  }
  return shelf;
}

/* Forgets a handle, under the lock. Who waits at its shelf waits in vain. */
static void forget(int place) {
  mfi_shelf* shelf = places[place].shelf;
  memset(&places[place], 0, sizeof places[place]);
  if (!shelf)
    return;
  shelf->forgotten = true;
  if (shelf->waiting > 0)
    pthread_cond_broadcast(&shelf->laid); /* the one who forgets need not own it */
}

/* Who guesses a handle before its maker has it may release it before it is
   placed. Then nobody has forgotten it. */
static void forget_shelf(const mfi_shelf* shelf) {
  for (int i = 0; i < PLACES; i++)
    if (places[i].shelf == shelf)
      forget(i);
}

void mfi_shelf_drop(mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  const bool last = --shelf->owners == 0;
  if (last)
    forget_shelf(shelf);
  pthread_mutex_unlock(&lock);
  if (!last)
    return;
  pthread_cond_destroy(&shelf->laid);
  pthread_cond_destroy(&shelf->left);
  free(shelf);
}

/* ---- the loader's side ---- */

bool mfi_shelf_offer(mfi_shelf* shelf, mfi_slot* slot) {
  pthread_mutex_lock(&lock);
  const bool room = shelf->end < ROOM, wanted = shelf->waiting > 0;
  if (room)
    shelf->slots[shelf->end++] = slot;
  pthread_mutex_unlock(&lock);
  if (room && wanted)
    pthread_cond_signal(&shelf->laid);
  return room;
}

void mfi_shelf_expect(mfi_shelf* shelf, bool soon) {
  pthread_mutex_lock(&lock);
  const bool in_vain = !soon && shelf->waiting > 0;
  shelf->expected = soon;
  pthread_mutex_unlock(&lock);
  if (in_vain)
    pthread_cond_broadcast(&shelf->laid);
}

mfi_recalled mfi_shelf_recall(mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  const mfi_recalled recalled = {shelf->taken, shelf->waited_ns};
  shelf->taken = shelf->waited_ns = shelf->first = shelf->end = 0;
  pthread_mutex_unlock(&lock);
  return recalled;
}

bool mfi_shelf_rest(mfi_shelf* shelf, int64_t limit_ns) {
  const int64_t end = now() + limit_ns;
  pthread_mutex_lock(&lock);
  shelf->resting = true;
  if (shelf->taken > 0)
    shelf->woken = true;
  bool time = true;
  while (time && !shelf->woken)
    time = wait_until(&shelf->left, end);
  const bool woken = shelf->woken;
  shelf->resting = shelf->woken = false;
  pthread_mutex_unlock(&lock);
  return woken;
}

void mfi_shelf_wake(mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  const bool wakes = wake(shelf);
  pthread_mutex_unlock(&lock);
  if (wakes)
    pthread_cond_signal(&shelf->left);
}

/* ---- the callers' side ---- */

void mfi_shelf_place(uint64_t handle, mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  if (!places[handle % PLACES].shelf) {
    places[handle % PLACES].handle = handle;
    places[handle % PLACES].shelf = shelf;
  }
  pthread_mutex_unlock(&lock);
}

static mfi_shelf* find(uint64_t handle) {
  return places[handle % PLACES].handle == handle ? places[handle % PLACES].shelf : NULL;
}

void mfi_shelf_forget(uint64_t handle) {
  pthread_mutex_lock(&lock);
  if (find(handle))
    forget(handle % PLACES);
  pthread_mutex_unlock(&lock);
}

void mfi_shelf_forget_all(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < PLACES; i++)
    forget(i);
  pthread_mutex_unlock(&lock);
}

/* Waits under the lock until something lies there, nothing is expected, or the
   shelf is forgotten. Gives how long it took. */
static int64_t wait_at(mfi_shelf* shelf, int64_t timeout_ms) {
  const int64_t began = now();
  const bool patient = timeout_ms < 0 || timeout_ms > PATIENCE_MS;
  const int64_t end = began + (patient ? PATIENCE_MS : timeout_ms) * MILLISECOND;
  shelf->waiting++;
  bool time = true;
  while (time && shelf->expected && !shelf->forgotten && shelf->first == shelf->end)
    time = wait_until(&shelf->laid, end);
  shelf->waiting--;
  const int64_t waited = now() - began;
  shelf->waited_ns += waited;
  return waited;
}

mf_status mfi_shelf_take(uint64_t handle, int64_t* timeout_ms, mfi_slot** slot) {
  *slot = NULL;
  pthread_mutex_lock(&lock);
  mfi_shelf* shelf = find(handle);
  if (!shelf) {
    pthread_mutex_unlock(&lock);
    return MF_OK;
  }
  shelf->owners++;
  if (*timeout_ms != 0 && shelf->expected && shelf->first == shelf->end) {
    const int64_t waited_ms = wait_at(shelf, *timeout_ms) / MILLISECOND;
    if (*timeout_ms > 0)
      *timeout_ms = waited_ms < *timeout_ms ? *timeout_ms - waited_ms : 0;
  }
  const bool forgotten = shelf->forgotten;
  if (!forgotten && shelf->first < shelf->end) {
    *slot = shelf->slots[shelf->first++];
    shelf->taken++;
  }
  const bool wakes = *slot && shelf->resting && wake(shelf);
  pthread_mutex_unlock(&lock);
  if (wakes)
    pthread_cond_signal(&shelf->left);
  mfi_shelf_drop(shelf);
  return forgotten ? MF_CANCELLED : MF_OK;
}
