//go:build unix

package arrowio_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/meshfeed/meshfeed/core/status"
)

// TestWithoutPermission opens files that this user may not read. The superuser may
// read everything, so the test then runs as another user.
func TestWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		asNobody(t)
		return
	}
	folder(t, map[string][]byte{"x.arrow": numbered(t, 1), "dir/x.arrow": numbered(t, 1)})
	const hint = "; give this user the right to read it, and to enter its directories"
	for _, path := range []string{"x.arrow", "dir"} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod("dir", 0o700)
	refused(t, []string{"x.arrow"}, status.IO, "x.arrow: permission denied"+hint)
	refused(t, []string{"dir"}, status.IO, "dir: permission denied"+hint)
	refused(t, []string{"dir/x.arrow"}, status.IO, "dir/x.arrow: permission denied"+hint)
}

// asNobody runs only this test as a user without rights. That user may not enter the
// folder of the program, so the link in /proc is used.
func asNobody(t *testing.T) {
	t.Helper()
	const nobody = 65534
	folder := t.TempDir() // in one that only this user may enter
	if err := errors.Join(os.Chmod(filepath.Dir(folder), 0o711), os.Chown(folder, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "TMPDIR="+folder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
}
