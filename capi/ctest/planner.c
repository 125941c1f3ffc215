/*
 * planner.c: the functions that plan without handles. Eight threads call them at the same time and get
 * the bytes of a single call. The texts of documents need not end with NUL, and the errors of threads
 * stay apart.
 */
#include "check.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 6, LARGE = (8 << 20) + 1 };

static const char question[] = "{\"meshfeed\":1,\"model\":{\"preset\":\"gpt2\"},\"training\":{\"batch\":64},"
                               "\"cluster\":{\"devices\":8,\"device\":\"a100-40\"}}";
static const char model[] = "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"fsdp\",4]]},\"optimizer\":\"adamw\","
                            "\"arrays\":{\"w\":{\"shape\":[256,64],\"dtype\":\"bfloat16\"}}}";
static const char measured[] = "{\"meshfeed\":1,\"processes\":[{\"batches\":9,\"wall_ns\":900,"
                               "\"wait_ns\":600,\"build_ns\":880,\"gather_ns\":870,\"storage_ns\":800}]}";
static const char diagram[] =
    "{\"meshfeed\":1,\"diagram\":{\"mesh\":{\"axes\":[[\"data\",4],[\"model\",2]]}}}";

static mf_status draw(const char* json, size_t size, int32_t format, mf_bytes* text, mf_error* error) {
  return mf_diagram(json, size, format, 0, text, error);
}

typedef mf_status planner(const char*, size_t, int32_t, mf_bytes*, mf_error*);

static const struct {
  planner* run;
  const char* op;
  const char* document;
  int32_t format;
} calls[] = {
    {mf_advise, "strategy", question, MF_TEXT},
    {mf_advise, "strategy", question, MF_JSON},
    {mf_advise, "strategy", question, MF_DOCUMENT},
    {mf_memory, "memory", model, MF_TEXT},
    {mf_memory, "memory", model, MF_JSON},
    {mf_diagnose, "measurements", measured, MF_TEXT},
    {mf_diagnose, "measurements", measured, MF_JSON},
    {draw, "diagram", diagram, MF_TEXT},
    {draw, "diagram", diagram, MF_SVG},
};

enum { CALLS = sizeof calls / sizeof calls[0] };

static mf_bytes answers[CALLS];

/* A copy that ends where its memory ends, so that AddressSanitizer reports a read beyond it. */
static char* copy(const char* text) {
  char* bytes = malloc(strlen(text));
  CHECK(bytes);
  memcpy(bytes, text, strlen(text));
  return bytes;
}

static void fails(int i, const char* json, size_t size, int32_t format, const char* message) {
  mf_error error = MF_ERROR_INIT;
  mf_bytes text = {(char*)&error, 5};
  EXPECT(MF_INVALID_ARGUMENT, calls[i].run(json, size, format, &text, &error));
  CHECK(text.data == NULL && text.size == 0);
  CHECK(strcmp(error.op, calls[i].op) == 0);
  if (strcmp(error.message, message)) {
    fprintf(stderr, "got  %s\nwant %s\n", error.message, message);
    exit(1);
  }
  EXPECT(MF_INVALID_ARGUMENT, calls[i].run(json, size, format, &text, NULL)); /* error may be NULL */
}

static void* thread(void* context) {
  (void)context;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < CALLS; i++) {
      mf_error error = MF_ERROR_INIT;
      mf_bytes text;
      char* json = copy(calls[i].document);
      const size_t size = strlen(calls[i].document);
      OK(calls[i].run(json, size, calls[i].format, &text, &error));
      CHECK(text.size == answers[i].size && memcmp(text.data, answers[i].data, (size_t)text.size) == 0);
      CHECK(error.message[0] == 0);
      mf_bytes_free(&text);
      CHECK(text.data == NULL);
      fails(i, json, 0, calls[i].format, "expected a value, but the text ends (line 1, byte 1)");
      fails(i, NULL, 0, calls[i].format, "expected a value, but the text ends (line 1, byte 1)");
      free(json);
    }
  return NULL;
}

static void large(void) {
  char* spaces = malloc(LARGE);
  CHECK(spaces);
  memset(spaces, ' ', LARGE);
  for (int i = 0; i < CALLS; i++)
    fails(i, spaces, LARGE, calls[i].format, "the document has 8388609 bytes, but may have 8388608");
  free(spaces);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  for (int i = 0; i < CALLS; i++)
    OK(calls[i].run(calls[i].document, strlen(calls[i].document), calls[i].format, &answers[i], &error));
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++)
    CHECK(pthread_create(&threads[t], NULL, thread, NULL) == 0);
  for (int t = 0; t < THREADS; t++)
    CHECK(pthread_join(threads[t], NULL) == 0);
  large();
  fails(0, model, strlen(model), MF_JSON, "expected a strategy document, but found a memory document");
  for (int i = 0; i < CALLS; i++)
    mf_bytes_free(&answers[i]);
  CHECK(mf_live_handles() == 0);
  puts("ok");
  return 0;
}
