//go:build unix

package gomlxfeed

import (
	"os"
	"syscall"
)

// die ends this process with the named signal, as a crashing plugin does. It
// returns if the name is unknown.
func die(how string) {
	if signal, known := map[string]syscall.Signal{"segv": syscall.SIGSEGV, "abort": syscall.SIGABRT, "kill": syscall.SIGKILL}[how]; known {
		_ = syscall.Kill(os.Getpid(), signal)
		select {} // the signal may arrive after Kill returns
	}
}
