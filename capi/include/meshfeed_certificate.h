/*
 * meshfeed_certificate.h: what proves that every record was delivered once and
 * the same everywhere: certificates, digests of blocks, and orders. A program
 * that only loads needs meshfeed.h alone.
 */
#ifndef MESHFEED_CERTIFICATE_H
#define MESHFEED_CERTIFICATE_H

#include "meshfeed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- certificates: that every position was delivered once --------------- */

/* What this loader handed over since it was made, restored or set, up to where
   one of the last 64 batches ended (next_epoch and next_position of the batch),
   and what this process counted of it. A row counts in the lowest process that
   holds it, so the certificates of all processes add up to a proof:
     {"meshfeed": 1, "order": "shuffle.1", "dataset": "...", "records": 1797, "seed": 0,
      "runs": [[0, 1, 0, 1792]], "rows": 448, "digest": "..."}
   A run is [epoch, epochs, first, last]: the positions [first, last) of each of
   so many epochs. */
mf_status mf_loader_certificate(mf_loader loader, int64_t epoch, int64_t position, mf_bytes* json,
                                mf_error* error);

/* The sum of two certificates, of the processes of one run or of runs that
   follow each other. MF_INCOMPATIBLE for another dataset, order or seed. */
mf_status mf_certificate_add(const char* a, size_t a_size, const char* b, size_t b_size, mf_bytes* sum,
                             mf_error* error);

/* Begins to check that every position of a certificate was delivered exactly
   once: it is compared with what order and seed alone give, some ten
   nanoseconds per position. mf_wait gives the outcome, MF_DATA_LOSS if it is
   not so; mf_release ends the check. */
typedef struct mf_check {
  uint64_t id;
} mf_check;

mf_status mf_certificate_check(const char* json, size_t size, mf_check* check, mf_error* error);

/* The same for a place where one of the last 64 batches ended, and those behind
   it count as not handed over: for callers who did not hand them on. What
   mf_loader_certificate gives goes on, where mf_loader_seek begins anew. For any
   other place it is mf_loader_seek. */
mf_status mf_loader_rewind(mf_loader loader, int64_t epoch, int64_t position, mf_error* error);

/* ---- digests ---------------------------------------------------------- */

/* Digests of n blocks of a batch, 16 bytes each: XXH3-128 with seed 0 over the
   bytes of the block, in the canonical (big-endian) order. Processes that hold
   the same index compare them. Unlike mf_batch_* this enters Go. */
mf_status mf_digest(const mf_batch* batch, const int32_t* tensors, int32_t n, uint8_t* digests,
                    mf_error* error);

/* ---- orders: the same in Go, C and Python ----------------------------- */

/* order is "sequential.1", "shuffle.1" or "local.1:G:B", with G parts for
   batches of B. Writes the records at positions
   [position, position + count) of an epoch. */
mf_status mf_order_fill(const char* order, size_t size, int64_t seed, int64_t records, int64_t epoch,
                        int64_t position, int64_t* out, int64_t count, mf_error* error);

/* The two words of the extra array "key". */
mf_status mf_record_key(int64_t seed, int64_t epoch, int64_t record, uint32_t key[2], mf_error* error);

#ifdef __cplusplus
}
#endif

#endif
