/*
 * meshfeed.h: the C interface of meshfeed, a data loader that delivers Arrow
 * data, already sharded, to device meshes. capi/README.md has a complete program.
 *
 *     mf_dataset_open     files           -> mf_dataset   the records
 *     mf_layout_create    JSON document   -> mf_layout    which device holds what
 *     mf_loader_create    both            -> mf_loader    reads ahead, in order
 *     mf_loader_next      the loader      -> mf_batch     one step of one process
 *     mf_batch_release    the batch          its memory is reused
 *     mf_release          any handle         its goroutines, files and borrowed memory end
 *
 * Loading needs only this header. meshfeed_devices.h adds batches on the devices
 * of GoMLX. meshfeed_certificate.h adds certificates, digests and orders. This header includes
 * meshfeed_views.h, which has a function for each kind of view.
 *
 * Structs and JSON. Options, batches and statistics are structs. Documents with a tree of
 * values are JSON: layouts, states, certificates, and the descriptions of datasets, loaders
 * and devices. A layout document is the same text as for the command and the Python
 * package. `meshfeed schema` prints its JSON Schema, and `meshfeed schema KIND` prints the
 * schemas of strategy, memory, diagram and view documents.
 *
 * Status. Functions return an mf_status. 0 is success. A positive number is an
 * outcome without a message: MF_TIMEOUT or MF_END. A negative number is an error.
 * Its details go to the mf_error that the caller passes, which may be NULL. There
 * is no "last error" and no state per thread. Success and positive outcomes clear
 * the mf_error.
 *
 * Ownership. The library copies its arguments before a call returns. Streams and borrowed
 * arrays are the exceptions, and their functions say so. Results belong to the caller: a
 * handle until mf_release, an mf_batch until mf_batch_release, an mf_bytes until
 * mf_bytes_free. Every call writes all its out-parameters. Without a result, it writes zero
 * or NULL. Buffers that the caller allocates (records, digests, the bytes of a shard) are
 * undefined after an error. Handles may be released in any order. A loader keeps its
 * dataset alive, and a batch outlives its loader.
 *
 * Handles are numbers, not pointers. 0 is never valid, and no number is used twice.
 * A call on a released handle therefore fails with MF_INVALID_STATE.
 *
 * Threads. Every function may be called from any thread at any time. A call keeps
 * its handle alive: mf_release on another thread cancels the call and waits until it
 * ends. mf_batch_* and the callbacks of exported DLPack and Arrow structs are plain
 * C. They never enter the Go runtime and take no interpreter lock.
 *
 * Time. A call that may wait takes timeout_ms. A negative value waits without limit,
 * and 0 returns immediately. MF_TIMEOUT loses nothing: call again. mf_dataset_open,
 * mf_loader_create, mf_loader_one_epoch and mf_devices_open return before they
 * touch a file, and mf_wait reports their outcome. Calls that need the object wait for
 * that outcome first, and fail if it is an error.
 *
 * Fork. The Go runtime does not survive fork(). In a forked child every function
 * fails with MF_FORKED, except for the following. mf_version, mf_jpeg_decoder,
 * mf_abi_version, mf_code_name, mf_bytes_free, mf_live_*, mf_batch_* and the release callbacks of
 * exported structs work. mf_release and mf_cancel_all succeed and do nothing, so
 * inherited handles can be dropped. No callback of the caller runs in the child. To
 * load in a child process, start it by exec, or call dlopen in the child only.
 *
 * Signals. The Go runtime handles SIGSEGV, SIGBUS, SIGFPE, SIGPIPE and SIGURG. A
 * signal handler must not run on the small stack of a goroutine. At its first call,
 * and whenever it creates an object, the library therefore adds the flag SA_ONSTACK
 * to every handler that is installed. Set this flag in handlers that you install
 * later.
 *
 * Output. The library never writes to descriptors 1 and 2. It calls no function of
 * the caller, except the functions of maps and storages, on threads of the library, and
 * the callbacks of the streams and arrays that the caller passed. The latter run inside
 * mf_release and the mf_dataset_open_... functions for them, on the thread of that call.
 *
 * Growth. A struct that begins with struct_size may gain fields at its end. The
 * caller sets struct_size to the sizeof of its struct, as MF_..._INIT does. The
 * library reads and writes no more bytes than that. 0 stands for the size in ABI 1.0,
 * so a struct of zeros works. In an mf_array 0 is an error. New codes and flags get
 * new numbers. An unknown flag is an error.
 *
 * Text is UTF-8. A text argument with a size needs no NUL at its end and may have at
 * most 64 MiB, a layout document at most 8 MiB. A text without a size, such as a
 * path or a name in a struct, ends with NUL.
 */
#ifndef MESHFEED_H
#define MESHFEED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- version ---------------------------------------------------------- */

#define MF_ABI_MAJOR 1 /* a change can break a compiled caller */
#define MF_ABI_MINOR 0 /* functions, codes or trailing fields were added */

/* Returns the ABI of the library: MF_ABI_MAJOR << 16 | MF_ABI_MINOR. A caller needs
   the same major number, and at least its own minor number. */
uint32_t mf_abi_version(void);

/* Returns the version of the library, such as "0.1.0", or "" in a forked child. The
   text is static. */
const char* mf_version(void);

/* Returns the decoder of JPEG files: "libjpeg-turbo.1", or "go1.26" in a library that was
   built without libjpeg-turbo, or "" in a forked child. Fingerprints of decoded images contain
   this name. The text is static. */
const char* mf_jpeg_decoder(void);

/* ---- status ----------------------------------------------------------- */

typedef int32_t mf_status;

enum {
  MF_OK = 0,                  /* success */
  MF_TIMEOUT = 1,             /* nothing was ready in time; call again */
  MF_END = 2,                 /* this pass has no further batch */
  MF_INVALID_ARGUMENT = -1,   /* an argument is wrong, whatever the state of the objects */
  MF_OUT_OF_RANGE = -2,       /* an index, record or position does not exist */
  MF_NOT_FOUND = -3,          /* a file, field or array does not exist */
  MF_INVALID_STATE = -4,      /* a released or foreign handle, or calls in the wrong order */
  MF_INCOMPATIBLE = -5,       /* a saved state, dataset or ABI does not fit */
  MF_DATA_LOSS = -6,          /* damaged or truncated data */
  MF_IO = -7,                 /* the system failed to read */
  MF_RESOURCE_EXHAUSTED = -8, /* no memory or disk space, or at a limit that the caller set */
  MF_UNSUPPORTED = -9,        /* correct, but not supported by meshfeed */
  MF_CANCELLED = -10,         /* mf_release, mf_cancel or mf_cancel_all ended the call */
  MF_FORKED = -11,            /* the call was made in a forked child */
  MF_INTERNAL = -12           /* a bug in meshfeed */
};

