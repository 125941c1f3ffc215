/*
 * queue.c: the ready queue without Go, for ThreadSanitizer, which cannot watch a
 * library with Go in it. A lock, a list and a producer thread take the place of the loader.
 * Callers take batches from the queue, or under the lock, as in Go. Each batch must
 * reach exactly one caller, with the bytes and the step that were written into it.
 */
#include "../internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  CALLERS = 4,
  AHEAD = 6,
  BATCHES = 4000,
  ROUNDS = 200,
  MILLISECOND = 1000000,
  BYTES = 256,
  HANDLE = 0x100000007
};

#define HANG INT64_C(60000000000) /* ns: a producer that waits so long was never woken */

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                                \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static mfi_pool* pool;
static mfi_queue* queue;

static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER;
static mfi_slot* ready[AHEAD]; /* guarded by the lock, as all down to made */
static int count, offered;
static bool resting;
static int64_t counted, made;

static atomic_int seen[BATCHES];
static atomic_int taken, from_queue, over;

static mfi_slot* take_within(uint64_t handle, int64_t timeout_ms) {
  mfi_slot* slot;
  CHECK(mfi_queue_take(handle, &timeout_ms, &slot) == MF_OK);
  return slot;
}

static mfi_slot* pop(void) {
  mfi_slot* first = ready[0];
  memmove(ready, ready + 1, (size_t)--count * sizeof *ready);
  return first;
}

/* Locks the loader and removes the batches that callers took from the queue. */
static void begin(bool withdraw) {
  pthread_mutex_lock(&loader);
  for (const int64_t n = mfi_queue_taken(queue, withdraw).batches; counted < n; counted++) {
    CHECK(count > 0 && offered > 0);
    pop();
    offered--;
  }
  if (withdraw)
    offered = 0;
}

/* Offers what is ready, and unlocks the loader. */
static void end(void) {
  while (offered < count && mfi_queue_offer(queue, ready[offered]))
    offered++;
  mfi_queue_expect(queue, !resting && made < BATCHES);
  pthread_mutex_unlock(&loader);
}

static mfi_slot* make(int64_t number) {
  mfi_slot* slot = mfi_pool_get(pool);
  CHECK(slot);
  memset(mfi_slot_data(slot), (int)(number % 251), BYTES);
  const mfi_step step = {.step = number, .position = 4 * number, .next_position = 4 * number + 4};
  char state[32];
  mfi_slot_describe(slot, step, state, (size_t)snprintf(state, sizeof state, "%lld", (long long)number));
  return slot;
}

static void* produce(void* none) {
  for (int64_t number = 0; number < BATCHES;) {
    begin(false);
    resting = count == AHEAD;
    const bool rests = resting;
    const int64_t known = counted;
    end();
    if (rests) {
      CHECK(mfi_queue_rest(queue, known, HANG));
      continue;
    }
    mfi_slot* slot = make(number++);
    begin(false);
    ready[count++] = slot;
    made = number;
    end();
  }
  return none;
}

/* Takes a batch under the mutex, as Go does for a caller that found none in the queue. */
static mfi_slot* ask(void) {
  begin(true);
  mfi_slot* slot = count > 0 ? pop() : NULL;
  if (resting && count < AHEAD) {
    resting = false;
    mfi_queue_wake(queue);
  }
  end();
  return slot;
}

static void check(const mf_batch* batch) {
  const int64_t number = batch->step;
  CHECK(number >= 0 && number < BATCHES && batch->position == 4 * number);
  CHECK(atoll(batch->state) == number);
  const unsigned char* bytes = batch->data;
  CHECK(bytes[0] == number % 251 && bytes[BYTES - 1] == number % 251);
  CHECK(atomic_fetch_add(&seen[number], 1) == 0);
}

