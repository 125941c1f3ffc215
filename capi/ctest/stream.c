/*
 * stream.c: datasets of Arrow C streams. The test checks when, and on which thread, streams and
 * arrays are released, also if a stream fails or its arrays are wrong.
 */
#include "../../arrowio/cstream/cstream.h"
#include "check.h"

#include <errno.h>
#include <pthread.h>

/* The faults of a stream. */
enum fault {
  SOUND,
  NO_SCHEMA,
  NO_NEXT,
  BAD_FORMAT,
  FEW_COLUMNS,
  NO_VALUES,
  SHORT_CHILD,
  NULL_ROWS,
  NEGATIVE
};

enum { BATCHES = 5, ROWS = 20 };

/* A stream of int32 "label" and fixed-size lists "image", 5 batches of 20. */
typedef struct producer {
  struct ArrowArrayStream stream;
  struct ArrowSchema schema, fields[2], item;
  struct ArrowSchema *field_list[2], *item_list[1];
  struct {
    struct ArrowArray columns[2], item;
    struct ArrowArray *column_list[2], *item_list[1];
    const void *none[1], *labels[2], *images[2];
  } batch[BATCHES];
  const records* data;
  enum fault fault;
  int given, arrays_released, schemas_released, streams_released;
  pthread_t owner;
} producer;

static void schema_gone(struct ArrowSchema* s) {
  producer* p = (producer*)s->private_data;
  CHECK(pthread_equal(pthread_self(), p->owner));
  p->schemas_released++;
  s->release = NULL;
}

static void array_gone(struct ArrowArray* a) {
  producer* p = (producer*)a->private_data;
  CHECK(pthread_equal(pthread_self(), p->owner));
  p->arrays_released++;
  a->release = NULL;
}

static void stream_gone(struct ArrowArrayStream* s) {
  producer* p = (producer*)s->private_data;
  CHECK(pthread_equal(pthread_self(), p->owner));
  p->streams_released++;
  s->release = NULL;
}

static void no_schema_release(struct ArrowSchema* s) { s->release = NULL; }
static void no_array_release(struct ArrowArray* a) { a->release = NULL; }
static const char* last_error(struct ArrowArrayStream* s) {
  (void)s;
  return "the disk failed";
}

static int get_schema(struct ArrowArrayStream* s, struct ArrowSchema* out) {
  producer* p = (producer*)s->private_data;
  if (p->fault == NO_SCHEMA)
    return EIO;
  *out = p->schema;
  return 0;
}

static int get_next(struct ArrowArrayStream* s, struct ArrowArray* out) {
  producer* p = (producer*)s->private_data;
  memset(out, 0, sizeof *out);
  if (p->given == 3 && p->fault == NO_NEXT)
    return EIO;
  if (p->given == BATCHES)
    return 0;
  const int b = p->given++;
  out->length = p->fault == NEGATIVE ? -1 : ROWS;
  out->null_count = p->fault == NULL_ROWS;
  out->n_buffers = 1;
  out->buffers = p->batch[b].none;
  out->n_children = p->fault == FEW_COLUMNS && b == 2 ? 1 : 2;
  out->children = p->batch[b].column_list;
  out->release = array_gone;
  out->private_data = p;
  return 0;
}

static void column(struct ArrowArray* a, int64_t length, const void** buffers) {
  a->length = length;
  a->n_buffers = 2;
  a->buffers = buffers;
  a->release = no_array_release;
}

static producer* produce(const records* data, enum fault fault) {
  producer* p = (producer*)calloc(1, sizeof *p);
  p->data = data;
  p->fault = fault;
  p->owner = pthread_self();
  p->stream.get_schema = get_schema;
  p->stream.get_next = get_next;
  p->stream.get_last_error = last_error;
  p->stream.release = stream_gone;
  p->stream.private_data = p;
  p->schema.format = fault == BAD_FORMAT ? "+x" : "+s";
  p->schema.name = "";
  p->schema.n_children = 2;
  p->schema.children = p->field_list;
  p->schema.release = schema_gone;
  p->schema.private_data = p;
  p->fields[0].format = "i";
  p->fields[0].name = "label";
  p->fields[1].format = "+w:18";
  p->fields[1].name = "image";
  p->fields[1].n_children = 1;
  p->fields[1].children = p->item_list;
  p->item.format = "f";
  p->item.name = "item";
  p->item_list[0] = &p->item;
  p->fields[0].release = p->fields[1].release = p->item.release = no_schema_release;
  p->field_list[0] = &p->fields[0];
  p->field_list[1] = &p->fields[1];
  for (int b = 0; b < BATCHES; b++) {
    /* All batches share the buffers, with different offsets. */
    p->batch[b].labels[1] = fault == NO_VALUES && b == 1 ? NULL : data->label;
    p->batch[b].images[1] = data->image;
    column(&p->batch[b].columns[0], ROWS, p->batch[b].labels);
    p->batch[b].columns[0].offset = b * ROWS;
    column(&p->batch[b].columns[1], ROWS, p->batch[b].none);
    p->batch[b].columns[1].n_buffers = 1;
    p->batch[b].columns[1].offset = b * ROWS;
    p->batch[b].columns[1].n_children = 1;
    p->batch[b].columns[1].children = p->batch[b].item_list;
    column(&p->batch[b].item, fault == SHORT_CHILD ? 17 : RECORDS * ROW, p->batch[b].images);
    p->batch[b].column_list[0] = &p->batch[b].columns[0];
    p->batch[b].column_list[1] = &p->batch[b].columns[1];
    p->batch[b].item_list[0] = &p->batch[b].item;
  }
  return p;
}

