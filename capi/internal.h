/*
 * internal.h: what the C files of this package and its Go code say to each
 * other. Nothing of it is visible outside the library.
 *
 * Two rules keep Go's collector away from C memory. Go code never stores a
 * pointer into a struct of C: it calls a function of this header that does.
 * And Go never sees the inside of a caller's out-parameter before it was
 * cleared here.
 */
#ifndef MESHFEED_INTERNAL_H
#define MESHFEED_INTERNAL_H

#include "include/meshfeed.h"
#include "include/meshfeed_certificate.h"
#include "include/meshfeed_devices.h"

#include <stdbool.h>

/* Parameters of exported Go functions, which cannot say const. */
typedef const char mfi_text;
typedef const mf_array mfi_array;
typedef const mf_batch mfi_batch;
typedef const int32_t mfi_int32;
typedef const mf_range mfi_range;

typedef void (*mfi_release)(void* context);

/* ---- fork.c ---- */

/* Says whether this process is a forked child of the one that loaded the
   library. Costs less than a nanosecond. */
bool mfi_forked(void);

/* ---- error.c ---- */

/* How many bytes of a caller's struct the library reads and writes. first is the
   size of the struct in ABI 1.0, known its size in this library. */
static inline size_t mfi_covered(uint32_t struct_size, size_t first, size_t known) {
  if (struct_size == 0)
    return first;
  return struct_size < known ? struct_size : known;
}

/* Clears as much of an error as the caller's struct_size covers. */
void mfi_error_clear(mf_error* error);

/* Fills an error and gives its code. Texts are cut at UTF-8 boundaries. */
mf_status mfi_error_set(mf_error* error, mf_status code, const char* op, size_t n_op, const char* message,
                        size_t n_message, const char* hint, size_t n_hint, const char* path, size_t n_path);

/* The same for the C files, whose texts end with NUL. */
mf_status mfi_fail(mf_error* error, mf_status code, const char* op, const char* message, const char* hint);

/* Copies a text into memory that mf_bytes_free frees. */
bool mfi_bytes_set(mf_bytes* bytes, const char* text, size_t size);

/* ---- pool.c ---- */

/* The memory of one loader's batches: pieces of equal size with the same
   blocks, some queued in Go, some handed out, some idle. It lives until the
   loader has closed it and the last batch is gone. */
typedef struct mfi_pool mfi_pool;

/* One piece of memory, which is a batch once it was handed out. */
typedef struct mfi_slot mfi_slot;

/* What the loader says about block i when it makes the pool. */
typedef struct mfi_block {
  int32_t array;
  mf_dtype dtype;
  int32_t ndim;
  int64_t n_holders;
  int64_t bytes;
} mfi_block;

/* Makes a pool for n blocks that keeps at most max_idle idle pieces. NULL
   without memory. */
mfi_pool* mfi_pool_new(int32_t n, int64_t max_idle);

/* Adds the next block. dims holds shape, start and global shape, ndim each,
   then the holders. Gives the block's offset, or -1 without memory. */
int64_t mfi_pool_add(mfi_pool* pool, mfi_block block, const char* name, size_t n_name, const int64_t* dims);

/* Bytes of one piece of memory. */
int64_t mfi_pool_bytes(const mfi_pool* pool);

/* Gives a piece of memory, an idle one if there is one. NULL without memory. */
mfi_slot* mfi_pool_get(mfi_pool* pool);

/* Gives back a piece that was not handed out. */
void mfi_pool_put(mfi_slot* slot);

/* Ends the pool for the loader: idle pieces are freed, others when they come. */
void mfi_pool_close(mfi_pool* pool);

typedef struct mfi_counts {
  int64_t live, idle, all;
} mfi_counts;
mfi_counts mfi_pool_counts(mfi_pool* pool);

void* mfi_slot_data(mfi_slot* slot);

/* Which batch a piece of memory became. */
typedef struct mfi_place {
  int64_t epoch, step, position, rows, next_epoch, next_position;
} mfi_place;

/* Writes that down; state is a text of at most 256 bytes. */
void mfi_slot_describe(mfi_slot* slot, mfi_place place, const char* state, size_t n_state);

/* Hands a piece that is described out as a batch. */
void mfi_slot_deliver(mfi_slot* slot, mf_batch** out);

/* Describes block i in full; false if there is no such block. */
bool mfi_batch_block(const mf_batch* batch, int32_t i, mf_tensor* tensor);

/* ---- queue.c ---- */