static void* call(void* none) {
  while (atomic_load(&taken) < BATCHES) {
    mfi_slot* slot = take_within(HANDLE, -1);
    if (slot)
      atomic_fetch_add(&from_queue, 1);
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

/* Drops the references of all three owners of a queue, which frees it. */
static void drop(mfi_queue* q) {
  for (int i = 0; i < 3; i++)
    mfi_queue_drop(q);
}

/* Binds and unbinds other queues. */
static void* disturb(void* none) {
  for (uint64_t i = 1; !atomic_load(&over); i++) {
    const uint64_t other = HANDLE + 1000 + i;
    mfi_queue* small = mfi_queue_new();
    CHECK(small);
    mfi_queue_bind(other, small);
    CHECK(!take_within(other, -1));
    if (i % 2)
      mfi_queue_unbind(other);
    drop(small);
    CHECK(!take_within(other, -1));
    sched_yield();
  }
  return none;
}

/* A caller waits only for a batch that is expected, and no longer than its timeout.
   A rest returns at once if a batch was taken or a wake came before it. */
static void times(void) {
  CHECK(!take_within(HANDLE, -1) && mfi_queue_taken(queue, false).waited_ns == 0);
  mfi_queue_expect(queue, true);
  CHECK(!take_within(HANDLE, 0) && mfi_queue_taken(queue, false).waited_ns == 0);
  int64_t left = 2;
  mfi_slot* slot;
  CHECK(mfi_queue_take(HANDLE, &left, &slot) == MF_OK && !slot && left == 0);
  CHECK(mfi_queue_taken(queue, false).waited_ns >= 2 * MILLISECOND);
  CHECK(!mfi_queue_rest(queue, 0, MILLISECOND));
  mfi_queue_wake(queue);
  CHECK(mfi_queue_rest(queue, 0, HANG));
  CHECK(!mfi_queue_rest(queue, 0, MILLISECOND));
  slot = make(0);
  CHECK(mfi_queue_offer(queue, slot) && take_within(HANDLE, -1) == slot);
  CHECK(mfi_queue_rest(queue, 0, HANG) && mfi_queue_rest(queue, 0, HANG));
  counted = mfi_queue_taken(queue, false).batches;
  CHECK(counted == 1 && !mfi_queue_rest(queue, counted, MILLISECOND));
  CHECK(mfi_queue_offer(queue, slot));
  CHECK(mfi_queue_taken(queue, true).batches == 1); /* withdrawn, not taken */
  mfi_queue_expect(queue, false);
  CHECK(!take_within(HANDLE, -1));
  mfi_pool_put(slot);
}

/* The queue holds a bounded number of batches, in order. */
static void order(void) {
  mfi_slot* slots[64];
  int n = 0;
  for (;; n++) {
    CHECK(n < 64);
    slots[n] = make(n);
    if (!mfi_queue_offer(queue, slots[n]))
      break;
  }
  for (int i = 0; i < 3 * n; i++) { /* the ring of the queue wraps around */
    CHECK(take_within(HANDLE, 0) == slots[i % n]);
    CHECK(mfi_queue_offer(queue, slots[i % n]));
  }
  counted = mfi_queue_taken(queue, true).batches;
  for (int i = 0; i <= n; i++)
    mfi_pool_put(slots[i]);
}

/* Takes ROUNDS batches. Each is offered after the one before it was taken. */
static void* follow(void* none) {
  for (int i = 0; i < ROUNDS; i++)
    CHECK(take_within(HANDLE, -1));
  return none;
}

/* An offer wakes a waiting caller, and a caller that takes wakes the producer. A
   missing wake-up is a hang here. */
static void alternate(void) {
  mfi_slot* slot = make(0);
  mfi_queue_expect(queue, true);
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, follow, NULL));
  for (int i = 0; i < ROUNDS; i++) {
    CHECK(mfi_queue_offer(queue, slot) && mfi_queue_rest(queue, counted, HANG));
    CHECK(mfi_queue_taken(queue, false).batches == ++counted);
  }
  pthread_join(other, NULL);
  mfi_queue_expect(queue, false);
  mfi_pool_put(slot);
}

/* ---- waits that end without a batch ---- */

enum { BRIEF = 0x100000008 };

static atomic_int calls, canceled, stopped;

/* Waits by a handle that is bound and unbound again and again. */
static void* wait_and_get_nothing(void* none) {
  while (!atomic_load(&stopped)) {
    int64_t timeout_ms = -1;
    mfi_slot* slot;
    if (mfi_queue_take(BRIEF, &timeout_ms, &slot) == MF_CANCELLED)
      atomic_fetch_add(&canceled, 1);
    CHECK(!slot);
    atomic_fetch_add(&calls, 1);
  }
  return none;
}