static const char document[] =
    "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",4]]},\"arrays\":{"
    "\"image\":{\"shape\":[\"B\",18],\"dtype\":\"float32\",\"spec\":[\"data\"]},"
    "\"label\":{\"shape\":[\"B\"],\"dtype\":\"int32\",\"spec\":[\"data\"]}},"
    "\"batch\":{\"size\":20},\"dataset\":{\"records\":100,\"order\":\"shuffle.1\"}}";

/* A loader of a slice keeps the arrays until it is released. */
static void sound(const records* data) {
  mf_error error = MF_ERROR_INIT;
  producer* p = produce(data, SOUND);
  mf_dataset dataset, slice;
  OK(mf_dataset_open_stream(&p->stream, NULL, &dataset, &error));
  CHECK(p->stream.release == NULL && p->streams_released == 1);
  CHECK(p->schemas_released == 1 && p->arrays_released == 0);
  OK(mf_dataset_slice(dataset, 0, 100, &slice, &error));
  OK(mf_release(dataset.id, &error));
  const mf_layout layout = make_layout(document);
  const mf_loader loader = make_loader(slice, layout, NULL);
  OK(mf_release(slice.id, &error));
  mf_batch* batch;
  int64_t order[20], count;
  for (int i = 0; i < 7; i++) {
    const mf_status status = mf_loader_next(loader, -1, &batch, &error);
    if (i == 5) {
      CHECK(status == MF_END);
      continue;
    }
    EXPECT(MF_OK, status);
    OK(mf_loader_records(loader, batch->epoch, batch->position, order, 20, &count, &error));
    for (int b = 0; b < batch->tensors; b++) {
      mf_tensor t;
      t.struct_size = sizeof t;
      OK(mf_batch_tensor(batch, b, &t));
      for (int64_t k = 0; k < t.shape[0]; k++) {
        const int64_t record = order[t.start[0] + k];
        if (t.ndim == 1)
          CHECK(((int32_t*)t.data)[k] == data->label[record]);
        else
          CHECK(memcmp((float*)t.data + k * ROW, data->image[record], sizeof data->image[0]) == 0);
      }
    }
    mf_batch_release(batch);
  }
  CHECK(p->arrays_released == 0);
  OK(mf_release(layout.id, &error));
  OK(mf_release(loader.id, &error));
  CHECK(p->arrays_released == BATCHES);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_stream(&p->stream, NULL, &dataset, &error));
  CHECK(strcmp(error.message, "the stream was released or moved before") == 0);
  free(p);
}

/* A record batch is moved and released as a stream is. */
static void record_batch(const records* data) {
  mf_error error = MF_ERROR_INIT;
  producer* p = produce(data, SOUND);
  struct ArrowArray array;
  struct ArrowSchema schema = p->schema;
  mf_dataset dataset;
  mf_bytes info;
  CHECK(get_next(&p->stream, &array) == 0);
  OK(mf_dataset_open_record_batch(&array, &schema, NULL, &dataset, &error));
  CHECK(!array.release && !schema.release && p->schemas_released == 1 && p->arrays_released == 0);
  OK(mf_dataset_info(dataset, &info, &error));
  CHECK(strncmp(info.data, "{\"records\":20,", 14) == 0);
  mf_bytes_free(&info);
  OK(mf_release(dataset.id, &error));
  CHECK(p->arrays_released == 1);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_record_batch(&array, &schema, NULL, &dataset, &error));
  CHECK(strcmp(error.message, "the record batch was released or moved before") == 0);

  const mf_dataset_options wrong = {.n_shapes = -1};
  CHECK(get_next(&p->stream, &array) == 0);
  schema = p->schema;
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_record_batch(&array, &schema, &wrong, &dataset, &error));
  CHECK(!array.release && !schema.release && p->schemas_released == 2 && p->arrays_released == 2);
  free(p);
}