/* Returns the name of a code, such as "MF_OUT_OF_RANGE". Any other number has the name
   "MF_UNKNOWN". The text is static. */
const char* mf_code_name(mf_status code);

/* Details of an error. The struct belongs to the caller, may be on the stack, and
   owns no memory. Texts end with NUL and are cut at character boundaries. */
typedef struct mf_error {
  uint32_t struct_size; /* MF_ERROR_INIT sets it */
  mf_status code;
  char op[64];        /* the part that failed, such as "sharding" */
  char message[1024]; /* what was expected and what was found */
  char hint[512];     /* what to do; may be empty */
  char path[256];     /* the file, or the JSON Pointer into the document; may be empty */
} mf_error;

#define MF_ERROR_INIT {sizeof(mf_error), 0, {0}, {0}, {0}, {0}}

/* Memory that the library allocated. data[size] is a NUL that size does not count. */
typedef struct mf_bytes {
  char* data;
  size_t size;
} mf_bytes;

/* Frees the memory of an mf_bytes and clears it. NULL and a cleared struct are
   allowed. */
void mf_bytes_free(mf_bytes* bytes);

/* ---- handles ---------------------------------------------------------- */

/* Each kind of handle has its own type, passed by value. The id is 0 without an
   object: after `mf_loader loader = {0};` and after a failed call. Functions that
   take handles of every kind take the id, as in mf_release(loader.id, &error). */
typedef struct mf_dataset {
  uint64_t id;
} mf_dataset;

typedef struct mf_layout {
  uint64_t id;
} mf_layout;

typedef struct mf_loader {
  uint64_t id;
} mf_loader;

typedef struct mf_splitter {
  uint64_t id;
} mf_splitter;

/* Waits until the object behind the handle is ready, and returns the outcome of
   creating it. If creating it failed, every call on the handle returns that error.
   The handle must still be released. */
mf_status mf_wait(uint64_t id, int64_t timeout_ms, mf_error* error);

/* Ends the calls that run on a handle. They, and all later calls except mf_release,
   fail with MF_CANCELLED. Returns immediately. */
mf_status mf_cancel(uint64_t id, mf_error* error);

/* Cancels every handle, for a program that is about to exit. Returns when no call
   runs on any handle and no loader copies rows, or after one second. Borrowed memory
   may be freed then. This function frees nothing and runs no callback. The library
   calls it when the program returns from main or calls exit. Call it yourself before
   you join threads that wait in calls. */
void mf_cancel_all(void);

/* Releases a handle of any kind; 0 does nothing. Cancels the calls that run on the
   handle and waits until they end. The goroutines of a loader end. If no other handle
   needs the dataset, its files are closed, or the callback of its borrowed memory
   runs before this function returns. If a file system does not respond, this function
   waits at most one second. The pending read then cleans up when it ends. */
mf_status mf_release(uint64_t id, mf_error* error);

/* ---- layouts ---------------------------------------------------------- */

/* Parses a layout document of at most 8 MiB: mesh, arrays, batch; see
   layout.schema.json. Text that is not a layout document is an error. A document with
   problems, such as a batch that does not divide, still creates a layout. Its report
   lists the problems, and mf_loader_create refuses it. */
mf_status mf_layout_create(const char* json, size_t size, mf_layout* layout, mf_error* error);

/* Returns the document in its canonical form. */
mf_status mf_layout_json(mf_layout layout, mf_bytes* json, mf_error* error);

/* A flag of mf_layout_report: list every device. By default meshes of more than 1,024
   devices have no such list. */
enum { MF_ALL_DEVICES = 1 };

/* Returns the report: index, bytes and replica of every device, the rows that every
   process reads, totals, and problems. */
mf_status mf_layout_report(mf_layout layout, uint32_t flags, mf_bytes* json, mf_error* error);

/* The formats of what the library writes. Each function names its formats. */
enum { MF_TEXT = 0, MF_SVG = 1, MF_JSON = 2, MF_DOCUMENT = 3 };

/* How to draw a layout. Zeros are the defaults. */
typedef struct mf_picture {
  uint32_t struct_size; /* MF_PICTURE_INIT sets it */
  int32_t format;       /* MF_TEXT or MF_SVG */
  const char* array;    /* the name of one array; NULL: all arrays */
  const int32_t* dims;  /* two dimensions, the vertical one first; NULL: the library chooses. For an
                           array without one of them, the library chooses another */
  int64_t width;        /* columns of a text; 0: 80 */
} mf_picture;

#define MF_PICTURE_INIT {sizeof(mf_picture), 0, NULL, NULL, 0}

/* Draws which device holds what. picture may be NULL. */
mf_status mf_layout_draw(mf_layout layout, const mf_picture* picture, mf_bytes* text, mf_error* error);

/* Draws a diagram of how work and data are split over devices, such as
     {"meshfeed": 1, "diagram": {"mesh": {"axes": [["data", 4], ["model", 2]]}}}
   The kinds are mesh, matmul, pipeline, collective, memory and loading; see diagram.schema.json. The document
   has at most 8 MiB. format is MF_TEXT or MF_SVG; width counts the columns of a text or the pixels of an SVG,
   and 0 stands for 80 or 760. An error of the document has a JSON Pointer in mf_error.path. */
mf_status mf_diagram(const char* json, size_t size, int32_t format, int64_t width, mf_bytes* text,
                     mf_error* error);

/* Returns the browser page that checks, draws and edits layouts, with this layout
   loaded. It is an HTML file of 3.3 MB that needs no network. MF_UNSUPPORTED if the
   library was built without the page. */
mf_status mf_layout_page(mf_layout layout, mf_bytes* html, mf_error* error);

/* ---- models ------------------------------------------------------------ */

/* Computes the memory that the arrays of a model take on a device. The document has at
   most 8 MiB. It needs "meshfeed": 1, a "mesh" as in a layout, and "arrays" with shape,
   dtype and spec. It may have an "optimizer", which is a name or the arrays of its
   states, a "precision", the arrays of a "batch", "activation_bytes" as [low, high], and
   "capacity_bytes"; see memory.schema.json.
   MF_TEXT returns a table of at most 100 columns, and MF_JSON the report. A spec that
   does not fit its array is a problem of the report. Text that is not such a document is an error, with a
   JSON Pointer in mf_error.path. */
mf_status mf_memory(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error);

/* Plans how to split a model over devices: memory and time of every candidate, and what
   the best one needs of the input. The question is a strategy document of at most 8 MiB;
   `meshfeed schema strategy` prints its JSON Schema. MF_TEXT returns a text of at most
   100 columns, and MF_JSON the report.
   MF_DOCUMENT checks the question and returns it in its canonical form. If no
   candidate fits, "best" of the report is null, and the call succeeds. An error of the
   document has a JSON Pointer in mf_error.path. A call takes milliseconds, and for the
   largest search that a document can ask for, seconds. */
