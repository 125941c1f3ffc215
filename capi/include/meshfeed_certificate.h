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

/* What this loader handed over since it was made, up to where one of the last 64
   batches ended (next_epoch and next_position of the batch), and what this
   process counted of it:
     {"meshfeed": 2, "order": "shuffle.1", "dataset": "...", "records": 1797, "seed": 0, "runs": [
       {"mesh": [[0, 4]], "processes": [[1, 2]], "parts": 1, "delivered": [[0, 1, 0, 1792]],
        "dropped": [[0, 1, 1792, 1797]], "skipped": [], "rows": 448, "digest": "..."}]}
   A run is batches that followed each other on one mesh: a restore, a seek and a
   remesh begin another one in the same account. "mesh" is the processes of the
   mesh and "processes" those that speak here, as ranges [start, stop). Positions
   are [epoch, epochs, first, last]: the positions [first, last) of each of so
   many epochs. "delivered" was handed over, "dropped" fills no step, "skipped"
   is what mf_loader_skip left out. "rows" and "digest" are the evidence: every
   distinct block of every array counts in the lowest process that holds it, so a
   row counts in "parts" blocks over all processes. */
mf_status mf_loader_certificate(mf_loader loader, int64_t epoch, int64_t position, mf_bytes* json,
                                mf_error* error);

/* The sum of two certificates. What processes say of one run becomes one run,
   and different runs stay apart. MF_INCOMPATIBLE for another dataset, order or
   seed. */
mf_status mf_certificate_add(const char* a, size_t a_size, const char* b, size_t b_size, mf_bytes* sum,
                             mf_error* error);

/* The positions from one place up to another one, without it. Position 0 of an
   epoch is also the end of the epoch before it: three whole epochs are
   {0, 0, 3, 0}. NULL stands for the positions from the first one of epoch 0 to
   the last one that was delivered. */
typedef struct mf_range {
  int64_t first_epoch, first_position;
  int64_t last_epoch, last_position;
} mf_range;

/* Begins to check that every position of a range was delivered exactly once by
   all processes of a mesh, with its record, or was dropped or skipped: what was
   counted is compared with what order and seed alone give, some ten nanoseconds
   per position. mf_wait gives the outcome. MF_DATA_LOSS names what is missing,
   what came more than once, and what to do; a certificate with nothing delivered
   is never complete. mf_release ends the check. */
typedef struct mf_check {
  uint64_t id;
} mf_check;

mf_status mf_certificate_check(const char* json, size_t size, const mf_range* range, mf_check* check,
                               mf_error* error);

/* What a certificate claims of a range, without a look at the evidence:
     {"first": [0, 0], "last": [3, 64], "delivered": [[0, 3, 0, 1792], [3, 1, 0, 64]],
      "dropped": [[0, 3, 1792, 1797]], "skipped": [], "missing": [],
      "absent": [{"processes": [[1, 2]], "positions": [[0, 1, 0, 64]]}], "repeated": [], "text": "..."}
   "delivered", "dropped" and "skipped" are of all runs. "missing" was asked for
   and is none of them. "absent" is what these processes did not deliver, and
   others of their mesh did; "repeated" what these delivered more than once.
   "text" is for people. */
mf_status mf_certificate_report(const char* json, size_t size, const mf_range* range, mf_bytes* report,
                                mf_error* error);

/* Takes batches back, for a caller that reads ahead of its own consumer and drops
   what the consumer did not use. The loader continues where one of the last 64
   batches ended: epoch and position are next_epoch and next_position of that batch.
   The batches after it come again, and the certificate does not count them twice:
   its run goes on. mf_loader_seek to the same position begins another run instead.
   With any other position this function is mf_loader_seek. */
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
