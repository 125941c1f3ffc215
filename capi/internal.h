/*
 * internal.h: the functions that the C files and the Go code of this package share.
 * Nothing here is visible outside the library.
 *
 * Two rules keep Go's garbage collector away from C memory. Go code never stores a
 * pointer into a C struct; a C function of this header stores it. And every
 * out-parameter of a caller is cleared in C before Go sees it.
 */
#ifndef MESHFEED_INTERNAL_H
#define MESHFEED_INTERNAL_H

#include "include/meshfeed.h"
#include "include/meshfeed_certificate.h"
#include "include/meshfeed_devices.h"

#include <stdbool.h>

/* Const types for the parameters of exported Go functions: Go has no word for const. */
typedef const char mfi_text;
typedef const char* const mfi_texts;
typedef const mf_array mfi_array;
typedef const void* const mfi_address;
typedef const mf_batch mfi_batch;
typedef const int32_t mfi_int32;
typedef const void mfi_memory;
typedef const mf_range mfi_range;
typedef const mf_picture mfi_picture;
typedef const mf_dataset mfi_dataset;
typedef const mf_row_shape mfi_row_shape;
typedef const mf_dataset_options mfi_dataset_options;
typedef const mf_loader_options mfi_loader_options;
typedef const mf_devices_options mfi_devices_options;

typedef void (*mfi_release)(void* context);

/* ---- fork.c ---- */

/* Reports whether this process is a forked child of the one that loaded the library.
   Costs less than a nanosecond. */
bool mfi_forked(void);

/* ---- error.c ---- */

/* The size of a struct up to and including a field. */
#define MFI_SIZE_TO(type, field) (offsetof(type, field) + sizeof(((type*)0)->field))

/* Returns how many bytes of a caller's struct the library reads and writes. first is
   the size of the struct in ABI 1.0, known its size in this library. A struct_size of
   0 stands for first. */
static inline size_t mfi_covered(uint32_t struct_size, size_t first, size_t known) {
  if (struct_size == 0)
    return first;
  return struct_size < known ? struct_size : known;
}

/* Copies the part of a caller's struct that the library knows, and clears the rest. NULL
   stands for zeros. */
void mfi_read(void* to, size_t known, const void* from, size_t first);

/* Clears the fields of an error that lie within the caller's struct_size. */
void mfi_error_clear(mf_error* error);

/* Fills an error and returns its code. Texts are cut at UTF-8 boundaries. */
mf_status mfi_error_set(mf_error* error, mf_status code, const char* op, size_t n_op, const char* message,
                        size_t n_message, const char* hint, size_t n_hint, const char* path, size_t n_path);

/* The same for the C files, with texts that end with NUL. */
mf_status mfi_fail(mf_error* error, mf_status code, const char* op, const char* message, const char* hint);

/* Copies a text into memory that mf_bytes_free frees. False if out of memory. */
bool mfi_bytes_set(mf_bytes* bytes, const char* text, size_t size);

/* ---- pool.c ---- */

/* The memory of the batches of a loader and its passes. It consists of slots of equal
   size with the same blocks. Go fills some of them, callers hold others, and the rest is
   idle. The pool exists until the loader has closed it and the last batch is released. */
typedef struct mfi_pool mfi_pool;

/* The memory of one batch. Once it is delivered, it is an mf_batch. */
typedef struct mfi_slot mfi_slot;

/* What a block is in a record batch. */
typedef enum mfi_role {
  MFI_COLUMN,
  MFI_MASK /* not in it, because a record batch has no padding rows */
} mfi_role;

/* The description of a block. */
typedef struct mfi_block {
  int32_t array;
  mfi_role role;
  mf_dtype dtype;
  int32_t ndim;
  int64_t n_holders;
  int64_t bytes;
} mfi_block;

/* Creates a pool for n blocks that keeps at most max_idle idle slots. rows counts the rows
   of a batch that has one batch dimension, and is -1 for others. NULL if out of memory. */
mfi_pool* mfi_pool_new(int32_t n, int64_t max_idle, int64_t rows);

/* Adds the next block. dims holds shape, start and global shape, with ndim numbers each,
   then the holders: the mesh positions of the devices that hold it. Returns the offset of
   the block in a slot, or -1 if out of memory. */
int64_t mfi_pool_add(mfi_pool* pool, mfi_block block, const char* name, size_t n_name, const int64_t* dims);

/* Returns the size of a slot. */
int64_t mfi_pool_bytes(const mfi_pool* pool);

/* Returns an idle slot, or else a new one. NULL if out of memory. */
mfi_slot* mfi_pool_get(mfi_pool* pool);

/* Puts a slot that was not delivered back into the pool. */
void mfi_pool_put(mfi_slot* slot);

/* Closes the pool: frees idle slots now, and the others when they are returned. */
void mfi_pool_close(mfi_pool* pool);

