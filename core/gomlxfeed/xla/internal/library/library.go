//go:build cgo && (linux || darwin)

// Package library loads the shared library of a PJRT plugin and checks its table
// of functions before anything is called through it.
//
// A plugin exports one symbol, GetPjrtApi, which returns the table: its size in
// bytes, a version, and pointers to functions. New functions are added at the end,
// so an entry means the same in all versions of one major number. An older plugin
// has a shorter table. A missing function is NULL or beyond the table's end. Calling
// it ends the process. go-xla does not check for missing functions, so this package
// does.
package library

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum outcome { LOADED, NOT_LOADED, NO_SYMBOL, NO_TABLE };

// mf_load does everything in one call from Go, which stays on one thread: dlerror
// returns the error of the calling thread.
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

// Table is a plugin's table of functions. It stays valid until the process ends,
// because plugins start threads and cannot be unloaded.
type Table struct{ base unsafe.Pointer }

// header is the beginning of PJRT_Api. Pointers to functions follow it.
type header struct {
	size       uintptr
	extensions unsafe.Pointer
	version    struct {
		size         uintptr
		extensions   unsafe.Pointer
		major, minor int32
	}
}

// Load loads the library at an absolute path, unless it is loaded, and returns its
// table.
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
			WithHint("plugins are in packages such as xla-cpu-pjrt, jax-cuda13-pjrt and libtpu, but not in jaxlib")
	case C.NO_TABLE:
		return Table{}, status.Errorf(status.Incompatible, "gomlxfeed", "it returned no table of functions")
	}
	return Table{table}, err
}

func notLoaded(path, why string) error {
	why = strings.TrimPrefix(why, path+": ")
	return status.Errorf(status.Incompatible, "gomlxfeed", "it cannot be loaded: %s", why).
		WithHint("it must be a shared library for this system, with all libraries that it needs: ldd shows which are missing")
}

// Address returns the address of the table.
func (t Table) Address() uintptr { return uintptr(t.base) }

// Version returns the version of the interface that the plugin implements.
func (t Table) Version() (major, minor int) {
	v := (*header)(t.base).version
	return int(v.major), int(v.minor)
}

// has reports whether the plugin has a function, by its name in the C header. It
// panics if the name is not in the list functions, which is a bug.
func (t Table) has(function string) bool {
	at := unsafe.Sizeof(header{}) + uintptr(entry(function))*unsafe.Sizeof(uintptr(0))
	if at+unsafe.Sizeof(uintptr(0)) > (*header)(t.base).size {
		return false
	}
	return *(*uintptr)(unsafe.Add(t.base, at)) != 0
}

// Missing returns the functions of a list that the plugin does not have.
func (t Table) Missing(functions []string) []string {
	var missing []string
	for _, f := range functions {
		if !t.has(f) {
			missing = append(missing, f)
		}
	}
	return missing
}
