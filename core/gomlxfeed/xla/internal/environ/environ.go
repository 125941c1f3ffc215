// Package environ undoes go-xla's changes of the environment.
//
// When go-xla is initialized, it sets TF_CPP_MIN_LOG_LEVEL for the whole process. If HOME
// is not set, it also prints to standard error. This package is initialized before go-xla
// and records both variables. Go initializes packages in the order of their import paths,
// each after its imports. This package imports only os, while go-xla imports
// k8s.io/klog/v2, which comes later.
package environ

import "os"

// variable is a recorded environment variable.
type variable struct {
	name, value string
	set         bool
}

func look(name string) variable {
	value, set := os.LookupEnv(name)
	return variable{name, value, set}
}

// setDefault sets a variable that is empty or not set. It returns the variable as
// it was before.
func setDefault(name, value string) variable {
	v := look(name)
	if v.value == "" {
		_ = os.Setenv(name, value) // fails for malformed names only
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

const logLevel = "TF_CPP_MIN_LOG_LEVEL" // XLA does not log below this level

// noLogs is the level above all messages. XLA returns its errors anyway.
const noLogs = "3"

var (
	level = look(logLevel)
	home  = setDefault("HOME", "/nonexistent")
)

// Restore undoes the changes of go-xla's initialization and of this package.
func Restore() {
	for _, v := range []variable{level, home} {
		if look(v.name) != v {
			v.restore()
		}
	}
}

// Quietly runs load with XLA's logging off, unless the environment sets a level. A
// plugin reads the level once, when it is loaded. Without this it would write to
// standard error at every compilation.
func Quietly(load func() error) error {
	if v := setDefault(logLevel, noLogs); v.value == "" {
		defer v.restore()
	}
	return load()
}