mf_status mf_advise(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error);

/* Finds what limits a loop over a loader, from the times that its processes measured:
     {"meshfeed": 1, "processes": [{"batches": 400, "wall_ns": 4000000000, "wait_ns": 2400000000,
      "build_ns": 4000000000, "gather_ns": 3900000000, "decode_ns": 3500000000}]}
   Times are sums over the batches. wall_ns is the time of the loop; wait_ns, build_ns,
   gather_ns, storage_ns, decode_ns, stall_ns, rows, bytes and gathered_bytes are the
   differences of two mf_stats. hand_over_ns is what the program does with a batch before its
   step, and peers_ns is for other processes. A key that is left out is 0. measurements.schema.json
   has all keys. MF_TEXT returns three sentences and a table, and MF_JSON the report, which
   diagnosis.schema.json describes. An error of the document has a JSON Pointer in mf_error.path. */
mf_status mf_diagnose(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error);

/* ---- datasets --------------------------------------------------------- */

struct ArrowArrayStream; /* the Arrow C stream interface */

/* The codes of element types, as in DLPack. */
enum { MF_INT = 0, MF_UINT = 1, MF_FLOAT = 2, MF_BFLOAT = 4, MF_COMPLEX = 5, MF_BOOL = 6 };

/* An element type, as DLPack's DLDataType. A boolean has 8 bits. */
typedef struct mf_dtype {
  uint8_t code; /* such as MF_FLOAT */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} mf_dtype;

/* The shape of the rows of a field: of lists that all have the same length, such as {2048}, or
   of binary values, such as {16, 16, 3}. */
typedef struct mf_row_shape {
  const char* field;
  const int64_t* shape;
  int64_t ndim;
  mf_dtype dtype; /* type of the elements that bytes hold, little-endian; zeros: the field's type */
  int32_t reserved;
} mf_row_shape;

enum { MF_IO_AUTO = 0, MF_IO_MAP = 1, MF_IO_READ = 2 };

/* Flags of mf_dataset_options. With MF_ALLOW_DUPLICATES a file may occur several times, and its
   records count each time; by default a repeated file is an error. With MF_IMAGES each path is a
   folder that has a folder of images for each class: the fields are "image" (bytes), "label" and
   "path". */
enum { MF_ALLOW_DUPLICATES = 1, MF_IMAGES = 2 };

/* How to open a dataset. Zeros are the defaults. */
typedef struct mf_dataset_options {
  uint32_t struct_size; /* MF_DATASET_OPTIONS_INIT sets it */
  uint32_t flags;       /* MF_ALLOW_DUPLICATES, MF_IMAGES */
  int32_t io;           /* MF_IO_MAP, MF_IO_READ, or MF_IO_AUTO to choose for each file */
  int32_t n_shapes;
  const mf_row_shape* shapes; /* for fields with an Arrow type that does not contain the shape */
  const char* split;          /* split of a directory of Hugging Face's libraries; NULL: it has one */
  const char* cache;          /* where decoded units are kept: "memory", a folder, or NULL for "auto" */
  int64_t cache_bytes;        /* the most bytes of the folder; 0: a quarter of the disk that is free */
  const char* const* columns; /* the columns that become fields, in this order; others may differ */
  int64_t n_columns;          /* 0: all columns, which must be in all files */
  mf_dtype dtype;             /* type of the elements of raw files; zeros: the files say what they hold */
  int32_t reserved;
  int64_t skip;        /* bytes before the first element of each raw file */
  const char* commits; /* "commits" of mf_dataset_info in another process, so that both read the same */
  const struct mf_map* storage; /* finds and reads the files, see below; NULL: this library does */
} mf_dataset_options;

#define MF_DATASET_OPTIONS_INIT                                                                              \
  {sizeof(mf_dataset_options), 0, 0, 0, NULL, NULL, NULL, 0, NULL, 0, {0, 0, 0}, 0, 0, NULL, NULL}

/* A storage of the program, such as a client of an object store. Its function is an mf_map_function that
   gets one row, with the columns "what", "name" and "version" (text), "offset" and "size" (int64). It
   returns one ragged row of bytes by mf_map_reserve. What is one of:

     read   `size` bytes of a file from `offset` on: 8 MiB or less. If the version is not empty, and is not
            the version of the file, the code is MF_DATA_LOSS
     stat   JSON: null, or a list of one entry, the file or the directory with the name
     list   JSON: null, or a list of the entries in a directory
     glob   JSON: a list of the entries that match a pattern of *, ? and [ab], which match no slash

   An entry is {"name": "bucket/a.parquet", "size": 4096}, or {"name": "bucket/year=2024", "dir": true}. Parts
   of names are separated by slashes. A file may have three texts. "version" comes back with each read.
   "identity" tells its content from all others of any name, storage and time; without it, nothing is kept
   on disk. "stamp", such as an ETag, is equal for equal contents only, on any host: the fingerprint takes it
   instead of samples of the bytes. Up to 16 calls run at a time. The function is released as for a map,
   unless mf_dataset_open returns an error. */

/* Opens n paths to files of Parquet, Arrow IPC or NumPy, or to raw files: files, globs and
   directories, in this order; or n addresses of web servers, such as
   "https://host/train-{000..127}.parquet". Directories such as year=2024 in a directory become a field. Each
   element of a raw file is a record of the field "tokens". options may be NULL. Returns before it
   touches a file; see mf_wait. */
mf_status mf_dataset_open(const char* const* paths, int32_t n, const mf_dataset_options* options,
                          mf_dataset* dataset, mf_error* error);

/* Reads a stream to its end, on this thread, and serves its buffers without a copy. The
   stream is moved: even after an error it is released before this function returns, and
   stream->release is NULL. A failure with MF_FORKED leaves the stream unchanged. Its arrays
   are released inside the mf_release of the last handle that needs them. Only the shapes of
   the options apply. options may be NULL. */
mf_status mf_dataset_open_stream(struct ArrowArrayStream* stream, const mf_dataset_options* options,
                                 mf_dataset* dataset, mf_error* error);

struct ArrowArray; /* the Arrow C data interface */
struct ArrowSchema;

/* Serves the buffers of one record batch, as mf_dataset_open_stream does for a stream. Both
   structs are moved, as a stream is. */
mf_status mf_dataset_open_record_batch(struct ArrowArray* array, struct ArrowSchema* schema,
                                       const mf_dataset_options* options, mf_dataset* dataset,
                                       mf_error* error);

/* One field of a dataset in the caller's memory. The address of element [i, j, ...]
   is data + i * strides[0] + j * strides[1] + ... */
