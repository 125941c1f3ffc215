/*
 * meshfeed.h: the C interface of meshfeed, a data loader that delivers Arrow
 * data, already sharded, to device meshes. capi/README.md has a whole program.
 *
 *     mf_dataset_open     files            -> mf_dataset   the records
 *     mf_layout_create    a JSON document  -> mf_layout    who holds and who reads what
 *     mf_loader_create    both             -> mf_loader    reads ahead, in order
 *     mf_loader_next      the loader       -> mf_batch     one step's blocks of one process
 *     mf_batch_release    the batch           its memory is used again
 *     mf_release          every handle        its goroutines, files and borrowed memory end
 *
 * This header is all that loading needs. meshfeed_devices.h adds batches on
 * GoMLX's devices, meshfeed_certificate.h certificates, digests and orders.
 *
 * JSON. Calls that are made once take and give JSON; calls that are made for
 * every batch take and give structs. A layout document is the same text as for
 * the command and the Python package: its JSON Schema is layout.schema.json, which
 * `meshfeed schema` prints. In options, a key with the value null counts as left
 * out, an unknown key is an error, and NULL stands for no options.
 *
 * Outcomes. Functions return an mf_status: 0 is success, a positive number is an
 * outcome without a message (nothing was ready in time, the pass is over), and a
 * negative number is an error. Details of an error go to the mf_error that the
 * caller passes, which may be NULL. There is no "last error" and no state per
 * thread. Success and positive outcomes clear the mf_error.
 *
 * Ownership. What the caller passes in is copied before the call returns, with
 * two exceptions that say so: streams and borrowed arrays. What comes out
 * belongs to the caller: a handle until mf_release, an mf_batch until
 * mf_batch_release, an mf_bytes until mf_bytes_free. Every call writes all its
 * out-parameters: zero or NULL where there is no result. Buffers whose size the
 * caller gives (records, digests, the bytes of a shard) are the exception: after
 * an error their content is undefined. Handles may be released in any order: a
 * loader keeps its dataset alive, and a batch outlives its loader.
 *
 * Handles are numbers with a generation, not pointers. 0 is never valid. A
 * released handle is refused with MF_INVALID_STATE, also when its slot has been
 * given to another object.
 *
 * Threads. Every function may be called from any thread at any time. A call
 * keeps its handle alive: mf_release on another thread cancels the call and waits
 * for its end. mf_batch_* (except mf_batch_place) and the callbacks of exported
 * DLPack and Arrow structs are plain C: they never enter the Go runtime and take
 * no lock of an interpreter.
 *
 * Time. Calls that may wait take timeout_ms: negative waits without limit, and 0
 * returns at once. After MF_TIMEOUT nothing is lost: call again. mf_dataset_open,
 * mf_loader_create, mf_loader_one_epoch and mf_devices_open return before they
 * touch a file; mf_wait gives their outcome. Every other call on such a handle
 * waits for that outcome first.
 *
 * Fork. The Go runtime does not survive fork(). In a forked child every function
 * fails with MF_FORKED, with these exceptions. mf_version, mf_abi_version,
 * mf_code_name, mf_bytes_free, mf_live_*, mf_batch_* (except mf_batch_place) and
 * the release callbacks of exported structs work. mf_release and mf_cancel_all do
 * nothing and succeed, so inherited handles can be dropped, and no callback of the
 * caller runs in the child. To load in a child, start it by exec, or load the
 * library by dlopen in the child alone.
 *
 * Signals. The Go runtime handles SIGSEGV, SIGBUS, SIGFPE, SIGPIPE and SIGURG.
 * The program's own handlers must not run on a goroutine's small stack. So the
 * library sets SA_ONSTACK, and nothing else, in every handler that exists at its
 * first call and whenever an object is made. Set it yourself in handlers that you
 * install later.
 *
 * Output. The library writes nothing to descriptors 1 and 2. It calls no function
 * of the caller's except the callbacks of the streams and arrays it was given.
 * Those run inside mf_dataset_open_stream, mf_dataset_open_arrays and mf_release,
 * on the thread of that call.
 *
 * Growth. A struct that begins with struct_size may gain fields at its end. The
 * caller sets struct_size to the sizeof of its struct, which MF_..._INIT does. The
 * library reads and writes no more bytes than that. In a struct that the library
 * fills, 0 stands for the size in ABI 1.0, so a struct of zeros works too. In an
 * mf_array 0 is an error. New codes and flags are appended.
 *
 * Text is UTF-8. Texts passed in have a length and need no NUL. The limit is 8 MiB
 * for a layout document and 64 MiB for any other text.
 */
