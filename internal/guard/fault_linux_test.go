package guard_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/internal/guard"
)

// Reading a mapping after its file has shrunk is an error.
func TestFaultIsCaught(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := syscall.Mmap(int(f.Fd()), 0, 1<<16, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(data)
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	sum := 0
	err = guard.Fault(func() error {
		for _, b := range data {
			sum += int(b)
		}
		return nil
	}, func(cause any) error { return status.Errorf(status.DataLoss, "test", "%v", cause) })
	if status.CodeOf(err) != status.DataLoss {
		t.Errorf("got %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer did not panic")
		}
	}()
	var nowhere *int
	_ = guard.Fault(func() error { sum += *nowhere; return nil }, func(any) error { return nil })
}
