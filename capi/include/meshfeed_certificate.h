/*
 * meshfeed_certificate.h: evidence that every record was delivered once, and the same in
 * every process: certificates, digests of blocks, and orders. Loading needs only
 * meshfeed.h.
 */
#ifndef MESHFEED_CERTIFICATE_H
#define MESHFEED_CERTIFICATE_H

#include "meshfeed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- certificates ------------------------------------------------------- */

/* Returns the certificate of what this loader has delivered since it was created, up to
   the end of one of the last 64 batches. epoch and position are next_epoch and
   next_position of that batch.
     {"meshfeed": 2, "order": "shuffle.1", "dataset": "...", "records": 1797, "seed": 0, "runs": [
       {"mesh": [[0, 4]], "processes": [[1, 2]], "parts": 1, "delivered": [[0, 1, 0, 1792]],
        "dropped": [[0, 1, 1792, 1797]], "skipped": [], "rows": 448, "digest": "..."}]}
   A run is a sequence of consecutive batches on one mesh. A restore, a seek and a remesh
   begin another run in the same certificate. "mesh" lists the processes of the mesh, and
   "processes" the processes that this certificate covers, as ranges [start, stop).
   Positions are [epoch, epochs, first, last]: the positions [first, last) of that many
   epochs. "dropped" positions are at the end of an epoch and do not fill a step.
   "skipped" positions were skipped by mf_loader_skip. "rows" and "digest" are the
   evidence. If several processes hold a block, only the one with the lowest number counts
   its rows. So over all processes every row counts "parts" times, once for each block
   with a part of it. */
mf_status mf_loader_certificate(mf_loader loader, int64_t epoch, int64_t position, mf_bytes* json,
                                mf_error* error);

/* Adds two certificates. Parts of the same run from several processes become one run, and
   different runs stay separate. MF_INCOMPATIBLE if dataset, order or seed differ. */
mf_status mf_certificate_add(const char* a, size_t a_size, const char* b, size_t b_size, mf_bytes* sum,
                             mf_error* error);

/* The positions from the first one up to, and without, the last one. Position 0 of an
   epoch is also the end of the previous epoch: {0, 0, 3, 0} is three whole epochs. If a
   range is NULL, it begins at position 0 of epoch 0 and ends after the last delivered
   position. */
typedef struct mf_range {
  int64_t first_epoch, first_position;
  int64_t last_epoch, last_position;
} mf_range;

typedef struct mf_check {
  uint64_t id;
} mf_check;

/* Starts to check that all processes of a mesh together delivered every position of a
   range exactly once, with its record, unless the position was dropped or skipped. The
   check computes the records again from order and seed, and compares the evidence. This
   takes about ten nanoseconds per position. mf_wait returns the outcome. The message of
   MF_DATA_LOSS lists missing and repeated positions, and what to do. A certificate without
   delivered positions fails. mf_release ends the check.
   The dataset is the one that the loaders had. It is needed if the order has the record
   batches or row groups of the dataset as its blocks, such as "blocks:64". Otherwise it may
   be {0}. A dataset of other records or units is MF_INCOMPATIBLE. */
mf_status mf_certificate_check(const char* json, size_t size, const mf_range* range, mf_dataset dataset,
                               mf_check* check, mf_error* error);

/* Returns what a certificate claims about a range, without checking the evidence:
     {"first": [0, 0], "last": [3, 64], "delivered": [[0, 3, 0, 1792], [3, 1, 0, 64]],
      "dropped": [[0, 3, 1792, 1797]], "skipped": [], "missing": [],
      "absent": [{"processes": [[1, 2]], "positions": [[0, 1, 0, 64]]}], "repeated": [], "text": "..."}
   "delivered", "dropped" and "skipped" cover all runs. "missing" is the rest of the range.
   "absent" lists positions that the named processes did not deliver, although other
   processes of their mesh did. "repeated" lists positions that the named processes
   delivered more than once. "text" is a summary in English. */
mf_status mf_certificate_report(const char* json, size_t size, const mf_range* range, mf_bytes* report,
                                mf_error* error);

/* Moves the loader back to the end of one of the last 64 batches: epoch and position are
   next_epoch and next_position of that batch. It is for a caller that reads ahead of its
   own consumer, and drops batches that the consumer did not use. These batches are
   delivered again, and the certificate counts them once, in the same run. By contrast,
   mf_loader_seek to that position begins another run. With any other position this
   function does the same as mf_loader_seek. */
mf_status mf_loader_rewind(mf_loader loader, int64_t epoch, int64_t position, mf_error* error);

/* ---- digests ------------------------------------------------------------ */

/* Writes the digests of n blocks of a batch, 16 bytes each: XXH3-128 with seed 0 over the
   bytes of the block. A digest is in canonical (big-endian) order. Processes that hold the
   same index of an array compare them. Unlike mf_batch_* this function enters Go. */
mf_status mf_digest(const mf_batch* batch, const int32_t* tensors, int32_t n, uint8_t* digests,
                    mf_error* error);

/* Writes the digest of any memory, 16 bytes. data may be NULL if size is 0. */
mf_status mf_digest_memory(const void* data, size_t size, uint8_t* digest, mf_error* error);

/* ---- orders: the same in Go, C and Python -------------------------------- */

/* Writes the records at positions [position, position + count) of an epoch. order is
   "sequential.1", "shuffle.1", "local.1:G:B" with G parts of the records and batches of B
   rows, or "blocks.1:W:B:0" with windows of W blocks of B records. */
mf_status mf_order_fill(const char* order, size_t size, int64_t seed, int64_t records, int64_t epoch,
                        int64_t position, int64_t* out, int64_t count, mf_error* error);

/* Writes the two words that the extra array "key" has for a record in an epoch. */
mf_status mf_record_key(int64_t seed, int64_t epoch, int64_t record, uint32_t key[2], mf_error* error);

#ifdef __cplusplus
}
#endif

#endif