typedef struct mf_array {
  uint32_t struct_size; /* MF_ARRAY_INIT sets it */
  int32_t ndim;         /* at least 1 */
  const char* name;
  const void* data;
  mf_dtype dtype; /* native byte order */
  int32_t reserved;
  const int64_t* shape;   /* shape[0] is the number of records, the same for all arrays */
  const int64_t* strides; /* bytes, may be negative or 0; NULL: C order */
  const char* logical;    /* the type that the values stand for, such as "datetime64[s]"; NULL: none */
} mf_array;

#define MF_ARRAY_INIT {sizeof(mf_array), 0, NULL, NULL, {0, 0, 1}, 0, NULL, NULL, NULL}

/* Opens a file of weights: safetensors, an index such as model.safetensors.index.json, .npy
   or .npz. The dataset has one record. Each array is a field with one row, the whole array.
   So a layout with the array shape [B, *shape], the spec [null, *spec] and the batch size 1
   delivers it, and a process reads only the bytes that its devices hold. Types that this
   library does not have, such as float8_e4m3fn, are uint8 with "logical" in
   mf_dataset_info. The file may be far away, as in mf_dataset_open. */
mf_status mf_dataset_open_tensors(const char* path, mf_dataset* dataset, mf_error* error);

/* Creates a dataset of n arrays without copying them. The library borrows the memory
   at data, and copies names, shapes and strides. It calls release(context) once, when
   the library no longer needs the memory: inside the mf_release of the last handle
   that needs it, or before this function returns an error. A failure with MF_FORKED
   calls nothing. release may be NULL. */
mf_status mf_dataset_open_arrays(const mf_array* arrays, int32_t n, void (*release)(void* context),
                                 void* context, mf_dataset* dataset, mf_error* error);

/* Describes a dataset:
     {"records": 1797,
      "fields": [{"name": "image", "dtype": "float32", "shape": [8, 8], "nullable": false}],
      "skipped": [{"name": "text", "type": "utf8", "reason": "..."}],
      "files": [{"path": "...", "records": 1797}],
      "units": {"count": 8, "records": 256},
      "fingerprinted": {"bytes": 575040, "of": 575040}}
   If the integers of a field have a logical type, such as "timestamp[us]", the field
   has the member "logical". If they stand for classes, and the data hold their names,
   "names" lists these: value 0 is the first. The rows of a ragged field are lists, text or
   bytes of different lengths. Its "ragged" is the number of leading dimensions that vary,
   its "shape" is the shape of an element behind them, its "type" is such as "list<int32>" or
   "string", and "reason" says why a loader refuses it. A file of compressed record batches, which is slow to
   shuffle, has the member "compression": "lz4" or "zstd". "units" has the number of
   record batches, of row groups or their parts, and the records of the largest, if known. "cache"
   appears once a loader keeps decoded record batches on disk: {"folder": "...", "bytes": N},
   or {"problem": "..."} if that failed and they are kept in memory. In
   "fingerprinted", "bytes" is how many bytes the fingerprint covers, and "of" is the size of
   the data. A view of the kind pack has "packing": {"plan": "best_fit.1:65536", "rows": 9, ...}.
   "far_bytes" is the size of the files on other machines.
   "commits" has the commits that names stood for, such as "hf://datasets/ORG/NAME@main", and
   "pinned" the names under which the same files open again, "hf://datasets/ORG/NAME@COMMIT". */
mf_status mf_dataset_info(mf_dataset dataset, mf_bytes* json, mf_error* error);

/* Returns the hash of the content: 32 hexadecimal digits, the same on every host. If all
   files together have at most 16 MiB, it covers every byte, else samples. For data in
   memory, it covers every value up to 256 MiB, and evenly spaced rows of larger data. It is
   computed once. A call that times out does not stop the computation. */
mf_status mf_dataset_fingerprint(mf_dataset dataset, int64_t timeout_ms, mf_bytes* text, mf_error* error);

/* Returns the SHA-256 of every byte of each file, in the order of the records, and
   the SHA-256 over these hashes:
     {"sha256": "64 hexadecimal digits", "files": ["64 hexadecimal digits"]}
   A view has the hash of all files below it. MF_UNSUPPORTED for data in memory. The
   hash is computed once, in the background. A call with timeout 0 starts the
   computation. */
mf_status mf_dataset_hash(mf_dataset dataset, int64_t timeout_ms, mf_bytes* json, mf_error* error);

/* Exports a dataset as an Arrow C stream. Its record batches have at most 2^20 rows and
   about 16 MiB, or one row if a row is larger. Columns of fixed fields are as in
   mf_batch_record. A ragged field becomes lists, lists of lists, text or binary. Their
   offsets have 32 bits, unless the type of the field is large_string or large_binary; a
   single row that needs larger offsets is MF_OUT_OF_RANGE. A dictionary of text becomes
   text. A null element is null, and a row with only null elements is a null row. formats is
   as in mf_batch_record; its entries belong to the fields of mf_dataset_info. The stream
   stays valid after the release of the dataset. Its get_next waits for data, and fails
   after mf_cancel_all with ECANCELED. Its get_last_error returns the message of the error. */
mf_status mf_dataset_stream(mf_dataset dataset, const char* const* formats, int32_t n,
                            struct ArrowArrayStream* stream, mf_error* error);

/* Reads n records, in this order, as one Arrow record batch of all fields. They may repeat.
   Columns are as in mf_dataset_stream, except that all offsets have 64 bits: lists are
   large lists. schema may be NULL. The caller releases array and schema. The first call
   on a handle takes longer than later ones. MF_OUT_OF_RANGE for a record that does not
   exist. A release or mf_cancel of the dataset ends the call with MF_CANCELLED. */
mf_status mf_dataset_rows(mf_dataset dataset, const int64_t* records, int64_t n, struct ArrowArray* array,
                          struct ArrowSchema* schema, mf_error* error);

/* Writes the length of each row [start, stop) of a field to lengths: of its first
   dimension, -1 for a null row. Reads offsets and no values. */
mf_status mf_dataset_lengths(mf_dataset dataset, const char* field, int64_t start, int64_t stop,
                             int64_t* lengths, mf_error* error);

/* ---- views ------------------------------------------------------------ */

/* A view is a dataset over other datasets. Each of its records follows from records below
   it, so that a view copies no records and reads none before a loader does. Every function
   for a dataset takes a view, and a view of views works like one view:

     mf_dataset_slice(all, 0, 1000, &some, &error);
     mf_dataset_take(some, indices, 100, &chosen, &error);
     mf_release(all.id, &error);      the files stay open for some and chosen
     mf_release(some.id, &error);     and now for chosen alone

   A view keeps the datasets below it alive. Its fingerprint follows from theirs. */

