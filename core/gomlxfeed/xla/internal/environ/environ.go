// Package environ keeps the environment as the owner of the process set it.
//
// go-xla, when it is initialised, sets TF_CPP_MIN_LOG_LEVEL for the whole
// process, and complains on standard error if it has no HOME. This package
// comes before it: the Go specification initialises packages in the order of
// their import paths, each as soon as its imports are, and this one imports
// only package os, while go-xla waits for k8s.io/klog/v2.
package environ

import "os"

// variable is one of the environment, as it was when it was looked at.
type variable struct {
	name, value string
	set         bool
}

func look(name string) variable {
	value, set := os.LookupEnv(name)
	return variable{name, value, set}
}

// instead sets a variable that has no value, and gives what it was.
func instead(name, value string) variable {
	v := look(name)
	if v.value == "" {
		_ = os.Setenv(name, value) // it fails for malformed names only
	}
	return v
}

func (v variable) restore() {
	if v.set {
		_ = os.Setenv(v.name, v.value)
	} else {
		_ = os.Unsetenv(v.name)
	}
}

const logLevel = "TF_CPP_MIN_LOG_LEVEL" // XLA logs nothing below

// nothing is the level that leaves nothing: XLA returns its errors as well.
const nothing = "3"

var (
	level = look(logLevel)
	home  = instead("HOME", "/nonexistent")
)

// Restore undoes what go-xla's initialisation did, and what was done for it.
func Restore() {
	for _, v := range []variable{level, home} {
		if look(v.name) != v {
			v.restore()
		}
	}
}

// Quietly runs load with XLA's logging off, unless the environment says
// something about it. A plugin reads the level once, when it is loaded, and
// would otherwise write to standard error at every compilation.
func Quietly(load func() error) error {
	if v := instead(logLevel, nothing); v.value == "" {
		defer v.restore()
	}
	return load()
}
