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
  CHECK(strcmp(schema.name, want.name) == 0 && schema.flags == 2);
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
  CHECK(a->length == length && a->n_buffers == 2 && a->n_children == 0);
  if (want.dtype.code == MF_BOOL) {
    const uint8_t *bits = (const uint8_t*)a->buffers[1], *bytes = (const uint8_t*)want.data;
    CHECK(strcmp(s->format, "b") == 0);
    for (int64_t k = 0; k < length; k++)
      CHECK((bits[k / 8] >> (k % 8) & 1) == bytes[k]);
  } else {
    CHECK(a->buffers[1] == want.data);
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

/* Reads a stream to its end and returns the number of rows. */
static int64_t rows_of(struct ArrowArrayStream* stream) {
  struct ArrowSchema schema;
  CHECK(stream->get_schema(stream, &schema) == 0 && strcmp(schema.format, "+s") == 0);
  CHECK(schema.n_children == 2 && strcmp(schema.children[0]->name, "image") == 0);
  CHECK(strcmp(schema.children[1]->format, "tts") == 0);
  schema.release(&schema);
  int64_t rows = 0;
  for (;;) {
    struct ArrowArray array;
    CHECK(stream->get_next(stream, &array) == 0 && stream->get_last_error(stream) == NULL);
    if (!array.release)
      break;
    const struct ArrowArray* label = array.children[1];
    CHECK(array.n_children == 2 && label->length == array.length);
    for (int64_t k = 0; k < array.length; k++)
      CHECK(((const int32_t*)label->buffers[1])[k] == (rows + k) * 7 + 1);
    rows += array.length;
    array.release(&array);
  }
  stream->release(stream);
  CHECK(stream->release == NULL);
  return rows;
}

/* Record batches: from a loader with whole blocks, and from a dataset. */
static void check_records(mf_dataset dataset, mf_batch* cut) {
  static const char whole[] = "{\"meshfeed\":1,\"mesh\":{\"axes\":[]},\"arrays\":{"
                              "\"image\":{\"shape\":[\"B\",3,6],\"dtype\":\"float32\",\"spec\":[]},"
                              "\"label\":{\"shape\":[\"B\"],\"dtype\":\"int32\",\"spec\":[]}},"
                              "\"batch\":{\"size\":64,\"remainder\":\"pad\"},\"dataset\":{\"records\":100}}";
  static const char* const formats[] = {NULL, "tts"};
  mf_error error = MF_ERROR_INIT;
  struct ArrowArrayStream stream;
  CHECK(mf_batch_record(cut, NULL, 0, NULL, NULL) == MF_UNSUPPORTED);
  CHECK(mf_batch_stream(cut, NULL, 0, &stream) == MF_UNSUPPORTED && stream.release == NULL);
  OK(mf_dataset_stream(dataset, formats, 2, &stream, &error));
  CHECK(rows_of(&stream) == RECORDS);
  const mf_layout layout = make_layout(whole);
  const mf_loader loader = make_loader(dataset, layout, NULL);
  OK(mf_wait(loader.id, -1, &error));
  OK(mf_loader_seek(loader, 0, 64, &error));
  mf_batch* last;
  OK(mf_loader_next(loader, -1, &last, &error));
  struct ArrowArray array;
  struct ArrowSchema schema;
  CHECK(last->tensors == 3 && mf_batch_record(last, formats, 2, &array, &schema) == MF_OK);
  mf_batch_release(last);
  CHECK(array.length == 36 && array.n_children == 2); /* without padding and without the mask */
  CHECK(((const int32_t*)array.children[1]->buffers[1])[35] == 99 * 7 + 1);
  array.release(&array);
  schema.release(&schema);
  OK(mf_loader_seek(loader, 0, 0, &error));
  OK(mf_loader_next(loader, -1, &last, &error));
  CHECK(mf_batch_stream(last, formats, 2, &stream) == MF_OK);
  mf_batch_release(last);
  CHECK(rows_of(&stream) == 64);
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
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
  check_records(dataset, batch);
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
