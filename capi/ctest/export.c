/*
 * export.c: blocks as DLPack tensors and Arrow arrays. Exports outlive the loader and the
 * dataset, and any thread frees them.
 */
#include "../../arrowio/cstream/cstream.h"
#include "check.h"
#include "dlpack.h"

#include <pthread.h>

static mf_batch* batch;

static void check_tensor(const dl_tensor* t, int32_t i) {
  mf_tensor want;
  want.struct_size = sizeof want;
  CHECK(mf_batch_tensor(batch, i, &want) == MF_OK);
  CHECK(t->data == want.data && t->byte_offset == 0 && t->device_type == 1 && t->device_id == 0);
  CHECK(t->ndim == want.ndim && t->dtype.code == want.dtype.code && t->dtype.bits == want.dtype.bits);
  int64_t step = 1;
  for (int32_t d = t->ndim - 1; d >= 0; d--) {
    CHECK(t->shape[d] == want.shape[d] && t->strides[d] == step);
    step *= want.shape[d];
  }
}

static void check_arrow(int32_t i) {
  mf_error error = MF_ERROR_INIT;
  mf_tensor want;
  want.struct_size = sizeof want;
  OK(mf_batch_tensor(batch, i, &want));
  struct ArrowArray array;
  struct ArrowSchema schema;
  OK(mf_batch_arrow(batch, i, &array, &schema));
  CHECK(strcmp(schema.name, want.name) == 0 && schema.flags == 0);
  struct ArrowArray* a = &array;
  struct ArrowSchema* s = &schema;
  int64_t length = want.shape[0];
  for (int32_t d = 1; d < want.ndim; d++) {
    char format[32];
    snprintf(format, sizeof format, "+w:%d", (int)want.shape[d]);
    CHECK(strcmp(s->format, format) == 0 && a->length == length && a->n_buffers == 1 && a->n_children == 1);
    CHECK(a->null_count == 0 && a->offset == 0 && a->buffers[0] == NULL);
    length *= want.shape[d];
    a = a->children[0];
    s = s->children[0];
  }
  CHECK(a->length == length && a->n_buffers == 2 && a->buffers[1] == want.data && a->n_children == 0);
  if (want.dtype.code == 6) {
    CHECK(strcmp(s->format, "c") == 0 && memcmp(s->metadata + 28, "\x0b\0\0\0arrow.bool8", 15) == 0);
  } else {
    CHECK(strcmp(s->format, want.dtype.code == 2 ? "f" : want.dtype.code == 1 ? "I" : "i") == 0);
  }
  void (*const release_array)(struct ArrowArray*) = array.release;
  void (*const release_schema)(struct ArrowSchema*) = schema.release;
  if (want.ndim > 1) { /* a consumer may move a child out and release it separately */
    struct ArrowArray moved = *array.children[0];
    array.children[0]->release = NULL;
    array.release(&array);
    CHECK(array.release == NULL && moved.release != NULL);
    moved.release(&moved);
  } else {
    array.release(&array);
  }
  schema.release(&schema);
  CHECK(schema.release == NULL);
  for (int again = 0; again < 3; again++) { /* a second release does nothing */
    release_array(&array);
    release_schema(&schema);
  }
  CHECK(mf_live_batches() == 1);
}

static void* delete_all(void* list) {
  struct DLManagedTensorVersioned** tensors = (struct DLManagedTensorVersioned**)list;
  for (int i = 0; i < 3; i++)
    tensors[i]->deleter(tensors[i]);
  return NULL;
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 8, ",\"remainder\":\"pad\",\"extras\":[\"key\"]"));
  const mf_loader loader = make_loader(dataset, layout, NULL);
  OK(mf_loader_next(loader, -1, &batch, &error));
  CHECK(batch->tensors == 8 + 4 + 4 + 4);
  struct DLManagedTensorVersioned* exported[3];
  struct DLManagedTensor* legacy;
  for (int32_t i = 0; i < batch->tensors; i++) {
    OK(mf_batch_dlpack(batch, i, &exported[0]));
    CHECK(exported[0]->major == 1 && exported[0]->flags == 1);
    check_tensor(&exported[0]->tensor, i);
    exported[0]->deleter(exported[0]);
    OK(mf_batch_dlpack_legacy(batch, i, &legacy));
    check_tensor(&legacy->tensor, i);
    legacy->deleter(legacy);
    check_arrow(i);
  }
  struct ArrowArray array;
  struct ArrowSchema schema;
  EXPECT(MF_OUT_OF_RANGE, mf_batch_dlpack(batch, batch->tensors, &exported[0]));
  EXPECT(MF_OUT_OF_RANGE, mf_batch_arrow(batch, -1, &array, &schema));
  CHECK(exported[0] == NULL && array.release == NULL && schema.release == NULL);
  for (int i = 0; i < 3; i++)
    OK(mf_batch_dlpack(batch, i, &exported[i]));
  OK(mf_release(loader.id, &error));
  OK(mf_release(dataset.id, &error));
  OK(mf_release(layout.id, &error));
  mf_batch_release(batch);
  CHECK(mf_live_batches() == 1);
  pthread_t thread;
  CHECK(!pthread_create(&thread, NULL, delete_all, exported));
  pthread_join(thread, NULL);
  CHECK(mf_live_batches() == 0 && mf_live_bytes() == 0 && mf_live_handles() == 0);
  free(r);
  puts("ok");
  return 0;
}
