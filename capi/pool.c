/*
 * pool.c: the memory of batches.
 *
 * A slot is the memory of one batch. The loader gets it from the pool and fills it. The
 * caller receives it as a batch with a reference count. When the count is zero, it goes
 * back to the pool. Nothing here enters Go, so any thread can release a batch, with or
 * without an interpreter lock.
 *
 * In a forked child, a thread that does not exist there may hold the lock. A release then
 * only counts down, and does not touch the memory.
 */
#include "internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  ALIGN = 64,
  PAGE = 4096,
  MAPPED = 128 << 10,
  HUGE = 2 << 20,
  STATE = 256 /* bytes of a saved state */
};

typedef struct block {
  mfi_block info;
  int64_t offset;
  char* name;
  int64_t* dims; /* shape, start, global shape, holders */
} block;

struct mfi_pool {
  pthread_mutex_t lock; /* guards the fields down to closed */
  mfi_slot* idle;
  mfi_counts counts;
  bool closed;

  atomic_int_fast64_t refs; /* one until mfi_pool_close, and one per slot that is not idle */
  int64_t max_idle;
  int64_t rows;  /* see mfi_pool_new */
  int64_t bytes; /* bytes of one slot */
  int32_t n, capacity;
  block blocks[];
};

struct mfi_slot {
  mf_batch head; /* the first member: an mf_batch* is an mfi_slot* */
  atomic_int_fast64_t refs;
  mfi_pool* pool;
  mfi_slot* next; /* in the list of idle slots */
  void* map;      /* what holds the data; NULL if malloc does */
  size_t mapped;
  char state[STATE + 1];
};

static atomic_int_fast64_t live_batches, live_bytes;

int64_t mf_live_batches(void) { return atomic_load(&live_batches); }
int64_t mf_live_bytes(void) { return atomic_load(&live_bytes); }

