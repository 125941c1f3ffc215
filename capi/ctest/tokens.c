/*
 * tokens.c: documents in files of tokens, packed into rows and mixed by weights. Every value of the
 * batches is compared, on a mesh that splits rows and sequences.
 */
#include "check.h"

enum { LENGTH = 6, DRAWS = 64, BATCH = 16, FIELDS = 5 };

/* Rows of a packed dataset, as the fields tokens, labels, segment_ids and positions. */
typedef struct packed {
  int rows;
  int32_t values[3][FIELDS - 1][LENGTH];
} packed;

/* The documents {1,2,3} {4,5} {6,...,11} {12} {13,14,15,16}. A document as long as a row is the
   first row. The others are placed from the longest to the shortest, each where it leaves the least room. */
static const packed prose = {
    3,
    {{{6, 7, 8, 9, 10, 11}, {7, 8, 9, 10, 11, -100}, {1, 1, 1, 1, 1, 1}, {0, 1, 2, 3, 4, 5}},
     {{1, 2, 3, 12, 0, 0}, {2, 3, -100, -100, -100, -100}, {1, 1, 1, 2, 0, 0}, {0, 1, 2, 0, 0, 0}},
     {{4, 5, 13, 14, 15, 16}, {5, -100, 14, 15, 16, -100}, {1, 1, 2, 2, 2, 2}, {0, 1, 0, 1, 2, 3}}}};

/* The documents {101,...,104} {105}. */
static const packed code = {1,
                            {{{101, 102, 103, 104, 105, 0},
                              {102, 103, 104, -100, -100, -100},
                              {1, 1, 1, 1, 2, 0},
                              {0, 1, 2, 3, 0, 0}}}};

/* Writes documents of tokens that count from `first` on as a pair of Megatron's files. */
static void write_documents(const char* name, int32_t first, const int32_t* lengths, int32_t n) {
  char path[40];
  snprintf(path, sizeof path, "%s.bin", name);
  FILE* bin = fopen(path, "wb");
  snprintf(path, sizeof path, "%s.idx", name);
  FILE* idx = fopen(path, "wb");
  const uint64_t version = 1, documents = (uint64_t)n, ends = (uint64_t)n + 1;
  const uint8_t int32_code = 4;
  CHECK(bin && idx && fwrite("MMIDIDX\0", 9, 1, idx) == 1 && fwrite(&version, 8, 1, idx) == 1);
  CHECK(fwrite(&int32_code, 1, 1, idx) == 1 && fwrite(&documents, 8, 1, idx) == 1);
  CHECK(fwrite(&ends, 8, 1, idx) == 1 && fwrite(lengths, 4, (size_t)n, idx) == (size_t)n);
  int64_t at = 0;
  for (int32_t i = 0; i < n; i++) {
    CHECK(fwrite(&at, 8, 1, idx) == 1);
    at += 4 * lengths[i];
    for (int32_t k = 0; k < lengths[i]; k++, first++)
      CHECK(fwrite(&first, 4, 1, bin) == 1);
  }
  for (int64_t i = 0; i <= n; i++)
    CHECK(fwrite(&i, 8, 1, idx) == 1);
  CHECK(fclose(bin) == 0 && fclose(idx) == 0);
}

/* Makes a view. The document is released. */
static mf_status view(const char* kind, mf_bytes* json, const mf_dataset* datasets, int32_t n,
                      mf_dataset* made, mf_error* error) {
  const mf_status status =
      mf_dataset_view(kind, json->data, json->size, datasets, n, NULL, 0, made, 1, error);
  mf_bytes_free(json);
  return status;
}

static mf_dataset open_packed(const char* path) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset documents, rows;
  mf_bytes json = {NULL, 0};
  OK(mf_dataset_open(&path, 1, NULL, &documents, &error));
  mf_json_append(&json, "{'field': 'tokens', 'length': %d, 'labels': 'labels'}", (int64_t)LENGTH);
  OK(view("pack", &json, &documents, 1, &rows, &error));
  OK(mf_release(documents.id, &error));
  OK(mf_wait(rows.id, -1, &error));
  return rows;
}

/* The rows of a batch on all devices. */
static int32_t got[FIELDS][BATCH][LENGTH];

/* Copies every block of a batch into `got`. The fields are in the order of the layout. */
static void collect(const mf_batch* batch) {
  static const char* const names[FIELDS] = {"tokens", "labels", "segment_ids", "positions", "source"};
  memset(got, 0xee, sizeof got);
  mf_tensor t = MF_TENSOR_INIT;
  for (int32_t i = 0; i < batch->tensors; i++) {
    CHECK(mf_batch_tensor(batch, i, &t) == MF_OK && t.dtype.code == MF_INT && t.dtype.bits == 32);
    int field = 0;
    while (strcmp(names[field], t.name) != 0)
      CHECK(++field < FIELDS);
    const int64_t columns = t.ndim == 1 ? 1 : t.shape[1], from = t.ndim == 1 ? 0 : t.start[1];
    for (int64_t row = 0; row < t.shape[0]; row++)
      memcpy(&got[field][t.start[0] + row][from], (const int32_t*)t.data + row * columns,
             (size_t)columns * sizeof(int32_t));
  }
}

