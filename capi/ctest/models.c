/*
 * models.c: what the functions of models return, and what they refuse.
 */
#include "check.h"

static mf_error error = MF_ERROR_INIT;

#define MODEL(spec)                                                                                          \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"fsdp\",4]]},"                                                      \
  "\"arrays\":{\"w\":{\"shape\":[256,64],\"dtype\":\"bfloat16\",\"spec\":" spec                              \
  "}},\"optimizer\":\"adamw\"}"

static void refused(const char* json, int32_t format, const char* message, const char* path) {
  mf_bytes text = {(char*)&error, 5};
  EXPECT(MF_INVALID_ARGUMENT, mf_memory(json, strlen(json), format, &text, &error));
  CHECK(text.data == NULL && text.size == 0);
  CHECK(strcmp(error.op, "memory") == 0);
  if (strcmp(error.message, message) || strcmp(error.path, path)) {
    fprintf(stderr, "got  %s (%s)\nwant %s (%s)\n", error.message, error.path, message, path);
    exit(1);
  }
}

static void shows(const char* json, int32_t format, const char* part) {
  mf_bytes text;
  OK(mf_memory(json, strlen(json), format, &text, &error));
  CHECK(text.data[text.size] == 0 && strlen(text.data) == text.size);
  if (!strstr(text.data, part)) {
    fprintf(stderr, "%s\nis not in\n%s\n", part, text.data);
    exit(1);
  }
  mf_bytes_free(&text);
}

/* The same loop as text and report: storage takes most of the time. */
static void diagnoses(void) {
  static const char json[] =
      "{\"meshfeed\":1,\"processes\":[{\"batches\":10,\"wall_ns\":100000000,\"wait_ns\":60000000,"
      "\"build_ns\":95000000,\"gather_ns\":90000000,\"storage_ns\":80000000,\"prefetch\":2}]}";
  static const struct {
    int32_t format;
    const char* part;
  } forms[] = {{MF_TEXT, "Reading the files bounds it, with 8.0 ms a batch"},
               {MF_JSON, "\"waited\":0.6,\"bound\":\"storage\""}};
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    mf_bytes text;
    OK(mf_diagnose(json, strlen(json), forms[i].format, &text, &error));
    if (!strstr(text.data, forms[i].part)) {
      fprintf(stderr, "%s\nis not in\n%s\n", forms[i].part, text.data);
      exit(1);
    }
    mf_bytes_free(&text);
  }
  mf_bytes text;
  EXPECT(MF_INVALID_ARGUMENT, mf_diagnose(json, strlen(json), MF_SVG, &text, &error));
  CHECK(!strcmp(error.message, "format is 1, but must be MF_TEXT or MF_JSON"));
  const char* none = "{\"meshfeed\":1,\"processes\":[{\"wait_ns\":-1}]}";
  EXPECT(MF_INVALID_ARGUMENT, mf_diagnose(none, strlen(none), MF_TEXT, &text, &error));
  CHECK(!strcmp(error.path, "/processes/0/wait_ns"));
}

int main(void) {
  diagnoses();
  shows(MODEL("[\"fsdp\"]"), MF_TEXT, "\noptimizer                    16 KiB  adamw\n");
  shows(MODEL("[\"fsdp\"]"), MF_JSON, "\"stored_bytes\":24580,\"gradient_bytes\":8192,");
  shows(MODEL("[\"data\"]"), MF_JSON, "\"code\":\"unknown-axis\",\"path\":\"/arrays/w/spec/0\"");
  refused(MODEL("[1]"), MF_JSON,
          "/arrays/w/spec/0: expected an axis, a list of axes or null, but found a number",
          "/arrays/w/spec/0");
  refused(MODEL("[]"), MF_SVG, "format is 1, but must be MF_TEXT or MF_JSON", "");
  CHECK(mf_live_handles() == 0);
  puts("ok");
  return 0;
}
