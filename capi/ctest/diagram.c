/*
 * diagram.c: prints a diagram in both formats and two widths. The library must refuse other formats,
 * widths and documents, and go on.
 */
#include "check.h"

static const char document[] =
    "{\"meshfeed\":1,\"diagram\":{\"mesh\":{\"axes\":[[\"data\",4],[\"model\",2]]}}}";

static mf_error error = MF_ERROR_INIT;

static void print(int32_t format, int64_t width) {
  mf_bytes text;
  OK(mf_diagram(document, sizeof document - 1, format, width, &text, &error));
  CHECK(text.data[text.size] == 0 && strlen(text.data) == text.size);
  printf("%s", text.data);
  mf_bytes_free(&text);
}

static void refuses(const char* json, int32_t format, int64_t width, const char* message, const char* path) {
  mf_bytes text;
  EXPECT(MF_INVALID_ARGUMENT, mf_diagram(json, strlen(json), format, width, &text, &error));
  CHECK(text.data == NULL && text.size == 0);
  CHECK(strcmp(error.op, "diagram") == 0 && strcmp(error.message, message) == 0);
  CHECK(strcmp(error.path, path) == 0);
}

int main(void) {
  print(MF_TEXT, 0);
  print(MF_TEXT, 60);
  print(MF_SVG, 0);
  print(MF_SVG, 390);
  refuses(document, 7, 0, "format is 7, but must be MF_TEXT or MF_SVG", "");
  refuses(document, MF_SVG, -1, "width is -1, but must be from 0 to 65536", "");
  refuses(document, MF_SVG, 65537, "width is 65537, but must be from 0 to 65536", "");
  refuses("{\"meshfeed\":1,\"diagram\":{\"memory\":{\"bars\":[]}}}", MF_TEXT, 0,
          "/diagram/memory/bars: expected 1 to 64 bars, but found 0", "/diagram/memory/bars");
  for (size_t n = 0; n < sizeof document - 1; n++) {
    mf_bytes text;
    EXPECT(MF_INVALID_ARGUMENT, mf_diagram(document, n, MF_TEXT, 0, &text, &error));
  }
  CHECK(mf_live_handles() == 0);
  return 0;
}