void mfi_live_add(int64_t batches, int64_t bytes) {
  atomic_fetch_add(&live_batches, batches);
  atomic_fetch_add(&live_bytes, bytes);
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* ---- pools ---- */

mfi_pool* mfi_pool_new(int32_t n, int64_t max_idle, int64_t rows) {
  mfi_pool* pool = calloc(1, sizeof *pool + (size_t)n * sizeof(block));
  if (!pool)
    return NULL;
  pthread_mutex_init(&pool->lock, NULL);
  atomic_init(&pool->refs, 1);
  pool->max_idle = max_idle;
  pool->rows = rows;
  pool->capacity = n;
  return pool;
}

int64_t mfi_pool_add(mfi_pool* pool, mfi_block info, const char* name, size_t n_name, const int64_t* dims) {
  if (pool->n == pool->capacity)
    return -1;
  const size_t n_dims = 3 * (size_t)info.ndim + (size_t)info.n_holders;
  block* b = &pool->blocks[pool->n];
  b->info = info;
  b->name = malloc(n_name + 1);
  b->dims = malloc(n_dims * sizeof *dims + 1);
  pool->n++; /* from here on, drop_pool frees the block */
  if (!b->name || !b->dims)
    return -1;
  memcpy(b->name, name, n_name);
  b->name[n_name] = 0;
  memcpy(b->dims, dims, n_dims * sizeof *dims);
  b->offset = pool->bytes;
  pool->bytes += round_up(info.bytes, ALIGN);
  return b->offset;
}

int64_t mfi_pool_bytes(const mfi_pool* pool) { return pool->bytes; }

/* Drops a reference to the pool, and frees the pool with the last one. */
static void drop_pool(mfi_pool* pool) {
  if (atomic_fetch_sub(&pool->refs, 1) != 1)
    return;
  for (int32_t i = 0; i < pool->n; i++) {
    free(pool->blocks[i].name);
    free(pool->blocks[i].dims);
  }
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}

/* ---- slots ---- */

/* Large memory gets huge pages, because filling it touches every page. */
static void* with_huge_pages(void* data, size_t size) {
#ifdef MADV_HUGEPAGE
  if (size >= HUGE)
    madvise(data, size / HUGE * HUGE, MADV_HUGEPAGE);
#endif
  return data;
}

void* mfi_alloc(int64_t bytes) {
  const size_t size = (size_t)(bytes > 0 ? bytes : ALIGN);
  void* data = NULL;
  if (posix_memalign(&data, size >= HUGE ? HUGE : PAGE, size) != 0)
    return NULL;
  return with_huge_pages(data, size);
}

/* Sets the memory of a slot. malloc keeps what is freed, in holes between other memory. A
   loader with batches of another size does not fit into them, so the process would grow with
   every such loader. So memory of MAPPED bytes and more is mapped, and goes back to the
   system. The system limits the number of mappings; beyond that malloc serves. */
static bool alloc_slot(mfi_slot* slot, int64_t bytes) {
  const size_t size = (size_t)bytes, slack = size >= HUGE ? HUGE : 0;
  if (size >= MAPPED) {
    char* map = mmap(NULL, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map != MAP_FAILED) {
      slot->map = map, slot->mapped = size + slack;
      slot->head.data = with_huge_pages(slack ? map + (HUGE - (uintptr_t)map % HUGE) % HUGE : map, size);
      return true;
    }
  }
  slot->head.data = mfi_alloc(bytes);
  return slot->head.data != NULL;
}

#ifdef __ELF__
/* Defined in a program under AddressSanitizer, and NULL in any other. */
extern void __asan_poison_memory_region(const volatile void*, size_t) __attribute__((weak));
extern void __asan_unpoison_memory_region(const volatile void*, size_t) __attribute__((weak));

/* Makes AddressSanitizer report an access to a batch after its last release. */
static void poison(const mfi_slot* slot) {
  if (__asan_poison_memory_region)
    __asan_poison_memory_region(slot->head.data, (size_t)slot->head.bytes);
}

static void unpoison(const mfi_slot* slot) {
  if (__asan_unpoison_memory_region)
    __asan_unpoison_memory_region(slot->head.data, (size_t)slot->head.bytes);
}
#else
static void poison(const mfi_slot* slot) { (void)slot; }
static void unpoison(const mfi_slot* slot) { (void)slot; }
#endif

static void free_slot(mfi_slot* slot) {
  atomic_fetch_sub(&live_bytes, slot->head.bytes);
  if (slot->map) {
    unpoison(slot); /* the addresses may be used again */
    munmap(slot->map, slot->mapped);
  } else {
    free(slot->head.data);
  }
  free(slot);
}

static mfi_slot* new_slot(mfi_pool* pool) {
  mfi_slot* slot = calloc(1, sizeof *slot);
  if (!slot)
    return NULL;
  if (!alloc_slot(slot, pool->bytes)) {
    free(slot);
    return NULL;
  }
  slot->head.struct_size = sizeof slot->head;
  slot->head.tensors = pool->n;
  slot->head.bytes = pool->bytes;
  slot->head.state = slot->state;
  slot->pool = pool;
  atomic_fetch_add(&live_bytes, pool->bytes);
  return slot;
}

void mfi_pool_close(mfi_pool* pool) {
  pthread_mutex_lock(&pool->lock);
  mfi_slot* idle = pool->idle;
  pool->idle = NULL;
  pool->counts.all -= pool->counts.idle;
  pool->counts.idle = 0;
  pool->closed = true;
  pthread_mutex_unlock(&pool->lock);
  while (idle) {
    mfi_slot* next = idle->next;
    free_slot(idle);
    idle = next;
  }
  drop_pool(pool);
}

/* Returns an idle slot. If no slot is idle, counts a new one and returns NULL. */
static mfi_slot* reserve(mfi_pool* pool) {
  pthread_mutex_lock(&pool->lock);
  mfi_slot* slot = pool->idle;
  if (slot) {
    pool->idle = slot->next;
    pool->counts.idle--;
    unpoison(slot);
  } else {
    pool->counts.all++;
  }
  pthread_mutex_unlock(&pool->lock);
  return slot;
}

mfi_slot* mfi_pool_get(mfi_pool* pool) {
  mfi_slot* slot = reserve(pool);
  if (!slot)
    slot = new_slot(pool);
  if (!slot) {
    pthread_mutex_lock(&pool->lock);
    pool->counts.all--;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
  }
  atomic_fetch_add(&pool->refs, 1);
  return slot;
}

/* Returns a slot to its pool, which keeps it or frees it. was_live is true if the slot
   was delivered as a batch. */
static void return_slot(mfi_slot* slot, bool was_live) {
  mfi_pool* pool = slot->pool;
  pthread_mutex_lock(&pool->lock);
  const bool keep = !pool->closed && pool->counts.idle < pool->max_idle;
  if (was_live)
    pool->counts.live--;
  if (keep) {
    poison(slot);
    slot->next = pool->idle;
    pool->idle = slot;
    pool->counts.idle++;
  } else {
    pool->counts.all--;
  }
  pthread_mutex_unlock(&pool->lock);
  if (!keep)
    free_slot(slot);
  drop_pool(pool);
}

void mfi_pool_put(mfi_slot* slot) { return_slot(slot, false); }

mfi_counts mfi_pool_counts(mfi_pool* pool) {
  pthread_mutex_lock(&pool->lock);
  const mfi_counts counts = pool->counts;
  pthread_mutex_unlock(&pool->lock);
  return counts;
}

void* mfi_slot_data(mfi_slot* slot) { return slot->head.data; }

/* ---- batches ---- */

void mfi_slot_describe(mfi_slot* slot, mfi_step step, const char* state, size_t n_state) {
  mf_batch* head = &slot->head;
  head->epoch = step.epoch;
  head->step = step.step;
  head->position = step.position;
  head->rows = step.rows;
  head->next_epoch = step.next_epoch;
  head->next_position = step.next_position;
  head->bad = step.bad;
  head->state_size = (int64_t)(n_state < STATE ? n_state : STATE);
  memcpy(slot->state, state, (size_t)head->state_size);
  slot->state[head->state_size] = 0;
}

void mfi_slot_deliver(mfi_slot* slot, mf_batch** out) {
  mf_batch* head = &slot->head;
  mfi_pool* pool = slot->pool;
  pthread_mutex_lock(&pool->lock);
  head->live = ++pool->counts.live;
  head->idle = pool->counts.idle;
  pthread_mutex_unlock(&pool->lock);
  atomic_store(&slot->refs, 1);
  atomic_fetch_add(&live_batches, 1);
  *out = head;
}

void mf_batch_retain(mf_batch* batch) {
  if (batch)
    atomic_fetch_add(&((mfi_slot*)batch)->refs, 1);
}

void mf_batch_release(mf_batch* batch) {
  if (!batch)
    return;
  mfi_slot* slot = (mfi_slot*)batch;
  if (atomic_fetch_sub(&slot->refs, 1) != 1)
    return;
  atomic_fetch_sub(&live_batches, 1);
  if (!mfi_forked())
    return_slot(slot, true);
}

bool mfi_pool_block(const mfi_pool* pool, int32_t i, mf_tensor* tensor) {
  if (i < 0 || i >= pool->n)
    return false;
  const block* b = &pool->blocks[i];
  const int32_t ndim = b->info.ndim;
  *tensor = (mf_tensor){
      .struct_size = sizeof *tensor,
      .array = b->info.array,
      .name = b->name,
      .bytes = b->info.bytes,
      .dtype = b->info.dtype,
      .ndim = ndim,
      .shape = b->dims,
      .start = b->dims + ndim,
      .global_shape = b->dims + 2 * ndim,
      .holders = b->dims + 3 * ndim,
      .n_holders = b->info.n_holders,
  };
  return true;
}

mfi_role mfi_pool_block_role(const mfi_pool* pool, int32_t i) { return pool->blocks[i].info.role; }

int64_t mfi_pool_block_offset(const mfi_pool* pool, int32_t i) { return pool->blocks[i].offset; }

int64_t mfi_pool_rows(const mfi_pool* pool) { return pool->rows; }

const mfi_pool* mfi_batch_pool(const mf_batch* batch) { return ((const mfi_slot*)batch)->pool; }

bool mfi_batch_block(const mf_batch* batch, int32_t i, mf_tensor* tensor) {
  const mfi_pool* pool = mfi_batch_pool(batch);
  if (!mfi_pool_block(pool, i, tensor))
    return false;
  tensor->data = (char*)batch->data + pool->blocks[i].offset;
  return true;
}

/* A program that was built with an older header has a shorter mf_tensor: only the fields
   that both know are written. */
mf_status mf_batch_tensor(const mf_batch* batch, int32_t i, mf_tensor* tensor) {
  if (!tensor)
    return MF_INVALID_ARGUMENT;
  const size_t head = sizeof tensor->struct_size;
  const size_t size = mfi_covered(tensor->struct_size, MFI_SIZE_TO(mf_tensor, n_holders), sizeof *tensor);
  if (size <= head)
    return MF_INVALID_ARGUMENT;
  memset((char*)tensor + head, 0, size - head);
  mf_tensor full;
  if (!batch)
    return MF_INVALID_ARGUMENT;
  if (!mfi_batch_block(batch, i, &full))
    return MF_OUT_OF_RANGE;
  memcpy((char*)tensor + head, (char*)&full + head, size - head);
  return MF_OK;
}
