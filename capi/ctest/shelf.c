/*
 * shelf.c: the C side of the shelf by itself, for ThreadSanitizer, which cannot
 * watch a library with Go in it. A loader is played by a lock, a list and a
 * thread that makes pieces; takers find them on the shelf, or come under the
 * lock as Go's callers do. Each piece must come to one taker, with the bytes and
 * the place that were written into it.
 */
#include "../internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  TAKERS = 4,
  AHEAD = 6,
  PIECES = 4000,
  ROUNDS = 200,
  MILLISECOND = 1000000,
  BYTES = 256,
  HANDLE = 0x100000007
};

#define HANG INT64_C(60000000000) /* ns: a rest that takes so long was never ended */

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static mfi_pool* pool;
static mfi_shelf* shelf;

static pthread_mutex_t line = PTHREAD_MUTEX_INITIALIZER;
static mfi_slot* ready[AHEAD]; /* and the fields down to made, under line */
static int count;
static bool resting;
static int64_t made;

static atomic_int seen[PIECES];
static atomic_int taken, shelved, over;

static mfi_slot* taken_within(uint64_t handle, int64_t timeout_ms) {
  mfi_slot* slot;
  CHECK(mfi_shelf_take(handle, &timeout_ms, &slot) == MF_OK);
  return slot;
}

static mfi_slot* pop(void) {
  mfi_slot* first = ready[0];
  memmove(ready, ready + 1, (size_t)--count * sizeof *ready);
  return first;
}

static void hold(void) {
  pthread_mutex_lock(&line);
  for (int64_t n = mfi_shelf_recall(shelf).taken; n > 0; n--) {
    CHECK(count > 0);
    pop();
  }
}

static void leave(void) {
  for (int i = 0; i < count && mfi_shelf_offer(shelf, ready[i]); i++)
    ;
  mfi_shelf_expect(shelf, !resting && made < PIECES);
  pthread_mutex_unlock(&line);
}

static mfi_slot* make(int64_t number) {
  mfi_slot* slot = mfi_pool_get(pool);
  CHECK(slot);
  memset(mfi_slot_data(slot), (int)(number % 251), BYTES);
  const mfi_place place = {.step = number, .position = 4 * number, .next_position = 4 * number + 4};
  char state[32];
  mfi_slot_describe(slot, place, state, (size_t)snprintf(state, sizeof state, "%lld", (long long)number));
  return slot;
}

static void* produce(void* none) {
  for (int64_t number = 0; number < PIECES;) {
    hold();
    resting = count == AHEAD;
    const bool room = !resting;
    leave();
    if (!room) {
      CHECK(mfi_shelf_rest(shelf, HANG));
      continue;
    }
    mfi_slot* slot = make(number++);
    hold();
    ready[count++] = slot;
    made = number;
    leave();
  }
  return none;
}

/* What a taker who finds no piece on the shelf does in Go. */
static mfi_slot* ask(void) {
  hold();
  mfi_slot* slot = count > 0 ? pop() : NULL;
  if (resting && count < AHEAD) {
    resting = false;
    mfi_shelf_wake(shelf);
  }
  leave();
  return slot;
}

static void check(const mf_batch* batch) {
  const int64_t number = batch->step;
  CHECK(number >= 0 && number < PIECES && batch->position == 4 * number);
  CHECK(atoll(batch->state) == number);
  const unsigned char* bytes = batch->data;
  CHECK(bytes[0] == number % 251 && bytes[BYTES - 1] == number % 251);
  CHECK(atomic_fetch_add(&seen[number], 1) == 0);
}

static void* take(void* none) {
  while (atomic_load(&taken) < PIECES) {
    mfi_slot* slot = taken_within(HANDLE, -1);
    if (slot)
      atomic_fetch_add(&shelved, 1);
    else if (!(slot = ask()))
      continue;
    mf_batch* batch;
    mfi_slot_deliver(slot, &batch);
    check(batch);
    mf_batch_release(batch);
    atomic_fetch_add(&taken, 1);
  }
  return none;
}

/* All owners go. */
static void drop(mfi_shelf* s) {
  for (int i = 0; i < 3; i++)
    mfi_shelf_drop(s);
}

/* Other shelves come and go under handles of the same place in the table. */
static void* disturb(void* none) {
  for (uint64_t i = 1; !atomic_load(&over); i++) {
    const uint64_t other = HANDLE + (i << 8) + i % 3;
    mfi_shelf* small = mfi_shelf_new();
    CHECK(small);
    mfi_shelf_place(other, small);
    CHECK(!taken_within(other, -1));
    if (i % 2)
      mfi_shelf_forget(other);
    drop(small);
    CHECK(!taken_within(other, -1));
    sched_yield();
  }
  return none;
}

/* Nobody waits for what is not expected, nor longer than he wants. A rest ends
   at once where the reason for it has gone. */