/* Creates views of one kind over datasets. The document is a JSON object. These are the kinds,
   with the members of their documents; a question mark follows a member that may be left out:

     slice    start, stop
              The records from start to stop, without stop.
     select   fields: [name]
              The fields, in this order.
     rename   names: {field: name}
              Other names of fields. Two fields may exchange theirs.
     take     values: n_values indices, int64
              Record values[k] as record k. Indices may repeat. MF_OUT_OF_RANGE names the first
              index out of range, and its position.
     filter   values: n_values bits, one for each record
              The records with bit 1, in their order. The bit of record i is
              bits[i / 8] >> (i % 8) & 1, as in the bitmaps of Arrow.
     concat   over n_datasets datasets
              The records of the first dataset, then of the second one. The fields must have the
              same names, types and shapes, in the same order. A field may hold nulls if it may in
              one of them. A dataset may occur several times.
     mix      schedule: [{start?, weights: [number]}], shuffle?, order?, seed?, length?, names?: [name],
              stop?: "shortest" or "longest", source?; over n_datasets datasets
              Draws from datasets of equal fields, with a weight for each. After any multiple of 64
              draws, each dataset is within 1.68 draws of its share. A dataset that has given all its
              records begins again, and is shuffled anew if `shuffle` is true. An epoch has
              `length` draws, and the next one continues. Without `length` it ends when the first dataset,
              or the last, has given all its records, or after as many draws as they have together.
              A stage changes the weights at a draw, counted over all epochs. `source` names
              an added field of int32 with the number of the dataset. A loader takes the records in
              their order.
     window   length, stride?, within?
              `length` consecutive records as one, from record k * stride on, for time series.
              Every field gets a first dimension of that length. If `within` names a field, such
              as a patient, no window crosses a change of its value. Records behind the last
              whole window are left out.
     split    parts: [{name?, share}], seed?, within?; makes a dataset for each part
              Several datasets, such as for training and for tests. Every record is in one of
              them. They depend on shares, seed and number of records alone, in every later
              release. Records with equal values of the field `within` are in one part.
     stack    stacks: [{name, fields: [name]}]
              Fields of one type and shape as one field, with a first dimension that counts them.
              The other fields stay in their order, and the stacks follow.
     pad      field, length, value?, side?: "right" or "left", too_long?: "error" or "truncate"
              The rows of a field at one length. The field "<name>_length" of int32 follows it:
              how many elements of each row are its own. A null row becomes padding.
     pack     field, length, method?: "best_fit" or "split", fields?: [name], separator?, labels?,
              too_long?: "split", "truncate", "drop" or "error", group?, max_documents?, overlap?,
              ignored_label?
              Several lists of the field, such as documents of tokens, in each row of `length` elements.
              "segment_ids" of int32 numbers the documents of a row from 1 on, with 0 in padding, and
              "positions" of int32 counts the elements of each from 0 on. `fields` have rows of the same
              lengths, and are packed alike; other fields are left out. `labels` names a field with the
              next element of the same document. mf_dataset_info has "packing", which counts documents and
              padding.
     reshape  field, shape: [size], dtype?
              The rows of a field in a shape, in C order: lists or binary values of as many
              elements, or rows of another shape. Bytes may hold elements of any type but
              booleans. A null row stays null. A row of another size is MF_INVALID_ARGUMENT of
              the batch that needs it.
     decode_image  field, size: [height, width], resize?: "area", crop?: "center" or "random",
              flip?: "none" or "random", color?: "rgb" or "gray", bad?: "error" or "zero"
              Images of uint8 with the shape [height, width, channels]. The rows below are the bytes of
              JPEG, PNG and WebP files. Random crops and flips follow from the key of the record. A
              null row stays null. A damaged image is MF_DATA_LOSS of the batch that needs it. With the
              bad value "zero" it is zeros, and counts in mf_batch and mf_stats.
     map      out: [{name, dtype, shape?, ragged?, kind?: "string" or "binary"}], fields?: [name],
              keys?, name?, key?, workers?, bad?: "error" or "zero"; values: one const mf_map*
              Fields that a function of the program computes from `fields`, or from all fields, of
              each record: see mf_map. They take the places of fields with their names, or follow; the
              others stay. `ragged` fields have rows of any length. `keys` gives the function a key
              for each record. `name` names the function in errors. `key` names what it does, and
              changes with it: it stands in the fingerprint, and without it no rows can be kept.
              `workers` calls run at a time; 0, the default, stands for the number of processors.
              A record that the function fails for is an error of the batch. With "zero" its rows are
              zeros, or empty, and count in mf_batch and mf_stats, unless the code says that the
              record is not the reason: MF_IO, MF_RESOURCE_EXHAUSTED, MF_INVALID_STATE,
              MF_CANCELLED, MF_FORKED and MF_INTERNAL.
     cache    folder?, cache_bytes?
              The same records, with rows that are computed once, in runs of about 8 MiB with all
              fields, and kept in `folder` for all processes. "auto", the default, is
              meshfeed/units in the user's cache directory. "memory" keeps up to 256 MiB. Changed
              data are computed again. The fingerprint stays, so states fit. MF_UNSUPPORTED if the
              fingerprint does not tell the rows from others.

   `meshfeed schema view` prints the JSON Schema. json may be NULL if the view has no members.
   Indices and bits are not in the document, because a text of them is long and slow to parse, nor is
   a function. For the other kinds, values is NULL and n_values is 0. The library copies what it needs.
   n_views is 1, or the number of parts. window and split return before they read the field `within`, pack
   before it reads lengths, and cache before it opens its folder; see mf_wait. */
mf_status mf_dataset_view(const char* kind, const char* json, size_t size, const mf_dataset* datasets,
                          int32_t n_datasets, const void* values, int64_t n_values, mf_dataset* views,
                          int32_t n_views, mf_error* error);

/* Converts a view of files, such as a map, to a folder of Arrow IPC files, as the command
   `meshfeed convert` does. A file appears when it is whole, and a later call with the same arguments
   writes the files that are missing. json is {"part": 1, "parts": 1, "rows_per_file": 0, "arguments":
   [text]}, where all members may be left out. The arguments belong to a command that continues the
   conversion, for errors. report gets {"records", "files", "written", "present", "bytes", "missing": [name]}.
   It returns when the files of the part are there; mf_cancel ends it. MF_UNSUPPORTED if the view has
   no files below it, or if their types have no form in Arrow. */
mf_status mf_dataset_convert(mf_dataset dataset, const char* folder, const char* json, size_t size,
                             mf_bytes* report, mf_error* error);

/* The rows that a function of a map returns, in a field. */
typedef struct mf_map_column {
  void* data;       /* of a fixed field: memory for all rows in C order, which the function fills */
  int64_t size;     /* bytes of data */
  int64_t* lengths; /* of a ragged field: the number of elements of each row, 0 at first, which the
                       function sets; it gets data from mf_map_reserve. Else NULL */
} mf_map_column;

