//go:build cgo && (linux || darwin)

// Package library loads the shared library of a PJRT plugin and reads its table
// of functions, before anything is called through it.
//
// A plugin exports one symbol, GetPjrtApi, which gives the table: its size in
// bytes, a version, and pointers to functions. Functions are only ever added at
// the end, so a place in the table means the same in all versions of one major
// number; an older plugin has a shorter table, and a simple one has NULL where
// it lacks a function. Calling through such a place ends the process, and
// go-xla does not look. So this package does.
package library

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum outcome { LOADED, NOT_LOADED, NO_SYMBOL, NO_TABLE };

// mf_load is one call, because dlerror speaks of the thread that asks.
static enum outcome mf_load(const char *path, const void **table, char **why) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		*why = strdup(dlerror());
		return NOT_LOADED;
	}
	const void *(*get)(void) = (const void *(*)(void))dlsym(library, "GetPjrtApi");
	if (!get)
		return NO_SYMBOL;
	*table = get();
	return *table ? LOADED : NO_TABLE;
}
*/
import "C"

import (
	"strings"
	"unsafe"

	"github.com/meshfeed/meshfeed/core/gomlxfeed/xla/internal/environ"
	"github.com/meshfeed/meshfeed/core/status"
)

// Table is a plugin's table of functions. It stays valid to the end of the
// process: native libraries of this size start threads and are not made to be
// unloaded.
type Table struct{ base unsafe.Pointer }

// header is how PJRT_Api begins; what follows are pointers to functions.
type header struct {
	size       uintptr
	extensions unsafe.Pointer
	version    struct {
		size         uintptr
		extensions   unsafe.Pointer
		major, minor int32
	}
}

// Load loads the library at an absolute path and asks it for its table. A
// library that is loaded already is not loaded again.
func Load(path string) (Table, error) {
	if err := checkWhole(path); err != nil {
		return Table{}, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var table, why = unsafe.Pointer(nil), (*C.char)(nil)
	outcome := C.enum_outcome(C.LOADED)
	err := environ.Quietly(func() error {
		outcome = C.mf_load(name, &table, &why)
		return nil
	})
	defer C.free(unsafe.Pointer(why))
	switch outcome {
	case C.NOT_LOADED:
		return Table{}, notLoaded(path, C.GoString(why))
	case C.NO_SYMBOL:
		return Table{}, status.Errorf(status.Incompatible, "gomlxfeed", "it is a shared library, but not a PJRT plugin: it lacks the symbol GetPjrtApi").
			WithHint("jaxlib is none; plugins are in packages such as xla-cpu-pjrt, jax-cuda13-pjrt and libtpu")
	case C.NO_TABLE:
		return Table{}, status.Errorf(status.Incompatible, "gomlxfeed", "it gave no table of functions")
	}
	return Table{table}, err
}

func notLoaded(path, why string) error {
	why = strings.TrimPrefix(why, path+": ")
	return status.Errorf(status.Incompatible, "gomlxfeed", "it cannot be loaded: %s", why).
		WithHint("it must be a shared library for this system, with all libraries that it needs: ldd shows which are missing")
}

// Address gives the address of the table.
func (t Table) Address() uintptr { return uintptr(t.base) }

// Version gives the version of the interface that the plugin was built with.
func (t Table) Version() (major, minor int) {
	v := (*header)(t.base).version
	return int(v.major), int(v.minor)
}

// Has says whether the plugin has a function, by its name in the C header. A
// name that is not in Functions is a bug and panics.
func (t Table) Has(function string) bool {
	at := unsafe.Sizeof(header{}) + uintptr(place(function))*unsafe.Sizeof(uintptr(0))
	if at+unsafe.Sizeof(uintptr(0)) > (*header)(t.base).size {
		return false
	}
	return *(*uintptr)(unsafe.Add(t.base, at)) != 0
}

// Missing lists those of some functions that the plugin lacks.
func (t Table) Missing(functions []string) []string {
	var missing []string
	for _, f := range functions {
		if !t.Has(f) {
			missing = append(missing, f)
		}
	}
	return missing
}