/* Numbers of slots. Live ones are delivered batches; all counts every slot. */
typedef struct mfi_counts {
  int64_t live, idle, all;
} mfi_counts;
mfi_counts mfi_pool_counts(mfi_pool* pool);

void* mfi_slot_data(mfi_slot* slot);

/* The step of a batch. The fields are as in mf_batch. */
typedef struct mfi_step {
  int64_t epoch, step, position, rows, next_epoch, next_position, bad;
} mfi_step;

/* Records which batch the slot holds. state is a text of at most 256 bytes. */
void mfi_slot_describe(mfi_slot* slot, mfi_step step, const char* state, size_t n_state);

/* Delivers a described slot as a batch. */
void mfi_slot_deliver(mfi_slot* slot, mf_batch** out);

/* Describes block i in full. False if i is out of range. */
bool mfi_batch_block(const mf_batch* batch, int32_t i, mf_tensor* tensor);

/* The same for the batches of a pool, without their memory. */
bool mfi_pool_block(const mfi_pool* pool, int32_t i, mf_tensor* tensor);

/* Return the role of a block that exists, and where it begins in the memory of a batch. */
mfi_role mfi_pool_block_role(const mfi_pool* pool, int32_t i);
int64_t mfi_pool_block_offset(const mfi_pool* pool, int32_t i);

/* Returns the rows that mfi_pool_new got. */
int64_t mfi_pool_rows(const mfi_pool* pool);

/* Returns the pool of a batch, which exists as long as the batch. */
const mfi_pool* mfi_batch_pool(const mf_batch* batch);

/* Allocates memory for a batch, or for a part of one. NULL if out of memory. */
void* mfi_alloc(int64_t bytes);

/* Adds to what mf_live_batches and mf_live_bytes return. */
void mfi_live_add(int64_t batches, int64_t bytes);

/* ---- queue.c ---- */

/* The ready queue of a loader. mf_loader_next takes ready batches from it without
   entering Go. The data of the caller's step evicts the Go runtime's from the CPU caches.
   The next call into Go then takes more than ten times as long. The queue has three
   owners: the loader, the object of its handle, and the call that creates this handle. */
typedef struct mfi_queue mfi_queue;

/* Creates an empty queue. NULL if out of memory. */
mfi_queue* mfi_queue_new(void);

/* Ends the ownership of one owner. */
void mfi_queue_drop(mfi_queue* queue);

/* Appends a described slot. False if the queue is full. */
bool mfi_queue_offer(mfi_queue* queue, mfi_slot* slot);

/* Sets whether a batch will be offered soon. If not, waiting callers stop waiting. */
void mfi_queue_expect(mfi_queue* queue, bool soon);

/* Returns how many batches callers have taken since the queue was made, and how
   long they have waited. If withdraw is set, it removes the remaining batches. */
typedef struct mfi_taken {
  int64_t batches, waited_ns;
} mfi_taken;
mfi_taken mfi_queue_taken(mfi_queue* queue, bool withdraw);

/* Called by the producer. Waits until callers have taken more batches than this number,
   or mfi_queue_wake is called. False if neither happens in time. If mfi_queue_wake was
   called since the last wait, it returns at once. */
bool mfi_queue_rest(mfi_queue* queue, int64_t taken, int64_t limit_ns);
void mfi_queue_wake(mfi_queue* queue);

/* Binds a queue to its handle, once, so that mfi_queue_take finds it. Unbinding ends the
   waits of callers with MF_CANCELLED. Later calls find no queue and enter Go. */
void mfi_queue_bind(uint64_t handle, mfi_queue* queue);
void mfi_queue_unbind(uint64_t handle);
void mfi_queue_unbind_all(void);

/* Takes the first batch of a handle's queue. If the queue is empty, but a batch is
   expected, it waits, and subtracts the waiting time from *timeout_ms. *slot is NULL if
   the queue is still empty. MF_CANCELLED if the handle was unbound meanwhile. */
mf_status mfi_queue_take(uint64_t handle, int64_t* timeout_ms, mfi_slot** slot);

/* ---- signals.c ---- */

/* Adds SA_ONSTACK to every signal handler of the program, so that none runs on the small
   stack of a goroutine. */
void mfi_keep_handlers_off_goroutines(void);

/* The same, once in the life of the process. */
void mfi_check_handlers_once(void);

/* ---- sigbus_linux.c ---- */

/* A mapping of a file. If it faults because the file was truncated, its mark is set. */
typedef struct mfi_watch mfi_watch;

/* Starts to watch a mapping. NULL if out of memory. Call mfi_watch_remove before the
   mapping is unmapped. */
mfi_watch* mfi_watch_add(const void* begin, size_t size);
void mfi_watch_remove(mfi_watch* watch);

/* Returns the mark: not 0 after zeros were read in place of missing bytes. It changes at
   any time; read it atomically. */
uint32_t* mfi_watch_mark(mfi_watch* watch);

