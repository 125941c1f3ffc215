/*
 * sigbus.c: a mapped file is truncated during a gather, in a program that handles SIGBUS itself.
 * It installs its handler before or after the library is used. The gather fails, and any other
 * SIGBUS reaches the program. FILE is a copy of a file with a float field "image" of 4 x 3 and five
 * records.
 *
 * For a library that was built with the tag meshfeed_faults.
 */
#define _GNU_SOURCE
#include "check.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void mf_fault_cut(const char* path, int64_t size);
int mf_fault_marked(void);

#define SMALL                                                                                                \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"image\":{\"shape\":[\"B\",4,3],"         \
  "\"dtype\":\"float32\",\"spec\":[\"data\"]}},\"batch\":{\"size\":2},\"dataset\":{\"records\":5}}"

static sigjmp_buf back;
static volatile int caught, plain;

static void on_bus(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  CHECK(info->si_code == BUS_ADRERR && info->si_addr);
  caught++;
  siglongjmp(back, 1);
}

static void on_plain_bus(int number) {
  (void)number;
  plain++;
}

static void install(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_bus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  CHECK(sigaction(SIGBUS, &action, NULL) == 0);
}

/* Reads a mapping of this program beyond the end of its file. */
static void fault(void) {
  FILE* f = tmpfile();
  CHECK(f);
  volatile char* p = (volatile char*)mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);
  CHECK(p != MAP_FAILED);
  const int before = caught;
  if (sigsetjmp(back, 1) == 0)
    CHECK(p[100] == 1 && 0);
  CHECK(caught == before + 1);
  CHECK(munmap((void*)p, 4096) == 0);
  fclose(f);
}

static void write_file(const char* path, const char* data, size_t size) {
  FILE* f = fopen(path, "wb");
  CHECK(f && fwrite(data, 1, size, f) == size);
  fclose(f);
}

static mf_loader open_file(const char* path, mf_layout layout) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset dataset;
  OK(mf_dataset_open(&path, 1, &(mf_dataset_options){.io = MF_IO_MAP}, &dataset, &error));
  const mf_loader loader = make_loader(dataset, layout, &(mf_loader_options){.epochs = -1, .prefetch = -1});
  OK(mf_release(dataset.id, &error));
  return loader;
}

/* Truncates the file in the next gather. That gather fails, and so do later ones, because
   the mapping then has zeros in place of the missing bytes. If the file is not resident
   yet, its rows are read and the mapping does not fault. Then another loader tries, after
   more batches. */
static mf_loader truncate_during_gather(mf_loader loader, mf_layout layout, const char* path,
                                        const char* data, size_t size) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  for (int batches = 1;; batches *= 2) {
    for (int i = 0; i < batches; i++) {
      OK(mf_loader_next(loader, -1, &batch, &error));
      mf_batch_release(batch);
    }
    mf_fault_cut(path, 0);
    EXPECT(MF_DATA_LOSS, mf_loader_next(loader, -1, &batch, &error));
    CHECK(strstr(error.message, "ends before") && strcmp(error.path, path) == 0);
    write_file(path, data, size);
    EXPECT(MF_DATA_LOSS, mf_loader_next(loader, -1, &batch, &error));
    if (mf_fault_marked())
      return loader;
    OK(mf_release(loader.id, &error));
    loader = open_file(path, layout);
  }
}

/* Ends a child by a SIGBUS without a handler. */
static void die(void) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);
    raise(SIGBUS);
    _exit(0);
  }
  int outcome;
  CHECK(waitpid(child, &outcome, 0) == child && WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGBUS);
}

int main(void) {
  mf_error error = MF_ERROR_INIT;
  static char data[1 << 16];
  const char* path = getenv("FILE");
  FILE* f = fopen(path, "rb");
  alarm(60);
  CHECK(f);
  const size_t size = fread(data, 1, sizeof data, f);
  fclose(f);
  const mf_layout layout = make_layout(SMALL);

  install(); /* before a file is mapped */
  for (int i = 0; i < 20; i++) {
    mf_loader loader = open_file(path, layout);
    if (i % 2)
      install(); /* after a file is mapped */
    fault();
    loader = truncate_during_gather(loader, layout, path, data, size);
    fault();
    OK(mf_release(loader.id, &error));
  }
  fault();
  CHECK(signal(SIGBUS, on_plain_bus) != SIG_ERR);
  const mf_loader loader = truncate_during_gather(open_file(path, layout), layout, path, data, size);
  raise(SIGBUS);
  CHECK(plain == 1);
  CHECK(signal(SIGBUS, SIG_IGN) != SIG_ERR);
  OK(mf_release(loader.id, &error));
  const mf_loader another = truncate_during_gather(open_file(path, layout), layout, path, data, size);
  raise(SIGBUS);
  die();
  OK(mf_release(another.id, &error));
  OK(mf_release(layout.id, &error));
  CHECK(mf_live_handles() == 0);
  puts("ok");
  return 0;
}
