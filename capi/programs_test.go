package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hang bounds the time of a program. It is far more than any of them needs.
const hang = 2 * time.Minute

// built is the folder of the library, which is built once for all tests.
var built = sync.OnceValues(func() (string, error) { return buildLibrary("") })

var temporary string

func TestMain(m *testing.M) {
	var err error
	if temporary, err = os.MkdirTemp("", "meshfeed capi "); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(temporary)
	os.Exit(code)
}

// buildLibrary runs build.sh and returns the folder of the library, a new one
// each time. The name of the folder has a space, as the folders of users may.
func buildLibrary(variant string, flags ...string) (string, error) {
	folder, err := os.MkdirTemp(temporary, "lib"+variant+" ")
	if err != nil {
		return "", err
	}
	out := filepath.Join(folder, "libmeshfeed.so")
	cmd := exec.Command("sh", append([]string{"build.sh", out}, flags...)...)
	cmd.Stderr = os.Stderr
	return folder, cmd.Run()
}

// library returns the folder of the library.
func library(t *testing.T) string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatalf("capi/build.sh: %v", err)
	}
	return folder
}

// compile compiles a program of ctest/ against the library in a folder, with
// warnings as errors.
func compile(t *testing.T, folder, source string, flags ...string) string {
	t.Helper()
	compiler, standard := "gcc", "-std=c99"
	if strings.HasSuffix(source, ".cc") {
		compiler, standard = "g++", "-std=c++17"
	}
	out := filepath.Join(t.TempDir(), "program")
	args := []string{standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-g", "-Iinclude", filepath.Join("ctest", source), "-o", out}
	args = append(args, flags...)
	args = append(args, filepath.Join(folder, "libmeshfeed.so"), "-pthread", "-Wl,-rpath,"+folder)
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, text)
	}
	return out
}

// execute runs a program for at most the time hang, and returns its standard output.
func execute(t *testing.T, program string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = t.TempDir()
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), problems.String())
	}
	return out.String()
}

// programs are tests in C and C++. The environment variable FILE is a copy of smallFile.
var programs = []string{"certificate.c", "devices.c", "life.c", "map.c", "digest.c", "errors.c", "every.c", "export.c", "fork.c", "memory.c", "models.c", "planner.c", "remesh.c", "rows.c", "silence.c", "split.c", "storage.c", "stream.c", "threads.c", "tokens.c", "views.c", "raii.cc"}

// comparedPrograms print what a test compares with the Go packages.
var comparedPrograms = []string{"advise.c", "diagram.c"}

func TestPrograms(t *testing.T) {
	folder := library(t)
	for _, source := range programs {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			if out := execute(t, compile(t, folder, source), "FILE="+copied(t, smallFile)); out != "ok\n" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestEveryProgramIsRun finds programs that no test runs.
func TestEveryProgramIsRun(t *testing.T) {
	entries, err := os.ReadDir("ctest")
	if err != nil {
		t.Fatal(err)
	}
	others := " abi.c asan.c check.h dlpack.h exit.c faults.c hang.c page.c queue.c sigbus.c sigurg.c slow.c soak.c "
	for _, e := range entries {
		if known := strings.Join(slices.Concat(programs, comparedPrograms), " ") + others; !strings.Contains(" "+known, " "+e.Name()+" ") {
			t.Errorf("ctest/%s is not run by any test", e.Name())
		}
	}
}

// TestReadyQueue runs the ready queue without Go, under ThreadSanitizer.
func TestReadyQueue(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	args := []string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-fsanitize=thread", "-I.", "-Iinclude",
		"ctest/queue.c", "queue.c", "pool.c", "fork.c", "-o", program, "-pthread"}
	if text, err := links(t, "-fsanitize=thread"); err != nil {
		t.Skipf("gcc has no ThreadSanitizer here: %v\n%s", err, text)
	}
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if out := execute(t, program); out != "ok\n" {
		t.Errorf("printed %q", out)
	}
}

// TestMistakesAreReported: with the released library, AddressSanitizer finds a
// batch that is used after its release, and one that is never released. The same holds for
// a column of rows.
func TestMistakesAreReported(t *testing.T) {
	if text, err := links(t, "-fsanitize=address"); err != nil {
		t.Skipf("gcc has no AddressSanitizer here: %v\n%s", err, text)
	}
	batches := compile(t, library(t), "asan.c", "-fsanitize=address")
	rows := compile(t, library(t), "rows.c", "-fsanitize=address")
	for _, c := range []struct{ program, mistake, want string }{
		{batches, "none", ""}, {batches, "late", "use-after-poison"}, {batches, "leak", "detected memory leaks"},
		{rows, "none", ""}, {rows, "late", "heap-use-after-free"}, {rows, "leak", "detected memory leaks"},
	} {
		program, mistake, want := c.program, c.mistake, c.want
		t.Run(mistake, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(os.Environ(), "MISTAKE="+mistake, "ASAN_OPTIONS=detect_leaks=1")
			text, err := cmd.CombinedOutput()
			if (err != nil) != (want != "") || !strings.Contains(string(text), want) {
				t.Errorf("%v, want a report of %q\n%s", err, want, text)
			}
		})
	}
}

