/*
 * soak.c: creates and releases thousands of datasets, loaders and batches, some with errors,
 * some cancelled, some in forked children. At the end the process has as many handles,
 * batches and descriptors as after the first quarter, a few more threads, and little more
 * memory. ROUNDS is the number of rounds, FILE a file with a float field "image" of 4 x 3
 * and five records.
 */
#define _DEFAULT_SOURCE
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL                                                                                                \
  "{\"meshfeed\":1,\"mesh\":{\"axes\":[[\"data\",1]]},\"arrays\":{\"image\":{\"shape\":[\"B\",4,3],"         \
  "\"dtype\":\"float32\",\"spec\":[\"data\"]}},\"batch\":{\"size\":2},\"dataset\":{\"records\":5}}"

static records* r;
static unsigned seed;

static int entries(const char* folder) {
  int n = 0;
  DIR* dir = opendir(folder);
  CHECK(dir);
  while (readdir(dir))
    n++;
  closedir(dir);
  return n;
}

static long resident_pages(void) {
  long all, resident;
  FILE* f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%ld %ld", &all, &resident) == 2);
  fclose(f);
  return resident;
}

static mf_dataset open_path(const char* path) {
  mf_error error = MF_ERROR_INIT;
  mf_dataset dataset;
  OK(mf_dataset_open(&path, 1, &(mf_dataset_options){.io = rand_r(&seed) % 3}, &dataset, &error));
  return dataset;
}

/* Every call on a loader of a missing file reports that error. */
static void nowhere(mf_layout layout) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  mf_loader loader;
  const mf_dataset dataset = open_path("/nowhere/x.arrow");
  OK(mf_loader_create(dataset, layout, NULL, &loader, &error));
  EXPECT(MF_NOT_FOUND, mf_loader_next(loader, -1, &batch, &error));
  EXPECT(MF_NOT_FOUND, mf_wait(dataset.id, -1, &error));
  OK(mf_release(loader.id, &error));
  OK(mf_release(dataset.id, &error));
}

/* A forked child can drop all inherited objects. */
static void in_child(mf_loader loader, mf_dataset dataset, mf_batch* batch) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* other;
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (mf_loader_next(loader, -1, &other, &error) != MF_FORKED)
      _exit(1);
    mf_batch_release(batch);
    mf_release(loader.id, &error);
    mf_release(dataset.id, &error);
    exit(0); /* also runs the exit functions of the library */
  }
  int outcome;
  CHECK(waitpid(child, &outcome, 0) == child);
  CHECK(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
}

static void* cancel(void* loader) {
  mf_cancel(((mf_loader*)loader)->id, NULL); /* the handle may be released already */
  return NULL;
}

static void read_some(mf_loader loader, mf_dataset dataset, int may_be_cancelled) {
  mf_error error = MF_ERROR_INIT;
  mf_batch* batch;
  mf_batch* kept = NULL;
  for (int i = rand_r(&seed) % 8; i > 0; i--) {
    const mf_status status = mf_loader_next(loader, rand_r(&seed) % 4 ? -1 : 0, &batch, &error);
    if (status == MF_END || (may_be_cancelled && status == MF_CANCELLED))
      break;
    CHECK(status == MF_OK || status == MF_TIMEOUT);
    if (batch && rand_r(&seed) % 2) {
      mf_batch_release(kept);
      kept = batch;
    } else {
      mf_batch_release(batch);
    }
  }
  if (rand_r(&seed) % 64 == 0)
    in_child(loader, dataset, kept);
  OK(mf_release(loader.id, &error));
  mf_batch_release(kept); /* after the release of its loader */
}

static void once(mf_layout memory, mf_layout small, const char* file) {
  mf_error error = MF_ERROR_INIT;
  const int from_file = rand_r(&seed) % 2, cancelled = rand_r(&seed) % 8 == 0;
  const mf_layout layout = from_file ? small : memory;
  if (rand_r(&seed) % 8 == 0)
    nowhere(layout);
  const mf_dataset dataset = from_file ? open_path(file) : open_records(r);
  mf_loader loader;
  pthread_t thread;
  OK(mf_loader_create(dataset, layout, &(mf_loader_options){.order = "shuffle.1"}, &loader, &error));
  if (cancelled)
    CHECK(!pthread_create(&thread, NULL, cancel, &loader));
  if (rand_r(&seed) % 2) {
    read_some(loader, dataset, cancelled);
    OK(mf_release(dataset.id, &error));
  } else { /* in the other order */
    OK(mf_release(dataset.id, &error));
    read_some(loader, (mf_dataset){0}, cancelled);
  }
  if (cancelled)
    pthread_join(thread, NULL);
}

int main(void) {
  const char* file = getenv("FILE");
  const int rounds = atoi(getenv("ROUNDS"));
  mf_error error = MF_ERROR_INIT;
  seed = getenv("SEED") ? (unsigned)atoi(getenv("SEED")) : (unsigned)getpid();
  fprintf(stderr, "SEED=%u\n", seed);
  r = make_records();
  const mf_layout memory = make_layout(DOCUMENT(100, 4, "")), small = make_layout(SMALL);
  int files = 0, threads = 0;
  long pages = 0;
  for (int i = 0; i < rounds; i++) {
    if (i == rounds / 4) {
      files = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
      pages = resident_pages();
    }
    once(memory, small, file);
    CHECK(mf_live_handles() == 2 && mf_live_batches() == 0);
  }
  OK(mf_release(memory.id, &error));
  OK(mf_release(small.id, &error));
  fprintf(stderr, "descriptors %d then %d, threads %d then %d, pages %ld then %ld\n", files,
          entries("/proc/self/fd"), threads, entries("/proc/self/task"), pages, resident_pages());
  CHECK(mf_live_handles() == 0 && mf_live_bytes() == 0);
  CHECK(entries("/proc/self/fd") == files);
  CHECK(entries("/proc/self/task") <= threads + 16); /* Go adds some in busy moments, and none per round */
  CHECK(resident_pages() < pages + (8 << 20) / 4096);
  free(r);
  puts("ok");
  return 0;
}