#ifndef MESHFEED_H
#define MESHFEED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version ---------------------------------------------------------- */

#define MF_ABI_MAJOR 1 /* another number can break a compiled caller */
#define MF_ABI_MINOR 0 /* functions, codes or trailing fields were added */

/* The ABI of the library: MF_ABI_MAJOR << 16 | MF_ABI_MINOR. A caller needs
   the same major number, and at least its own minor number. */
uint32_t mf_abi_version(void);

/* The version of the library, such as "0.1.0"; "" in a forked child. Static. */
const char* mf_version(void);

/* ---- outcomes --------------------------------------------------------- */

typedef int32_t mf_status;

enum {
  MF_OK = 0,                  /* the call did what it says */
  MF_TIMEOUT = 1,             /* nothing was ready in time; ask again */
  MF_END = 2,                 /* there is no further batch in this pass */
  MF_INVALID_ARGUMENT = -1,   /* refused as it stands */
  MF_OUT_OF_RANGE = -2,       /* an index, record or position that does not exist */
  MF_NOT_FOUND = -3,          /* a file, field or array that does not exist */
  MF_INVALID_STATE = -4,      /* a released or foreign handle, calls in the wrong order */
  MF_INCOMPATIBLE = -5,       /* saved state, dataset or ABI does not fit */
  MF_DATA_LOSS = -6,          /* damaged or truncated data */
  MF_IO = -7,                 /* the system refused to read */
  MF_RESOURCE_EXHAUSTED = -8, /* memory, or a limit that the caller set */
  MF_UNSUPPORTED = -9,        /* correct, but not something meshfeed does */
  MF_CANCELLED = -10,         /* mf_release, mf_cancel or mf_cancel_all ended the call */
  MF_FORKED = -11,            /* used in a forked child */
  MF_INTERNAL = -12           /* a bug in meshfeed */
};

/* The name of a code, such as "MF_OUT_OF_RANGE"; "MF_UNKNOWN" for a number that
   is no code of this library. Static. */
const char* mf_code_name(mf_status code);

/* What went wrong. It belongs to the caller, may be on the stack and owns no
   memory. Texts end with NUL and are cut between characters. */
typedef struct mf_error {
  uint32_t struct_size; /* MF_ERROR_INIT sets it */
  mf_status code;
  char op[64];        /* what failed, such as "sharding" */
  char message[1024]; /* what was expected and what was found */
  char hint[512];     /* what to do; may be empty */
  char path[256];     /* the file, or the JSON Pointer into the document; may be empty */
} mf_error;

#define MF_ERROR_INIT {sizeof(mf_error), 0, {0}, {0}, {0}, {0}}

/* Memory made by the library. data[size] is a NUL that size does not count. */
typedef struct mf_bytes {
  char* data;
  size_t size;
} mf_bytes;

/* Frees what an mf_bytes holds and clears it. NULL and cleared ones are fine. */
void mf_bytes_free(mf_bytes* bytes);

/* ---- handles ---------------------------------------------------------- */

/* Each kind of handle is a type of its own, passed by value. Its id is 0 as
   long as there is nothing: after `mf_loader loader = {0};` and after a call
   that failed. The functions for handles of every kind take the id, as in
   mf_release(loader.id, &error). */
typedef struct mf_dataset {
  uint64_t id;
} mf_dataset;

typedef struct mf_layout {
  uint64_t id;
} mf_layout;

typedef struct mf_loader {
  uint64_t id;
} mf_loader;

/* Waits until the object behind the handle is made, and gives the outcome of
   making it. A handle whose making failed gives that error from every call, and
   has to be released like any other. */
mf_status mf_wait(uint64_t id, int64_t timeout_ms, mf_error* error);

/* Ends the calls that run on a handle, and refuses later ones, with MF_CANCELLED.
   Only mf_release still works. Returns at once. */