// links reports whether the compiler links an empty program with a flag.
func links(t *testing.T, flag string) (string, error) {
	t.Helper()
	cmd := exec.Command("gcc", "-xc", flag, "-o", filepath.Join(t.TempDir(), "empty"), "-")
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// TestFaults builds a library with injected faults: loaders that panic or hang, files that
// are truncated, and a file that hangs when it is opened.
func TestFaults(t *testing.T) {
	folder, err := buildLibrary(" faults", "-tags=meshfeed_faults")
	if err != nil {
		t.Fatal(err)
	}
	for source, cases := range faulty(t) {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			program := compile(t, folder, source)
			for _, env := range cases {
				if out := execute(t, program, env); out != "ok\n" {
					t.Errorf("%s: printed %q", env, out)
				}
			}
		})
	}
}

// faulty returns the programs for a library with faults, each with the
// environments to run it in.
func faulty(t *testing.T) map[string][]string {
	return map[string][]string{
		"faults.c": {"-="},
		"hang.c":   {"-="},
		"exit.c":   {"EXIT=return", "EXIT=thread", "EXIT=memory", "EXIT=twice"},
		"sigurg.c": {"SIGURG=untouched", "SIGURG=handled", "SIGURG=ignored", "SIGURG=blocked", "SIGURG=inherited"},
		"sigbus.c": {"FILE=" + copied(t, smallFile)},
	}
}

// smallFile is a file with a float field "image" of 4 x 3.
const smallFile = "../internal/arrowmeta/testdata/fixed.arrow"

// copied returns the path of a copy of a file.
func copied(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSoak opens, reads, fails, cancels, forks and closes many times.
func TestSoak(t *testing.T) {
	rounds := "ROUNDS=200"
	if os.Getenv("MESHFEED_DEEP") != "" {
		rounds = "ROUNDS=20000"
	}
	if out := execute(t, compile(t, library(t), "soak.c"), rounds, "FILE="+copied(t, smallFile)); out != "ok\n" {
		t.Errorf("printed %q", out)
	}
}

func deep(t *testing.T) {
	if os.Getenv("MESHFEED_DEEP") == "" {
		t.Skip("set MESHFEED_DEEP=1")
	}
}

// sanitized builds the library with AddressSanitizer, which checks Go's accesses to C memory, and
// with Go's strictest checks of pointers: cgocheck2 checks pointers in C memory, and -asan implies
// checkptr, which checks conversions. One build has all, because each compiles all packages.
func sanitized(t *testing.T, flags ...string) string {
	t.Helper()
	deep(t)
	t.Setenv("GOEXPERIMENT", "cgocheck2")
	folder, err := buildLibrary(" asan", append([]string{"-asan"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestSanitized runs the programs under AddressSanitizer, LeakSanitizer and Go's checks.
func TestSanitized(t *testing.T) {
	folder := sanitized(t)
	for _, source := range comparedPrograms {
		t.Run(source, func(t *testing.T) {
			execute(t, compile(t, folder, source, "-fsanitize=address"), "ASAN_OPTIONS=detect_leaks=1")
		})
	}
	for _, source := range programs {
		t.Run(source, func(t *testing.T) {
			options := "ASAN_OPTIONS=detect_leaks=1"
			if source == "fork.c" || source == "silence.c" {
				options = "ASAN_OPTIONS=detect_leaks=0" // these programs leak on purpose
			}
			if out := execute(t, compile(t, folder, source, "-fsanitize=address"), options, "FILE="+copied(t, smallFile)); out != "ok\n" {
				t.Errorf("printed %q", out)
			}
		})
	}
}

// TestSanitizedFaults does the same for the programs with injected faults. They
// leave hanging calls and memory behind on purpose, so leaks are not checked.
func TestSanitizedFaults(t *testing.T) {
	folder := sanitized(t, "-tags=meshfeed_faults")
	for source, cases := range faulty(t) {
		t.Run(source, func(t *testing.T) {
			program := compile(t, folder, source, "-fsanitize=address")
			for _, env := range cases {
				if out := execute(t, program, env, "ASAN_OPTIONS=detect_leaks=0"); out != "ok\n" {
					t.Errorf("%s: printed %q", env, out)
				}
			}
		})
	}
}
