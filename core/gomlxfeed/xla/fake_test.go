//go:build cgo && (linux || darwin)

package xla

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// headers returns the folder of go-xla's C header.
func headers(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gomlx/go-xla").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "pjrt")
}

var built struct {
	sync.Once
	library string
	err     error
}

// compile builds a shared library from C source, once per test binary.
func compile(t *testing.T, out string, args ...string) error {
	t.Helper()
	args = append([]string{"-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", out}, args...)
	if output, err := exec.Command(compiler(t), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v\n%s", err, output)
	}
	return nil
}

func compiler(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: the fake plugin cannot be built")
	}
	return cc
}

// fake returns the path of a new copy of the fake plugin, which go-xla and this
// package load separately, and configures it.
func fake(t *testing.T, settings string) string {
	t.Helper()
	compiler(t)
	built.Do(func() {
		var dir string
		if dir, built.err = os.MkdirTemp("", "fake-pjrt"); built.err == nil {
			built.library = filepath.Join(dir, "plugin.so")
			built.err = compile(t, built.library, "-I", headers(t), filepath.Join("testdata", "fake_pjrt.c"))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	path := filepath.Join(t.TempDir(), "plugin.so")
	copyFile(t, built.library, path)
	behave(t, settings)
	return path
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// behave configures the fake plugin from now on.
func behave(t *testing.T, settings string) {
	t.Helper()
	t.Setenv("FAKE_PJRT", settings)
}

// record makes the fake plugin log its calls. The returned function returns the
// lines of this process, or of its children, since the last call.
func record(t *testing.T) func(children bool) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	t.Setenv("FAKE_PJRT_LOG", path)
	return func(children bool) []string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(data)) {
			pid, event, _ := strings.Cut(strings.TrimSpace(line), " ")
			if (pid != strconv.Itoa(os.Getpid())) == children {
				lines = append(lines, event)
			}
		}
		return lines
	}
}

// balance counts objects that were created and not destroyed, by kind.
func balance(events []string) map[string]int {
	left := map[string]int{}
	for _, event := range events {
		word, _, _ := strings.Cut(event, " ")
		if name, made := strings.CutSuffix(word, "+"); made {
			left[name]++
		} else if name, gone := strings.CutSuffix(word, "-"); gone {
			left[name]--
		}
	}
	return left
}

// only returns the events that begin with a word.
func only(events []string, word string) []string {
	var list []string
	for _, event := range events {
		if strings.HasPrefix(event, word) {
			list = append(list, event)
		}
	}
	return list
}