/* The rows of some records, for one call of a function of a map. */
typedef struct mf_map_rows {
  uint32_t struct_size;
  int32_t n_out;            /* fields to return */
  int64_t n_rows;           /* at least 1 */
  const int64_t* records;   /* n_rows numbers of records, for errors: the result must not depend on them */
  const uint32_t* keys;     /* two words for each record, which differ in every epoch and with every seed
                               of the loader, and are equal on every mesh: a key of JAX, or a seed. NULL
                               unless the view asks for keys */
  struct ArrowArray* given; /* a record batch with a column for each field that the function gets, with
                             offsets of 64 bits, as mf_dataset_rows returns it. It is valid during the
                             call. A function that needs it for longer moves the struct, and sets
                             given->release to NULL */
  mf_map_column* out;       /* n_out columns, in the order of the document */
  int64_t taken_ns;         /* when mf_map_queue_next took them, by CLOCK_MONOTONIC; else 0 */
} mf_map_rows;

/* Computes rows. The library calls it from threads of its own, several calls at a time, each for other
   records. The result of a record may depend on its row and its key alone. Returns MF_OK, or another code
   after it has set the message, and perhaps the hint, of the error. The library then calls it for each of
   the records alone, and the error names the first that fails. A call that does not return stops no other
   call: release and cancellation do not wait for it. */
typedef mf_status (*mf_map_function)(void* user, mf_map_rows* rows, mf_error* error);

/* A function that computes rows, for mf_dataset_view with the kind "map". */
typedef struct mf_map {
  uint32_t struct_size; /* MF_MAP_INIT sets it */
  int32_t reserved;
  mf_map_function function;
  void* user;
  void (*release)(void* user); /* is called when no call runs and no view, loader or pass can begin
                                  one; not if mf_dataset_view returns an error. May be NULL */
} mf_map;

#define MF_MAP_INIT {sizeof(mf_map), 0, NULL, NULL, NULL}

/* Returns memory for the rows of a ragged field, one after the other, which the function then fills. A
   later call replaces the memory. NULL without memory, and for a fixed field. */
void* mf_map_reserve(mf_map_column* column, int64_t size);

/* Calls of a map for programs that must run functions on threads of their own, such as interpreters. The
   threads ask for calls:

     mf_map map = {sizeof map, 0, mf_map_queue_run, queue, mf_map_queue_close};

     mf_map_rows* rows;                               in each of the threads
     while ((rows = mf_map_queue_next(queue)))
       mf_map_queue_done(queue, rows, compute(rows), "", "");

   mf_map_queue_new returns NULL without memory, or if threads is not positive. mf_map_queue_next waits
   without limit. It returns NULL after mf_map_queue_close, once in each of the threads; the last one frees
   the queue. Message and hint may be NULL. */
typedef struct mf_map_queue mf_map_queue;
mf_map_queue* mf_map_queue_new(int32_t threads);
mf_status mf_map_queue_run(void* queue, mf_map_rows* rows, mf_error* error);
mf_map_rows* mf_map_queue_next(mf_map_queue* queue);
void mf_map_queue_done(mf_map_queue* queue, mf_map_rows* rows, mf_status code, const char* message,
                       const char* hint);
void mf_map_queue_close(void* queue);

/* Appends to a JSON text, with names and numbers of the program:

     mf_bytes json = {NULL, 0};
     mf_json_append(&json, "{'field': %s, 'length': %d}", name, (int64_t)512);
     mf_dataset_view("pad", json.data, json.size, &all, 1, NULL, 0, &padded, 1, &error);
     mf_bytes_free(&json);

   An apostrophe of the format stands for a quotation mark. %s is a const char* in UTF-8, %d an
   int64_t, %g a double, %v the value of a const mf_fill*, and %t the type in a const mf_dtype*.
   NULL, and a type that does not exist, become null. Without memory, the text becomes empty. */
void mf_json_append(mf_bytes* json, const char* format, ...);

/* A value for one field: one number or boolean of any element type except float16 and
   bfloat16. It is converted to the type of the field. In mf_loader_options it replaces
   nulls, in mf_dataset_pad it is the value of added elements. */
typedef struct mf_fill {
  const char* field;
  const void* value;
  mf_dtype dtype; /* type of the value */
  int32_t reserved;
} mf_fill;

/* ---- loaders ---------------------------------------------------------- */

/* A flag of mf_loader_options and mf_loader_restore: accept a state of another dataset
   of equal length. */
enum { MF_IGNORE_DATASET = 1 };

/* How to load. Zeros are the defaults. */
typedef struct mf_loader_options {
  uint32_t struct_size; /* MF_LOADER_OPTIONS_INIT sets it */
  uint32_t flags;       /* MF_IGNORE_DATASET */
  int64_t process;      /* loads the blocks of this process. MF_OUT_OF_RANGE if the run does not have
                           it */
  int64_t processes;    /* processes of the run, if it has more than the layout; those outside the
                           mesh get batches without blocks. 0: the processes of the layout */
  const char* order;    /* "shuffle.1", "sequential.1", "local.1:G:B" or "blocks.1:W:B:H"; or "local",
                           "blocks", "blocks:W" or "blocks:W:B": such an order with the parameters
                           of the state, or else of the layout and the dataset. NULL: the document's
                           order */
  int64_t seed;         /* 0 with order NULL: the seed of the document */
  int64_t epochs;       /* number of epochs, counted from epoch 0 even after a restore; -1: without
                           end. 0: every pass is one epoch */
  int64_t prefetch;     /* batches to read ahead; -1: build each batch on request. 0: the document's
                           number */
  const char* state;    /* continue at this state, from mf_batch.state or mf_loader_state. NULL: begin
                           at the first record */
  const mf_fill* fill;  /* values for nulls. Without one, a null is an error */
  int64_t n_fill;
  int64_t max_host_bytes; /* MF_RESOURCE_EXHAUSTED instead of more memory for batches; 0: no limit */
  int64_t workers;        /* goroutines that gather; 0: the library chooses */
} mf_loader_options;

#define MF_LOADER_OPTIONS_INIT {sizeof(mf_loader_options), 0, 0, 0, NULL, 0, 0, 0, NULL, NULL, 0, 0, 0}

/* Starts to load the blocks of one process. options may be NULL. Returns before it
   touches a file. A layout with problems, an unknown flag or a malformed fill is an error
   of this function. Every other error, such as an unknown order or files that do not fit
   the layout, is reported by mf_wait and by all later calls on the loader. */
mf_status mf_loader_create(mf_dataset dataset, mf_layout layout, const mf_loader_options* options,
                           mf_loader* loader, mf_error* error);

