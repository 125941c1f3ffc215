/*
 * silence.c: the library writes nothing to descriptors 1 and 2, even if calls fail and the
 * reader has closed the pipe. The program exits while loaders work.
 */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <unistd.h>

int main(void) {
  mf_error error = MF_ERROR_INIT;
  int ends[2];
  CHECK(pipe(ends) == 0);
  const int out = dup(1);
  CHECK(dup2(ends[1], 1) == 1 && dup2(ends[1], 2) == 2);
  close(ends[0]);
  close(ends[1]); /* now a write to 1 or 2 ends the process */

  records* r = make_records();
  const mf_dataset dataset = open_records(r);
  const mf_layout layout = make_layout(DOCUMENT(100, 4, ""));
  const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.epochs = -1, .prefetch = 8});
  mf_batch* batch;
  mf_layout none;
  for (int i = 0; i < 100; i++) {
    OK(mf_loader_next(loader, -1, &batch, &error));
    mf_batch_release(batch);
    EXPECT(MF_INVALID_ARGUMENT, mf_layout_create("{", 1, &none, &error));
    EXPECT(MF_INVALID_STATE, mf_wait(loader.id + 1, 0, &error));
  }
  OK(mf_loader_next(loader, -1, &batch, &error));
  CHECK(write(out, "ok\n", 3) == 3);
  return 0; /* without releasing the loader, the dataset and the batch */
}
