//go:build unix

package arrowio_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/meshfeed/meshfeed/arrowio"
	"github.com/meshfeed/meshfeed/core/source"
	"github.com/meshfeed/meshfeed/core/status"
)

// TestWithoutPermission opens files that this user may not read. The superuser may
// read everything, so the test then runs as another user.
func TestWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		asUnprivileged(t)
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

// TestReadOnlyCache: a folder that cannot be written serves the fields with all their parts
// in it, and refuses others. "auto" decodes the others in memory.
func TestReadOnlyCache(t *testing.T) {
	onDisk(t)
	const parquet = "testdata/parquet/nulls.parquet"
	if os.Geteuid() == 0 {
		asUnprivileged(t, parquet)
		return
	}
	path := copyOf(t, given(parquet))
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	cache := filepath.Join(home, "meshfeed", "units")
	first := openCached(t, path, cache, arrowio.Options{})
	want := gatherRows(t, first, firstFixed(t, first))
	made := entries(t, cache)
	if err := os.Chmod(cache, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(cache, 0o700)

	again := openCached(t, path, cache, arrowio.Options{CacheBytes: 1})
	field := firstFixed(t, again)
	if got := gatherRows(t, again, field); !bytes.Equal(got, want) {
		t.Error("other rows come from the folder")
	}
	if c := source.CacheInfoOf(again); c.Folder != cache || c.Problem != nil || c.Limit <= 0 {
		t.Errorf("%+v", c)
	}
	message := "arrowio: the cache in " + cache + ": permission denied, and 1 of 1 files of the decoded fields are not in it; give a folder that this user may write, or keep decoded rows in memory (cache=\"memory\")"
	if _, err := again.Gatherer([]source.Part{again.Schema().Whole(field + 1)}); status.CodeOf(err) != status.IO || err.Error() != message {
		t.Errorf("got  %v\nwant %s", err, message)
	}
	auto := openCached(t, path, "auto", arrowio.Options{})
	auto.KeepOnDisk()
	gatherRows(t, auto, field+1)
	if err := source.CacheInfoOf(auto).Problem; err == nil || err.Error() != message {
		t.Errorf("got  %v\nwant %s", err, message)
	}
	if now := entries(t, cache); !slices.Equal(now, made) {
		t.Errorf("the entries were %v, and are %v", made, now)
	}

	none := filepath.Join(home, "none")
	if err := os.Mkdir(none, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := arrowio.OpenFiles(t.Context(), []string{path}, arrowio.Options{Cache: none})
	if err == nil || !strings.Contains(err.Error(), "the cache in "+none+": permission denied; give a folder") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestClearWithoutPermission: files that cannot be removed are not called files in use.
func TestClearWithoutPermission(t *testing.T) {
	onDisk(t)
	if os.Geteuid() == 0 {
		asUnprivileged(t)
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"a.units", "b.units"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("decoded"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	cache, err := arrowio.OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := cache.Entries(); len(list) != 2 || list[0].InUse || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	removed, _, used, err := cache.Clear()
	want := "arrowio: 2 files of the cache in " + dir + " cannot be removed: permission denied; clear it as a user that may write the folder and owns the files"
	if removed != 0 || used != 0 || status.CodeOf(err) != status.IO || err.Error() != want {
		t.Errorf("%d removed, %d in use, got %v\nwant %s", removed, used, err, want)
	}
}

// given returns the copy of a file of testdata that asUnprivileged has made, or the file.
func given(path string) string {
	if copied := filepath.Join(os.TempDir(), filepath.Base(path)); os.Getenv("MESHFEED_UNPRIVILEGED") != "" {
		return copied
	}
	return path
}

// asUnprivileged runs only this test as a user without rights, with copies of some files. That user
// may not enter the folder of the program, so the link in /proc is used.
func asUnprivileged(t *testing.T, files ...string) {
	t.Helper()
	const unprivileged = 65534
	folder := t.TempDir() // in one that only this user may enter
	if err := errors.Join(os.Chmod(filepath.Dir(folder), 0o711), os.Chown(folder, unprivileged, unprivileged)); err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(path)), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = "/", append(os.Environ(), "TMPDIR="+folder, "MESHFEED_UNPRIVILEGED=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name())) {
		t.Errorf("%v\n%s", err, out)
	}
}
