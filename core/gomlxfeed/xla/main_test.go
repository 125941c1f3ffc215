//go:build cgo && (linux || darwin)

package xla

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/meshfeed/meshfeed/core/gomlxfeed"
)

// TestMain lets the test binary run as the child process that tries a plugin.
func TestMain(m *testing.M) {
	gomlxfeed.RunProbe()
	if os.Getenv(tellEnvironment) != "" {
		fmt.Print(os.Environ())
		os.Exit(0)
	}
	code := m.Run()
	if built.library != "" {
		_ = os.RemoveAll(filepath.Dir(built.library))
	}
	os.Exit(code)
}
