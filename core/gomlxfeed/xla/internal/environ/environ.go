// Package environ keeps one variable of the environment as the owner of the
// process set it: TF_CPP_MIN_LOG_LEVEL, below which XLA does not log.
//
// go-xla sets it when it is initialised, for the whole process. This package
// remembers it before: the Go specification initialises packages in the order
// of their import paths, each as soon as its imports are. This one imports only
// package os, so it comes before k8s.io/klog/v2, which go-xla waits for.
package environ

import "os"

const variable = "TF_CPP_MIN_LOG_LEVEL"

// errorsOnly is the level above which nothing is left: XLA's errors are
// returned as well.
const errorsOnly = "3"

var before, given = os.LookupEnv(variable)

// Restore sets the variable to what it was before go-xla changed it.
func Restore() { put(before, given) }

// Quietly runs load with XLA's logging off, unless the environment says
// something about it. A plugin reads the variable once, when it is loaded, and
// would otherwise write to standard error at every compilation.
func Quietly(load func() error) error {
	if level := os.Getenv(variable); level != "" {
		return load()
	}
	value, set := os.LookupEnv(variable)
	defer put(value, set)
	put(errorsOnly, true)
	return load()
}

func put(value string, set bool) {
	if set {
		_ = os.Setenv(variable, value) // it fails for malformed names only
	} else {
		_ = os.Unsetenv(variable)
	}
}
