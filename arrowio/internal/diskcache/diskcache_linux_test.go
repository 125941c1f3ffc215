package diskcache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/meshfeed/meshfeed/core/status"
	"github.com/meshfeed/meshfeed/tests/random"
)

func open(t *testing.T, dir string, limit int64) *Folder {
	t.Helper()
	f, err := Open(dir, limit)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// content returns the bytes of an entry, which its number determines.
func content(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 100_000) }

// put writes an entry in pieces. It returns nil if another process has it.
func put(f *Folder, key string, data []byte) (*os.File, error) {
	s, err := f.Create(key)
	if s == nil || err != nil {
		return nil, err
	}
	for at := 0; at < len(data); at += 1000 {
		if _, err := s.Write(data[at:min(at+1000, len(data))]); err != nil {
			s.Abort()
			return nil, err
		}
	}
	return s.Commit()
}

func mustPut(t *testing.T, f *Folder, key string, size int) *os.File {
	t.Helper()
	file, err := put(f, key, make([]byte, size))
	if file == nil || err != nil {
		t.Fatalf("%q was not made: %v", key, err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func has(t *testing.T, f *Folder, key string) bool {
	t.Helper()
	file, err := f.Find(key)
	if err != nil {
		t.Fatal(err)
	}
	if file != nil {
		_ = file.Close()
	}
	return file != nil
}

// TestMain runs a process that writes and reads entries until it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("MESHFEED_TEST_CACHE")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := churn(dir); err != nil {
		fmt.Println(err)
	}
	os.Exit(1) // only a kill ends it
}

// churn makes, reads and removes entries without end. It returns when an entry is wrong.
func churn(dir string) error {
	f, err := Open(dir, 1<<20)
	if err != nil {
		return err
	}
	for n := 0; ; n = (n + 1) % 16 {
		key := fmt.Sprint("entry", n)
		file, err := f.Find(key)
		if err == nil && file == nil {
			file, err = put(f, key, content(n))
		}
		switch {
		case err != nil:
			return err
		case file == nil:
			continue
		}
		data, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
		_ = file.Close()
		if err != nil || !bytes.Equal(data, content(n)) {
			return fmt.Errorf("%s has %d wrong bytes: %v", key, len(data), err)
		}
	}
}

// TestKilledProcesses: two processes that share a folder are killed again and again. What
// is left are whole entries, within the limit, and nothing else after the next open.
func TestKilledProcesses(t *testing.T) {
	dir, r := t.TempDir(), random.New(t)
	for range 12 {
		var children []*exec.Cmd
		var said [2]bytes.Buffer
		for i := range said {
			c := exec.Command(os.Args[0])
			c.Env, c.Stdout = append(os.Environ(), "MESHFEED_TEST_CACHE="+dir), &said[i]
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			children = append(children, c)
		}
		time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond) // the moment of the kill
		for i, c := range children {
			_ = c.Process.Kill()
			_ = c.Wait()
			if said[i].Len() > 0 {
				t.Fatal(said[i].String())
			}
		}
		f := open(t, dir, 1<<20)
		list, err := f.List()
		if err != nil || total(list) > 1<<20 {
			t.Fatalf("%d bytes: %v", total(list), err)
		}
		for _, i := range list {
			var n int
			_, _ = fmt.Sscanf(i.Key, "entry%d", &n)
			data, _ := os.ReadFile(f.entry(i.Key))
			if i.Scratch || i.InUse || !bytes.Equal(data, content(n)) {
				t.Errorf("%+v is left with %d bytes", i, len(data))
			}
		}
	}
}

