/*
 * buffer.c: the buffers of rows that arrays and functions get.
 *
 * A new page costs more time than copying what it holds: a fault, and the zeros that the system writes.
 * So large buffers that are free wait here for the next rows. They are few, and the last of them is freed
 * for one more.
 */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  HEADER = 64,           /* bytes before a buffer */
  LARGE = 64 << 10,      /* smaller buffers are left to malloc */
  MOST_BYTES = 32 << 20, /* of the buffers that wait */
  MOST = 16
};

typedef struct buffer {
  size_t size;
} buffer;

static struct {
  pthread_mutex_t lock;
  buffer* buffers[MOST]; /* the latest one is the last */
  int n;
  size_t bytes;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes out buffer i. */
static buffer* take(int i) {
  buffer* b = waiting.buffers[i];
  waiting.bytes -= b->size;
  memmove(&waiting.buffers[i], &waiting.buffers[i + 1], (size_t)(--waiting.n - i) * sizeof b);
  return b;
}

/* In a forked child, a thread that does not exist there may hold the lock, so nothing waits for it. */
static buffer* reused(size_t size) {
  buffer* found = NULL;
  if (size < LARGE || pthread_mutex_trylock(&waiting.lock))
    return NULL;
  for (int i = waiting.n - 1; i >= 0 && !found; i--)
    if (waiting.buffers[i]->size >= size && waiting.buffers[i]->size / 2 <= size)
      found = take(i);
  pthread_mutex_unlock(&waiting.lock);
  return found;
}

static buffer* header(void* memory) { return (buffer*)((char*)memory - HEADER); }

void* mfi_buffer_new(size_t size) {
  buffer* b = reused(size);
  if (!b) {
    if (size > SIZE_MAX / 2 ||
        !(b = size < LARGE ? malloc(HEADER + size) : mfi_alloc((int64_t)(HEADER + size))))
      return NULL;
    b->size = size;
  }
  return (char*)b + HEADER;
}

void* mfi_buffer_resize(void* memory, size_t used, size_t size) {
  if (memory && header(memory)->size >= size)
    return memory;
  void* out = mfi_buffer_new(size);
  if (out && memory)
    memcpy(out, memory, used);
  mfi_buffer_free(memory);
  return out;
}

void mfi_buffer_free(void* memory) {
  if (!memory)
    return;
  buffer* b = header(memory);
  if (b->size < LARGE || b->size > MOST_BYTES || pthread_mutex_trylock(&waiting.lock)) {
    free(b);
    return;
  }
  while (waiting.n == MOST || waiting.bytes + b->size > MOST_BYTES)
    free(take(0));
  waiting.buffers[waiting.n++] = b;
  waiting.bytes += b->size;
  pthread_mutex_unlock(&waiting.lock);
}
