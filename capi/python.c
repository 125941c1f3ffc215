/*
 * python.c: callbacks for the Python package, which has no compiled code of its own.
 */
#include "../arrowio/cstream/cstream.h"
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>

static mf_python python;
static atomic_bool usable; /* false until python is complete, and after the interpreter's exit */

void mf_python_set(const mf_python* functions) {
  if (functions)
    mfi_read(&python, sizeof python, functions, MFI_SIZE_TO(mf_python, drop));
  atomic_store(&usable, functions != NULL);
}

void mf_python_drop(void* object) {
  if (!atomic_load(&usable))
    return;
  const int state = python.lock();
  python.drop(object);
  python.unlock(state);
}

/* An Arrow struct in a capsule. It is the first member, so both have one address. */
typedef struct {
  union {
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct ArrowArrayStream stream;
  } in;
  int32_t kind;
} capsule;

void* mf_python_capsule_new(int32_t kind) {
  capsule* c = calloc(1, sizeof *c);
  if (c)
    c->kind = kind;
  return c;
}

static void release(capsule* c) {
  if (c->kind == MF_ARROW_SCHEMA && c->in.schema.release)
    c->in.schema.release(&c->in.schema);
  if (c->kind == MF_ARROW_ARRAY && c->in.array.release)
    c->in.array.release(&c->in.array);
  if (c->kind == MF_ARROW_STREAM && c->in.stream.release)
    c->in.stream.release(&c->in.stream);
}

void mf_python_capsule_free(void* object) {
  capsule* c = atomic_load(&usable) ? python.capsule_context(object) : NULL;
  if (!c)
    return;
  release(c);
  free(c);
}