enum end { UNBIND, UNBIND_ALL, EXPECT_NOTHING, ENDS };

/* Lets the other thread wait, and ends its wait. A wait that does not end is a hang
   here. */
static void end_wait(enum end how, bool offer) {
  mfi_queue* brief = mfi_queue_new();
  mfi_slot* slot = make(0);
  CHECK(brief);
  mfi_queue_expect(brief, true);
  mfi_queue_bind(BRIEF, brief);
  sched_yield();
  if (how == UNBIND)
    mfi_queue_unbind(BRIEF);
  else if (how == UNBIND_ALL)
    mfi_queue_unbind_all();
  else
    mfi_queue_expect(brief, false);
  if (offer)
    CHECK(mfi_queue_offer(brief, slot)); /* too late for the waiting thread */
  const int before = atomic_load(&calls);
  while (atomic_load(&calls) < before + 2)
    sched_yield();
  CHECK(mfi_queue_taken(brief, false).batches == 0);
  drop(brief);
  mfi_pool_put(slot);
}

/* A wait ends when its handle is unbound, or when no batch is expected any more. */
static void without_a_batch(void) {
  pthread_t other;
  CHECK(!pthread_create(&other, NULL, wait_and_get_nothing, NULL));
  for (enum end how = UNBIND; how < ENDS; how++)
    for (int i = 0; i < ROUNDS; i++)
      end_wait(how, false);
  while (atomic_load(&canceled) < 2 * ROUNDS)
    end_wait(UNBIND, true);
  atomic_store(&stopped, 1);
  pthread_join(other, NULL);
}

/* Callers find each of many queues, and no queue that is unbound. */
static void many(void) {
  enum { MANY = 20 };
  mfi_queue* queues[MANY];
  mfi_slot* slots[MANY];
  for (uint64_t i = 0; i < MANY; i++) {
    queues[i] = mfi_queue_new();
    CHECK(queues[i]);
    mfi_queue_bind(BRIEF + i, queues[i]);
    slots[i] = make((int64_t)i);
    CHECK(mfi_queue_offer(queues[i], slots[i]));
  }
  for (uint64_t i = 0; i < MANY; i += 2)
    mfi_queue_unbind(BRIEF + i);
  for (uint64_t i = 0; i < MANY; i++)
    CHECK(take_within(BRIEF + i, -1) == (i % 2 ? slots[i] : NULL));
  for (uint64_t i = 0; i < MANY; i++) {
    drop(queues[i]); /* half of them are still bound */
    CHECK(!take_within(BRIEF + i, -1));
    mfi_pool_put(slots[i]);
  }
}

int main(void) {
  alarm(120); /* a lost wake-up is a hang */
  static const int64_t dims[3];
  pthread_t threads[CALLERS + 2];
  pool = mfi_pool_new(1, AHEAD, 1);
  queue = mfi_queue_new();
  CHECK(pool && queue);
  CHECK(mfi_pool_add(pool, (mfi_block){.bytes = BYTES}, "x", 1, dims) == 0);
  mfi_queue_bind(HANDLE, queue);
  times();
  order();
  alternate();
  many();
  for (int i = 0; i < CALLERS; i++)
    CHECK(!pthread_create(&threads[i], NULL, call, NULL));
  CHECK(!pthread_create(&threads[CALLERS], NULL, produce, NULL));
  CHECK(!pthread_create(&threads[CALLERS + 1], NULL, disturb, NULL));
  for (int i = 0; i <= CALLERS; i++)
    pthread_join(threads[i], NULL);
  atomic_store(&over, 1);
  pthread_join(threads[CALLERS + 1], NULL);
  begin(true);
  CHECK(count == 0 && made == BATCHES && atomic_load(&from_queue) > 0);
  end();
  mfi_queue_unbind(HANDLE);
  CHECK(!take_within(HANDLE, -1));
  drop(queue);
  without_a_batch();
  mfi_pool_close(pool);
  CHECK(mf_live_batches() == 0 && mf_live_bytes() == 0);
  fprintf(stderr, "%d of %d from the queue\n", atomic_load(&from_queue), BATCHES);
  puts("ok");
  return 0;
}