static void times(void) {
  CHECK(!taken_within(HANDLE, -1) && mfi_shelf_recall(shelf).waited_ns == 0);
  mfi_shelf_expect(shelf, true);
  CHECK(!taken_within(HANDLE, 0) && mfi_shelf_recall(shelf).waited_ns == 0);
  int64_t left = 2;
  mfi_slot* slot;
  CHECK(mfi_shelf_take(HANDLE, &left, &slot) == MF_OK && !slot && left == 0);
  CHECK(mfi_shelf_recall(shelf).waited_ns >= 2 * MILLISECOND);
  left = 1000000;
  CHECK(mfi_shelf_take(HANDLE, &left, &slot) == MF_OK && !slot && left > 0 && left < 1000000);
  CHECK(!mfi_shelf_rest(shelf, MILLISECOND));
  mfi_shelf_wake(shelf);
  CHECK(mfi_shelf_rest(shelf, HANG));
  CHECK(!mfi_shelf_rest(shelf, MILLISECOND));
  slot = make(0);
  CHECK(mfi_shelf_offer(shelf, slot) && taken_within(HANDLE, -1) == slot);
  CHECK(mfi_shelf_rest(shelf, HANG) && mfi_shelf_rest(shelf, HANG));
  CHECK(mfi_shelf_recall(shelf).taken == 1 && !mfi_shelf_rest(shelf, MILLISECOND));
  mfi_pool_put(slot);
}

/* Takes ROUNDS pieces, each of which is laid there when the one before it is gone. */
static void* follow(void* none) {
  for (int i = 0; i < ROUNDS; i++)
    while (!taken_within(HANDLE, -1))
      ;
  return none;
}

/* Whoever waits is woken by what he waits for: who takes by who lays, and who
   rests by who takes. */
static void alternate(void) {
  mfi_slot* slot = make(0);
  mfi_shelf_expect(shelf, true);
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, follow, NULL));
  int late = 0; /* pieces that were found when the wait was over */
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(mfi_shelf_offer(shelf, slot) && mfi_shelf_rest(shelf, HANG));
    const mfi_recalled recalled = mfi_shelf_recall(shelf);
    CHECK(recalled.taken == 1);
    late += recalled.waited_ns >= 20 * MILLISECOND;
  }
  pthread_join(other, NULL);
  CHECK(late < ROUNDS / 8);
  mfi_shelf_expect(shelf, false);
  mfi_pool_put(slot);
}

/* ---- handles that go while somebody waits under them ---- */

enum { BRIEF = 0x100000008 };

static atomic_int calls, cancelled, gone;

/* Waits for pieces under a handle that comes and goes. */
static void* wait_in_vain(void* none) {
  while (!atomic_load(&gone)) {
    int64_t timeout_ms = -1;
    mfi_slot* slot;
    if (mfi_shelf_take(BRIEF, &timeout_ms, &slot) == MF_CANCELLED)
      atomic_fetch_add(&cancelled, 1);
    CHECK(!slot);
    atomic_fetch_add(&calls, 1);
  }
  return none;
}

enum end { FORGET, FORGET_ALL, EXPECT_NOTHING, ENDS };

/* Ends the wait of whoever waits under the handle; gives how long he waited. */
static int64_t end_wait(enum end how, bool lay) {
  mfi_shelf* brief = mfi_shelf_new();
  mfi_slot* slot = make(0);
  CHECK(brief);
  mfi_shelf_expect(brief, true);
  mfi_shelf_place(BRIEF, brief);
  sched_yield();
  if (how == FORGET)
    mfi_shelf_forget(BRIEF);
  else if (how == FORGET_ALL)
    mfi_shelf_forget_all();
  else
    mfi_shelf_expect(brief, false);
  if (lay)
    CHECK(mfi_shelf_offer(brief, slot)); /* too late for who waits */
  const int before = atomic_load(&calls);
  while (atomic_load(&calls) < before + 2)
    sched_yield();
  const mfi_recalled recalled = mfi_shelf_recall(brief);
  CHECK(recalled.taken == 0);
  drop(brief);
  mfi_pool_put(slot);
  return recalled.waited_ns;
}

/* Whoever waits in vain is told so at once: that his handle was forgotten, or
   that nothing is expected any more. */
static void in_vain(void) {
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, wait_in_vain, NULL));
  for (enum end how = FORGET; how < ENDS; how++) {
    int late = 0;
    for (int i = 0; i < ROUNDS; i++)
      late += end_wait(how, false) >= 20 * MILLISECOND;
    CHECK(late < ROUNDS / 8);
  }
  while (atomic_load(&cancelled) < 2 * ROUNDS)
    end_wait(FORGET, true);
  atomic_store(&gone, 1);
  pthread_join(other, NULL);
}

int main(void) {
  static const int64_t dims[3];
  pthread_t threads[TAKERS + 2];
  pool = mfi_pool_new(1, AHEAD);
  shelf = mfi_shelf_new();
  CHECK(pool && shelf);
  CHECK(mfi_pool_add(pool, (mfi_block){.bytes = BYTES}, "x", 1, dims) == 0);
  mfi_shelf_place(HANDLE, shelf);
  times();
  alternate();
  for (int i = 0; i < TAKERS; i++)
    CHECK(!pthread_create(&threads[i], NULL, take, NULL));
  CHECK(!pthread_create(&threads[TAKERS], NULL, produce, NULL));
  CHECK(!pthread_create(&threads[TAKERS + 1], NULL, disturb, NULL));
  for (int i = 0; i <= TAKERS; i++)
    pthread_join(threads[i], NULL);
  atomic_store(&over, 1);
  pthread_join(threads[TAKERS + 1], NULL);
  hold();
  CHECK(count == 0 && made == PIECES && atomic_load(&shelved) > 0);
  leave();
  mfi_shelf_forget(HANDLE);
  CHECK(!taken_within(HANDLE, -1));
  drop(shelf);
  in_vain();
  mfi_pool_close(pool);
  CHECK(mf_live_batches() == 0 && mf_live_bytes() == 0);
  fprintf(stderr, "%d of %d from the shelf\n", atomic_load(&shelved), PIECES);
  puts("ok");
  return 0;
}
