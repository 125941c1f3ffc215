/*
 * page.c: prints the page of a layout, or the error of a library without the page.
 */
#include "check.h"

int main(void) {
  mf_error error = MF_ERROR_INIT;
  mf_bytes html = {(char*)&error, 5};
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_status status = mf_layout_page(layout, &html, &error);
  if (status == MF_OK) {
    CHECK(html.data[html.size] == 0 && strlen(html.data) == html.size);
    CHECK(error.code == MF_OK && error.message[0] == 0);
    fputs(html.data, stdout);
  } else {
    CHECK(html.data == NULL && html.size == 0 && error.code == status);
    printf("%d: %s: %s; %s", (int)status, error.op, error.message, error.hint);
  }
  mf_bytes_free(&html);
  OK(mf_release(layout.id, &error));
  EXPECT(MF_INVALID_STATE, mf_layout_page(layout, &html, &error));
  EXPECT(MF_INVALID_ARGUMENT, mf_layout_page(layout, NULL, &error));
  CHECK(mf_live_handles() == 0);
  return 0;
}