/* Installs the signal handler, unless it is installed. */
void mfi_watch_arm(void);

/* ---- export.c ---- */

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Creates a DLPack tensor of a block in one of the out-parameters. The other one is NULL.
   The versioned tensor is flagged read-only. The deleter calls release(context) once.
   False if out of memory: then release is never called. */
bool mfi_dlpack(const mf_tensor* block, mfi_release release, void* context,
                struct DLManagedTensorVersioned** versioned, struct DLManagedTensor** legacy);

/* ---- arrow.c ---- */

struct ArrowSchema;
struct ArrowArray;

/* Creates a schema with n children that are still empty. False if out of memory. */
bool mfi_schema_new(struct ArrowSchema* out, const char* format, const char* name, int64_t n);

/* Gives a new schema one pair of metadata. Returns false if out of memory. */
bool mfi_schema_metadata(struct ArrowSchema* schema, const char* key, const char* value);

/* Creates an array with n children that are still empty, and without buffers. It holds a
   reference to the batch, unless that is NULL. False if out of memory. */
bool mfi_array_new(struct ArrowArray* out, mf_batch* batch, int64_t length, int64_t n);

/* Sets buffer i of an array to memory of mfi_buffer_new, which the array frees. mf_live_bytes counts
   the bytes. */
void mfi_array_take(struct ArrowArray* array, int32_t i, void* memory, int64_t bytes);

/* Makes mf_live_batches count an array until it is released. */
void mfi_array_count(struct ArrowArray* array);

/* ---- map.c ---- */

/* Makes a call of a function with memory for n rows, without the rows that it gets. NULL if out of
   memory. */
mf_map_rows* mfi_map_rows_new(int64_t n, int32_t n_out, bool keys);

/* Adds memory for the rows of a field that the function returns: bytes, or -1 for a ragged field. False
   if out of memory. */
bool mfi_map_column_new(mf_map_rows* rows, int32_t i, int64_t bytes);

void mfi_map_rows_free(mf_map_rows* rows);

/* Call the function and the release of a map. */
mf_status mfi_map_call(const mf_map* map, mf_map_rows* rows, mf_error* error);
void mfi_map_release(const mf_map* map);

/* ---- buffer.c ---- */

/* Returns a buffer. NULL if out of memory. */
void* mfi_buffer_new(size_t size);

/* Returns a buffer of `size` bytes, with the first `used` bytes of `memory`, which may be NULL.
   It frees `memory`, also if it is out of memory and returns NULL. */
void* mfi_buffer_resize(void* memory, size_t used, size_t size);

void mfi_buffer_free(void* memory);

/* ---- rows.c ---- */

/* Begin a record batch of n columns, and its schema. False if out of memory. */
bool mfi_record_begin(struct ArrowArray* record, int64_t rows, int64_t n);
bool mfi_record_schema(struct ArrowSchema* record, int64_t n);

/* Adds level d to a column: its length, its nulls, and how many buffers and children it
   has. Levels are added from the rows to the values. False if out of memory. */
bool mfi_record_level(struct ArrowArray* record, int64_t column, int32_t d, int64_t length, int64_t nulls,
                      int32_t buffers, bool child);
bool mfi_record_type(struct ArrowSchema* record, int64_t column, int32_t d, const char* format,
                     const char* name, bool child);

/* Gives a buffer to the level that was added last to a column, which is level d. */
void mfi_record_buffer(struct ArrowArray* record, int64_t column, int32_t d, int32_t i, void* memory,
                       int64_t bytes);

/* Release a record batch, or its schema, unless they are empty. */
void mfi_record_release(struct ArrowArray* record);
void mfi_record_schema_release(struct ArrowSchema* record);

/* ---- devices.c ---- */

enum { MFI_MAX_RANK = 32 };

/* A shard in memory that Go owns. The memory is valid until the handle is released. */
typedef struct mfi_loan {
  void* data;
  uint64_t handle;
  mf_dtype dtype;
  int32_t ndim;
  int64_t shape[MFI_MAX_RANK];
} mfi_loan;

void mfi_loan_set(mfi_loan* loan, void* data, uint64_t handle, mf_dtype dtype, int32_t ndim,
                  const int64_t* shape);

/* ---- shim.c ---- */

/* Fill the error of a call in a forked child, or with a NULL argument, a text that is too
   long, or an unknown flag. They return its code. */
mf_status mfi_is_forked(mf_error* error);
mf_status mfi_is_null(mf_error* error, const char* name);
mf_status mfi_is_long(mf_error* error, const char* name, size_t size);
mf_status mfi_is_unknown(mf_error* error, uint32_t flags);

enum { MFI_MAX_TEXT = 64 << 20 };

/* Adds n to the number of live handles, also in a forked child. The first handle registers
   mf_cancel_all with atexit. */
void mfi_handles_add(int64_t n);

#endif