mf_status mf_cancel(uint64_t id, mf_error* error);

/* Cancels every handle, for a program that is about to exit. Returns when no call
   runs on any of them and no loader copies rows, so that borrowed memory may end;
   after a second in any case. Frees nothing and runs no callback. The library
   calls it when the program returns from main or calls exit. Call it yourself
   before you join threads that wait in calls. */
void mf_cancel_all(void);

/* Releases a handle of any kind; 0 does nothing. Cancels the calls that run on it
   and waits for their end. A loader's goroutines end. The release of the last
   handle that needs a dataset closes its files, or runs the callbacks of the
   memory it borrowed before it returns. Where a file system does not answer it
   waits at most a second; that read ends by itself when the file system answers. */
mf_status mf_release(uint64_t id, mf_error* error);

/* ---- layouts ---------------------------------------------------------- */

/* Reads a layout document of at most 8 MiB: mesh, arrays, batch; see
   layout.schema.json. A text that breaks the rules of documents is refused. A
   document with problems, such as a batch that does not divide, still gives a
   layout: its report lists them, and mf_loader_create refuses it. */
mf_status mf_layout_create(const char* json, size_t size, mf_layout* layout, mf_error* error);

/* The document in its canonical form. */
mf_status mf_layout_json(mf_layout layout, mf_bytes* json, mf_error* error);

/* The report: per device index, bytes and replica, per process the rows it
   reads, totals, problems. Options are a JSON object or NULL:
     "tables": true   list the devices of meshes of any size */
mf_status mf_layout_report(mf_layout layout, const char* options, size_t size, mf_bytes* json,
                           mf_error* error);

/* A picture of which device holds what. Options are a JSON object or NULL:
     "format": "text" (default) or "svg"
     "array": the name of one array; all of them if left out
     "dims": [0, 2]   the two dimensions to draw, the vertical one first; an array
                      that lacks one of them is drawn as far as possible
     "width": columns of a text, 80 if left out */
mf_status mf_layout_draw(mf_layout layout, const char* options, size_t size, mf_bytes* text, mf_error* error);

/* The browser page that checks, draws and edits layouts, beginning with this
   one: an HTML file of 1.5 MB that needs no network. MF_UNSUPPORTED from a library
   that was built without the page. */
mf_status mf_layout_page(mf_layout layout, mf_bytes* html, mf_error* error);

/* ---- datasets --------------------------------------------------------- */

struct ArrowArrayStream; /* the Arrow C stream interface */

/* Opens Arrow IPC files and streams. Returns before it touches a file; see
   mf_wait. Options are a JSON object:
     "paths": ["..."]           files, globs, directories, in this order; needed
     "io": "auto"               "map" or "read" instead of choosing by file
     "duplicates": "refuse"     "allow" takes the records of a file twice that comes twice
     "shapes": {"tokens": [2048]}   row shapes of lists that all have one length */
mf_status mf_dataset_open(const char* options, size_t size, mf_dataset* dataset, mf_error* error);

/* Reads a stream to its end, on this thread, and serves its buffers as they
   are, without a copy. The stream is moved in: also on an error it is released
   before this returns, and stream->release is NULL then. (A failure with MF_FORKED
   leaves it as it was.) Its arrays are released inside the mf_release that drops
   the last handle which needs them. Options as above, but "shapes" alone;
   NULL for none. */
mf_status mf_dataset_open_stream(struct ArrowArrayStream* stream, const char* options, size_t size,
                                 mf_dataset* dataset, mf_error* error);

/* The codes of element types, which are DLPack's. */
enum { MF_INT = 0, MF_UINT = 1, MF_FLOAT = 2, MF_BFLOAT = 4, MF_COMPLEX = 5, MF_BOOL = 6 };

/* An element type, as DLPack's DLDataType. Booleans take one byte. */
typedef struct mf_dtype {
  uint8_t code; /* such as MF_FLOAT */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} mf_dtype;

/* One field of a dataset in the caller's memory: element [i, j, ...] stands at
   data + i * strides[0] + j * strides[1] + ... */