/* Two columns of bytes. Each gets the shape and the type in its element of the array of shapes. */
static void typed_bytes(void) {
  mf_error error = MF_ERROR_INIT;
  const float numbers[] = {1, 2, 3, 4};
  const int32_t offsets[] = {0, 8, 16};
  const void *fixed[] = {NULL, numbers}, *binary[] = {NULL, offsets, numbers}, *none[] = {NULL};
  mf_row_shape shapes[] = {{"b", (int64_t[]){2, 2}, 2, {MF_INT, 16, 1}, 0},
                           {"a", (int64_t[]){2}, 1, {MF_FLOAT, 32, 1}, 0}};
  mf_dataset_options options = MF_DATASET_OPTIONS_INIT;
  mf_status want[] = {MF_OK, MF_UNSUPPORTED};
  options.shapes = shapes, options.n_shapes = 2;
  for (int i = 0; i < 2; i++) {
    struct ArrowSchema a = {.format = "w:8", .name = "a", .release = no_schema_release};
    struct ArrowSchema b = {.format = "z", .name = "b", .release = no_schema_release};
    struct ArrowSchema* fields[] = {&a, &b};
    struct ArrowSchema schema = {.format = "+s", .n_children = 2, .children = fields};
    struct ArrowArray rows_a = {.length = 2, .n_buffers = 2, .buffers = fixed, .release = no_array_release};
    struct ArrowArray rows_b = {.length = 2, .n_buffers = 3, .buffers = binary, .release = no_array_release};
    struct ArrowArray *columns[] = {&rows_a, &rows_b}, found;
    struct ArrowArray array = {.length = 2, .n_buffers = 1, .buffers = none, .n_children = 2};
    mf_dataset dataset;
    array.children = columns, array.release = no_array_release, schema.release = no_schema_release;
    EXPECT(want[i], mf_dataset_open_record_batch(&array, &schema, &options, &dataset, &error));
    shapes[1].dtype.bits = 24;
    if (i == 1)
      break;
    OK(mf_dataset_rows(dataset, (int64_t[]){1}, 1, &found, NULL, &error));
    const float* const last = (const float*)found.children[0]->children[0]->buffers[1];
    CHECK(last[0] == 3 && last[1] == 4);
    const struct ArrowArray* const pair = found.children[1]->children[0]->children[0];
    CHECK(pair->length == 4 && memcmp(pair->buffers[1], &numbers[2], 8) == 0);
    found.release(&found);
    OK(mf_release(dataset.id, &error));
  }
  CHECK(strncmp(error.message, "the row shape of field \"a\" has an element type of DLPack code 2, 24", 66) ==
        0);
}

/* A refused call releases the stream without reading it. */
static void refused(const records* data, const mf_dataset_options* options, mf_dataset* dataset,
                    const char* message) {
  mf_error error = MF_ERROR_INIT;
  producer* p = produce(data, SOUND);
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_open_stream(&p->stream, options, dataset, &error));
  CHECK(strncmp(error.message, message, strlen(message)) == 0);
  CHECK(p->given == 0 && p->streams_released == 1 && p->stream.release == NULL);
  free(p);
}

static void failing(const records* data, enum fault fault, mf_status want, const char* message) {
  mf_error error = MF_ERROR_INIT;
  producer* p = produce(data, fault);
  mf_dataset dataset = {5};
  EXPECT(want, mf_dataset_open_stream(&p->stream, NULL, &dataset, &error));
  if (strcmp(error.message, message) != 0) {
    fprintf(stderr, "fault %d\ngot  %s\nwant %s\n", (int)fault, error.message, message);
    exit(1);
  }
  CHECK(dataset.id == 0 && p->stream.release == NULL && p->streams_released == 1);
  CHECK(p->arrays_released == p->given && p->schemas_released == (fault != NO_SCHEMA));
  free(p);
}

int main(void) {
  records* r = make_records();
  mf_dataset none;
  sound(r);
  record_batch(r);
  typed_bytes();
  refused(r, &(mf_dataset_options){.n_shapes = -1}, &none, "shapes has -1 elements at ");
  refused(r, &(mf_dataset_options){.n_shapes = 1}, &none, "shapes has 1 elements at ");
  refused(r, NULL, NULL, "argument \"dataset\" is NULL");
  failing(r, NO_SCHEMA, MF_IO, "the stream failed: the disk failed (error 5)");
  failing(r, NO_NEXT, MF_IO, "the stream failed: the disk failed (error 5)");
  failing(r, BAD_FORMAT, MF_UNSUPPORTED,
          "the stream cannot be read: the stream holds arrays of unknown type \"+x\", not record batches");
  failing(r, FEW_COLUMNS, MF_DATA_LOSS, "record batch 2 of the stream has 1 columns, but the schema has 2");
  failing(r, NO_VALUES, MF_DATA_LOSS,
          "record batch 1 of the stream: column \"label\": level 0 has no values");
  failing(r, SHORT_CHILD, MF_DATA_LOSS,
          "record batch 0 of the stream: column \"image\": level 1 has 17 values, but 360 are needed");
  failing(r, NULL_ROWS, MF_UNSUPPORTED, "record batch 0 of the stream has 1 rows that are null as a whole");
  failing(r, NEGATIVE, MF_DATA_LOSS, "record batch 0 of the stream has -1 rows from row 0 on");
  CHECK(mf_live_handles() == 0 && mf_live_bytes() == 0);
  free(r);
  puts("ok");
  return 0;
}