/* Three of four rows are prose. Each dataset comes in its own order, and begins again after its last row. */
static void check_draws(mf_dataset mixture) {
  mf_error error = MF_ERROR_INIT;
  static const char sequences[] = "{'shape': ['B', 6], 'dtype': 'int32', 'spec': ['data', 'seq']}";
  mf_bytes document = {NULL, 0};
  mf_json_append(&document, "{'meshfeed': 1, 'mesh': {'axes': [['data', 2], ['seq', 2]]}, 'arrays': {");
  static const char* const fields[] = {"tokens", "labels", "segment_ids", "positions"};
  for (int i = 0; i < 4; i++) {
    mf_json_append(&document, "%s: ", fields[i]);
    mf_json_append(&document, sequences);
    mf_json_append(&document, ", ");
  }
  mf_json_append(&document, "'source': {'shape': ['B'], 'dtype': 'int32', 'spec': ['data']}}, "
                            "'batch': {'size': 16}}");
  const mf_layout layout = make_layout(document.data);
  mf_bytes_free(&document);
  const mf_loader loader = make_loader(mixture, layout, NULL);
  const packed* const datasets[] = {&prose, &code};
  int drawn[] = {0, 0};
  for (int step = 0; step < DRAWS / BATCH; step++) {
    mf_batch* batch;
    OK(mf_loader_next(loader, -1, &batch, &error));
    collect(batch);
    mf_batch_release(batch);
    for (int row = 0; row < BATCH; row++) {
      const int32_t source = got[4][row][0];
      CHECK(source == 0 || source == 1);
      const packed* const want = datasets[source];
      for (int field = 0; field < 4; field++)
        CHECK(memcmp(got[field][row], want->values[drawn[source] % want->rows][field], sizeof got[0][0]) ==
              0);
      drawn[source]++;
    }
  }
  CHECK(drawn[0] == DRAWS * 3 / 4 && drawn[1] == DRAWS / 4);
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
}

/* Mistakes are errors that name the member of the document, or the dataset. */
static void errors(const mf_dataset* rows) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset made;
  mf_bytes json = {NULL, 0};
  mf_json_append(&json, "{'field': 'tokens', 'length': 0}");
  OK(view("pack", &json, rows, 1, &made, &error)); /* lengths are read in the background */
  EXPECT(MF_OUT_OF_RANGE, mf_wait(made.id, -1, &error));
  OK(mf_release(made.id, &error));
  mf_json_append(&json, "{'schedule': [{'weights': [1, -1]}]}");
  EXPECT(MF_INVALID_ARGUMENT, view("mix", &json, rows, 2, &made, &error));
  mf_json_append(&json, "{'schedule': [{'weights': [1]}]}");
  EXPECT(MF_INVALID_ARGUMENT, view("mix", &json, rows, 2, &made, &error));
  CHECK(!made.id && strcmp(error.message, "there are 1 weights for 2 datasets") == 0);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  write_documents("prose", 1, (const int32_t[]){3, 2, 6, 1, 4}, 5);
  write_documents("code", 101, (const int32_t[]){4, 1}, 2);
  mf_dataset rows[] = {open_packed("prose.idx"), open_packed("code.idx")};
  mf_bytes json = {NULL, 0};
  OK(mf_dataset_info(rows[1], &json, &error));
  CHECK(strstr(json.data, "\"packing\"") && strstr(json.data, "\"plan\":\"best_fit.1:65536\"") &&
        strstr(json.data, "\"tokens\":5,\"padding\":1,"));
  mf_bytes_free(&json);
  errors(rows);

  mf_dataset mixture;
  mf_json_append(&json, "{'schedule': [{'weights': [%g, %g]}], 'length': %d, 'source': 'source'}", 0.75, 0.25,
                 (int64_t)DRAWS);
  OK(view("mix", &json, rows, 2, &mixture, &error));
  OK(mf_release(rows[0].id, &error));
  OK(mf_release(rows[1].id, &error));
  OK(mf_wait(mixture.id, -1, &error));
  check_draws(mixture);
  OK(mf_release(mixture.id, &error));
  CHECK(mf_live_handles() == 0 && mf_live_batches() == 0 && mf_live_bytes() == 0);
  puts("ok");
  return 0;
}
