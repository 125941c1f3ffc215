/*
 * advise.c: prints the answer to a strategy document in every format. The library must refuse other
 * documents and formats, and go on.
 */
#include "check.h"

static const char question[] =
    "{\"meshfeed\":1,\"model\":{\"preset\":\"llama3-8b\"},\"training\":{\"batch\":128},"
    "\"cluster\":{\"devices\":8,\"device\":\"h100-80\"}}";

static mf_error error = MF_ERROR_INIT;

/* No text stops the program: every prefix of the question is an error, and no change of a byte ends it. */
static void hostile(void) {
  char changed[sizeof question];
  mf_bytes text;
  for (size_t n = 0; n < sizeof question - 1; n++) {
    EXPECT(MF_INVALID_ARGUMENT, mf_advise(question, n, MF_JSON, &text, &error));
    CHECK(text.data == NULL && text.size == 0 && strcmp(error.op, "strategy") == 0);
    for (int c = 0; c < 256; c += 5) {
      memcpy(changed, question, sizeof question);
      changed[n] = (char)c;
      const mf_status status = mf_advise(changed, sizeof question - 1, MF_DOCUMENT, &text, &error);
      CHECK(status == MF_OK || (status == MF_INVALID_ARGUMENT && error.message[0]));
      mf_bytes_free(&text);
    }
  }
  EXPECT(MF_INVALID_ARGUMENT,
         mf_advise("{\"meshfeed\":1,\"model\":{\"preset\":\"gpt2\"}}", 40, MF_JSON, &text, &error));
  CHECK(strcmp(error.message, "a strategy document needs the key \"training\"") == 0 && error.path[0] == 0);
  const char unknown[] = "{\"meshfeed\":1,\"model\":{\"preset\":\"gpt2\"},\"training\":{\"batch\":0}}";
  EXPECT(MF_INVALID_ARGUMENT, mf_advise(unknown, sizeof unknown - 1, MF_JSON, &text, &error));
  CHECK(strcmp(error.path, "/training/batch") == 0);
}

int main(void) {
  mf_bytes text;
  for (int32_t format = MF_TEXT; format <= MF_DOCUMENT; format++) {
    if (format == MF_SVG)
      continue;
    OK(mf_advise(question, sizeof question - 1, format, &text, &error));
    CHECK(text.data[text.size] == 0 && strlen(text.data) == text.size);
    printf("%s\n----\n", text.data);
    mf_bytes_free(&text);
  }
  EXPECT(MF_INVALID_ARGUMENT, mf_advise(question, sizeof question - 1, MF_SVG, &text, &error));
  CHECK(strcmp(error.message, "format is 1, but must be MF_TEXT, MF_JSON or MF_DOCUMENT") == 0);
  EXPECT(MF_INVALID_ARGUMENT, mf_advise(question, sizeof question - 1, -1, &text, &error));
  hostile();
  CHECK(mf_live_handles() == 0);
  return 0;
}
