/*
 * queue.c: the ready queue. Callers take ready batches from it, and wait for the
 * next one in it, without entering Go. internal.h describes its functions.
 *
 * One lock guards all queues and their list. It is held for a few instructions. A
 * woken thread needs the lock, so conditions are signaled after it is released. A
 * thread owns a queue until it has signaled it, so that the queue is not freed before.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { CAPACITY = 8 };

#define SECOND INT64_C(1000000000) /* in nanoseconds, as all times except timeout_ms */
#define MILLISECOND INT64_C(1000000)

struct mfi_queue {
  mfi_queue* next;           /* in the list of bound queues */
  uint64_t handle;           /* callers find the queue in the list by it */
  mfi_slot* slots[CAPACITY]; /* a ring */
  int32_t first, count;
  int64_t taken, waited;   /* since the queue was made */
  int32_t owners;          /* the last one frees the queue */
  int32_t waiting;         /* callers that wait for a batch */
  bool expected;           /* a batch will be offered soon */
  bool unbound;            /* the handle was canceled or released */
  bool woken;              /* mfi_queue_wake was called after the producer's last rest */
  pthread_cond_t callers;  /* signaled when a batch is ready */
  pthread_cond_t producer; /* signaled when a batch is taken; the producer rests until then */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static mfi_queue* bound; /* the queues that have a handle; a program has few loaders */

/* ---- time ---- */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

/* Returns the time when a timeout ends. A negative timeout never ends: INT64_MAX. */
static int64_t after(int64_t began, int64_t timeout_ms) {
  const int64_t most = (INT64_MAX - began) / MILLISECOND;
  return timeout_ms < 0 || timeout_ms > most ? INT64_MAX : began + timeout_ms * MILLISECOND;
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

/* Waits under the lock. Returns false when the time is over. */
static bool wait_until(pthread_cond_t* c, int64_t end) {
#ifdef __APPLE__
  const int64_t left = end - now();
  const struct timespec t = {left / SECOND, left % SECOND};
  return left > 0 && pthread_cond_timedwait_relative_np(c, &lock, &t) == 0;
#else
  const struct timespec t = {end / SECOND, end % SECOND};
  return pthread_cond_timedwait(c, &lock, &t) == 0;
#endif
}

/* ---- owners and handles ---- */

mfi_queue* mfi_queue_new(void) {
  mfi_queue* queue = calloc(1, sizeof *queue);
  if (!queue)
    return NULL;
  queue->owners = 3;
  if (make_condition(&queue->callers) || make_condition(&queue->producer)) {
    free(queue);
    return NULL;
  }
  return queue;
}

/* Returns the link to the queue of a handle, or to NULL at the end of the list. */
static mfi_queue** find(uint64_t handle) {
  mfi_queue** link = &bound;
  while (*link && (*link)->handle != handle)
    link = &(*link)->next;
  return link;
}

/* Removes a queue from the list and ends the waits of its callers. Call it under the lock. */
static void unbind(mfi_queue** link) {
  mfi_queue* queue = *link;
  if (!queue)
    return;
  *link = queue->next;
  queue->unbound = true;
  if (queue->waiting > 0)
    pthread_cond_broadcast(&queue->callers); /* under the lock: this thread may be no owner */
}

void mfi_queue_drop(mfi_queue* queue) {
  pthread_mutex_lock(&lock);
  const bool last = --queue->owners == 0;
  if (last) {
    /* A thread that guesses the handle may release it before it is bound. Then the
       queue is still in the list. */
    mfi_queue** link = &bound;
    while (*link && *link != queue)
      link = &(*link)->next;
    if (*link)
      *link = queue->next;
  }
  pthread_mutex_unlock(&lock);
  if (!last)
    return;
  pthread_cond_destroy(&queue->callers);
  pthread_cond_destroy(&queue->producer);
  free(queue);
}

void mfi_queue_bind(uint64_t handle, mfi_queue* queue) {
  pthread_mutex_lock(&lock);
  queue->handle = handle;
  queue->next = bound;
  bound = queue;
  pthread_mutex_unlock(&lock);
}

void mfi_queue_unbind(uint64_t handle) {
  pthread_mutex_lock(&lock);
  unbind(find(handle));
  pthread_mutex_unlock(&lock);
}

void mfi_queue_unbind_all(void) {
  pthread_mutex_lock(&lock);
  while (bound)
    unbind(&bound);
  pthread_mutex_unlock(&lock);
}

/* ---- the loader's side ---- */

bool mfi_queue_offer(mfi_queue* queue, mfi_slot* slot) {
  pthread_mutex_lock(&lock);
  const bool fits = queue->count < CAPACITY, waiting = queue->waiting > 0;
  if (fits)
    queue->slots[(queue->first + queue->count++) % CAPACITY] = slot;
  pthread_mutex_unlock(&lock);
  if (fits && waiting)
    pthread_cond_signal(&queue->callers);
  return fits;
}

void mfi_queue_expect(mfi_queue* queue, bool soon) {
  pthread_mutex_lock(&lock);
  const bool ends_waits = !soon && queue->waiting > 0;
  queue->expected = soon;
  pthread_mutex_unlock(&lock);
  if (ends_waits)
    pthread_cond_broadcast(&queue->callers);
}

mfi_taken mfi_queue_taken(mfi_queue* queue, bool withdraw) {
  pthread_mutex_lock(&lock);
  const mfi_taken taken = {queue->taken, queue->waited};
  if (withdraw)
    queue->count = 0;
  pthread_mutex_unlock(&lock);
  return taken;
}

bool mfi_queue_rest(mfi_queue* queue, int64_t taken, int64_t limit_ns) {
  const int64_t end = now() + limit_ns;
  pthread_mutex_lock(&lock);
  bool in_time = true;
  while (in_time && !queue->woken && queue->taken <= taken)
    in_time = wait_until(&queue->producer, end);
  const bool ended = queue->woken || queue->taken > taken;
  queue->woken = false;
  pthread_mutex_unlock(&lock);
  return ended;
}

void mfi_queue_wake(mfi_queue* queue) {
  pthread_mutex_lock(&lock);
  queue->woken = true;
  pthread_mutex_unlock(&lock);
  pthread_cond_signal(&queue->producer);
}

/* ---- the callers' side ---- */

/* Waits under the lock until there is a batch, none is expected, the handle is
   unbound, or the time is over. Returns how long that took. */
static int64_t wait_for_batch(mfi_queue* queue, int64_t timeout_ms) {
  const int64_t began = now(), end = after(began, timeout_ms);
  queue->waiting++;
  bool in_time = true;
  while (in_time && queue->expected && !queue->unbound && queue->count == 0)
    in_time = wait_until(&queue->callers, end);
  queue->waiting--;
  const int64_t waited = now() - began;
  queue->waited += waited;
  return waited;
}

mf_status mfi_queue_take(uint64_t handle, int64_t* timeout_ms, mfi_slot** slot) {
  *slot = NULL;
  pthread_mutex_lock(&lock);
  mfi_queue* queue = *find(handle);
  if (!queue) {
    pthread_mutex_unlock(&lock);
    return MF_OK;
  }
  queue->owners++;
  if (*timeout_ms != 0 && queue->expected && queue->count == 0) {
    const int64_t waited_ms = wait_for_batch(queue, *timeout_ms) / MILLISECOND;
    if (*timeout_ms > 0)
      *timeout_ms = waited_ms < *timeout_ms ? *timeout_ms - waited_ms : 0;
  }
  const bool unbound = queue->unbound;
  if (!unbound && queue->count > 0) {
    *slot = queue->slots[queue->first];
    queue->first = (queue->first + 1) % CAPACITY;
    queue->count--;
    queue->taken++;
  }
  pthread_mutex_unlock(&lock);
  if (*slot)
    pthread_cond_signal(&queue->producer);
  mfi_queue_drop(queue);
  return unbound ? MF_CANCELLED : MF_OK;
}
