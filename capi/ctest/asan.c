/*
 * asan.c: mistakes that AddressSanitizer must report in a program that is compiled with it.
 * The library is the released one, without AddressSanitizer.
 */
#include "check.h"

static volatile int32_t seen;

int main(void) {
  mf_error error = MF_ERROR_INIT;
  const char* mistake = getenv("MISTAKE");
  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.prefetch = -1});
  mf_batch* batch;
  for (int step = 0; step < 8; step++) { /* all batches use the same slot */
    OK(mf_loader_next(loader, -1, &batch, &error));
    const int32_t* data = (const int32_t*)batch->data;
    mf_batch_retain(batch);
    mf_batch_release(batch);
    seen = data[0];
    if (strcmp(mistake, "leak") != 0 || step > 0)
      mf_batch_release(batch);
    if (strcmp(mistake, "late") == 0)
      seen = data[0];
  }
  OK(mf_release(loader.id, &error));
  OK(mf_release(layout.id, &error));
  OK(mf_release(dataset.id, &error));
  free(r);
  puts("ok");
  return 0;
}