typedef struct mf_array {
  uint32_t struct_size; /* MF_ARRAY_INIT sets it */
  int32_t ndim;         /* at least 1 */
  const char* name;     /* ends with NUL */
  const void* data;
  mf_dtype dtype; /* native byte order */
  int32_t reserved;
  const int64_t* shape;   /* shape[0] records, the same for all arrays */
  const int64_t* strides; /* bytes, may be negative or 0; NULL for C order */
} mf_array;

#define MF_ARRAY_INIT {sizeof(mf_array), 0, NULL, NULL, {0, 0, 1}, 0, NULL, NULL}

/* Makes a dataset of n arrays without copying them. The memory they point at
   is borrowed; names, shapes and strides are copied. release(context) is called
   once, when the memory is no longer needed: inside the mf_release that drops
   the last handle which needs it, or, if this call fails, before it returns.
   A failure with MF_FORKED calls nothing. release may be NULL. */
mf_status mf_dataset_open_arrays(const mf_array* arrays, int32_t n, void (*release)(void* context),
                                 void* context, mf_dataset* dataset, mf_error* error);

/* What is in a dataset:
     {"records": 1797,
      "fields": [{"name": "image", "dtype": "float32", "shape": [8, 8], "nullable": false}],
      "skipped": [{"name": "text", "type": "utf8", "reason": "..."}],
      "files": [{"path": "...", "records": 1797}],
      "fingerprinted": {"bytes": 575040, "of": 575040}}
   A field whose integers stand for something else also has a "logical" type,
   such as "timestamp[us]". A file of compressed record batches, which are slow
   to shuffle, also has a "compression", "lz4" or "zstd". "fingerprinted" says how
   many bytes the fingerprint covers, of how many. */
mf_status mf_dataset_info(mf_dataset dataset, mf_bytes* json, mf_error* error);

/* The hash of the content: 32 hexadecimal digits, the same on every host. It
   covers what "fingerprinted" of mf_dataset_info says: all bytes of up to 16 MiB
   of files, and samples of more; all values of up to 256 MiB in memory, and
   evenly spread rows of more. It is worked out once, also across calls that ran
   into their timeout. */
mf_status mf_dataset_fingerprint(mf_dataset dataset, int64_t timeout_ms, mf_bytes* text, mf_error* error);

/* The SHA-256 of every byte of the files, in the order of the records, and one
   over these hashes:
     {"sha256": "64 hexadecimal digits", "files": ["64 hexadecimal digits"]}
   That of a slice is that of the whole dataset. MF_UNSUPPORTED for data in
   memory. It is worked out once, in the background: a call with a timeout of 0
   begins it, and later ones ask for it. */
mf_status mf_dataset_hash(mf_dataset dataset, int64_t timeout_ms, mf_bytes* json, mf_error* error);

/* The records [start, stop) as a dataset of their own. */
mf_status mf_dataset_slice(mf_dataset dataset, int64_t start, int64_t stop, mf_dataset* slice,
                           mf_error* error);

/* ---- loaders ---------------------------------------------------------- */

/* Begins to load the blocks of one process. Returns before it touches a file; see
   mf_wait. Options are a JSON object or NULL, every key optional:
     "process": 0                whose blocks, counted from 0; MF_OUT_OF_RANGE from mf_wait for one
                                 that the layout does not have
     "processes": 8              how many the run has, if some outside the layout's mesh take part:
                                 those get batches without blocks
     "shuffle": true, "seed": 0  instead of the document's order and seed
     "order": "local"            or the full name of one, instead of "shuffle"; "local" takes the
                                 local order of the state, and else that of the layout
     "epochs": 3                 the number in all, counted from epoch 0 also after a restore; -1 without
                                 end; left out: every pass is one epoch
     "prefetch": 2               instead of the document's; 0 makes each batch when it is asked for
     "state": {...}              continue at this state, which batches and mf_loader_state give; null
                                 begins at the first record
     "ignore_dataset": true      accept a state of another dataset of equal length
     "fill": {"label": 0}        values for nulls, per field
     "max_host_bytes": 1073741824       MF_RESOURCE_EXHAUSTED instead of more batch memory than this;
                                        0 for no limit
     "workers": 2                goroutines that gather; 0 chooses */
mf_status mf_loader_create(mf_dataset dataset, mf_layout layout, const char* options, size_t size,
                           mf_loader* loader, mf_error* error);