// TestOldestUseGoesFirst: the limit holds, an entry that is open stays, and a use counts.
func TestOldestUseGoesFirst(t *testing.T) {
	f := open(t, t.TempDir(), 1000)
	open := mustPut(t, f, "open", 300)
	for _, key := range []string{"a", "b"} {
		_ = mustPut(t, f, key, 300).Close()
	}
	old := time.Now().Add(-time.Hour)
	for i, key := range []string{"open", "b", "a"} {
		at := old.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(f.entry(key), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if !has(t, f, "b") { // now used after "a"
		t.Fatal("no b")
	}
	_ = mustPut(t, f, "c", 300).Close()
	if !has(t, f, "open") || has(t, f, "a") || !has(t, f, "b") || !has(t, f, "c") {
		t.Error("not the entry that was used longest ago was removed")
	}
	_, err := put(f, "large", make([]byte, 800))
	want := fmt.Sprintf("arrowio: the cache in %s may have 1000 bytes, and what is in use leaves no room; give it more (cache_bytes), or clear it: meshfeed cache clear", f.Path())
	if err == nil || err.Error() != want || status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for errno, code := range map[syscall.Errno]status.Code{
		syscall.ENOSPC: status.ResourceExhausted, syscall.EDQUOT: status.ResourceExhausted, syscall.EIO: status.IO,
	} {
		if err := f.failed(&fs.PathError{Op: "write", Path: "x", Err: errno}); status.CodeOf(err) != code || !errors.Is(err, errno) {
			t.Errorf("%v has the code %v", err, status.CodeOf(err))
		}
	}
	_ = open.Close()
	if _, err := put(f, "large", make([]byte, 800)); err != nil {
		t.Errorf("an entry that fits alone: %v", err)
	}
}

// TestFullDisk: if others have filled the disk, entries that no process uses make room. Without any, a writer fails.
func TestFullDisk(t *testing.T) {
	f := open(t, t.TempDir(), 1<<30)
	used := mustPut(t, f, "used", 1000)
	_ = mustPut(t, f, "old", 1000).Close()
	defer func() { writeAt = (*os.File).WriteAt }()
	writeAt = func(file *os.File, p []byte, at int64) (int, error) {
		if _, err := os.Stat(f.entry("old")); err == nil || at >= 5000 {
			return 0, &fs.PathError{Op: "write", Path: file.Name(), Err: syscall.ENOSPC}
		}
		return file.WriteAt(p, at)
	}
	if file, err := put(f, "new", make([]byte, 5000)); err != nil {
		t.Error(err)
	} else {
		_ = file.Close()
	}
	_, err := put(f, "large", make([]byte, 6000))
	if want := fmt.Sprintf("arrowio: the cache in %s: no space left on device; make room, or keep decoded rows in memory (cache=\"memory\")", f.Path()); err == nil || err.Error() != want || status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if list, err := f.List(); err != nil || len(list) != 1 || list[0].Key != "used" || !has(t, f, "used") {
		t.Errorf("%+v, %v", list, err)
	}
	_ = used.Close()
}

// TestOneWriter: a second writer of an entry gets nothing, during the first and after it.
func TestOneWriter(t *testing.T) {
	f := open(t, t.TempDir(), 1<<20)
	s, err := f.Create("key")
	if err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"during", "after"} {
		if again, err := f.Create("key"); again != nil || err != nil {
			t.Errorf("%s a write: %v, %v", when, again, err)
		}
		if when == "during" {
			if has(t, f, "key") {
				t.Error("an entry that is being written was found")
			}
			file, err := s.Commit()
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
		}
	}
	if removed, _, left, err := f.Clear(); removed != 0 || left != 1 || err != nil {
		t.Errorf("an open entry: %d removed, %d left, %v", removed, left, err)
	}
}

// TestForeignFiles: files of other names stay, and entries of any version count and go.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"notes.txt": 5000, "ffff.units": 400, "dead.scratch": 300} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := open(t, dir, 1000)
	list, err := f.List()
	if err != nil || len(list) != 1 || list[0].Key != "ffff" || list[0].Bytes != 400 {
		t.Fatalf("%+v, %v", list, err)
	}
	_ = mustPut(t, f, "new", 900).Close()
	if removed, bytes, left, err := f.Clear(); removed != 1 || bytes != 900 || left != 0 || err != nil {
		t.Errorf("%d removed of %d bytes, %d left, %v", removed, bytes, left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

// TestUnusableFolders: a file in place of the folder, and a disk without room.
func TestUnusableFolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, 0); err == nil || !strings.Contains(err.Error(), "the cache in "+path+": not a directory") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Look(path + "2"); status.CodeOf(err) != status.NotFound {
		t.Errorf("no folder: %v", err)
	}
	f := open(t, t.TempDir(), 0)
	free, err := freeBytes(f.Path())
	if err != nil || f.Limit() <= 0 || f.Limit() > free {
		t.Errorf("a limit of %d bytes of %d that are free, %v", f.Limit(), free, err)
	}
	if info, err := os.Stat(open(t, filepath.Join(t.TempDir(), "a", "b"), 0).Path()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
