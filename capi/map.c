/*
 * map.c: the functions of a program that compute rows, and a queue for their calls.
 *
 * A call has its own memory, so a function that does not return uses nothing else of the library.
 */
#include "../arrowio/cstream/cstream.h"
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A call of a function. The rows are its first member, so both have one address. */
typedef struct call {
  mf_map_rows rows;
  struct ArrowArray in;
  /* in a queue: */
  struct call* next;
  mf_error* error;
  mf_status code;
  bool done;
} call;

mf_map_rows* mfi_map_rows_new(int64_t n, int32_t n_out, bool keys) {
  call* c = calloc(1, sizeof *c);
  if (!c)
    return NULL;
  c->rows = (mf_map_rows){.struct_size = sizeof c->rows, .n_out = n_out, .n_rows = n, .given = &c->in};
  c->rows.records = malloc(n * sizeof *c->rows.records);
  c->rows.out = calloc(n_out, sizeof *c->rows.out);
  if (keys)
    c->rows.keys = malloc(n * 2 * sizeof *c->rows.keys);
  if (!c->rows.records || !c->rows.out || (keys && !c->rows.keys)) {
    mfi_map_rows_free(&c->rows);
    return NULL;
  }
  return &c->rows;
}

bool mfi_map_column_new(mf_map_rows* rows, int32_t i, int64_t bytes) {
  mf_map_column* c = &rows->out[i];
  if (bytes < 0) {
    c->lengths = calloc(rows->n_rows, sizeof *c->lengths);
    return c->lengths != NULL;
  }
  c->data = mfi_buffer_new((size_t)bytes);
  c->size = bytes;
  return c->data != NULL;
}

void mfi_map_rows_free(mf_map_rows* rows) {
  if (rows->given->release)
    rows->given->release(rows->given);
  for (int32_t i = 0; rows->out && i < rows->n_out; i++) {
    mfi_buffer_free(rows->out[i].data);
    free(rows->out[i].lengths);
  }
  free(rows->out);
  free((void*)rows->records);
  free((void*)rows->keys);
  free(rows);
}

mf_status mfi_map_call(const mf_map* map, mf_map_rows* rows, mf_error* error) {
  return map->function(map->user, rows, error);
}

void mfi_map_release(const mf_map* map) {
  if (map->release)
    map->release(map->user);
}

void* mf_map_reserve(mf_map_column* column, int64_t size) {
  if (!column || !column->lengths || size < 0)
    return NULL;
  mfi_buffer_free(column->data);
  column->data = mfi_buffer_new((size_t)size);
  column->size = column->data ? size : 0;
  return column->data;
}

/* ---- the queue ---- */

struct mf_map_queue {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  call *first, *last; /* calls that no thread has taken */
  int32_t threads;    /* that have not seen the end */
  bool closed;
};

mf_map_queue* mf_map_queue_new(int32_t threads) {
  mf_map_queue* q = threads > 0 ? calloc(1, sizeof *q) : NULL;
  if (!q)
    return NULL;
  q->threads = threads;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->work, NULL);
  pthread_cond_init(&q->done, NULL);
  return q;
}

mf_status mf_map_queue_run(void* queue, mf_map_rows* rows, mf_error* error) {
  mf_map_queue* q = queue;
  call* c = (call*)rows;
  pthread_mutex_lock(&q->lock);
  c->error = error;
  c->done = false;
  c->next = NULL;
  *(q->first ? &q->last->next : &q->first) = c;
  q->last = c;
  pthread_cond_signal(&q->work);
  while (!c->done)
    pthread_cond_wait(&q->done, &q->lock);
  pthread_mutex_unlock(&q->lock);
  return c->code;
}

mf_map_rows* mf_map_queue_next(mf_map_queue* q) {
  pthread_mutex_lock(&q->lock);
  while (!q->first && !q->closed)
    pthread_cond_wait(&q->work, &q->lock);
  call* c = q->first;
  if (c)
    q->first = c->next;
  const bool last = !c && --q->threads == 0;
  pthread_mutex_unlock(&q->lock);
  if (last) {
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->work);
    pthread_cond_destroy(&q->done);
    free(q);
  }
  if (!c)
    return NULL;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  c->rows.taken_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
  return &c->rows;
}

void mf_map_queue_done(mf_map_queue* q, mf_map_rows* rows, mf_status code, const char* message,
                       const char* hint) {
  call* c = (call*)rows;
  pthread_mutex_lock(&q->lock);
  c->code = code;
  if (code < 0)
    mfi_fail(c->error, code, "map", message ? message : "", hint ? hint : "");
  c->done = true;
  pthread_cond_broadcast(&q->done);
  pthread_mutex_unlock(&q->lock);
}

void mf_map_queue_close(void* queue) {
  mf_map_queue* q = queue;
  pthread_mutex_lock(&q->lock);
  q->closed = true;
  pthread_cond_broadcast(&q->work);
  pthread_mutex_unlock(&q->lock);
}