/* Describes the batches of this loader:
     {"process": 0, "steps_per_epoch": 7, "prefetch": 2, "remainder": "drop", "batch_shape": [256],
      "batch_bytes": 16640,
      "arrays": [{"name": "image", "kind": "data", "dtype": "float32", "shape": [256, 8, 8],
                  "spec": ["data", null, "model"], "field": "image",
                  "target_spec": ["data", null, "model"],
                  "blocks": [{"tensor": 0, "offset": 0, "bytes": 16384, "shape": [64, 8, 8],
                              "index": [[0, 64], [0, 8], [0, 8]], "holders": [0, 1]}]}]}
   kind is "data", "mask", "key" or "record". "target_spec" is the spec in the layout.
   "spec" differs from it if the layout's "loading" is "reshard". Offsets count from
   mf_batch.data and are multiples of 64. Holders are mesh positions.
   If the order has windows, "windows" says how well it shuffles:
     {"blocks": 800, "windows": 7, "window": 115, "records": 29440, "bytes": 30146560, "variance_percent":
   125} blocks counts the blocks of the dataset, and windows the windows of an epoch. The next three describe
   the largest window. The last is the most that the variance of a batch's mean can be, in percent of the
   variance with independent records. */
mf_status mf_loader_info(mf_loader loader, mf_bytes* json, mf_error* error);

/* Returns what the fingerprint of the loader's dataset is made of, as a tree of up to 2,048
   components:
     {"label": "filter", "hash": "16 hexadecimal digits", "below": [{"label": "files", ...}]}
   A file has a "name" too, and perhaps a "stamp", such as its ETag. If two datasets differ, the reason is the
   first component that has another hash, while all components below it have equal hashes. */
mf_status mf_loader_components(mf_loader loader, mf_bytes* json, mf_error* error);

/* The blocks of one step, in one piece of memory that belongs to the batch. There is
   one block for every distinct index of every array, or for every device if the
   layout's "loading" is "device". The struct is complete when the caller receives it,
   and must not be changed. */
typedef struct mf_batch {
  uint32_t struct_size; /* size of this struct in the library */
  int32_t tensors;      /* number of blocks */
  void* data;           /* aligned to at least 64 bytes */
  int64_t bytes;
  int64_t epoch, step, position; /* where this batch is */
  int64_t rows;                  /* rows of the global batch that are not padding */
  int64_t next_epoch, next_position;
  const char* state;  /* the state of the loader after this batch, as JSON; ends with NUL */
  int64_t state_size; /* without the NUL */
  int64_t live;       /* batches of the loader and its passes that are delivered and not released,
                         including this one */
  int64_t idle;       /* pieces of their memory that wait for reuse */
  int64_t bad;        /* records with rows of zeros, because this process cannot compute them: see
                         "bad" of mf_dataset_view. A record counts once */
} mf_batch;

/* Delivers the next batch. Each batch goes to one caller. MF_END means that the pass
   is over. If epochs is 0, the next call begins the next epoch; otherwise it returns
   MF_END again. */
mf_status mf_loader_next(mf_loader loader, int64_t timeout_ms, mf_batch** batch, mf_error* error);

/* Returns the state after the last delivered batch: at most 256 bytes of JSON, the
   same on every process. Batches that are read ahead do not count. */
mf_status mf_loader_state(mf_loader loader, mf_bytes* json, mf_error* error);

/* Continues at a state. Batches that were read ahead are dropped. flags may have
   MF_IGNORE_DATASET. */
mf_status mf_loader_restore(mf_loader loader, const char* state, size_t size, uint32_t flags,
                            mf_error* error);

/* Continues at a position of an epoch. Batches that were read ahead are dropped. */
mf_status mf_loader_seek(mf_loader loader, int64_t epoch, int64_t position, mf_error* error);

/* Skips the next steps, for example after a spike of the loss. Certificates list them
   as skipped, and the state is the one after them. Steps beyond the end of an epoch
   belong to the next epoch. All processes of a job must skip the same steps.
   MF_OUT_OF_RANGE if fewer steps are left in all epochs; the position then stays the
   same. Batches that were read ahead are dropped. */
mf_status mf_loader_skip(mf_loader loader, int64_t steps, mf_error* error);

/* Returns the number of batches that a pass would deliver from here; -1: without end. */
mf_status mf_loader_len(mf_loader loader, int64_t* batches, mf_error* error);

/* Creates an independent pass over one epoch, with its own handle. The position of
   the loader does not change. Both share the memory of batches, and its limit. If the
   loader has no such epoch, mf_wait returns MF_OUT_OF_RANGE. */
mf_status mf_loader_one_epoch(mf_loader loader, int64_t epoch, mf_loader* pass, mf_error* error);

/* Creates a loader that continues at the position of this one, on another layout and
   for any process of it. Use it when a mesh loses or gains devices. A process of the
   run that has no devices in the new mesh gets batches without blocks. A process that
   the run never had is MF_OUT_OF_RANGE. No file is opened or read, and all options
   stay the same. This loader does not change, even after an error. Release it to drop
   what it has read ahead. Its batches and passes stay valid. */
mf_status mf_loader_remesh(mf_loader loader, mf_layout layout, int64_t process, mf_loader* next,
                           mf_error* error);

/* Returns the records of the global batch that begins at a position, in order; -1 is
   padding. Writes the first capacity of them to records, and to count how many the batch
   has, which may be more. MF_OUT_OF_RANGE if no batch of the loader begins there. */
mf_status mf_loader_records(mf_loader loader, int64_t epoch, int64_t position, int64_t* records,
                            int64_t capacity, int64_t* count, mf_error* error);

/* Counters of a loader. */
typedef struct mf_stats {
  uint32_t struct_size; /* MF_STATS_INIT sets it */
  uint32_t reserved;
  int64_t epoch, step, position; /* where the next batch is */
  int64_t batches, rows, bytes;  /* delivered; rows and bytes of the blocks of this process */
  int64_t wait_ns;               /* time that callers waited for batches */
  int64_t stall_ns;              /* time that finished batches waited for callers */
  int64_t build_ns;              /* time to build the delivered batches, one after the other */
  int64_t gather_ns;             /* the part of it in which rows were gathered */
  int64_t storage_ns;            /* the part of that in which it waited for storage */
  int64_t decode_ns;             /* the part of gather_ns in which it waited for decompression */
  int64_t queued;                /* batches that are ready */
  int64_t live_batches;          /* delivered and not released, of the loader and its passes */
  int64_t idle_batches;          /* pieces of their memory that wait for reuse */
  int64_t host_bytes;            /* memory of all their batches: queued, live and idle */
  int64_t gathered_bytes;        /* bytes gathered for the delivered batches. Equals bytes, except with
                                    "loading": "global", which gathers whole batches */
  int64_t decoding_ns;           /* processor time of decompressing the dataset, also ahead, and for its
                                    other loaders */
  int64_t delayed_ns;            /* time that threads which decompress waited for a processor */
  int64_t map_ns;                /* the part of gather_ns in which it waited for functions of maps */
  int64_t bad;                   /* records of the delivered batches with rows of zeros, as in mf_batch */
  int64_t requests;              /* to servers, for the dataset, also ahead, and for its other loaders */
  int64_t retries;               /* requests that repeat or continue another */
  int64_t planned_bytes;         /* that were asked for in requests */
  int64_t fetched_bytes;         /* that servers sent */
} mf_stats;