/* What every batch of this loader looks like:
     {"process": 0, "steps_per_epoch": 7, "prefetch": 2, "batch_shape": [256], "batch_bytes": 16640,
      "arrays": [{"name": "image", "field": "image", "kind": "data", "dtype": "float32",
                  "shape": [256, 8, 8], "spec": ["data", null, "model"],
                  "target_spec": ["data", null, "model"],
                  "blocks": [{"tensor": 0, "offset": 0, "bytes": 16384, "shape": [64, 8, 8],
                              "index": [[0, 64], [0, 8], [0, 8]], "holders": [0, 1]}]}]}
   kind is "data", "mask", "key" or "record". "target_spec" is what the layout
   asks for; it differs from "spec" where its loading is "reshard". Offsets count from mf_batch.data
   and are multiples of 64; holders are mesh positions. */
mf_status mf_loader_info(mf_loader loader, mf_bytes* json, mf_error* error);

/* The blocks of one step: one for every distinct index of every array (for every
   device, where the layout's "loading" is "device"), all in one piece of memory
   that belongs to the batch. This head is written once, before the caller sees
   it, and must not be changed. */
typedef struct mf_batch {
  uint32_t struct_size; /* bytes of this head that the library knows */
  int32_t tensors;      /* number of blocks */
  void* data;           /* aligned to 64 at least */
  int64_t bytes;
  int64_t epoch, step, position; /* of this batch */
  int64_t rows;                  /* rows of the global batch that are real, not padding */
  int64_t next_epoch, next_position;
  const char* state;  /* the loader's state after this batch, as JSON; ends with NUL */
  int64_t state_size; /* without the NUL */
  int64_t live;       /* handed out and not released, with this one, of the loader and its passes */
  int64_t idle;       /* pieces of their memory that waited for reuse */
} mf_batch;

/* Hands over the next batch. Each batch goes to one caller. MF_END says that
   the pass is over: with "epochs" left out the next call begins the next epoch,
   otherwise it gives MF_END again. Where the rows are in memory, a call that may
   wait may make the batch itself: its timeout and mf_cancel then act when that
   one gather has ended. */
mf_status mf_loader_next(mf_loader loader, int64_t timeout_ms, mf_batch** batch, mf_error* error);

/* The state after the last batch handed out: at most 256 bytes of JSON, the
   same on every process. Batches read ahead do not count. */
mf_status mf_loader_state(mf_loader loader, mf_bytes* json, mf_error* error);

enum { MF_IGNORE_DATASET = 1 }; /* accept the state of another dataset of equal length */

/* Continues where a state stands. Batches read ahead are dropped. */
mf_status mf_loader_restore(mf_loader loader, const char* state, size_t size, uint32_t flags,
                            mf_error* error);

/* Continues at a position of an epoch. Batches read ahead are dropped. */
mf_status mf_loader_seek(mf_loader loader, int64_t epoch, int64_t position, mf_error* error);

/* Leaves out the next steps, as after a spike of the loss. Certificates name
   them as skipped, and the state is that behind them. Steps beyond the end of an
   epoch are those of the next one. All processes of a job skip alike.
   MF_OUT_OF_RANGE where fewer steps are left of "epochs"; the place is as it was.
   Batches read ahead are dropped. */
mf_status mf_loader_skip(mf_loader loader, int64_t steps, mf_error* error);

/* The number of batches that a pass begun now would give; -1 without end. */
mf_status mf_loader_len(mf_loader loader, int64_t* batches, mf_error* error);

/* An independent pass over one epoch, with a handle of its own. The cursor of
   the loader does not move. They share the memory of batches, and its limit.
   MF_OUT_OF_RANGE where the loader has no such epoch. */
mf_status mf_loader_one_epoch(mf_loader loader, int64_t epoch, mf_loader* pass, mf_error* error);

/* A loader that goes on where this one stands, on another layout and for any of
   its processes: for a run whose mesh has lost or won devices. A process that was
   in the run and has no devices in the new mesh gets batches without blocks; one
   that the run never had is MF_OUT_OF_RANGE.
   No file is opened or read for it, and all options stay as they are. The first
   loader is left as it is, also on an error; release it, which drops what it has
   read ahead. Its batches and passes stay good. */
