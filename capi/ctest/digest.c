/*
 * digest.c: equal blocks have equal digests, and different blocks different ones.
 */
#include "check.h"
#include "meshfeed_certificate.h"

static void expect_digest(const uint8_t* digest, const char* hex) {
  char got[33];
  for (int i = 0; i < 16; i++)
    snprintf(got + 2 * i, 3, "%02x", (unsigned)digest[i]);
  if (strcmp(got, hex) != 0) {
    fprintf(stderr, "the digest is %s, expected %s\n", got, hex);
    exit(1);
  }
}

/* One label of the first batch is 1, in an int32 block of its own. The reference
   implementation gives this digest for the four bytes 01 00 00 00. */
static void frozen(mf_batch* batch) {
  mf_error error = MF_ERROR_INIT;
  uint8_t digest[16];
  const int32_t label = 8;
  mf_tensor tensor;
  tensor.struct_size = sizeof tensor;
  OK(mf_batch_tensor(batch, label, &tensor));
  CHECK(tensor.bytes == 4 && *(int32_t*)tensor.data == 1);
  OK(mf_digest(batch, &label, 1, digest, &error));
  expect_digest(digest, "45cdd2e492a8bbfc29cc0124ca8bf34b");
}

/* A digest depends on the bytes of its block only, not on the order of the list. */
static void compared(mf_batch* batch) {
  mf_error error = MF_ERROR_INIT;
  const int32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, two[] = {7, 2};
  uint8_t digests[12][16], again[2][16];
  mf_tensor tensor;
  tensor.struct_size = sizeof tensor;
  OK(mf_digest(batch, all, 12, digests[0], &error));
  for (int i = 0; i < 12; i++)
    for (int j = 0; j < i; j++)
      CHECK(memcmp(digests[i], digests[j], 16) != 0);
  OK(mf_digest(batch, two, 2, again[0], &error));
  CHECK(memcmp(again[0], digests[7], 16) == 0 && memcmp(again[1], digests[2], 16) == 0);
  OK(mf_batch_tensor(batch, 7, &tensor));
  ((uint8_t*)tensor.data)[tensor.bytes - 1] ^= 1;
  OK(mf_digest(batch, two, 2, again[0], &error));
  CHECK(memcmp(again[0], digests[7], 16) != 0 && memcmp(again[1], digests[2], 16) == 0);
  OK(mf_digest(batch, NULL, 0, NULL, &error));
}

/* The digest of memory equals the digest of a block with the same bytes. */
static void of_memory(mf_batch* batch) {
  mf_error error = MF_ERROR_INIT;
  const int32_t block = 7;
  uint8_t want[16], got[16];
  mf_tensor tensor;
  tensor.struct_size = sizeof tensor;
  OK(mf_batch_tensor(batch, block, &tensor));
  OK(mf_digest(batch, &block, 1, want, &error));
  OK(mf_digest_memory(tensor.data, (size_t)tensor.bytes, got, &error));
  CHECK(memcmp(got, want, 16) == 0);
  OK(mf_digest_memory("\1\0\0", 4, got, &error));
  expect_digest(got, "45cdd2e492a8bbfc29cc0124ca8bf34b");
  OK(mf_digest_memory(NULL, 0, got, &error));
  expect_digest(got, "99aa06d3014798d86001c324468d497f");
}

static void refused(mf_batch* batch) {
  mf_error error = MF_ERROR_INIT;
  uint8_t digest[16];
  int32_t tensor = 12;
  EXPECT(MF_OUT_OF_RANGE, mf_digest(batch, &tensor, 1, digest, &error));
  CHECK(strcmp(error.message, "there is no block 12 among the 12 of the batch") == 0);
  tensor = -1;
  EXPECT(MF_OUT_OF_RANGE, mf_digest(batch, &tensor, 1, digest, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_digest(batch, &tensor, -1, digest, &error));
  CHECK(strcmp(error.message, "argument \"n\" is negative") == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_digest(NULL, &tensor, 1, digest, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_digest(batch, NULL, 1, digest, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_digest(batch, &tensor, 1, NULL, &error));
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, NULL);
  mf_batch* batch;
  OK(mf_loader_next(loader, -1, &batch, &error));
  frozen(batch);
  of_memory(batch);
  compared(batch);
  refused(batch);
  mf_batch_release(batch);
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  CHECK(mf_live_batches() == 0);
  free(r);
  puts("ok");
  return 0;
}