/* The ready queue of a loader. mf_loader_next takes ready batches from it without
   entering Go: after a step of other code, whose data has replaced the Go runtime's
   in the caches, that takes less than a tenth of the time. It has three owners: the
   loader, the object of the handle by which callers find it, and the call that makes
   this handle. */
typedef struct mfi_queue mfi_queue;

/* Makes an empty queue. NULL without memory. */
mfi_queue* mfi_queue_new(void);

/* Ends the ownership of one owner. */
void mfi_queue_drop(mfi_queue* queue);

/* Appends a described piece of memory. False if the queue is full. */
bool mfi_queue_offer(mfi_queue* queue, mfi_slot* slot);

/* Says whether a batch will be offered soon. If not, waiting callers stop waiting. */
void mfi_queue_expect(mfi_queue* queue, bool soon);

/* Returns how many batches callers have taken since the queue was made, and how
   long they have waited. Removes the others, if asked to withdraw them. */
typedef struct mfi_taken {
  int64_t batches, waited_ns;
} mfi_taken;
mfi_taken mfi_queue_taken(mfi_queue* queue, bool withdraw);

/* Waits until callers have taken more batches than that, or the other function is
   called. False if neither happens in time. A wake without a rest ends the next. */
bool mfi_queue_rest(mfi_queue* queue, int64_t taken, int64_t limit_ns);
void mfi_queue_wake(mfi_queue* queue);

/* Binds a handle to the queue, until it is unbound, which ends the waits of its
   callers. If another handle has the same place in the table, nothing is bound, and
   the callers always enter Go. */
void mfi_queue_bind(uint64_t handle, mfi_queue* queue);
void mfi_queue_unbind(uint64_t handle);
void mfi_queue_unbind_all(void);

/* Takes the first batch of a handle's queue. If there is none, but one is expected,
   it waits, and subtracts the time from the timeout. *slot is NULL if there is still
   none. MF_CANCELLED if the handle was unbound meanwhile. */
mf_status mfi_queue_take(uint64_t handle, int64_t* timeout_ms, mfi_slot** slot);

/* ---- signals.c ---- */

/* Has every handler of the program run on the stack for signals, if the thread
   that it interrupts has one, as all of Go's have. */
void mfi_keep_handlers_off_goroutines(void);

/* Does so in the first of its calls. */
void mfi_look_at_handlers_once(void);

/* ---- sigbus_linux.c ---- */

/* A mapped file whose faults become a mark. */
typedef struct mfi_watch mfi_watch;

/* Begins to watch a mapping; NULL without memory. Stop before it is unmapped. */
mfi_watch* mfi_watch_add(const void* begin, size_t size);
void mfi_watch_remove(mfi_watch* watch);

/* The mark: not 0 once some bytes were not there and zeros were read. It is
   written at any time, and read atomically. */
uint32_t* mfi_watch_mark(mfi_watch* watch);

/* Puts the signal handler in place, if it is not. */
void mfi_watch_arm(void);

/* ---- export.c ---- */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Makes a DLPack tensor of a block, flagged read-only where the version has a
   flag. Its deleter calls release(context), once. NULL without memory: then
   nothing was kept. */
struct DLManagedTensorVersioned* mfi_dlpack(const mf_tensor* block, mfi_release release, void* context);
struct DLManagedTensor* mfi_dlpack_legacy(const mf_tensor* block, mfi_release release, void* context);

/* ---- devices.c ---- */

enum { MFI_RANK = 32 }; /* of an array, at most */

/* Memory of a shard that Go lends, and the number by which the loan is ended. */
typedef struct mfi_loan {
  void* data;
  uint64_t number;
  mf_dtype dtype;
  int32_t ndim;
  int64_t shape[MFI_RANK];
} mfi_loan;

void mfi_loan_set(mfi_loan* loan, void* data, uint64_t number, mf_dtype dtype, int32_t ndim,
                  const int64_t* shape);

/* ---- shim.c ---- */

/* What a function says in a forked child, and where a pointer is needed. */
mf_status mfi_is_forked(mf_error* error);
mf_status mfi_is_null(mf_error* error, const char* name);

/* What it says of a text that is longer than any that is understood: a size such
   as (size_t)-1 is a mistake. */
enum { MFI_TEXT = 64 << 20 };
mf_status mfi_is_long(mf_error* error, const char* name, size_t size);

/* Counts handles that exist, also in a forked child. The first one arranges
   that mf_cancel_all is called at exit. */
void mfi_handles_add(int64_t n);

#endif