mf_status mf_loader_remesh(mf_loader loader, mf_layout layout, int64_t process, mf_loader* next,
                           mf_error* error);

/* The records of the global batch that begins at a position, in order, -1 for
   padding. Writes at most capacity of them and gives how many there are. */
mf_status mf_loader_records(mf_loader loader, int64_t epoch, int64_t position, int64_t* records,
                            int64_t capacity, int64_t* count, mf_error* error);

/* What a loader did so far. */
typedef struct mf_stats {
  uint32_t struct_size; /* MF_STATS_INIT sets it */
  uint32_t reserved;
  int64_t epoch, step, position; /* of the next batch */
  int64_t batches, rows, bytes;  /* handed over; rows and bytes of this process's blocks */
  int64_t wait_ns;               /* callers waited for batches */
  int64_t stall_ns;              /* finished batches waited for callers */
  int64_t gather_ns;             /* the gathering of all batches, end to end */
  int64_t queued;                /* batches that are ready */
  int64_t live_batches;          /* handed out and not released, of the loader and its passes */
  int64_t idle_batches;          /* pieces of their memory that wait for reuse */
  int64_t host_bytes;            /* memory of their batches in all: queued, live and idle */
  int64_t gathered_bytes;        /* gathered for the batches handed over: "bytes", but with "loading":
                                    "global" whole batches */
} mf_stats;

#define MF_STATS_INIT {sizeof(mf_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

mf_status mf_loader_stats(mf_loader loader, mf_stats* stats, mf_error* error);

/* ---- batches: plain C, on any thread, also after mf_release and after fork - */

/* Adds and drops a reference. The last drop gives the memory back to its
   loader, or to the system once the loader is released. NULL does nothing. */
void mf_batch_retain(mf_batch* batch);
void mf_batch_release(mf_batch* batch);

/* One block. Pointers live as long as the batch. */
typedef struct mf_tensor {
  uint32_t struct_size; /* MF_TENSOR_INIT sets it */
  int32_t array;        /* number in the "arrays" of mf_loader_info */
  const char* name;     /* of that array */
  void* data;           /* C order, aligned to 64 at least */
  int64_t bytes;
  mf_dtype dtype;
  int32_t ndim;
  const int64_t* shape;        /* of the block */
  const int64_t* start;        /* where it begins in the global array */
  const int64_t* global_shape; /* of the global array */
  const int64_t* holders;      /* mesh positions of this process that hold it */
  int64_t n_holders;
} mf_tensor;

#define MF_TENSOR_INIT {sizeof(mf_tensor), 0, NULL, NULL, 0, {0, 0, 0}, 0, NULL, NULL, NULL, NULL, 0}

/* Describes block i of [0, batch->tensors), in the order of mf_loader_info. */
mf_status mf_batch_tensor(const mf_batch* batch, int32_t i, mf_tensor* tensor);

/* The structs of dlpack.h and of the Arrow C data interface. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
struct ArrowArray;
struct ArrowSchema;

/* Exports block i for consumers of DLPack 1.0, flagged read-only, and for older
   ones. The tensor holds a reference to the batch, which its deleter drops. The
   deleter must be called once. */
mf_status mf_batch_dlpack(mf_batch* batch, int32_t i, struct DLManagedTensorVersioned** tensor);
mf_status mf_batch_dlpack_legacy(mf_batch* batch, int32_t i, struct DLManagedTensor** tensor);

/* Exports block i for the Arrow C data interface: the first dimension becomes the
   length, each further one a fixed-size list; booleans are arrow.bool8. The array
   holds a reference to the batch until it is released. The callback sets release
   to NULL, and does nothing in a struct where it is NULL. MF_UNSUPPORTED for types
   that Arrow does not have (bfloat16, complex). */
mf_status mf_batch_arrow(mf_batch* batch, int32_t i, struct ArrowArray* array, struct ArrowSchema* schema);

/* ---- what exists in the whole library, for tests of leaks -------------- */

int64_t mf_live_handles(void);
int64_t mf_live_batches(void); /* handed out and not released */
int64_t mf_live_bytes(void);   /* memory of batches: queued, live and idle */

#ifdef __cplusplus
}
#endif

#endif
