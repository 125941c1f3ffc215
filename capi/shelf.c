/*
 * shelf.c: batches that stand ready, for callers who do not enter Go.
 *
 * One lock guards everything: it is held for a few instructions, and a caller
 * who finds a shelf by its handle must be done before the handle is gone.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 8, PLACES = 256 };

struct mfi_shelf {
  mfi_slot* slots[ROOM];
  int32_t first, end; /* of those that lie there */
  int64_t taken;
  int32_t owners;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Handles that were made together differ in their low bits. */
static struct {
  uint64_t handle;
  mfi_shelf* shelf;
} places[PLACES];

mfi_shelf* mfi_shelf_new(void) {
  mfi_shelf* shelf = calloc(1, sizeof *shelf);
  if (shelf)
    shelf->owners = 3;
  return shelf;
}

/* Who guesses a handle before its maker has it may release it before it is
   placed. Then nobody has forgotten it. */
static void forget(const mfi_shelf* shelf) {
  for (int i = 0; i < PLACES; i++)
    if (places[i].shelf == shelf)
      memset(&places[i], 0, sizeof places[i]);
}

void mfi_shelf_drop(mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  const bool last = --shelf->owners == 0;
  if (last)
    forget(shelf);
  pthread_mutex_unlock(&lock);
  if (last)
    free(shelf);
}

bool mfi_shelf_offer(mfi_shelf* shelf, mfi_slot* slot) {
  pthread_mutex_lock(&lock);
  const bool room = shelf->end < ROOM;
  if (room)
    shelf->slots[shelf->end++] = slot;
  pthread_mutex_unlock(&lock);
  return room;
}

int64_t mfi_shelf_recall(mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  const int64_t taken = shelf->taken;
  shelf->taken = shelf->first = shelf->end = 0;
  pthread_mutex_unlock(&lock);
  return taken;
}

void mfi_shelf_place(uint64_t handle, mfi_shelf* shelf) {
  pthread_mutex_lock(&lock);
  if (!places[handle % PLACES].shelf) {
    places[handle % PLACES].handle = handle;
    places[handle % PLACES].shelf = shelf;
  }
  pthread_mutex_unlock(&lock);
}

void mfi_shelf_forget(uint64_t handle) {
  pthread_mutex_lock(&lock);
  if (places[handle % PLACES].handle == handle)
    memset(&places[handle % PLACES], 0, sizeof places[0]);
  pthread_mutex_unlock(&lock);
}

void mfi_shelf_forget_all(void) {
  pthread_mutex_lock(&lock);
  memset(places, 0, sizeof places);
  pthread_mutex_unlock(&lock);
}

mfi_slot* mfi_shelf_take(uint64_t handle) {
  mfi_slot* slot = NULL;
  pthread_mutex_lock(&lock);
  mfi_shelf* shelf = places[handle % PLACES].handle == handle ? places[handle % PLACES].shelf : NULL;
  if (shelf && shelf->first < shelf->end) {
    slot = shelf->slots[shelf->first++];
    shelf->taken++;
  }
  pthread_mutex_unlock(&lock);
  return slot;
}
