/*
 * rows.c: rows of a dataset as record batches of text and lists, also in a forked child. With
 * MISTAKE=late or leak it does what AddressSanitizer must report.
 */
#define _DEFAULT_SOURCE
#include "../../arrowio/cstream/cstream.h"
#include "check.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static const int32_t labels[] = {5, 6, 7}, offsets[] = {0, 2, 2, 5};
static const uint8_t not_the_second[] = {5};
static const char text[] = "abcde";

static void keep_array(struct ArrowArray* a) { a->release = NULL; }
static void keep_schema(struct ArrowSchema* s) { s->release = NULL; }

/* Opens a dataset of int32 "label" and of "text": "ab", null, "cde". */
static mf_dataset open_text(void) {
  static const void *none[1], *label_buffers[2], *text_buffers[3];
  static struct ArrowArray columns[2], *column_list[] = {&columns[0], &columns[1]}, record;
  static struct ArrowSchema fields[2], *field_list[] = {&fields[0], &fields[1]}, schema;
  mf_error error = MF_ERROR_INIT;
  mf_dataset dataset;
  label_buffers[1] = labels;
  text_buffers[0] = not_the_second;
  text_buffers[1] = offsets;
  text_buffers[2] = text;
  columns[0] =
      (struct ArrowArray){.length = 3, .n_buffers = 2, .buffers = label_buffers, .release = keep_array};
  columns[1] = (struct ArrowArray){
      .length = 3, .null_count = 1, .n_buffers = 3, .buffers = text_buffers, .release = keep_array};
  record = (struct ArrowArray){.length = 3,
                               .n_buffers = 1,
                               .n_children = 2,
                               .buffers = none,
                               .children = column_list,
                               .release = keep_array};
  fields[0] = (struct ArrowSchema){.format = "i", .name = "label", .release = keep_schema};
  fields[1] = (struct ArrowSchema){.format = "u", .name = "text", .flags = 2, .release = keep_schema};
  schema = (struct ArrowSchema){
      .format = "+s", .name = "", .n_children = 2, .children = field_list, .release = keep_schema};
  OK(mf_dataset_open_record_batch(&record, &schema, NULL, &dataset, &error));
  return dataset;
}

/* Checks records 2, 0, 1, 2 with offsets of 64 bits. */
static void check_rows(const struct ArrowArray* array, const struct ArrowSchema* schema) {
  static const int64_t wide[] = {0, 3, 5, 5, 8};
  const struct ArrowArray *label = array->children[0], *words = array->children[1];
  CHECK(strcmp(schema->format, "+s") == 0 && strcmp(schema->children[1]->name, "text") == 0);
  CHECK(strcmp(schema->children[0]->format, "i") == 0 && strcmp(schema->children[1]->format, "U") == 0);
  CHECK(array->length == 4 && array->n_children == 2 && label->length == 4 && words->length == 4);
  CHECK(label->n_buffers == 2 && label->buffers[0] == NULL && label->null_count == 0);
  CHECK(((const int32_t*)label->buffers[1])[0] == 7 && ((const int32_t*)label->buffers[1])[2] == 6);
  CHECK(words->n_buffers == 3 && words->null_count == 1 && ((const uint8_t*)words->buffers[0])[0] == 11);
  CHECK(memcmp(words->buffers[1], wide, sizeof wide) == 0 && memcmp(words->buffers[2], "cdeabcde", 8) == 0);
}

/* Releases what the parent made, and gets an error from what enters Go. */
static void in_child(mf_dataset dataset, struct ArrowArray* array, struct ArrowSchema* schema,
                     struct ArrowArrayStream* stream) {
  const int64_t record = 0;
  mf_error error = MF_ERROR_INIT;
  struct ArrowArray more;
  struct ArrowSchema type;
  EXPECT(MF_FORKED, mf_dataset_rows(dataset, &record, 1, &more, NULL, &error));
  CHECK(more.release == NULL);
  CHECK(stream->get_next(stream, &more) == EINVAL && more.release == NULL);
  CHECK(strstr(stream->get_last_error(stream), "fork()"));
  CHECK(stream->get_schema(stream, &type) == EINVAL && type.release == NULL);
  check_rows(array, schema);
  array->release(array);
  schema->release(schema);
  CHECK(mf_live_batches() == 0 && mf_live_bytes() == 0);
  stream->release(stream);
  _exit(0);
}

static void check_errors(mf_dataset dataset) {
  const int64_t beyond[] = {0, 3}, below = -1;
  mf_error error = MF_ERROR_INIT;
  struct ArrowArray array;
  struct ArrowSchema schema;
  EXPECT(MF_OUT_OF_RANGE, mf_dataset_rows(dataset, beyond, 2, &array, &schema, &error));
  CHECK(array.release == NULL && schema.release == NULL);
  EXPECT(MF_OUT_OF_RANGE, mf_dataset_rows(dataset, &below, 1, &array, NULL, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_dataset_rows(dataset, &below, -1, &array, NULL, &error));
  OK(mf_dataset_rows(dataset, NULL, 0, &array, NULL, &error));
  CHECK(array.length == 0 && array.n_children == 2);
  array.release(&array);
}

int main(void) {
  static const int64_t order[] = {2, 0, 1, 2};
  mf_error error = MF_ERROR_INIT;
  const char* mistake = getenv("MISTAKE") ? getenv("MISTAKE") : "none";
  struct ArrowArray array, last;
  struct ArrowSchema schema;
  struct ArrowArrayStream stream;
  alarm(60); /* ends the program if a child hangs */
  const mf_dataset dataset = open_text();
  check_errors(dataset);
  OK(mf_dataset_rows(dataset, order, 4, &array, &schema, &error));
  check_rows(&array, &schema);
  OK(mf_dataset_stream(dataset, NULL, 0, &stream, &error));
  const pid_t child = fork();
  if (child == 0)
    in_child(dataset, &array, &schema, &stream);
  int outcome;
  CHECK(child > 0 && waitpid(child, &outcome, 0) == child && WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
  OK(mf_release(dataset.id, &error)); /* the stream and the arrays stay valid */
  CHECK(stream.get_next(&stream, &last) == 0 && last.length == 3);
  CHECK(memcmp(last.children[1]->buffers[1], offsets, sizeof offsets) == 0);
  last.release(&last);
  CHECK(stream.get_next(&stream, &last) == 0 && last.release == NULL);
  stream.release(&stream);
  struct ArrowArray moved = *array.children[1]; /* a consumer may move a child out */
  array.children[1]->release = NULL;
  array.release(&array);
  schema.release(&schema);
  CHECK(memcmp(moved.buffers[2], "cdeabcde", 8) == 0 && mf_live_bytes() > 0);
  const volatile char* kept = (const char*)moved.buffers[2];
  if (strcmp(mistake, "leak") == 0)
    moved.buffers = NULL;
  else
    moved.release(&moved);
  if (strcmp(mistake, "late") == 0)
    CHECK(kept[0] == 'c');
  kept = NULL;
  CHECK(strcmp(mistake, "leak") == 0 ||
        (mf_live_bytes() == 0 && mf_live_batches() == 0 && mf_live_handles() == 0));
  memset(&moved, 0, sizeof moved);
  puts("ok");
  return 0;
}