#define MF_STATS_INIT                                                                                        \
  {sizeof(mf_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

mf_status mf_loader_stats(mf_loader loader, mf_stats* stats, mf_error* error);

/* ---- batches of other loaders ----------------------------------------- */

/* Creates a splitter: it cuts the arrays that another loader made into the blocks of one
   process. The arrays are the layout's arrays, in its order and with its names. They
   describe the memory of every later mf_split: type, shape and strides. data is ignored.
   Each dimension has the global size, or the size of the part that this process holds. Such
   a part consists of the ranges of the process's blocks, in increasing order without gaps.
   A 64-bit type may be given for the 32-bit type of the layout. */
mf_status mf_splitter_create(mf_layout layout, int64_t process, const mf_array* arrays, int32_t n,
                             mf_splitter* splitter, mf_error* error);

/* Describes the batches of a splitter: "batch_bytes" and "arrays", as in mf_loader_info. */
mf_status mf_splitter_info(mf_splitter splitter, mf_bytes* json, mf_error* error);

/* Copies the blocks of n arrays to a new batch, which is aligned and has no state. data
   has the address of element [0, 0, ...] of each array. The memory may be reused after
   this call. MF_OUT_OF_RANGE if a 32-bit integer cannot hold a number. */
mf_status mf_split(mf_splitter splitter, const void* const* data, int32_t n, mf_batch** batch,
                   mf_error* error);

/* ---- batches: plain C, on any thread, also after mf_release and after fork - */

/* Adds and drops a reference. When the last reference is dropped, the memory goes back
   to the loader, or to the system if the loader is released. NULL does nothing. */
void mf_batch_retain(mf_batch* batch);
void mf_batch_release(mf_batch* batch);

/* One block. The pointers are valid as long as the batch. */
typedef struct mf_tensor {
  uint32_t struct_size; /* MF_TENSOR_INIT sets it */
  int32_t array;        /* index in the "arrays" of mf_loader_info */
  const char* name;     /* name of that array */
  void* data;           /* C order, aligned to at least 64 bytes */
  int64_t bytes;
  mf_dtype dtype;
  int32_t ndim;
  const int64_t* shape;        /* shape of the block */
  const int64_t* start;        /* where the block starts in the global array */
  const int64_t* global_shape; /* shape of the global array */
  const int64_t* holders;      /* mesh positions of the devices of this process that hold it */
  int64_t n_holders;
} mf_tensor;

#define MF_TENSOR_INIT {sizeof(mf_tensor), 0, NULL, NULL, 0, {0, 0, 0}, 0, NULL, NULL, NULL, NULL, 0}

/* Describes block i of [0, batch->tensors), in the order of mf_loader_info. */
mf_status mf_batch_tensor(const mf_batch* batch, int32_t i, mf_tensor* tensor);

/* The structs of dlpack.h. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Exports block i as a DLPack 1.0 tensor, which is flagged read-only, or as a tensor
   of older DLPack versions. The tensor holds a reference to the batch until its
   deleter is called. Call the deleter exactly once. */
mf_status mf_batch_dlpack(mf_batch* batch, int32_t i, struct DLManagedTensorVersioned** tensor);
mf_status mf_batch_dlpack_legacy(mf_batch* batch, int32_t i, struct DLManagedTensor** tensor);

/* Exports block i through the Arrow C data interface. The first dimension becomes the
   length, and each further one a fixed-size list. The array uses the memory of the batch,
   except for types that Arrow stores in another way: booleans become bits, and bfloat16
   becomes float32. A complex number becomes a list of its two parts, in the same memory.
   The array holds a reference to the batch until it is released. The release callbacks set
   release to NULL, and do nothing if it is NULL. MF_UNSUPPORTED for an array without
   dimensions, and for lists of more than 2^31 - 1 elements. */
mf_status mf_batch_arrow(mf_batch* batch, int32_t i, struct ArrowArray* array, struct ArrowSchema* schema);

/* Exports a batch as a record batch: a struct array with a child for each array, in the
   order of mf_loader_info. Each child is exported as mf_batch_arrow exports a block. The
   record batch has batch->rows rows. So it has no padding rows, and the mask is not in it.
   array or schema may be NULL. formats may replace the format strings of element types,
   such as "tsu:UTC" for an int64 array of timestamps: formats[i] is for array i. NULL, and
   arrays from n on, keep their own. The size of the elements must be equal. MF_UNSUPPORTED
   if this process does not hold each array in one block, if an array has not one row for
   each row of the batch, or if the batch has several batch dimensions. */
mf_status mf_batch_record(mf_batch* batch, const char* const* formats, int32_t n, struct ArrowArray* array,
                          struct ArrowSchema* schema);

/* Exports a batch as a stream of that one record batch, for consumers that read streams
   only. The stream holds a reference to the batch until it is released. */
mf_status mf_batch_stream(mf_batch* batch, const char* const* formats, int32_t n,
                          struct ArrowArrayStream* stream);

/* ---- Python ------------------------------------------------------------ */

/* The functions of Python's C API that the callbacks below need. */
typedef struct mf_python {
  uint32_t struct_size;
  uint32_t reserved;
  void* (*capsule_context)(void* capsule); /* PyCapsule_GetContext */
  int (*lock)(void);                       /* PyGILState_Ensure */
  void (*unlock)(int state);               /* PyGILState_Release */
  void (*drop)(void* object);              /* Py_DecRef */
} mf_python;

/* Sets these functions. After mf_python_set(NULL), which a program calls when the
   interpreter exits, the callbacks do nothing. */
void mf_python_set(const mf_python* functions);

/* A callback for mf_dataset_open_arrays: drops a reference to a Python object, under the
   interpreter's lock. A consumer may release a stream while an exception is set, when no
   function in Python can run. */
void mf_python_drop(void* object);

/* The kinds of Arrow structs. */
enum { MF_ARROW_SCHEMA = 0, MF_ARROW_ARRAY = 1, MF_ARROW_STREAM = 2 };

/* Returns a cleared struct for a capsule, or NULL if out of memory. The capsule's context
   has to be this address, and its destructor mf_python_capsule_free. The destructor
   releases the struct, unless a consumer has moved it out, and frees it. */
void* mf_python_capsule_new(int32_t kind);
void mf_python_capsule_free(void* capsule);

/* ---- objects in the whole library, for leak tests ---------------------- */

int64_t mf_live_handles(void);
int64_t mf_live_batches(void); /* delivered and not released */
int64_t mf_live_bytes(void);   /* memory of batches: queued, live and idle */

#ifdef __cplusplus
}
#endif

#include "meshfeed_views.h"

#endif
